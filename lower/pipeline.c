/* lower/pipeline.c -- the passes in order, and running them.
 *
 * A row runs for a target that offers all features that the row needs and none that the row excludes (targets/target.h).
 *
 * The order, where it is not free:
 * - imports first: loops and blocks come and go.
 * - lanes and threads before init: the partial results of a vectorised reduction get an init like any other.
 * - init before compact: an init that is hoisted decides how far inside its buffer may be allocated.
 * - blocks before compact: the body of a block may speak of iteration variables only, rebased indices speak of the loops outside.
 * - tensors behind compact, which decides strides, and before all that takes nests apart; intrinsics behind flatten: their statements
 *   count elements from an address.
 * - trim before partition: what became a bound needs no copy; partition before flatten: element numbers hide which dimension a
 *   condition is about; simplify after trim: partition reads the conditions in linear form.
 * - overlap before vthread: the versions of a buffer are common to all virtual threads.
 * - vthread behind compact, which puts a buffer inside the virtual thread that it belongs to; before flatten: copies are a dimension.
 * - alone before barriers: which threads do a statement is what the proofs start from.
 * - prefetch behind partition, whose copies of a loop each end elsewhere; before flatten: what is read is a box.
 * - barriers before flatten, which would hide the boxes that the proofs are about.
 * - flatten before vectorize: ramps of one index. simplify between them: a ramp comes from a linear index only, and floor
 *   divisions by the lanes must be gone by then.
 * - vectorize before unroll: the register-wide pieces of a long vector are unrolled with the rest; unroll before masks and
 *   promote: constant ramps.
 * - share before math: an expansion is written once for all equal operands. fma before math, whose expansions fuse where they
 *   must.
 * - storage last but for finish: nothing allocates any more.
 */
#include <string.h>

#include "lower/util.h"

const lower_pass lower_passes[] = {
    {"imports", lower_imports, IR_VERIFY_TREE, "what pragmas import becomes notes of the program", TARGET_IMPORTS, 0},
    {"lanes", lower_lanes, IR_VERIFY_TREE, "vectorised reductions get partial results, one for each lane", 0, 0},
    {"threads", lower_threads, IR_VERIFY_TREE, "reductions over threads get partial results, one for each thread", TARGET_THREADS, 0},
    {"init", lower_init, IR_VERIFY_TREE, "the start of a reduction becomes a block of its own", 0, 0},
    {"blocks", lower_blocks, IR_VERIFY_TREE, "blocks become what they do, updates become stores", 0, 0},
    {"compact", lower_compact, IR_VERIFY_LOOPS, "buffers are allocated where they live, as large as what is touched", 0, 0},
    {"tensors", lower_tensors, IR_VERIFY_LOOPS, "tensorized nests become calls of their intrinsics", 0, 0},
    {"trim", lower_trim, IR_VERIFY_LOOPS, "conditions become bounds of loops", 0, 0},
    {"overlap", lower_overlap, IR_VERIFY_LOOPS, "pipelined loops: statements of several iterations in one step", 0, 0},
    {"vthread", lower_vthread, IR_VERIFY_LOOPS, "virtual threads take turns in one stream of statements", 0, 0},
    {"simplify", lower_simplify, IR_VERIFY_LOOPS, "canonical expressions; what cannot run goes", 0, 0},
    {"partition", lower_partition, IR_VERIFY_LOOPS, "loops are cut where their conditions begin or cease to hold", 0, 0},
    {"alone", lower_alone, IR_VERIFY_LOOPS, "what threads share is written inside of loops over all thread axes", TARGET_THREADS, 0},
    {"prefetch", lower_prefetch, IR_VERIFY_LOOPS, "loops ask for what they read some iterations later", TARGET_CACHES, 0},
    {"barriers", lower_barriers, IR_VERIFY_LOOPS, "barriers between threads that hand elements to each other", TARGET_THREADS, 0},
    {"flatten", lower_flatten, IR_VERIFY_FLAT, "one-dimensional buffers", 0, 0},
    {"intrinsics", lower_intrinsics, IR_VERIFY_FLAT, "calls of intrinsics become their statements", 0, 0},
    {"simplify", lower_simplify, IR_VERIFY_FLAT, "canonical expressions; what cannot run goes", 0, 0},
    {"vectorize", lower_vectorize, IR_VERIFY_FLAT, "vectorised loops become vector expressions", TARGET_VECTORS, 0},
    {"unroll", lower_unroll, IR_VERIFY_SCALAR, "unrolled loops are written out", 0, 0},
    {"simplify", lower_simplify, IR_VERIFY_SCALAR, "canonical expressions; what cannot run goes", 0, 0},
    {"masks", lower_masks, IR_VERIFY_SCALAR, "masks of all or no lanes go", TARGET_VECTORS, 0},
    {"promote", lower_promote, IR_VERIFY_SCALAR, "local buffers with constant indices become values", TARGET_REGISTERS, 0},
    {"share", lower_share, IR_VERIFY_SCALAR, "equal expressions become one node, which is evaluated once", TARGET_REGISTERS, 0},
    {"fma", lower_fma, IR_VERIFY_SCALAR, "multiply-adds are fused where the policy allows", TARGET_FLOATS, 0},
    {"math", lower_math, IR_VERIFY_SCALAR, "functions without an instruction are expanded", TARGET_FLOATS, TARGET_MATH},
    {"storage", lower_storage, IR_VERIFY_SCALAR, "allocations get places on the stack or in the workspace", TARGET_HOST, 0},
    {"finish", lower_finish, IR_VERIFY_SCALAR, "what code generators do not know goes", TARGET_HOST, 0},
};
const int lower_n_passes = BASE_COUNT(lower_passes);

