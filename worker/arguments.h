/* worker/arguments.h -- inside the room: the arguments that modules are called with: made once, kept for
 * the next module of the same task.
 *
 *     run_arguments *a = run_arguments_for(&shelf, function, job, err);
 *     run_arguments_blank(a, 0x5a);
 *     tec_function_call(f, a->args, a->n, err);
 *     run_arguments_check(a, text, sizeof text);
 *
 * Inputs and kept outputs are memory that cannot be written, and every argument has a page on each side that
 * cannot be touched: a module that reaches beyond its arguments ends the process instead of spoiling what
 * later ones are measured with.
 */
#ifndef WORKER_ARGUMENTS_H
#define WORKER_ARGUMENTS_H

#include "runtime/alloc.h"
#include "worker/protocol.h"

typedef struct {
    uint64_t key, seed, used;
    int n;
    DLTensor **args; /* all parameters */
    bool *is_output;
    DLTensor **kept; /* what outputs should be; NULL where nothing is kept */
    bool has_kept;
    rt_arena arena;
    struct run_region *regions;
    int n_regions;
} run_arguments;

enum { RUN_SHELF = 4 };

typedef struct {
    run_arguments slot[RUN_SHELF];
    uint64_t clock;
} run_shelf;

/* Those that are kept, or new ones in the place of the least recently used; NULL with an error. */
run_arguments *run_arguments_for(run_shelf *shelf, const rt_function_desc *f, const run_job *j,
                                 tec_error *err);
void run_arguments_blank(run_arguments *a, int byte); /* all bytes of the outputs */
bool run_arguments_keep(run_arguments *a, tec_error *err);
/* Whether the outputs are those kept; false: the first that is not, as text. */
bool run_arguments_check(const run_arguments *a, const rt_function_desc *f, char *text, size_t size);
void run_shelf_clear(run_shelf *shelf);

#endif
