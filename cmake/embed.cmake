# embed.cmake -- writes files as arrays of C: cmake -DOUT=page_data.h -DFILES="a.html;b.js" -P embed.cmake. The array of
# x/page.js is called page_js.
set(text "/* Made by cmake/embed.cmake. */\n")
foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "static const unsigned char ${name}[] = {${bytes}};\n")
endforeach()
file(WRITE ${OUT} "${text}")
