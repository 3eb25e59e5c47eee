/* compiler/compiler.h -- scheduled programs to modules: lower, generate, link or load.
 *
 *     comp_unit u = {.name = "mm", .tree = sched_tree(s), .origin = "default"};
 *     comp_options o = {.target = t};
 *     comp_code *code = comp_compile(cx, &u, 1, &o);                            // code with metadata
 *     comp_write(cx, code, NULL, "mm.tec", 0);                                  // a module file, or
 *     tec_module *m = comp_load(cx, code, NULL);                                // a module in this process
 *
 * Units are lowered and generated in parallel (o.jobs threads), each in a scratch context of its own; the
 * result does not depend on the number of threads. The metadata of a function (parameters, shapes, facts,
 * workspace) is derived from its program.
 */
#ifndef COMPILER_COMPILER_H
#define COMPILER_COMPILER_H

#include "ir/ir.h"
#include "runtime/format.h"
#include "targets/target.h"
#include "tec/runtime.h"

typedef struct comp_cache comp_cache;       /* compiler/cache.h */
typedef struct comp_dispatch comp_dispatch; /* compiler/dispatch.h */

typedef struct {
    const char *name;              /* unique among the units; the function's name in the module */
    const ir_program *tree;        /* a loop tree (scheduled) */
    const ir_program *plain;       /* the same without steps: its work counts for rates; NULL: tree */
    const char *origin;            /* where its schedule came from, for the profile */
    const char *summary;           /* operators and extents, for people; may be NULL */
    const comp_dispatch *dispatch; /* versions for some remainders of a symbol; NULL: none */
    /* called by a graph alone, which knows the symbols; any other must tell them by its parameters */
    bool of_graph;
    /* other units, by their numbers, that run calls for the values of symbol `chooser` up to an end; they
     * have the same parameters and symbols, and no ranges themselves */
    const rt_range_desc *ranges;
    int n_ranges, chooser;
    const target *target; /* NULL: the options'; otherwise that of the host beside the options' device */
} comp_unit;

typedef struct {
    const target *target;
    int jobs;             /* 0: one for each core of this machine's affinity mask */
    bool strict;          /* no fused multiply-add, no re-association but by the schedule */
    const char *dump_dir; /* --dump-ir */
    bool no_verify;       /* do not verify between passes */
    bool want_lowered;    /* keep the text of the lowered programs */
    /* stop before code generation: the lowered texts and the description are all there is */
    bool lower_only;
    const char *text;  /* a form of code to keep, of comp_code_forms ("llvm", "asm"); NULL: none */
    comp_cache *cache; /* of generated code (compiler/cache.h); NULL: none */
} comp_options;

typedef struct comp_code comp_code;

comp_code *comp_compile(tec_context *cx, const comp_unit *units, int count, const comp_options *options);

/* Whether there is a code generator for the target, with the text that is asked for; false with an error. */
bool comp_can_generate(tec_context *cx, const comp_options *options);
/* Whether code can be made of the unit; false with an error in cx, which is left as it was where there is
 * none.
 * Nothing of the code is kept. */
bool comp_can_compile(tec_context *cx, const comp_unit *unit, const comp_options *options);

/* What was made, for `--emit`: of unit k. NULL where it was not asked for. */
const char *comp_lowered_text(const comp_code *code, int k);
const char *comp_code_text(const comp_code *code, int k); /* of the form that the options named */

/* What the module says of itself: target and functions, in the order of the units. A caller adds graphs and
 * constants to a copy and hands that in as `desc`; NULL: functions only. */
const rt_module_desc *comp_desc(const comp_code *code);
bool comp_write(tec_context *cx, const comp_code *code, const rt_module_desc *desc, const char *path,
                unsigned rt_flags);
bool comp_bytes(tec_context *cx, const comp_code *code, rt_bytes *out); /* the same file, added to *out */
bool comp_write_object(tec_context *cx, const comp_code *code, const char *path);
/* Loads into this process through the host JIT; the target must be native. Closed with tec_module_close. */
TEC_GIVE tec_module *comp_load(tec_context *cx, const comp_code *code, const rt_module_desc *desc);

/* An index expression as the runtime's dimension code, over the given symbols (by position). */
bool comp_dim(tec_context *cx, const ir_expr *expr, const ir_expr *const *symbols, int count, rt_dim *out);

/* How many operations a loop tree asks for, as an expression over symbols; multiply-adds count two. Of a tree
 * without steps these are the definition's: none is repeated, and none is on padding that a step adds. */
const ir_expr *comp_flops(tec_context *cx, const ir_program *tree);

#endif
