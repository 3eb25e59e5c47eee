/* worker/arguments.h -- inside the room: the arguments that modules are called with: made once, kept for
 * the next module of the same task.
 *
 *     worker_arguments *a = worker_arguments_for(&shelf, function, job, err);
 *     worker_arguments_blank(a, 0x5a);
 *     tec_function_call(f, a->args, a->n, err);
 *     worker_arguments_check(a, text, sizeof text);
 *
 * Inputs and kept outputs are memory that cannot be written, and every argument has a page on each side that
 * cannot be touched: a module that reaches beyond its arguments ends the process instead of spoiling what
 * later ones are measured with. Further copies of cold inputs (worker_job) lie side by side between such
 * pages.
 */
#ifndef WORKER_ARGUMENTS_H
#define WORKER_ARGUMENTS_H

#include "runtime/alloc.h"
#include "worker/protocol.h"

typedef struct {
    uint64_t key, seed, used;
    int n;
    DLTensor **args; /* all parameters */
    /* [n_sets][n]: as args, which is the first set, but each with its own copies of the cold inputs */
    DLTensor ***sets;
    int n_sets;
    bool *is_output;
    DLTensor **kept; /* what outputs should be; NULL where nothing is kept */
    bool has_kept;
    rt_arena arena;
    struct worker_region *regions;
    int n_regions;
} worker_arguments;

enum { WORKER_SHELF = 4 };

typedef struct {
    worker_arguments slot[WORKER_SHELF];
    uint64_t clock;
} worker_shelf;

/* Those that are kept, or new ones in the place of the least recently used; NULL with an error. */
worker_arguments *worker_arguments_for(worker_shelf *shelf, const rt_function_desc *function,
                                       const worker_job *job, tec_error *err);
void worker_arguments_blank(worker_arguments *arguments, int byte); /* all bytes of the outputs */
bool worker_arguments_keep(worker_arguments *arguments, tec_error *err);
/* Whether the outputs are those kept; false: the first that is not, as text. */
bool worker_arguments_check(const worker_arguments *arguments, const rt_function_desc *function, char *text,
                            size_t size);
void worker_shelf_clear(worker_shelf *shelf);

#endif
