/* tests/compiler/lowered.c -- lowered programs of every kind of target, with or without a code generator:
 * their text, which the interpreter runs. lowered/KIND.te has a definition and a schedule that shows what the
 * kind is for, lowered/KIND.tir the program, written by
 *
 *     tec te tests/compiler/lowered/KIND.te --target KIND --emit lowered > tests/compiler/lowered/KIND.tir
 *
 * with the target "llvm -mcpu=x86-64-v3" for llvm. A new kind needs both files.
 */
#include "compiler/compiler.h"
#include "compiler/generators.h"
#include "targets/cpus.h"
#include "tests/schedule/run.h"

TestSuite(lowered, .init = open_context, .fini = close_context);

static const char *file(const char *kind, const char *end)
{
    size_t size;
    const char *text =
        base_read_file(cx, base_format(cx, TEC_SOURCE_DIR "/tests/compiler/lowered/%s.%s", kind, end), &size);

    cr_assert(text, "%s", tec_context_error(cx));
    return text;
}

static const target *target_of(const char *kind)
{
    const target *t = target_parse(cx, base_same(kind, "llvm") ? "llvm -mcpu=x86-64-v3" : kind);

    cr_assert(t, "%s", tec_context_error(cx));
    return t;
}

static sched *scheduled(const char *kind)
{
    te_file *f = te_parse(cx, kind, file(kind, "te"));

    cr_assert(f, "%s", tec_context_error(cx));
    te_def *d = f->defs.at[0];
    sched *s = sched_new(cx, te_tree(cx, d), target_of(kind));
    cr_assert(sched_replay(s, kind, base_dict_get(&f->schedules, d->name)), "%s: %s", kind, sched_error(s));
    return s;
}

static comp_code *compile(const sched *s, comp_options o)
{
    comp_unit u = {.name = "mm", .tree = sched_tree(s)};

    o.target = sched_target(s);
    o.jobs = 1;
    return comp_compile(cx, &u, 1, &o);
}

Test(lowered, programs_of_every_kind_have_a_text_that_runs)
{
    for (int i = 0; i < target_n_kinds; i++) {
        const char *kind = target_kinds[i].name, *expected = file(kind, "tir");
        sched *s = scheduled(kind);
        comp_code *code = compile(s, (comp_options){.want_lowered = true, .lower_only = true});

        cr_assert(code, "%s: %s", kind, tec_context_error(cx));
        cr_assert(base_same(comp_lowered_text(code, 0), expected), "%s: expected:\n%s\nfound:\n%s", kind,
                  expected, comp_lowered_text(code, 0));
        const ir_program *p = ir_parse_program(cx, kind, expected);
        cr_assert(p, "%s: %s", kind, tec_context_error(cx));
        means_the_same(sched_tree(s), p);
    }
}

Test(lowered, programs_alone_have_a_description)
{
    comp_code *code = compile(scheduled("cuda"), (comp_options){.lower_only = true});

    cr_assert(code, "%s", tec_context_error(cx));
    cr_assert_eq(comp_desc(code)->n_functions, 1);
    cr_assert_eq(comp_desc(code)->functions[0].n_params, 3);
    cr_assert_null(comp_lowered_text(code, 0));
}

Test(lowered, code_of_a_kind_without_a_generator_is_refused)
{
    for (int i = 0; i < target_n_kinds; i++) {
        sched *s = scheduled(target_kinds[i].name);

        if (comp_codegen(sched_target(s))->generate)
            continue;
        cr_assert_null(compile(s, (comp_options){0}), "%s", target_kinds[i].name);
        cr_assert(strstr(tec_context_error(cx),
                         base_format(cx, "there is no code generator for target '%s", target_kinds[i].name)),
                  "%s", tec_context_error(cx));
        tec_context_clear(cx);
    }
}

Test(lowered, a_text_that_the_generator_does_not_write_is_refused)
{
    cr_assert_null(compile(scheduled("llvm"), (comp_options){.text = "fortran"}));
    cr_assert(strstr(tec_context_error(cx), "has no text form 'fortran'; expected llvm, asm"), "%s",
              tec_context_error(cx));
}

Test(lowered, the_forms_of_code_have_names)
{
    const char *const *forms = comp_code_forms(cx);

    cr_assert_str_eq(forms[0], "llvm");
    cr_assert_str_eq(forms[1], "asm");
}
