# board_tests.cmake -- the unit tests of what runs on boards, built for a board with the stand-in for Criterion in tests/cross,
# and run by the emulator: ctest --preset aarch64.

option(BUILD_TESTING "Build the unit tests for the board" OFF)
if(NOT BUILD_TESTING)
    return()
endif()
enable_testing()

# The kernels of tests are compiled while tests run.
set(TEC_BOARD_CC "${CMAKE_C_COMPILER} --target=${CMAKE_C_COMPILER_TARGET} --sysroot=${CMAKE_SYSROOT} -fuse-ld=lld ${CMAKE_C_FLAGS}")

# The test NAME of a room, from tests/ROOM/NAME.c.
function(tec_add_board_test room name)
    string(REPLACE "/" "_" test test_${room}_${name})
    tec_room_target(${room} target)
    add_executable(${test} ${CMAKE_SOURCE_DIR}/tests/${room}/${name}.c)
    target_include_directories(${test} BEFORE PRIVATE ${CMAKE_SOURCE_DIR}/tests/cross)
    target_compile_options(${test} PRIVATE -w) # the native build of the same files is held to our warnings
    target_compile_definitions(${test} PRIVATE TEC_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TEC_BINARY_DIR="${CMAKE_BINARY_DIR}"
        TEC_TEST_CC="${TEC_BOARD_CC}")
    target_link_libraries(${test} PRIVATE tec_flags ${target}_archive m)
    set_target_properties(${test} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${test} COMMAND ${test} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${test} PROPERTIES TIMEOUT 300)
endfunction()

foreach(name array bytecode check cpu dim executor function module npy object pool timer)
    tec_add_board_test(runtime ${name})
endforeach()
set_tests_properties(test_runtime_module PROPERTIES LABELS long) # it runs the compiler often
# The emulator fails assertions of its own after a fork in a process with threads.
target_compile_definitions(test_runtime_pool PRIVATE CR_LEFT_OUT="a_forked_child_runs_loops_on_its_caller")
foreach(name tensors wire)
    tec_add_board_test(worker ${name})
endforeach()
foreach(name keys link message)
    tec_add_board_test(rpc ${name})
endforeach()
