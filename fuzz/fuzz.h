/* fuzz/fuzz.h -- random definitions under random legal schedules: the strongest test of everything below
 * `compiler/`.
 *
 *     fuzz_case c = fuzz_make(cx, 1, 42, t, NULL);               // case 42 of seed 1; always the same
 *     fuzz_result r;
 *     fuzz_check(cx, &c, t, &r);                                 // r.outcome, r.where, r.what
 *     if (r.outcome == FUZZ_WRONG) puts(fuzz_case_text(cx, &c)); // a .te file with a schedule
 *
 * A case is text: a definition, the lines of a trace, and the number that its data come from. Its meaning is
 * what the interpreter makes of the default tree; the scheduled tree, the program after each pass, and the
 * compiled code must give the same, bit for bit: data are small integers and definitions keep every value
 * exact. A part of the cases is for a GPU: there the interpreter runs blocks and threads, and sees races,
 * missing barriers and divergence; no code is made.
 * Lifetime: the context's. Errors: a result says what went wrong; the context is left without an error.
 * Threads: one context, one thread.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "base/base.h"
#include "ir/ir.h"
#include "targets/target.h"
#include "te/text.h"
#include "tec/runtime.h"

typedef struct {
    uint64_t seed;
    int64_t index;
    uint64_t data;      /* what values and sizes are drawn from */
    const char *target; /* "": that of the run; or that of a GPU, for which no code is made */
    const char *te;     /* the definition as .te text, and the intrinsics that it declares */
    const char *trace;  /* the accepted steps, one a line */
    int accepted, refused;
} fuzz_case;

typedef enum {
    FUZZ_SAME,        /* the same results everywhere */
    FUZZ_UNSUPPORTED, /* lowering or code generation says that it cannot do this schedule */
    FUZZ_INVALID,     /* no case at all: the definition does not parse, or the oracle refuses it */
    FUZZ_WRONG,       /* a finding */
} fuzz_outcome;

typedef struct {
    fuzz_outcome outcome;
    /* what went wrong: "schedule: fuse", "pass: vectorize", "code", "definition", "replay" */
    const char *where;
    const char *what;    /* one or more lines */
    uint64_t primitives; /* bit k: row k of schedule/primitives.def was accepted */
    uint64_t passes;     /* bit k: row k of lower_passes changed the program */
    int steps, refused;  /* lines of the trace that were accepted and refused */
} fuzz_result;

/* Told of what is about to be done, so that a crash can be put to a case. */
typedef struct {
    void (*about_to)(void *user, const fuzz_case *sample, const char *step);
    void *user;
} fuzz_watch;

/* A definition with a handful of small stages; state is a SplitMix64 state. */
const char *fuzz_definition(tec_context *cx, uint64_t *state);
/* Steps on the default tree of the definition, until about `wanted` are accepted; sets trace, accepted and
 * refused. */
void fuzz_steps(tec_context *cx, fuzz_case *sample, const target *machine, uint64_t *state, int wanted,
                const fuzz_watch *watch);
fuzz_case fuzz_make(tec_context *cx, uint64_t seed, int64_t index, const target *machine,
                    const fuzz_watch *watch);

/* Another machine that runs compiled code, for a target that this one cannot run. All NULL: no machine does,
 * and code is compiled only. */
typedef struct {
    /* A module's bytes go there, and take the place of the last module. */
    bool (*load)(void *user, const void *module, size_t size, tec_error *err);
    /* Calls its function: all arrays go there before, and come back behind. */
    bool (*call)(void *user, DLTensor *const *args, int count, int threads, tec_error *err);
    void *user;
} fuzz_elsewhere;

/* Runs the case everywhere. Lines of the trace that are refused are left out and counted. */
void fuzz_check(tec_context *cx, const fuzz_case *sample, const target *machine, fuzz_result *out);
/* Why this machine cannot call code for the target (another CPU, no driver, a device that the code does not
 * fit); NULL: it can. A small program is compiled and loaded to know. */
const char *fuzz_unfit(tec_context *cx, const target *machine);
/* The same with compiled code on another machine; NULL: here, but code for another CPU is compiled only. */
void fuzz_check_on(tec_context *cx, const fuzz_case *sample, const target *machine,
                   const fuzz_elsewhere *there, fuzz_result *out);

/* The first definition of the file and its intrinsics. */
const char *fuzz_te_text(tec_context *cx, const te_file *file);
/* A .te file: comments with seed and data, the definition, its schedule. And back; false with an error in the
 * context. */
const char *fuzz_case_text(tec_context *cx, const fuzz_case *sample, const char *comment);
bool fuzz_case_parse(tec_context *cx, const char *file, const char *text, fuzz_case *out);

/* A smaller case for which `fails` still holds, after at most `budget` questions. */
typedef bool fuzz_fails(void *user, const fuzz_case *sample);
fuzz_case fuzz_shrink(tec_context *cx, const fuzz_case *sample, fuzz_fails *fails, void *user, int budget);

/* ---- sizes of a definition ---- */

enum { FUZZ_MAX_SYMBOLS = 4, FUZZ_MAX_SETS = 4 };

/* One assignment of the symbols. */
typedef struct {
    int n;
    const char *name[FUZZ_MAX_SYMBOLS];
    int64_t value[FUZZ_MAX_SYMBOLS];
} fuzz_sizes;

/* Assignments that the facts allow: all 0 and all 1 where they do, and random ones. At least one, unless the
 * facts allow none. */
int fuzz_draw_sizes(tec_context *cx, const ir_program *tree, uint64_t seed, fuzz_sizes out[FUZZ_MAX_SETS]);

#endif
