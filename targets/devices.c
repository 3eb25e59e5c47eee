/* targets/devices.c -- the table of GPUs and accelerators; the first row of a kind is its default.
 *
 * shared_bytes is the most that one block may ask for, register_bytes the register file of one
 * multiprocessor. An OpenCL device that nothing is known of may compute multiply-adds by a long function, so
 * its row has none.
 */
#include <string.h>

#include "base/base.h"
#include "targets/cpus.h"
#include "targets/target.h"

enum { KIB = 1024 };

const target_device target_devices[] = {
    {"cuda", "sm_80", 1024, 64, 32, 163 * KIB, 256 * KIB, false, true, NULL, "compute capability 8.0"},
    {"cuda", "sm_70", 1024, 64, 32, 96 * KIB, 256 * KIB, false, true, NULL, "compute capability 7.0"},
    {"cuda", "sm_75", 1024, 64, 32, 64 * KIB, 256 * KIB, false, true, NULL, "compute capability 7.5"},
    {"cuda", "sm_86", 1024, 64, 32, 99 * KIB, 256 * KIB, false, true, NULL, "compute capability 8.6"},
    {"cuda", "sm_89", 1024, 64, 32, 99 * KIB, 256 * KIB, false, true, NULL, "compute capability 8.9"},
    {"cuda", "sm_90", 1024, 64, 32, 227 * KIB, 256 * KIB, false, true, NULL, NULL},
    {"cuda", "sm_90a", 1024, 64, 32, 227 * KIB, 256 * KIB, false, true, NULL, "compute capability 9.0"},
    {"cuda", "sm_100", 1024, 64, 32, 227 * KIB, 256 * KIB, false, true, NULL, "compute capability 10.0"},
    {"cuda", "sm_120", 1024, 64, 32, 99 * KIB, 256 * KIB, false, true, NULL, "compute capability 12.0"},
    {"opencl", "generic", 256, 256, 1, 32 * KIB, 64 * KIB, false, false, NULL, NULL},
    {"opencl", "mali", 256, 256, 16, 32 * KIB, 64 * KIB, true, true, NULL, "Mali"},
    {"opencl", "pocl", 256, 256, 1, 256 * KIB, 64 * KIB, false, true, "x86-64-v3",
     "Portable Computing Language"},
    {"vdla", "pynq", 0, 0, 0, 0, 0, true, false, NULL, NULL},
};
const int target_n_devices = BASE_COUNT(target_devices);

/* The first row that the driver's words name, otherwise the kind's default where that names no device itself.
 * An example: "OpenCL 3.0 PoCL 3.1" of "Portable Computing Language" gives "opencl -device=pocl". */
const char *target_for_device(tec_context *cx, const char *kind, const char *hardware, const char *driver)
{
    const target_kind *row = target_kind_find(strcmp(kind, "cpu") ? kind : "llvm");
    const target_device *first = NULL;

    for (int i = 0; row && row->option && i < target_n_devices; i++) {
        const target_device *d = &target_devices[i];

        if (strcmp(d->kind, kind))
            continue;
        first = first ? first : d;
        if (d->said && (strstr(driver, d->said) || strstr(hardware, d->said)))
            return base_format(cx, "%s %s=%s", kind, row->option, d->name);
    }
    return row && !(first && first->said) ? row->name : NULL;
}
