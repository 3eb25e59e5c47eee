/* compiler/api.c -- the public face of compiler/: include/tec/build.h over compiler/compiler.h. */
#include "tec/build.h"

#include "base/guard.h"
#include "compiler/dispatch.h"
#include "compiler/options.h"
#include "schedule/sched.h"

/* ---- options ---- */

/* `known` is the target of the schedules, NULL where there are none; the options may only repeat it or choose
 * the number of threads. Everything absent gets its usual value. */
bool comp_read_options(tec_context *cx, const tec_build_options *options, const target *known,
                       comp_options *out)
{
    static const tec_build_options none;
    const target *t = known;

    if (!options)
        options = &none;
    if (options->target || !known)
        t = target_parse(cx, options->target ? options->target : "native");
    if (t && options->threads > 0) {
        target *with = base_copy(cx, t, sizeof *t);
        with->num_cores = options->threads;
        t = with;
    }
    if (t && options->precision)
        t = target_with_precision(cx, t, options->precision);
    *out = (comp_options){
        .target = t, .jobs = options->jobs, .strict = options->strict, .dump_dir = options->dump_dir};
    return t != NULL;
}

unsigned comp_write_flags(const tec_build_options *options)
{
    return options && options->weights_beside ? RT_WEIGHTS_BESIDE : 0;
}

/* ---- schedules to units ---- */

/* A schedule with a refused step would be built as if the step had not been asked for, so it is an error. */
static bool check_schedule(tec_context *cx, const tec_schedule *schedule, const tec_schedule *first)
{
    const target *t = sched_target(schedule), *other = sched_target(first);
    const ir_program *program = sched_tree(schedule);

    if (sched_error(schedule)) {
        base_fail(cx, TEC_INVALID, base_where(cx), "the schedule of '%s' has a step that was refused",
                  program->name);
        base_note(cx, (base_loc){0}, "%s", sched_error(schedule));
        return false;
    }
    if (t && other && target_fingerprint(t) != target_fingerprint(other)) {
        base_fail(cx, TEC_INVALID, base_where(cx),
                  "'%s' is scheduled for '%s' and '%s' for '%s': one module has one target", program->name,
                  target_text(cx, t), sched_tree(first)->name, target_text(cx, other));
        return false;
    }
    return true;
}

/* False with an error; without a request it does nothing. */
static bool add_versions(tec_context *cx, const tec_schedule *schedule, const tec_build_options *options,
                         comp_unit *unit)
{
    if (!options || !options->dispatch)
        return true;
    unit->dispatch = comp_dispatch_new(cx, sched_def(schedule), schedule, options->dispatch);
    return unit->dispatch != NULL;
}

/* One unit per schedule, with its versions for remainders; names must differ, since they become symbols. */
static bool make_units(tec_context *cx, const tec_schedule *const *schedule, int count,
                       const tec_build_options *options, comp_unit *units)
{
    base_dict names = {0};

    for (int i = 0; i < count; i++) {
        if (!schedule || !schedule[i])
            return base_fail(cx, TEC_INVALID, base_where(cx), "function %d of %d has no schedule", i, count),
                   false;
        if (!check_schedule(cx, schedule[i], schedule[0]))
            return false;
        units[i] = (comp_unit){.name = sched_tree(schedule[i])->name,
                               .tree = sched_tree(schedule[i]),
                               .plain = sched_plain(schedule[i]),
                               .origin = "schedule"};
        if (!add_versions(cx, schedule[i], options, &units[i]))
            return false;
        if (base_dict_has(&names, units[i].name)) {
            base_fail(cx, TEC_INVALID, base_where(cx), "two functions of one module are named '%s'",
                      units[i].name);
            return false;
        }
        base_dict_put(cx, &names, units[i].name, &units[i]);
    }
    return true;
}

/* Tensor cores come into a program by its schedule, which asks its own target whether they may round. */
static bool precision_of_schedules(tec_context *cx, const comp_options *options, const target *of)
{
    if (options->target->precision != TARGET_TF32 || (of && of->precision >= TARGET_TF32))
        return true;
    base_fail(cx, TEC_INVALID, base_where(cx),
              "precision 'tf32' comes too late for a schedule: give it in the schedule's target, as in '%s'",
              target_text(cx, options->target));
    return false;
}

/* Common to modules and texts: `text` says which form is wanted besides the code. */
static comp_code *compile(tec_context *cx, const tec_schedule *const *schedule, int count,
                          const tec_build_options *options, int text)
{
    comp_unit *units = base_array(cx, comp_unit, count);
    comp_options o;

    if (options && options->records)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "the option 'records' is only for graphs: to use a record in a schedule, replay the "
                         "steps that tec_records_trace gives");
    if (count < 1)
        return base_fail(cx, TEC_INVALID, base_where(cx), "a module needs at least one function");
    if (base_failed(cx) || !make_units(cx, schedule, count, options, units) ||
        !comp_read_options(cx, options, sched_target(schedule[0]), &o))
        return NULL;
    if (!precision_of_schedules(cx, &o, sched_target(schedule[0])))
        return NULL;
    o.want_lowered = o.lower_only = text == TEC_TEXT_LOWERED;
    o.text = text == TEC_TEXT_LLVM ? "llvm" : text == TEC_TEXT_ASM ? "asm" : NULL;
    return comp_compile(cx, units, count, &o);
}

/* ---- the API ---- */

TEC_GIVE tec_module *tec_build_n(tec_context *cx, const tec_schedule *const *schedule, int n,
                                 const tec_build_options *options)
{
    BASE_GUARD(cx, NULL);
    comp_code *code = compile(cx, schedule, n, options, -1);

    return code ? comp_load(cx, code, NULL) : NULL;
}

bool tec_build_file_n(tec_context *cx, const tec_schedule *const *schedule, int n,
                      const tec_build_options *options, const char *path)
{
    BASE_GUARD(cx, false);
    comp_code *code = compile(cx, schedule, n, options, -1);

    return code && comp_write(cx, code, NULL, path, comp_write_flags(options));
}

TEC_GIVE tec_module *tec_build(const tec_schedule *schedule, const tec_build_options *options)
{
    BASE_GUARD(schedule ? sched_context(schedule) : NULL, NULL);
    return schedule ? tec_build_n(sched_context(schedule), &schedule, 1, options) : NULL;
}

bool tec_build_file(const tec_schedule *schedule, const tec_build_options *options, const char *path)
{
    BASE_GUARD(schedule ? sched_context(schedule) : NULL, false);
    return schedule && tec_build_file_n(sched_context(schedule), &schedule, 1, options, path);
}

const char *tec_build_text(const tec_schedule *schedule, const tec_build_options *options, tec_text_kind kind)
{
    BASE_GUARD(schedule ? sched_context(schedule) : NULL, NULL);
    comp_code *code = schedule ? compile(sched_context(schedule), &schedule, 1, options, (int)kind) : NULL;

    if (!code)
        return NULL;
    return kind == TEC_TEXT_LOWERED ? comp_lowered_text(code, 0) : comp_code_text(code, 0);
}
