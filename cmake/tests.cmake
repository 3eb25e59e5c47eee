# tests.cmake -- one Criterion executable for each tests/ROOM/FILE.c, named test_ROOM_FILE and known to ctest by that name;
# the target tests_ROOM builds those of a room.
#
# It links the archive of its room, and so the rooms below it: a higher room that is broken keeps no lower one from its
# tests. A folder of tests/ that is no room (tests/regress, ...) may use every room. tests/support is linked to all.

if(NOT criterion_FOUND)
    message(FATAL_ERROR "criterion not found: install libcriterion-dev (see scripts/packages test)")
endif()

# Criterion takes no notice of what a sanitizer says after the last assertion, so ctest looks for it.
set(TEC_SANITIZER_REPORT "(ERROR|WARNING): [A-Za-z]+Sanitizer: |runtime error: ")
set(TEC_TEST_EXTRA "")
if(TEC_SANITIZE MATCHES "thread")
    set(TEC_TEST_EXTRA ${CMAKE_SOURCE_DIR}/tests/tsan/arena_place.c)
endif()

# tests/full is for what takes minutes: scripts/test leaves it out unless it is asked for.
function(tec_label_long room name)
    if(room STREQUAL "full")
        set_tests_properties(${name} PROPERTIES TIMEOUT 3600 LABELS full)
    endif()
endfunction()

function(tec_add_test room source archives)
    get_filename_component(stem ${source} NAME_WE)
    string(REPLACE "/" "_" name test_${room}_${stem})
    add_executable(${name} ${source} ${TEC_TEST_EXTRA})
    string(REPLACE "/" "_" group tests_${room})
    if(NOT TARGET ${group})
        add_custom_target(${group})
    endif()
    add_dependencies(${group} ${name})
    target_compile_options(${name} PRIVATE ${TEC_WARNINGS})
    target_compile_definitions(${name} PRIVATE TEC_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TEC_BINARY_DIR="${CMAKE_BINARY_DIR}")
    if(TARGET tec_test_support)
        target_link_libraries(${name} PRIVATE tec_test_support)
    endif()
    target_link_libraries(${name} PRIVATE tec_flags ${archives} PkgConfig::criterion m)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    # Criterion's limit is for each test of a file. Those that take longer with TEC_TEST_FULL name it, or include what does.
    set(limit 300)
    file(STRINGS ${source} asks_for_all REGEX "TEC_TEST_FULL|tests/ir/reason/points.h")
    if(asks_for_all)
        set(limit 3600)
    endif()
    math(EXPR whole "2 * ${limit}")
    add_test(NAME ${name} COMMAND ${name} --timeout ${limit} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${whole} LABELS unit FAIL_REGULAR_EXPRESSION "${TEC_SANITIZER_REPORT}")
    # Tests of failed allocations ask for more than there is; a sanitizer must refuse as malloc does, and not end the process.
    if(TEC_SANITIZE)
        set_tests_properties(${name} PROPERTIES
            ENVIRONMENT "ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=allocator_may_return_null=1:suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp;LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/lsan.supp")
    endif()
    # The driver of the tests keeps what it compiled.
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "POCL_CACHE_DIR=${CMAKE_BINARY_DIR}/pocl")
    tec_label_long(${room} ${name})
endfunction()

# A script is a test as well: it finds the program and the build directory in its environment.
function(tec_add_script room script)
    get_filename_component(stem ${script} NAME_WE)
    string(REPLACE "/" "_" name test_${room}_${stem})
    add_test(NAME ${name} COMMAND bash ${script} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    # Scripts that do more with TEC_TEST_FULL name it, as sources do.
    set(limit 600)
    file(STRINGS ${script} asks_for_all REGEX "TEC_TEST_FULL")
    if(asks_for_all)
        set(limit 7200)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${limit} LABELS script SKIP_RETURN_CODE 77
        ENVIRONMENT "TEC=${CMAKE_BINARY_DIR}/tec;TEC_BUILD_DIR=${CMAKE_BINARY_DIR};TEC_SANITIZE=${TEC_SANITIZE};POCL_CACHE_DIR=${CMAKE_BINARY_DIR}/pocl")
    # A command keeps its options to its end, which is no leak.
    if(TEC_SANITIZE)
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1")
    endif()
    if(room STREQUAL "install")
        set_tests_properties(${name} PROPERTIES RESOURCE_LOCK install_manifest) # each installation writes the build's one manifest
    endif()
    tec_label_long(${room} ${name})
