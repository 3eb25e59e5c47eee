/* compiler/dispatch.c -- residue dispatch: versions of a function for some remainders of a symbolic extent by
 * a tile.
 *
 * A version is the definition specialised (te/specialise.c) and scheduled by the same trace; names of loops
 * and blocks follow from the steps alone, so the trace means the same there. How one of them is chosen at run
 * time is targets/llvm/dispatch.c.
 */
#include "compiler/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"

static comp_dispatch *malformed(tec_context *cx, const char *text)
{
    return base_fail(
        cx, TEC_INVALID, base_where(cx),
        "dispatch '%s': expected a symbol and a tile, and remainders if not all: n%%8 or n%%8=0,4", text);
}

/* A number that ends with the text or at `end`; -1: none. Those past all limits are cut to one past them. */
static int64_t read_number(const char **at, char end)
{
    char *rest;
    long long n = **at >= '0' && **at <= '9' ? strtoll(*at, &rest, 10) : -1;

    if (n < 0 || (*rest && *rest != end))
        return -1;
    *at = rest;
    return n <= COMP_MAX_MODULUS ? n : COMP_MAX_MODULUS + 1;
}

/* Adds one remainder of the list; each may stand there once. */
static bool add_residue(tec_context *cx, comp_dispatch *out, const char *text, int64_t residue)
{
    if (residue >= out->modulus)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "dispatch '%s': %lld is not a remainder of a division by %lld", text,
                         (long long)residue, (long long)out->modulus);
    for (int i = 0; i < out->n; i++)
        if (out->version[i].residue == residue)
            return base_fail(cx, TEC_INVALID, base_where(cx),
                             "dispatch '%s': the remainder %lld is given twice", text, (long long)residue);
    if (out->n == COMP_MAX_VERSIONS)
        return base_fail(
            cx, TEC_INVALID, base_where(cx),
            "dispatch '%s' asks for more than %d versions: name the remainders that matter, as in n%%64=0,32",
            text, COMP_MAX_VERSIONS);
    out->version[out->n++].residue = residue;
    return true;
}

/* n%8 or n%8=0,4 */
static bool read_text(tec_context *cx, const char *text, const char **symbol, comp_dispatch *out)
{
    const char *at = strchr(text, '%');

    if (!at || at == text)
        return malformed(cx, text);
    *symbol = base_strndup(cx, text, (size_t)(at++ - text));
    out->modulus = read_number(&at, '=');
    if (out->modulus < 0)
        return malformed(cx, text);
    if (out->modulus < 2 || out->modulus > COMP_MAX_MODULUS)
        return base_fail(cx, TEC_INVALID, base_where(cx), "dispatch '%s': expected a tile from 2 to %d", text,
                         COMP_MAX_MODULUS);
    for (int64_t r = 0; !*at && r < out->modulus; r++)
        if (!add_residue(cx, out, text, r))
            return false;
    while (*at) {
        at++;
        int64_t r = read_number(&at, ',');
        if (r < 0)
            return malformed(cx, text);
        if (!add_residue(cx, out, text, r))
            return false;
    }
    return true;
}

static int find_symbol(const ir_program *program, const char *name)
{
    for (int i = 0; i < program->n_symbols; i++)
        if (base_same(program->symbols[i]->var.name, name))
            return i;
    return -1;
}

static bool has_axis(const te_def *def, const char *name)
{
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        for (int k = 0; k < stage->n_axes; k++)
            if (base_same(stage->axis[k]->var.name, name))
                return true;
        for (int k = 0; k < stage->n_reduce; k++)
            if (base_same(stage->reduce_axis[k]->var.name, name))
                return true;
    }
    return false;
}

/* The name of the quotient; no other symbol has it. No axis has it either: an axis that hides a symbol would
 * get another name, and with it its loop, which the schedule would not find. */
static const char *quotient_name(tec_context *cx, const te_def *def, const ir_program *program,
                                 const char *symbol)
{
    const char *name = base_format(cx, "%s_q", symbol);

    while (find_symbol(program, name) >= 0 || has_axis(def, name))
        name = base_format(cx, "%s_", name);
    return name;
}

