/* ir/ops.c -- the operation table and the words of the small enumerations, all generated from their one
 * list. */
#include "ir/ir.h"

#define NODE(NAME) [IR_##NAME] = {.name = #NAME, .text = ""},
#define IR_OP(NAME, word, text, form, arity, operands, result, flags)                                        \
    [IR_##NAME] = {#NAME, text, IR_##form, arity, IR_##operands, IR_##result, flags},
const ir_op_info ir_ops[IR_N_OPS] = {NODE(INT) NODE(FLOAT) NODE(STRING) NODE(VAR) NODE(LOAD) NODE(CAST)
                                         NODE(REINTERPRET) NODE(RAMP) NODE(BROADCAST) NODE(SHUFFLE) NODE(LET)
                                             NODE(CALL) NODE(REDUCE)
#include "ir/ops.def"
};
#undef NODE

static const char *const scopes[] = {
#define X(NAME, text) text,
    IR_SCOPE_LIST(X)
#undef X
};

static const char *const hows[] = {
#define X(NAME, text) text,
    IR_HOW_LIST(X)
#undef X
};

static const char *const roles[] = {
#define X(NAME, text) text,
    IR_ROLE_LIST(X)
#undef X
};

const char *ir_scope_text(ir_scope scope)
{
    return scopes[scope];
}

const char *ir_how_text(ir_how how)
{
    return hows[how];
}

const char *ir_role_text(ir_role role)
{
    return roles[role];
}

/* The index of a word that is not empty; -1 where the list has none. */
static int find(const char *const *words, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (*words[i] && base_same(words[i], text))
            return i;
    return -1;
}

bool ir_scope_parse(const char *text, ir_scope *out)
{
    int i = find(scopes, BASE_COUNT(scopes), text);

    if (i >= 0)
        *out = (ir_scope)i;
    return i >= 0;
}

bool ir_how_parse(const char *text, ir_how *out)
{
    int i = find(hows, BASE_COUNT(hows), text);

    if (i >= 0)
        *out = (ir_how)i;
    return i >= 0;
}

bool ir_role_parse(const char *text, ir_role *out)
{
    int i = find(roles, BASE_COUNT(roles), text);

    if (i >= 0)
        *out = (ir_role)i;
    return i >= 0;
}