endfunction()

function(tec_add_tests_of folder archives)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.c)
    foreach(source IN LISTS sources)
        tec_add_test(${folder} ${source} "${archives}")
    endforeach()
    file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.sh)
    foreach(script IN LISTS scripts)
        tec_add_script(${folder} ${script})
    endforeach()
endfunction()

file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
if(support)
    add_library(tec_test_support STATIC EXCLUDE_FROM_ALL ${support})
    target_link_libraries(tec_test_support PUBLIC tec_flags PkgConfig::criterion)
    target_compile_options(tec_test_support PRIVATE ${TEC_WARNINGS})
endif()

set(all_archives "")
foreach(room IN LISTS TEC_ROOMS)
    tec_room_target(${room} target)
    list(PREPEND all_archives ${target}_archive)
endforeach()
# Tests of the rooms that work on programs link the interpreter, which is their oracle, and the verifier, whether the room uses
# these or not.
foreach(room IN LISTS TEC_ROOMS)
    tec_room_target(${room} target)
    tec_room_closure(${room} closure)
    set(archives ${target}_archive)
    if("ir" IN_LIST closure AND NOT room MATCHES "^ir")
        list(APPEND archives tec_ir_interp_archive tec_ir_verify_archive)
    endif()
    if(room STREQUAL "lang") # what a program means, its tests ask the interpreter of graphs
        list(PREPEND archives tec_graph_interp_archive)
    endif()
    tec_add_tests_of(${room} "${archives}")
