/* targets/devices.c -- the table of GPUs and accelerators; the first row of a kind is its default.
 *
 * shared_bytes is the most that one block may ask for, register_bytes the register file of one
 * multiprocessor.
 */
#include "targets/cpus.h"

enum { KIB = 1024 };

const target_device target_devices[] = {
    {"cuda", "sm_80", 1024, 32, 163 * KIB, 256 * KIB, false, NULL},
    {"cuda", "sm_70", 1024, 32, 96 * KIB, 256 * KIB, false, NULL},
    {"cuda", "sm_75", 1024, 32, 64 * KIB, 256 * KIB, false, NULL},
    {"cuda", "sm_86", 1024, 32, 99 * KIB, 256 * KIB, false, NULL},
    {"cuda", "sm_89", 1024, 32, 99 * KIB, 256 * KIB, false, NULL},
    {"cuda", "sm_90", 1024, 32, 227 * KIB, 256 * KIB, false, NULL},
    {"cuda", "sm_90a", 1024, 32, 227 * KIB, 256 * KIB, false, NULL},
    {"opencl", "generic", 256, 1, 32 * KIB, 64 * KIB, false, NULL},
    {"opencl", "mali", 256, 16, 32 * KIB, 64 * KIB, true, NULL},
    {"opencl", "pocl", 256, 1, 256 * KIB, 64 * KIB, false, "x86-64-v3"},
    {"vdla", "pynq", 0, 0, 0, 0, true, NULL},
};
const int target_n_devices = BASE_COUNT(target_devices);
