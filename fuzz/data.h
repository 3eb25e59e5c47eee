/* fuzz/data.h -- inside the room: sizes and data of a case, and running it: in the interpreter, and as
 * compiled code between guard pages.
 *
 *     fuzz_data d;
 *     fuzz_draw_data(cx, tree, seed, &d);
 *     if (!fuzz_interpret(cx, tree, &d, true)) puts(d.fault);          // fills what is expected
 *     if (!fuzz_interpret(cx, lowered, &d, false)) puts(d.fault);     // compares with it
 */
#ifndef FUZZ_DATA_H
#define FUZZ_DATA_H

#include "fuzz/fuzz.h"
#include "ir/ir.h"
#include "tec/runtime.h"

enum { FUZZ_MAX_PARAMS = 24 };

typedef struct {
    const ir_program *tree;
    fuzz_sizes sizes;
    uint64_t seed;
    int n;
    int64_t elements[FUZZ_MAX_PARAMS];
    void *input[FUZZ_MAX_PARAMS];    /* of inputs and scalars */
    void *expected[FUZZ_MAX_PARAMS]; /* of outputs, once an oracle ran */
    bool implied_barriers;           /* the program of a GPU has none yet */
    const char *fault;
} fuzz_data;

/* Assignments that break a fact: calls with them must be refused. Perhaps none. */
int fuzz_draw_refused(tec_context *cx, const ir_program *tree, uint64_t seed, fuzz_sizes out[FUZZ_MAX_SETS]);
bool fuzz_draw_data(tec_context *cx, const ir_program *tree, const fuzz_sizes *sizes, uint64_t seed,
                    fuzz_data *out);

/* Runs program, which has the parameters of the tree. The oracle's results are kept, others are compared.
 * False: data->fault says why. */
bool fuzz_interpret(tec_context *cx, const ir_program *program, fuzz_data *data, bool oracle);
/* Whether the last run ended because its sizes break a fact. */
bool fuzz_is_refusal(const fuzz_data *data);
/* The interpreter gave up: the program makes more steps than a case may take. */
bool fuzz_is_too_long(const fuzz_data *data);
/* The same for compiled code: each array ends (or, by the seed, begins) at a page that nobody may touch. */
bool fuzz_call(tec_context *cx, tec_function *function, fuzz_data *data);
/* The same on a device: each buffer lies between margins, which must stay as they are. */
bool fuzz_call_on(tec_context *cx, tec_device *device, tec_function *function, fuzz_data *data);

/* The same on another machine: there is no margin, but inputs must come back as they went. */
bool fuzz_call_elsewhere(tec_context *cx, const fuzz_elsewhere *there, int threads, fuzz_data *data);

/* What differs first between two arrays of n elements of buffer; NULL: nothing. NaN equals NaN, and -0 equals
 * 0. */
const char *fuzz_difference(tec_context *cx, const ir_buffer *buffer, int64_t n, const void *found,
                            const void *expected);

/* " with n = 3, m = 0"; "" without symbols */
const char *fuzz_sizes_text(tec_context *cx, const fuzz_sizes *sizes);

#endif
