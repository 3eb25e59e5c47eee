# libraries.cmake -- what users link and run: libtec, libtec_runtime (each shared and static) and the programs.
#
# libtec holds every room but the tools; libtec_runtime holds base and runtime alone and needs nothing but libc.

function(tec_set_library target output_name)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${output_name} LINKER_LANGUAGE C
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
endfunction()

# NAME and NAME_static from the objects of `rooms`, those that exist.
function(tec_add_library name output_name rooms)
    set(objects "")
    set(uses "")
    foreach(room IN LISTS rooms)
        tec_room_target(${room} target)
        list(APPEND objects $<TARGET_OBJECTS:${target}>)
        list(APPEND uses ${TEC_USES_${room}})
    endforeach()
    list(REMOVE_DUPLICATES uses)
    list(TRANSFORM uses PREPEND tec_uses_)
    add_library(${name} SHARED ${objects})
    target_link_options(${name} PRIVATE -Wl,--no-undefined -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/exports.map)
    set_target_properties(${name} PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/exports.map)
    add_library(${name}_static STATIC ${objects})
    foreach(target ${name} ${name}_static)
        tec_set_library(${target} ${output_name})
        target_link_libraries(${target} PRIVATE ${uses})
    endforeach()
endfunction()

set(rooms ${TEC_ROOMS})
list(REMOVE_ITEM rooms tools)
tec_add_library(libtec tec "${rooms}")
list(FILTER rooms INCLUDE REGEX "^(base|runtime)$")
tec_add_library(libtec_runtime tec_runtime "${rooms}")

# The program NAME from tools/NAME.c and the given targets.
function(tec_add_program name)
    add_executable(${name} ${CMAKE_SOURCE_DIR}/tools/${name}.c)
    target_compile_options(${name} PRIVATE ${TEC_WARNINGS})
    target_link_libraries(${name} PRIVATE tec_flags ${ARGN})
endfunction()

tec_add_program(tec tec_tools_archive libtec_static)
# A runner dies of what it runs, and another is started: it links the runtime alone.
tec_add_program(tec_runner tec_worker_archive libtec_runtime_static)
