# What is installed, and where. Two components:
#
#   library   libraries, headers, what CMake, pkg-config and gdb look for, the manual page, the licence: make install-lib
#   programs  what was built of the programs, with their pages; what `make tslab` has made; units, rules, dashboards
include(CMakePackageConfigHelpers)

set(share ${CMAKE_INSTALL_DATADIR}/temporal-slab)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/temporal-slab)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_to_prefix /prefix/${pkgconfig_dir} /prefix) # keeps the installed tree movable
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
set(pc_libs "")
set(pc_libs_private " -pthread")
if(NOT "temporal_slab" IN_LIST libraries) # a static library alone needs it at once
    set(pc_libs " -pthread")
    set(pc_libs_private "")
endif()

configure_file(cmake/temporal-slab.pc.in temporal-slab.pc @ONLY)
configure_package_config_file(cmake/temporal-slabConfig.cmake.in temporal-slabConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(temporal-slabConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(share/man/temporal-slab.7 man/temporal-slab.7 @ONLY)

# ---- the library ----
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
install(TARGETS ${libraries} EXPORT temporal-slabTargets
        LIBRARY COMPONENT library NAMELINK_COMPONENT library ARCHIVE COMPONENT library)
install(EXPORT temporal-slabTargets NAMESPACE temporal_slab:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/temporal-slabConfig.cmake ${PROJECT_BINARY_DIR}/temporal-slabConfigVersion.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/temporal-slab.pc DESTINATION ${pkgconfig_dir})
install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${nested_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/temporal_slab)
install(FILES ${PROJECT_BINARY_DIR}/man/temporal-slab.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
install(FILES share/gdb/temporal_slab.py DESTINATION ${share})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET temporal_slab_preload)
    install(TARGETS temporal_slab_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# ---- programs ----
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME programs)
install(FILES share/stats.schema.json DESTINATION ${share})

# A manual page is what the program says of itself, so the programs have to run here.
set(man_pages "")
macro(install_program target name)
    install(PROGRAMS $<TARGET_FILE:${target}> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ${name})
    if(NOT CMAKE_CROSSCOMPILING)
        set(page ${PROJECT_BINARY_DIR}/man/${name}.1)
        add_custom_command(OUTPUT ${page} DEPENDS ${target} ${PROJECT_SOURCE_DIR}/scripts/man-page.sh VERBATIM
                           COMMAND ${PROJECT_SOURCE_DIR}/scripts/man-page.sh ${name} $<TARGET_FILE:${target}> ${page})
        install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
        list(APPEND man_pages ${page})
    endif()
endmacro()

# Names that others may have as well carry a prefix. The names without it are links, for programs that call them.
macro(install_prefixed target)
    string(REPLACE "_" "-" name tslab-${target})
    install_program(${target} ${name})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/links)
    file(CREATE_LINK ${name} ${PROJECT_BINARY_DIR}/links/${target} SYMBOLIC)
    install(FILES ${PROJECT_BINARY_DIR}/links/${target} DESTINATION ${CMAKE_INSTALL_BINDIR})
endmacro()

if(TSLAB_BUILD_TOOLS)
    install_prefixed(stats_dump)
    install_prefixed(synthetic_bench)
    # What `make tslab` has made, with its manual pages and completions; nothing when it has not.
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/build/tslab DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/build/tslab-share/ DESTINATION ${CMAKE_INSTALL_DATADIR} OPTIONAL)
endif()
if(TARGET tslabd)
    install_program(tslabd tslabd)
    install(DIRECTORY share/systemd share/prometheus share/grafana DESTINATION ${share})
    install(FILES share/compose.yml DESTINATION ${share})
endif()
add_custom_target(tslab_man_pages ALL DEPENDS ${man_pages})
