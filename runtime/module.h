/* runtime/module.h -- modules from the inside: those that compilers make in memory, and what a module says
 * about itself.
 *
 *     rt_memory_code code = {.resolve = jit_symbol, .release = jit_free, .user = jit};
 *     tec_module *m = rt_module_from_memory(&desc, &code, 0, err);
 *     tec_function *f = tec_function_new(m, "matmul", NULL, err);
 *
 * Lifetime: reference-counted; code and weights go with the last reference. The description is copied.
 * Errors: into the caller's tec_error.
 * Threads: an open module is never changed: any number of threads may use it.
 */
#ifndef RUNTIME_MODULE_H
#define RUNTIME_MODULE_H

#include "runtime/format.h"

/* Code that lies in this process. */
typedef struct {
    tec_kernel_fn *(*resolve)(void *user, const char *symbol); /* NULL where unknown */
    void (*release)(void *user); /* with the module's last reference, or when making it failed; may be NULL */
    void *user;
} rt_memory_code;

/* the constants' data outlives the module and is 64-byte aligned: do not copy it */
enum { RT_BORROW_CONSTANTS = 1 };

/* A module without a file. Takes `code` (see release) whatever the result. */
TEC_GIVE tec_module *rt_module_from_memory(const rt_module_desc *module, const rt_memory_code *code,
                                           unsigned flags, tec_error *err);

/* The description of a module file alone, of any machine's code: nothing of it can run. */
TEC_GIVE tec_module *rt_module_read(const char *path, tec_error *err);

/* What the module says about itself; constants have their data. Lives as long as the module. */
const rt_module_desc *rt_module_describe(const tec_module *module);
tec_kernel_fn *rt_module_code(const tec_module *module, int function); /* NULL for a function of a device */
/* Calls the function so many times and gives the seconds of all calls: by the device's own clock for a
 * function that runs on one, without what the host does in between. */
bool rt_function_time(tec_function *function, DLTensor *const *args, int count, int times, double *seconds,
                      tec_error *err);
struct rt_programs *rt_module_programs(const tec_module *module); /* runtime/launch.h */
const char *rt_module_path(const tec_module *module);             /* "module in memory" without a file */

/* A type of the program, "(f32[?, 4], Tree)", cut to size; gives buffer. */
const char *rt_type_text(const rt_program_desc *program, int32_t type, char *buffer, size_t size);

#endif
