# aarch64.cmake -- for boards with a 64-bit Arm CPU and Linux: a Raspberry Pi 3, 4 or 5 with a 64-bit system.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(BOARD_ARCH aarch64)
set(BOARD_TRIPLE aarch64-linux-gnu)
set(BOARD_FLAGS "")
set(BOARD_EMULATOR qemu-aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/board.cmake)
