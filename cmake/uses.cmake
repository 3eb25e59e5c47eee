# uses.cmake -- the libraries of others that rooms name in cmake/rooms.txt, each as an interface target tec_uses_NAME.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

foreach(name threads dl m llvm sqlite3 cjson protobuf-c xgboost microhttpd sodium uv)
    add_library(tec_uses_${name} INTERFACE)
endforeach()
target_link_libraries(tec_uses_threads INTERFACE Threads::Threads)
target_link_libraries(tec_uses_dl INTERFACE ${CMAKE_DL_LIBS})
target_link_libraries(tec_uses_m INTERFACE m)

if(TEC_BOARD)
    include(cmake/board.cmake)
    return()
endif()

function(tec_uses_package name module)
    pkg_check_modules(${name}_found REQUIRED IMPORTED_TARGET ${module})
    target_link_libraries(tec_uses_${name} INTERFACE PkgConfig::${name}_found)
endfunction()
tec_uses_package(sqlite3 sqlite3)
tec_uses_package(cjson libcjson)
tec_uses_package(protobuf-c libprotobuf-c)
tec_uses_package(xgboost xgboost)
tec_uses_package(microhttpd libmicrohttpd)

# libsodium and libuv are linked into a program whose property TEC_LINKED_IN is set, and are shared libraries elsewhere.
define_property(TARGET PROPERTY TEC_LINKED_IN BRIEF_DOCS "libsodium and libuv come from their archives")
function(tec_uses_package_or_archive name module)
    pkg_check_modules(${name}_found REQUIRED IMPORTED_TARGET ${module})
    find_library(${name}_archive NAMES ${ARGN} HINTS ${${name}_found_LIBRARY_DIRS} ${${name}_found_LIBDIR})
    if(NOT ${name}_archive)
        message(FATAL_ERROR "${ARGN} not found: install what has ${module}'s archive (see scripts/packages build)")
    endif()
    set(linked_in $<BOOL:$<TARGET_PROPERTY:TEC_LINKED_IN>>)
    target_include_directories(tec_uses_${name} SYSTEM INTERFACE ${${name}_found_INCLUDE_DIRS})
    target_link_libraries(tec_uses_${name} INTERFACE
        $<${linked_in}:${${name}_archive}> $<$<NOT:${linked_in}>:PkgConfig::${name}_found> Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
tec_uses_package_or_archive(sodium libsodium libsodium.a)
tec_uses_package_or_archive(uv libuv libuv_a.a libuv.a)

find_program(PROTOC_C protoc-c)
if(NOT PROTOC_C)
    message(FATAL_ERROR "protoc-c not found: install protobuf-c-compiler (see scripts/packages build)")
endif()

find_program(LLVM_CONFIG llvm-config-19)
if(NOT LLVM_CONFIG)
    message(FATAL_ERROR "llvm-config-19 not found: install llvm-19-dev (see scripts/packages build)")
endif()
execute_process(COMMAND ${LLVM_CONFIG} --includedir OUTPUT_VARIABLE LLVM_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${LLVM_CONFIG} --libdir OUTPUT_VARIABLE LLVM_LIBDIR OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
target_include_directories(tec_uses_llvm SYSTEM INTERFACE ${LLVM_INCLUDE})
target_link_directories(tec_uses_llvm INTERFACE ${LLVM_LIBDIR})
target_link_libraries(tec_uses_llvm INTERFACE LLVM-19)
