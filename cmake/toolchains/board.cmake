# board.cmake -- what the toolchain files of this folder share: clang and lld from LLVM, which have every architecture inside,
# and the C library of Debian 11 (glibc 2.31) in build/sysroot/ARCH, put there by scripts/sysroot.
#
# The file that includes this one sets BOARD_ARCH (the name of its folder and of Debian's packages), BOARD_TRIPLE,
# BOARD_FLAGS and BOARD_EMULATOR.

set(CMAKE_SYSTEM_NAME Linux)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(CMAKE_SYSROOT ${root}/build/sysroot/${BOARD_ARCH})
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/include)
    message(FATAL_ERROR "there is no ${CMAKE_SYSROOT}: run scripts/packages --install cross")
endif()
find_program(BOARD_CLANG clang-19)
if(NOT BOARD_CLANG)
    message(FATAL_ERROR "clang-19 not found: run scripts/packages --install test")
endif()
set(CMAKE_C_COMPILER ${BOARD_CLANG})
set(CMAKE_C_COMPILER_TARGET ${BOARD_TRIPLE})
set(CMAKE_C_FLAGS_INIT "${BOARD_FLAGS}")
foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld")
endforeach()
foreach(tool AR RANLIB NM STRIP OBJCOPY)
    string(TOLOWER ${tool} name)
    find_program(CMAKE_${tool} llvm-${name}-19)
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR ${BOARD_EMULATOR} -L ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# A compiler for LLVM's targets is not among what a board runs.
set(TEC_BOARD ON CACHE BOOL "Only what runs on boards: the runtime, tec_runner and rpc_server")
