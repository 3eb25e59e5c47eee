/* targets/kinds.c -- the table of kinds of target. */
#include <string.h>

#include "targets/cpus.h"

const target_kind target_kinds[] = {
    {"llvm", false, "a CPU: llvm [-mcpu=CPU] [-mattr=+a,-b] [-mtriple=T] [-num-cores=N]"},
    {"cuda", true, "an NVIDIA GPU: cuda [-arch=sm_90]"},
    {"opencl", true, "an OpenCL device: opencl [-device=mali]"},
    {"vdla", false, "the accelerator: vdla [-config=pynq]"},
};
const int target_n_kinds = BASE_COUNT(target_kinds);

const target_kind *target_kind_find(const char *name)
{
    for (int i = 0; i < target_n_kinds; i++)
        if (!strcmp(target_kinds[i].name, name))
            return &target_kinds[i];
    return NULL;
}
