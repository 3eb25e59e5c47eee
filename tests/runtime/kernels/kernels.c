/* kernels.c -- the kernels of kernels.h as a shared object, as a compiler would make it. */
#define KERNEL __attribute__((visibility("default")))
#include "tests/runtime/kernels/kernels.h"
