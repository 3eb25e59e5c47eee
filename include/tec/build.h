/* tec/build.h -- scheduled definitions to modules: in this process, or in a file.
 *
 *     tec_module *m = tec_build(s, NULL);                       // run it with tec/runtime.h
 *     if (!m) fprintf(stderr, "%s\n", tec_context_error(cx));
 *     tec_build_file(s, NULL, "matmul.tec");                    // the same, for tec_module_open
 *     puts(tec_build_text(s, NULL, TEC_TEXT_ASM));              // what was made of it
 *
 * Lifetime: a module is the caller's and does not need the context that it was built in; texts are the context's.
 * Errors: in the context. A schedule of which a step was refused is not built until tec_schedule_clear has been called: whoever built it
 *   would get another program than the steps say.
 * Threads: as the context: one. Compiling uses threads of its own; its result does not depend on how many.
 */
#ifndef TEC_BUILD_H
#define TEC_BUILD_H

#include <stdbool.h>

#include "tec/runtime.h"
#include "tec/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tec_records tec_records; /* tec/records.h */

/* Zero is the default. */
typedef struct {
    const char *target;   /* NULL: the schedule's; native where it has none */
    int threads;          /* whose records to take; 0: as many as the target has cores. A module runs with any number */
    int jobs;             /* threads that compile; 0: one for each core */
    bool strict;          /* no fused multiply-add, no re-association, denormals kept */
    const char *dispatch; /* "n%8": also versions for each remainder of symbol n by 8, or "n%8=0,4" for these; the call picks one. NULL: none */
    const char *dump_dir; /* the program after each pass that changed it goes there */
    const tec_records *records; /* of graphs: measured schedules, looked for before the default ones. NULL: none */
    bool weights_beside;  /* weights of a module file as .safetensors beside it (they are from 2 GB on) */
} tec_build_options;

typedef enum { TEC_TEXT_LOWERED, TEC_TEXT_LLVM, TEC_TEXT_ASM } tec_text_kind;

/* One function, named as its definition. options may be NULL. */
TEC_API TEC_GIVE tec_module *tec_build(const tec_schedule *s, const tec_build_options *options);
TEC_API bool tec_build_file(const tec_schedule *s, const tec_build_options *options, const char *path);
/* Several functions in one module. Names must differ; schedules of one target. */
TEC_API TEC_GIVE tec_module *tec_build_n(tec_context *cx, const tec_schedule *const *s, int n, const tec_build_options *options);
TEC_API bool tec_build_file_n(tec_context *cx, const tec_schedule *const *s, int n, const tec_build_options *options, const char *path);
/* The loop AST after the last pass, LLVM's IR, or assembly. */
TEC_API const char *tec_build_text(const tec_schedule *s, const tec_build_options *options, tec_text_kind kind);

#ifdef __cplusplus
}
#endif
#endif
