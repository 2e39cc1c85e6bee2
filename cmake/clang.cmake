# For presets that take clang: the version that CI has where that is installed, or else whichever there is. Another one:
# -DCMAKE_C_COMPILER=... -DCMAKE_CXX_COMPILER=... on the command line.
foreach(pair "C clang" "CXX clang++")
    separate_arguments(pair)
    list(GET pair 0 language)
    list(GET pair 1 name)
    if(NOT CMAKE_${language}_COMPILER)
        find_program(TSLAB_CLANG_${language} NAMES ${name}-14 ${name} ${name}-19 ${name}-18 ${name}-17 ${name}-16 ${name}-15)
        if(NOT TSLAB_CLANG_${language})
            message(FATAL_ERROR "no ${name}: Debian has it in the package clang-14")
        endif()
        set(CMAKE_${language}_COMPILER ${TSLAB_CLANG_${language}})
    endif()
endforeach()
# Its own linker, if it is there, takes half the time.
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-prog-name=ld.lld OUTPUT_VARIABLE lld OUTPUT_STRIP_TRAILING_WHITESPACE)
if(EXISTS "${lld}")
    set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
endif()
