/* tec/build.h -- makes modules of scheduled definitions: in memory, to call at once, or as a file.
 *
 *     tec_module *m = tec_build(s, NULL);                       // run it with tec/runtime.h
 *     if (!m) fprintf(stderr, "%s\n", tec_context_error(cx));
 *     tec_build_file(s, NULL, "matmul.tec");                    // the same, for tec_module_open
 *     puts(tec_build_text(s, NULL, TEC_TEXT_ASM));              // what was made of it
 *
 * Lifetime: a module is the caller's and does not need the context that it was built in; texts are the
 * context's.
 * Errors: in the context. If a step of a schedule was refused, the schedule lacks that step, and building it
 *   is an error: it would make another program than its author wrote. tec_schedule_clear says that this is
 *   intended.
 * Threads: one context, one thread. Compiling uses threads of its own; its result does not depend on how
 *   many.
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
    const char *target; /* NULL: the schedule's; native where it has none */
    /* Only records that were measured with this number of threads are used; 0: as many as the target has
     * cores. The module itself runs with any number of threads. */
    int threads;
    int jobs; /* threads that compile; 0: one for each core */
    /* No fused multiply-add, denormals kept, and each sum in the order of its schedule. Schedules may have
     * partial sums, the default ones too. */
    bool strict;
    /* Makes several versions of the code. Each call chooses one of them by the remainder of a symbol: "n%8"
     * makes one version for each remainder of n divided by 8; "n%8=0,4" makes one for remainder 0, one for
     * remainder 4 and one for all others. In a graph products and convolutions of the host with this symbol
     * get versions, and there must be one. NULL: a single version. */
    const char *dispatch;
    /* How far kernels of a GPU may depart from the arithmetic of the definition: "tf32" lets tensor
     * cores round the factors of f32 products, "fast" also allows approximate divisions, roots and
     * functions, and denormals that are 0. NULL or "exact": neither. A target whose code it would not
     * change refuses it. A target's text can say the same ("cuda -precision=tf32"), which is where a
     * schedule with tensorize looks. */
    const char *precision;
    const char *dump_dir; /* a directory; each pass that changed the program writes its text there */
    /* For graphs: a kernel takes its schedule from these records; without a record, it gets the default
     * schedule. NULL: all kernels get default schedules. */
    const tec_records *records;
    /* Writes the weights to a .safetensors file beside the module file. Weights of more than 2 GB always go
     * there. */
    bool weights_beside;
} tec_build_options;

typedef enum { TEC_TEXT_LOWERED, TEC_TEXT_LLVM, TEC_TEXT_ASM } tec_text_kind;

/* One function, named as its definition. options may be NULL. */
TEC_API TEC_GIVE tec_module *tec_build(const tec_schedule *schedule, const tec_build_options *options);
TEC_API bool tec_build_file(const tec_schedule *schedule, const tec_build_options *options, const char *path);
/* Several functions in one module. Names must differ; schedules of one target. */
TEC_API TEC_GIVE tec_module *tec_build_n(tec_context *cx, const tec_schedule *const *schedule, int n,
                                         const tec_build_options *options);
TEC_API bool tec_build_file_n(tec_context *cx, const tec_schedule *const *schedule, int n,
                              const tec_build_options *options, const char *path);
/* The loop AST after the last pass, LLVM's IR, or assembly. */
TEC_API const char *tec_build_text(const tec_schedule *schedule, const tec_build_options *options,
                                   tec_text_kind kind);

#ifdef __cplusplus
}
#endif
#endif
