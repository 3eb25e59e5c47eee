/* lower/pipeline.c -- running the passes of lower/passes.def in their order.
 *
 *     p --imports--> p --reasons--> p' --lanes--> p' ... --finish--> q
 *
 * A row runs if the target offers what it needs and nothing that it excludes. A pass that changes nothing
 * gives the same pointer back: then nothing is dumped and nothing verified. In debug builds the verifier runs
 * at the level of the row, so that a broken program is blamed on the pass that made it.
 */
#include <string.h>

#include "lower/reasons.h"

const lower_pass lower_passes[] = {
#define LOWER_PASS(name, level, needs, excludes, help)                                                       \
    {#name, lower_##name, IR_VERIFY_##level, help, needs, excludes},
#include "lower/passes.def"
};
const int lower_n_passes = BASE_COUNT(lower_passes);

const lower_pass *lower_find(const char *name)
{
    for (int i = 0; i < lower_n_passes; i++)
        if (base_same(lower_passes[i].name, name))
            return &lower_passes[i];
    return NULL;
}

bool lower_applies(const lower_pass *pass, const target *machine)
{
    return target_offers(machine, pass->needs) && !(machine->offers & pass->excludes);
}

/* DIR/NAME.NN-pass.tir; a name may hold characters that a file's may not. */
static bool dump(const lower_options *options, const ir_program *program, const char *pass, int number)
{
    char *name = base_strdup(options->cx, program->name);
    const char *text = ir_program_text(options->cx, program);

    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    return base_write_file(
        options->cx, base_format(options->cx, "%s/%s.%02d-%s.tir", options->dump_dir, name, number, pass),
        text, strlen(text));
}

/* Debug builds alone: verifying a large program after each pass takes longer than the passes. */
static bool verify(const lower_options *options, const ir_program *program, const lower_pass *pass)
{
#ifdef TEC_DEBUG
    /* Vectorised loops stay what they are where the pass of vectors does not run. */
    bool loops = !target_offers(options->target, TARGET_VECTORS) && pass->level == IR_VERIFY_SCALAR;
    ir_verify_level level = loops ? IR_VERIFY_FLAT : pass->level;

    bool noted = pass->level == IR_VERIFY_TREE && pass >= lower_find("reasons");

    if (!options->no_verify &&
        !(ir_verify(options->cx, program, level) &&
          (!noted || lower_check_reasons(options->cx, program, pass->run == lower_reasons)))) {
        base_note(options->cx, (base_loc){0}, "after the pass '%s'", pass->name);
        return false;
    }
#else
    (void)options, (void)program, (void)pass;
#endif
    return true;
}

/* A slice of the passes may start anywhere, so what the whole pipeline guarantees after a pass need not hold
 * after it there. `number` is the row's place in the table, for the names of dumped files; it is the same for
 * each target. */
static const ir_program *run_one(const lower_options *options, const ir_program *program,
                                 const lower_pass *pass, int number, bool whole)
{
    const ir_program *out = pass->run(options, program);

    if (!out || base_failed(options->cx))
        return NULL;
    if (out != program) {
        if (options->dump_dir && !dump(options, out, pass->name, number))
            return NULL;
        if (whole && !verify(options, out, pass))
            return NULL;
    }
    if (options->watch)
        options->watch(options->user, pass->name, program, out);
    return out;
}

const ir_program *lower_run(const lower_options *options, const ir_program *tree)
{
    const ir_program *p = base_failed(options->cx) ? NULL : tree;

    for (int i = 0; i < lower_n_passes && p; i++)
        if (lower_applies(&lower_passes[i], options->target))
            p = run_one(options, p, &lower_passes[i], i + 1, true);
    return p;
}

const ir_program *lower_run_passes(const lower_options *options, const ir_program *program,
                                   const char *const *names, int count)
{
    for (int i = 0; i < count && program; i++) {
        const lower_pass *pass = lower_find(names[i]);

        if (!pass)
            return base_fail(options->cx, TEC_INVALID, (base_loc){0}, "there is no pass '%s'", names[i]);
        program = run_one(options, program, pass, i + 1, false);
    }
    return program;
}
