# board.cmake -- libuv and libsodium for programs of boards: linked in, so that a board needs nothing but its C library.

function(tec_uses_archive name header)
    find_path(${name}_header ${header} REQUIRED)
    find_library(${name}_archive NAMES ${ARGN} REQUIRED)
    target_include_directories(tec_uses_${name} SYSTEM INTERFACE ${${name}_header})
    target_link_libraries(tec_uses_${name} INTERFACE ${${name}_archive} Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
tec_uses_archive(sodium sodium.h libsodium.a)
tec_uses_archive(uv uv.h libuv.a libuv_a.a)
