# rooms.cmake -- makes the targets of each room from cmake/rooms.txt and the files that lie in its folder.
#
# For a room `a/b` with at least one .c file: the object library tec_a_b, and the archive tec_a_b_archive, which brings the
# rooms below with it. Tests link archives, so that they reach internal symbols and need only what they call. A new file or
# the first file of a room is found at the next build.

file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/rooms.txt TEC_ROOM_LINES REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/rooms.txt)

# Sets ROOM, ROOM_BELOW and ROOM_LIBRARIES from a line of the table.
function(tec_read_room line)
    string(REPLACE " " "" line "${line}")
    string(REPLACE "|" ";" cells "${line}")
    list(GET cells 0 room)
    list(GET cells 2 below)
    list(GET cells 3 libraries)
    string(REGEX REPLACE "^-$" "" below "${below}")
    string(REGEX REPLACE "^-$" "" libraries "${libraries}")
    string(REPLACE "," ";" below "${below}")
    # `targets/*`: every room so far that begins so.
    foreach(name IN LISTS below)
        if(name MATCHES "^(.*/)[*]$")
            list(REMOVE_ITEM below ${name})
            set(known ${TEC_TABLE})
            list(FILTER known INCLUDE REGEX "^${CMAKE_MATCH_1}")
            list(APPEND below ${known})
        endif()
    endforeach()
    string(REPLACE "," ";" libraries "${libraries}")
    set(ROOM ${room} PARENT_SCOPE)
    set(ROOM_BELOW "${below}" PARENT_SCOPE)
    set(ROOM_LIBRARIES "${libraries}" PARENT_SCOPE)
endfunction()

# The target name of a room: targets/llvm -> tec_targets_llvm.
function(tec_room_target room out)
    string(REPLACE "/" "_" name ${room})
    set(${out} tec_${name} PARENT_SCOPE)
endfunction()

# Sources made from ROOM/*.proto at build time, as an include path and objects of their own: generated code is not held to
# our warnings.
function(tec_room_protos target room)
    file(GLOB protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/*.proto)
    foreach(proto IN LISTS protos)
        get_filename_component(stem ${proto} NAME_WE)
        set(dir ${CMAKE_BINARY_DIR}/generated/${room})
        file(MAKE_DIRECTORY ${dir})
        add_custom_command(
            OUTPUT ${dir}/${stem}.pb-c.c ${dir}/${stem}.pb-c.h
            COMMAND ${PROTOC_C} --c_out=${dir} --proto_path=${CMAKE_SOURCE_DIR}/${room} ${proto}
            DEPENDS ${proto}
            VERBATIM)
        target_sources(${target} PRIVATE ${dir}/${stem}.pb-c.c ${dir}/${stem}.pb-c.h)
        set_source_files_properties(${dir}/${stem}.pb-c.c PROPERTIES COMPILE_OPTIONS "-w")
    endforeach()
endfunction()

# The files of ROOM/page/ as arrays in generated/ROOM/page_data.h.
function(tec_room_page target room)
    file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/page/*)
    if(NOT pages)
        return()
    endif()
    set(out ${CMAKE_BINARY_DIR}/generated/${room}/page_data.h)
    add_custom_command(
        OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DOUT=${out} "-DFILES=${pages}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
        DEPENDS ${pages} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${out})
endfunction()

function(tec_add_room room libraries)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/*.c)
    # The main functions of programs stay out of the archive that tests link.
    list(FILTER sources EXCLUDE REGEX "/(tools/(tec|tec_runner)|tvmtune/tvmtune|tracker/rpc_tracker|rpc/server/rpc_server)\\.c$")
    if(NOT sources)
        return()
    endif()
    tec_room_target(${room} target)
    add_library(${target} OBJECT ${sources})
    target_link_libraries(${target} PUBLIC tec_flags)
    target_compile_options(${target} PRIVATE ${TEC_WARNINGS})
    foreach(library IN LISTS libraries)
        target_link_libraries(${target} PUBLIC tec_uses_${library})
    endforeach()
    tec_room_protos(${target} ${room})
    tec_room_page(${target} ${room})
    add_library(${target}_archive STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}>)
    # An archive has no object of its own to take the language from.
    set_target_properties(${target}_archive PROPERTIES LINKER_LANGUAGE C)
    foreach(library IN LISTS libraries)
        target_link_libraries(${target}_archive PUBLIC tec_uses_${library})
    endforeach()
    set_property(GLOBAL APPEND PROPERTY TEC_ROOMS ${room})
endfunction()

# An archive names the archives of the rooms below it, in the order of the table.
function(tec_link_room room below)
    tec_room_target(${room} target)
    foreach(lower IN LISTS below)
        tec_room_target(${lower} lower_target)
        if(TARGET ${lower_target})
            target_link_libraries(${target}_archive PUBLIC ${lower_target}_archive)
        endif()
    endforeach()
endfunction()

# Every room of the rows below `room`, existing or not, as one list: the room itself first.
function(tec_room_closure room out)
    set(todo ${room})
    set(found "")
    while(todo)
        list(POP_FRONT todo next)
        if(next IN_LIST found)
            continue()
        endif()
        list(APPEND found ${next})
        list(APPEND todo ${TEC_BELOW_${next}})
    endwhile()
    set(${out} "${found}" PARENT_SCOPE)
endfunction()

foreach(line IN LISTS TEC_ROOM_LINES)
    tec_read_room("${line}")
    set(TEC_BELOW_${ROOM} "${ROOM_BELOW}")
    set(TEC_USES_${ROOM} "${ROOM_LIBRARIES}")
    list(APPEND TEC_TABLE ${ROOM})
endforeach()
if(TEC_BOARD)
    tec_room_closure(rpc/server TEC_BUILT)
else()
    set(TEC_BUILT ${TEC_TABLE})
endif()
foreach(room IN LISTS TEC_TABLE)
    if(room IN_LIST TEC_BUILT)
        tec_add_room(${room} "${TEC_USES_${room}}")
    endif()
endforeach()
get_property(TEC_ROOMS GLOBAL PROPERTY TEC_ROOMS)
foreach(room IN LISTS TEC_ROOMS)
    tec_room_closure(${room} closure)
    list(REMOVE_ITEM closure ${room})
    tec_link_room(${room} "${closure}")
endforeach()
