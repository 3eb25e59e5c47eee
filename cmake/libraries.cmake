# libraries.cmake -- what users link and run: libtec, libtec_runtime (each shared and static) and the programs.
#
# libtec holds every room but the tools and the servers; libtec_runtime holds base and runtime alone and needs nothing but libc.

function(tec_set_library target output_name)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${output_name} LINKER_LANGUAGE C
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
endfunction()

# One object of all `objects`, in which the symbols that are hidden in a shared library are local: a static library exports
# what the shared one does, and its names for itself meet none of a program's.
function(tec_one_object name objects out)
    set(file ${CMAKE_BINARY_DIR}/${name}_all.o)
    string(TOUPPER "CMAKE_C_FLAGS_${CMAKE_BUILD_TYPE}" flags)
    separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS} ${${flags}} ${CMAKE_EXE_LINKER_FLAGS}")
    if(CMAKE_C_COMPILER_TARGET)
        list(APPEND flags --target=${CMAKE_C_COMPILER_TARGET})
    endif()
    add_custom_command(OUTPUT ${file}
        COMMAND ${CMAKE_C_COMPILER} ${flags} -r -nostdlib -o ${file} ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${file}
        DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties(${file} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    set(${out} ${file} PARENT_SCOPE)
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
    tec_one_object(${name} "${objects}" one)
    add_library(${name}_static STATIC ${one})
    foreach(target ${name} ${name}_static)
        tec_set_library(${target} ${output_name})
        target_link_libraries(${target} PRIVATE ${uses})
    endforeach()
endfunction()

# The program NAME from ROOM/NAME.c and the given targets.
function(tec_add_program name room)
    add_executable(${name} ${CMAKE_SOURCE_DIR}/${room}/${name}.c)
    target_compile_options(${name} PRIVATE ${TEC_WARNINGS})
    target_link_libraries(${name} PRIVATE tec_flags ${ARGN})
endfunction()

# The runtime stays below 300 KB (scripts/checks/runtime-size): what runs once for a module is built for size.
foreach(file bytecode check codec file module npy program programs safetensors verify write)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/runtime/${file}.c PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
endforeach()

# What runs on boards. Functions of base/ that the compiler alone calls are left out of the runtime.
foreach(room base runtime)
    tec_room_target(${room} target)
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
endforeach()
tec_add_library(libtec_runtime tec_runtime "base;runtime")
target_link_options(libtec_runtime PRIVATE -Wl,--gc-sections)
# A runner dies of what it runs, and another is started: it links the runtime alone.
tec_add_program(tec_runner tools tec_worker_archive)
# The runtime, libuv and libsodium are all that it needs.
tec_add_program(rpc_server rpc/server tec_rpc_server_archive)
if(TEC_BOARD)
    return()
endif()

set(rooms ${TEC_ROOMS})
list(FILTER rooms EXCLUDE REGEX "^(tools|tvmtune|rpc/(loop|server)|tracker)$")
tec_add_library(libtec tec "${rooms}")
# What clients of the device pool link: the runtime and the wire, without compiler.
tec_add_library(libtec_rpc tec_rpc "base;runtime;worker;rpc;rpc/client")

tec_add_program(tec tools tec_tools_archive)
# The daemon runs `tec` for what compilers do, and takes of the rooms below what it calls.
tec_add_program(tvmtune tvmtune tec_tvmtune_archive)
target_link_options(tvmtune PRIVATE -Wl,--as-needed)
# The tracker of the device pool needs no compiler.
tec_add_program(rpc_tracker tracker tec_tracker_archive)
set_target_properties(rpc_server rpc_tracker PROPERTIES TEC_LINKED_IN ON)
foreach(program rpc_server rpc_tracker)
    target_link_options(${program} PRIVATE -Wl,--gc-sections)
endforeach()
