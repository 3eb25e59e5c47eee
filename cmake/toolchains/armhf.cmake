# armhf.cmake -- for boards with a 32-bit system: ARMv7 with NEON and floats in registers of their own, as a Raspberry Pi 2
# and later ones have (Debian's armhf). The first Raspberry Pi and the Zero are ARMv6 and cannot run this code.
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(BOARD_ARCH armhf)
set(BOARD_TRIPLE arm-linux-gnueabihf)
set(BOARD_FLAGS "-march=armv7-a -mfpu=neon -mthumb")
set(BOARD_EMULATOR qemu-arm)
include(${CMAKE_CURRENT_LIST_DIR}/board.cmake)
