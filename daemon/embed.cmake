# Writes a C file with the bytes of another: cmake -DIN=file -DOUT=file.c -DNAME=page_js -P embed.cmake
# Without IN, or when it is empty, the asset is empty.
set(bytes "")
if(IN)
    file(READ "${IN}" hex HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
endif()
file(WRITE "${OUT}" "#include \"assets.h\"\n\nstatic const unsigned char bytes[] = {\n${bytes}0};\n"
     "const struct asset asset_${NAME} = {bytes, sizeof bytes - 1};\n")