endforeach()
# Drivers that run nothing, under the names that the runtime looks for.
function(tec_add_standin kind soname)
    add_library(tec_standin_${kind} SHARED ${CMAKE_SOURCE_DIR}/tests/runtime/standin/${kind}.c)
    target_link_libraries(tec_standin_${kind} PRIVATE tec_flags)
    target_compile_options(tec_standin_${kind} PRIVATE ${TEC_WARNINGS})
    target_link_options(tec_standin_${kind} PRIVATE -Wl,-soname,${soname})
    set_target_properties(tec_standin_${kind} PROPERTIES NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    string(TOUPPER ${kind} upper)
    foreach(test IN LISTS ARGN)
        target_compile_definitions(test_runtime_${test} PRIVATE TEC_STANDIN_${upper}="$<TARGET_FILE:tec_standin_${kind}>")
        add_dependencies(test_runtime_${test} tec_standin_${kind})
    endforeach()
endfunction()
tec_add_standin(opencl libOpenCL.so.1 driver vm_device)
tec_add_standin(cuda libcuda.so.1 cuda)
# NVRTC and NVIDIA's driver, which run kernels on this CPU: programs find them with LD_LIBRARY_PATH.
set(TEC_CUDA_EMULATOR ${CMAKE_BINARY_DIR}/tests/cuda)
foreach(part nvrtc driver)
    add_library(tec_emulator_${part} SHARED ${CMAKE_SOURCE_DIR}/tests/cuda/emulator/${part}.c
        ${CMAKE_SOURCE_DIR}/tests/cuda/emulator/counts.c)
    target_link_libraries(tec_emulator_${part} PRIVATE tec_flags dl)
    target_compile_options(tec_emulator_${part} PRIVATE ${TEC_WARNINGS} -fvisibility=default)
    set_target_properties(tec_emulator_${part} PROPERTIES PREFIX "" SUFFIX "" LIBRARY_OUTPUT_DIRECTORY ${TEC_CUDA_EMULATOR})
endforeach()
target_compile_definitions(tec_emulator_nvrtc PRIVATE TEC_EMULATED_DEVICE="${CMAKE_SOURCE_DIR}/tests/cuda/emulator/device.h")
set_target_properties(tec_emulator_nvrtc PROPERTIES OUTPUT_NAME libnvrtc.so.12 NO_SONAME ON)
set_target_properties(tec_emulator_driver PROPERTIES OUTPUT_NAME libcuda.so.1 NO_SONAME ON)
# What measures starts programs.
if(TARGET tests_autotune)
    add_dependencies(tests_autotune tec tec_runner)
    add_dependencies(test_autotune_measure tec tec_runner)
endif()

# Kernels for sessions to survive, and the server whose sessions they are.
add_library(tec_rpc_kernels MODULE EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/rpc/client/kernels/kernels.c)
target_include_directories(tec_rpc_kernels PRIVATE ${CMAKE_SOURCE_DIR}/include)
# As what tec compiles, without sanitizers: the runtime compares the mapped code byte by byte.
target_compile_options(tec_rpc_kernels PRIVATE ${TEC_WARNINGS} -fvisibility=hidden -fno-sanitize=all)
target_link_options(tec_rpc_kernels PRIVATE -fno-sanitize=all)
set_target_properties(tec_rpc_kernels PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
# One that attacks when it is loaded.
add_library(tec_rpc_attack MODULE EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/rpc/client/kernels/attack.c)
target_include_directories(tec_rpc_attack PRIVATE ${CMAKE_SOURCE_DIR}/include)
target_compile_options(tec_rpc_attack PRIVATE ${TEC_WARNINGS} -fvisibility=hidden -fno-sanitize=all)
target_link_options(tec_rpc_attack PRIVATE -fno-sanitize=all)
set_target_properties(tec_rpc_attack PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
foreach(name sessions doors leases frames attacks programs measures roles)
    if(TARGET test_rpc_client_${name})
        target_compile_definitions(test_rpc_client_${name} PRIVATE 
            TEC_RPC_KERNELS="$<TARGET_FILE:tec_rpc_kernels>" TEC_RPC_ATTACK="$<TARGET_FILE:tec_rpc_attack>")
        add_dependencies(test_rpc_client_${name} tec rpc_server rpc_tracker tec_rpc_kernels tec_rpc_attack)
    endif()
endforeach()

if(TARGET test_rpc_server_listening) # its sessions are processes of the program
    add_dependencies(test_rpc_server_listening rpc_server)
endif()
# The programs as they were one version of the protocol before, and as they will be.
foreach(version older newer later)
    foreach(program tec rpc_server rpc_tracker)
        string(REGEX MATCH "[a-z]+$" part ${program})
        set(room_of_tec tools)
        set(room_of_server rpc/server)
        set(room_of_tracker tracker)
        string(REPLACE "/" "_" archive tec_${room_of_${part}}_archive)
        add_executable(${program}_${version} ${CMAKE_SOURCE_DIR}/${room_of_${part}}/${program}.c
            ${CMAKE_SOURCE_DIR}/tests/rpc/versions/${version}.c)
        target_compile_options(${program}_${version} PRIVATE ${TEC_WARNINGS})
        target_link_libraries(${program}_${version} PRIVATE tec_flags ${archive})
        set_target_properties(${program}_${version} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        add_dependencies(tests_rpc ${program}_${version})
    endforeach()
endforeach()

if(TARGET test_tracker_program)
    add_dependencies(test_tracker_program rpc_tracker tec)
endif()

file(GLOB folders CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests LIST_DIRECTORIES true ${CMAKE_SOURCE_DIR}/tests/*)
foreach(folder IN LISTS folders)
    if(NOT folder IN_LIST TEC_TABLE AND NOT folder MATCHES "^(support|tsan)$" AND IS_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/${folder})
        tec_add_tests_of(${folder} "${all_archives}")
    endif()
endforeach()
foreach(name chaos tuning shares)
    if(TARGET test_chaos_${name})
        target_compile_definitions(test_chaos_${name} PRIVATE TEC_RPC_KERNELS="$<TARGET_FILE:tec_rpc_kernels>")
        add_dependencies(test_chaos_${name} rpc_server rpc_tracker tec tec_rpc_kernels)
    endif()
endforeach()