const lower_pass *lower_find(const char *name)
{
    for (int i = 0; i < lower_n_passes; i++)
        if (base_same(lower_passes[i].name, name))
            return &lower_passes[i];
    return NULL;
}

bool lower_applies(const lower_pass *pass, const target *t)
{
    return target_offers(t, pass->needs) && !(t->offers & pass->excludes);
}

/* DIR/NAME.NN-pass.tir; a name may hold characters that a file's may not. */
static bool dump(const lower_options *o, const ir_program *p, const char *pass, int number)
{
    char *name = base_strdup(o->cx, p->name);
    const char *text = ir_program_text(o->cx, p);

    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    return base_write_file(o->cx, base_format(o->cx, "%s/%s.%02d-%s.tir", o->dump_dir, name, number, pass), text, strlen(text));
}

static bool verify(const lower_options *o, const ir_program *p, const lower_pass *pass)
{
#ifdef TEC_DEBUG
    /* Vectorised loops stay what they are where the pass of vectors does not run. */
    ir_verify_level level = !target_offers(o->target, TARGET_VECTORS) && pass->level == IR_VERIFY_SCALAR ? IR_VERIFY_FLAT : pass->level;

    if (!o->no_verify && !ir_verify(o->cx, p, level)) {
        base_note(o->cx, (base_loc){0}, "after the pass '%s'", pass->name);
        return false;
    }
#else
    (void)o, (void)p, (void)pass;
#endif
    return true;
}

/* A slice of the passes may start anywhere, so what the whole pipeline guarantees after a pass need not hold after it there. */
static const ir_program *run_one(const lower_options *o, const ir_program *p, const lower_pass *pass, int number, bool whole)
{
    const ir_program *out = pass->run(o, p);

    if (!out || base_failed(o->cx))
        return NULL;
    if (out != p) {
        if (o->dump_dir && !dump(o, out, pass->name, number))
            return NULL;
        if (whole && !verify(o, out, pass))
            return NULL;
    }
    if (o->watch)
        o->watch(o->user, pass->name, p, out);
    return out;
}

const ir_program *lower_run(const lower_options *o, const ir_program *tree)
{
    const ir_program *p = base_failed(o->cx) ? NULL : tree;

    for (int i = 0; i < lower_n_passes && p; i++)
        if (lower_applies(&lower_passes[i], o->target))
            p = run_one(o, p, &lower_passes[i], i + 1, true);
    return p;
}

const ir_program *lower_run_passes(const lower_options *o, const ir_program *p, const char *const *names, int n)
{
    for (int i = 0; i < n && p; i++) {
        const lower_pass *pass = lower_find(names[i]);

        if (!pass)
            return base_fail(o->cx, TEC_INVALID, (base_loc){0}, "no pass is called '%s'", names[i]);
        p = run_one(o, p, pass, i + 1, false);
    }
    return p;
}
