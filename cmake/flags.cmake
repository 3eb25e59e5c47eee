# flags.cmake -- how all of our C is compiled: tec_flags carries what every target needs, TEC_WARNINGS what ours must pass.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()
set(TEC_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them")

# The one setjmp is that of BASE_GUARD (base/guard.h): after a jump it returns a constant and reads no variable, so none can be clobbered.
set(TEC_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU") # clang has no such warning
    list(APPEND TEC_WARNINGS -Wno-clobbered)
endif()
list(APPEND TEC_WARNINGS -Werror)

add_library(tec_flags INTERFACE)
target_include_directories(tec_flags INTERFACE
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
target_include_directories(tec_flags SYSTEM INTERFACE $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>)
target_compile_definitions(tec_flags INTERFACE _GNU_SOURCE= TEC_VERSION="${PROJECT_VERSION}" $<$<CONFIG:Debug>:TEC_DEBUG>)
if(CMAKE_SIZEOF_VOID_P EQUAL 4) # files and limits of 2 GB and more
    target_compile_definitions(tec_flags INTERFACE _FILE_OFFSET_BITS=64)
endif()
# The results of our own arithmetic must not depend on whether the machine has a fused multiply-add.
target_compile_options(tec_flags INTERFACE -ffp-contract=off)

add_link_options(-Wl,--as-needed)
if(TEC_SANITIZE)
    # The checks that a sanitizer adds make gcc see uses of uninitialised variables where there are none.
    add_compile_options(-fsanitize=${TEC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -O1 -Wno-maybe-uninitialized)
    add_link_options(-fsanitize=${TEC_SANITIZE})
endif()