/* Whether the facts of the definition say that this remainder never comes. */
static bool excluded(tec_context *cx, const ir_program *program, const ir_expr *symbol,
                     const ir_expr *quotient, const ir_expr *value)
{
    ir_facts *facts = ir_facts_new(cx, NULL);
    int64_t holds;

    ir_facts_assume(facts, ir_le(cx, ir_int(cx, 0), quotient));
    for (int i = 0; i < program->n_facts; i++)
        if (ir_is_int(ir_simplify(facts, ir_substitute(cx, program->facts[i], symbol, value)), &holds) &&
            !holds)
            return true;
    return false;
}

/* The symbols in the order of the general tree, the quotient in the place of the symbol: what is called
 * passes them by position. The name tells the version apart in what is printed. */
static const ir_program *as_version(tec_context *cx, const ir_program *tree, const ir_program *general,
                                    int symbol, const ir_expr *quotient, int64_t residue)
{
    ir_program *out = ir_program_copy(cx, tree);
    const ir_expr **symbols = base_array(cx, const ir_expr *, general->n_symbols);

    for (int i = 0; i < general->n_symbols; i++)
        symbols[i] = i == symbol ? quotient : general->symbols[i];
    out->name = base_format(cx, "%s_r%lld", general->name, (long long)residue);
    out->symbols = symbols;
    out->n_symbols = general->n_symbols;
    return out;
}

/* The definition with symbol = quotient * modulus + residue, scheduled by the same trace. Facts that exclude
 * the remainder make it an error to ask for. */
static bool make_version(tec_context *cx, const te_def *def, const sched *schedule, comp_dispatch *out,
                         const ir_expr *quotient, comp_version *version)
{
    const ir_program *general = sched_tree(schedule);
    const ir_expr *symbol = general->symbols[out->symbol];
    const ir_expr *value =
        ir_add(cx, ir_mul(cx, quotient, ir_int(cx, out->modulus)), ir_int(cx, version->residue));

    if (excluded(cx, general, symbol, quotient, value))
        return base_fail(cx, TEC_INVALID, def->loc,
                         "the facts of '%s' exclude %s %% %lld == %lld, which dispatch asks for",
                         general->name, symbol->var.name, (long long)out->modulus,
                         (long long)version->residue);
    te_def *special = te_specialise(cx, def, &symbol, &value, 1);
    const ir_program *tree = special ? te_tree(cx, special) : NULL;
    sched *copy = tree ? sched_new(cx, as_version(cx, tree, general, out->symbol, quotient, version->residue),
                                   sched_target(schedule))
                       : NULL;
    if (!copy)
        return false;
    sched_use_intrinsics(copy, sched_intrinsics(schedule));
    if (!sched_replay(copy, "the schedule", sched_trace_text(cx, schedule)))
        return base_fail(cx, TEC_INVALID, def->loc,
                         "the version of '%s' for %s %% %lld == %lld cannot be scheduled: %s", general->name,
                         symbol->var.name, (long long)out->modulus, (long long)version->residue,
                         sched_error(copy));
    version->tree = sched_tree(copy);
    return true;
}

/* text: "n%64=0,32" asks for two versions of a function with the symbol n. NULL with an error. */
comp_dispatch *comp_dispatch_new(tec_context *cx, const te_def *def, const sched *schedule, const char *text)
{
    comp_dispatch *out = base_new(cx, comp_dispatch);
    const ir_program *program = sched_tree(schedule);
    const char *name = NULL;

    if (!def)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "dispatch '%s': the schedule was not made from a definition", text);
    if (!program || !read_text(cx, text, &name, out))
        return NULL;
    out->symbol = find_symbol(program, name);
    if (out->symbol < 0)
        return base_fail(cx, TEC_INVALID, def->loc, "dispatch '%s': '%s' has no symbol '%s'", text,
                         program->name, name);
    const ir_expr *quotient = ir_var(cx, quotient_name(cx, def, program, name), BASE_I64);
    for (int i = 0; i < out->n; i++)
        if (!make_version(cx, def, schedule, out, quotient, &out->version[i]))
            return NULL;
    return out;
}
