/* tec/program.h -- running compiled programs: values (lists, trees, tuples), instances, limits.
 *
 *     tec_module *m = tec_module_open("tree.tec", NULL, &err);
 *     tec_program *p = tec_program_new(m, NULL, NULL, &err);
 *     tec_object *x = tec_object_tensor(p, &vector, &err);
 *     tec_object *leaf = tec_object_data(p, "Leaf", &x, 1, &err), *y;
 *     if (tec_program_run(p, &leaf, 1, &y, 1, &err))
 *         use(tec_object_dltensor(y));
 *     tec_object_free(y), tec_object_free(leaf), tec_object_free(x);
 *     tec_program_free(p), tec_module_free(m);
 *
 * Lifetime: values are reference-counted. Free all values of an instance before the instance. A tuple or data
 *   value keeps references to its parts; the caller still owns the references that it passed.
 * Errors: as in tec/runtime.h. An error of a run names the line of the program.
 * Threads: an instance and the values made for it are used by one thread at a time; any number of instances
 *   share a module. tec_program_cancel may be called by any thread.
 */
#ifndef TEC_PROGRAM_H
#define TEC_PROGRAM_H

#include "tec/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tec_program tec_program;
typedef struct tec_object tec_object;

/* Zero is the default. A run that meets a limit ends with the error TEC_INVALID (steps and depth),
 * TEC_NO_MEMORY (bytes) or TEC_TIMEOUT (the deadline). */
typedef struct {
    tec_run_options run;
    int64_t max_steps; /* instructions of one run; 0: no limit */
    int64_t max_depth; /* calls inside of calls; 0: 2^21 */
    /* of all values of the instance; 0: three quarters of the machine's memory; negative: no limit */
    int64_t max_bytes;
    double deadline; /* seconds for one run; 0: none */
} tec_program_options;

/* An instance runs one function of the module's program and owns the memory of its values. function NULL: the
 * first function, which is `main`. A small function may be gone, put in the place of its calls. */
TEC_API TEC_GIVE tec_program *tec_program_new(TEC_KEEP tec_module *module, const char *function,
                                              const tec_program_options *options, tec_error *err);
TEC_API void tec_program_free(TEC_TAKE tec_program *program);
TEC_API int tec_program_n_inputs(const tec_program *program);
TEC_API int tec_program_n_outputs(const tec_program *program);
TEC_API const char *tec_program_input_name(const tec_program *program,
                                           int i); /* NULL: there is no such input */
/* "(f32[?, 4], Tree)", cut to size; gives buffer. */
TEC_API const char *tec_program_input_text(const tec_program *program, int i, char *buffer, size_t size);

/* Runs the program on one value for each input. Gives one new value for each output, which
 * the caller frees. */
TEC_API bool tec_program_run(tec_program *program, tec_object *const *in, int n_in, TEC_GIVE tec_object **out,
                             int n_out, tec_error *err);
/* Ends the run that is under way with TEC_CANCELLED, or else the next one. Later runs are not affected. */
TEC_API void tec_program_cancel(tec_program *program);

/* What the last run did. */
typedef struct {
    int64_t steps;       /* instructions */
    int64_t kernels;     /* calls of kernels */
    int64_t allocations; /* objects that were made */
    int64_t from_system; /* of these objects, those for which the system had to give memory */
    int64_t bytes;       /* of the values that live now */
    int64_t storages;    /* pieces of memory for tensors that were made */
    int64_t storage_bytes;
    int64_t peak; /* most bytes of values at one time, in whole blocks */
    /* bytes that were copied to extend tensors: the new rows, and old rows that had to move */
    int64_t copied;
    /* of tensors, from main memory to a device and back; constants count in the first run that needs them */
    int64_t uploads, upload_bytes, downloads, download_bytes;
} tec_program_counts;
TEC_API bool tec_program_count(const tec_program *program, tec_program_counts *out);

/* Row i of what ran since the instance was made or its profile was reset: kernels, then all instructions of
 * one name. The time of a kernel is that of its code; checking its arguments counts as the instruction
 * invoke_packed. Rates are over all calls. false: there are no more, or options.run.profile was not set. */
TEC_API bool tec_program_profile(const tec_program *program, int index, tec_profile_row *row);
TEC_API void tec_program_profile_reset(tec_program *program);

/* ---- values ---- */

/* A copy of a tensor in main memory, any strides. */
TEC_API TEC_GIVE tec_object *tec_object_tensor(tec_program *program, const DLTensor *tensor, tec_error *err);
TEC_API TEC_GIVE tec_object *tec_object_tuple(tec_program *program, tec_object *const *part, int n,
                                              tec_error *err);
/* Makes a value by a constructor of a data type of the program; fields of the wrong types are refused. If
 * several data types have a constructor of this name, the first that takes the fields is used; a name such as
 * "List[i64].Nil" chooses one. */
TEC_API TEC_GIVE tec_object *tec_object_data(tec_program *program, const char *constructor,
                                             tec_object *const *field, int count, tec_error *err);
TEC_API TEC_GIVE tec_object *tec_object_ref(tec_object *object);
TEC_API void tec_object_free(TEC_TAKE tec_object *object);

/* The tensor of a value, which must not be changed and lives as long as the value. NULL: the value is not a
 * tensor. */
TEC_API const DLTensor *tec_object_dltensor(const tec_object *object);
/* Of a tuple or a data value: how many parts, and part i, which lives as long as the value. */
TEC_API int tec_object_n_parts(const tec_object *object);
TEC_API tec_object *tec_object_part(const tec_object *object, int i);
/* Of a data value: its constructor; NULL for others. */
TEC_API const char *tec_object_constructor(const tec_program *program, const tec_object *object);

#ifdef __cplusplus
}
#endif
#endif
