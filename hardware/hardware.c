/* hardware/hardware.c -- the table of intrinsics, and looking into it: a row is declared in a context when it
 * is asked for. */
#include "hardware/hardware.h"

static const hw_row *const rows[] = {
#define HW_INTRINSIC(row) &hw_##row,
#include "hardware/intrinsics.def"
};

static const hw_row *find(const char *name)
{
    for (int i = 0; i < BASE_COUNT(rows); i++)
        if (base_same(rows[i]->name, name))
            return rows[i];
    return NULL;
}

static const char *wants(tec_context *cx, const hw_row *r, const target *t)
{
    return base_format(cx, "intrinsic '%s' needs %s%s%s%s%s; the target is '%s'", r->name,
                       r->arch ? r->arch : "a CPU", r->feature ? " with " : "", r->feature ? r->feature : "",
                       r->or_feature ? " or " : "", r->or_feature ? r->or_feature : "", target_text(cx, t));
}

/* NULL where there is none of the name, or where the target lacks it: *missing then says what it lacks. */
const te_intrinsic *hw_intrinsic(tec_context *cx, const char *name, const target *t, const char **missing)
{
    const hw_row *r = find(name);

    *missing = NULL;
    if (!r)
        return NULL;
    if (t && !target_is_cpu_with(t, r->arch, r->feature, r->or_feature)) {
        *missing = wants(cx, r, t);
        return NULL;
    }
    te_intrinsics *table = te_intrinsics_parse(cx, r->name, r->text);
    if (!table)
        BASE_BUG(cx, "intrinsic '%s' does not parse: %s", r->name, tec_context_error(cx));
    return table ? table->list.at[0] : NULL;
}

const char *hw_names(tec_context *cx)
{
    base_text t = {0};

    for (int i = 0; i < BASE_COUNT(rows); i++)
        base_addf(cx, &t, "%s%s", i ? ", " : "", rows[i]->name);
    return base_text_str(cx, &t);
}
