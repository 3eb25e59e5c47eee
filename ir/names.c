/* ir/names.c -- unique names for printing; scopes are a stack of what to undo.
 *
 * An example: two variables named i, one inside the loop of the other, print as i and i'2; behind the inner
 * loop, i'2 is free again. Nodes keep the names that they were made with; the text alone is unique.
 */
#include "ir/names.h"

#include <ctype.h>
#include <string.h>

/* What has to be put back when a binding ends: the name's holder before, the node's name before, and the
 * counter. */
typedef struct {
    ir_name_kind kind;
    const void *node, *old_holder;
    const char *name, *old_name, *wanted;
    intptr_t old_next;
} undo;

static const char *const keywords[] = {
    "true",    "false",  "inf",   "nan",      "let",      "share",  "in",        "if",
    "else",    "for",    "block", "where",    "allocate", "assert", "attribute", "call",
    "pure",    "reads",  "init",  "evaluate", "writes",   "buffer", "combiner",  "intrinsic",
    "program", "symbol", "out",   "reduce",   "scan",     "opaque", "role",
};

static const char *const combiners[] = {"sum", "prod", "min", "max", "any", "all", "argmin", "argmax"};

static bool is_listed(const char *const *words, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

bool ir_is_reserved(ir_name_kind kind, const char *name)
{
    return is_listed(keywords, BASE_COUNT(keywords), name) ||
           (kind == IR_NAME_BUFFER && is_listed(combiners, BASE_COUNT(combiners), name));
}

static bool starts_name(char c)
{
    return c == '_' || (isalpha((unsigned char)c) && (unsigned char)c < 128);
}

static bool in_name(char c)
{
    return starts_name(c) || (c >= '0' && c <= '9');
}

/* As the lexer has it: a dot, quote or tilde is part of a name right before a name character only. */
static bool belongs(const char *text, const char *p)
{
    return p == text ? starts_name(*p) : in_name(*p) || (strchr(".'~", *p) && in_name(p[1]));
}

bool ir_names_is_name(const char *text)
{
    for (const char *p = text; *p; p++)
        if (!belongs(text, p))
            return false;
    return *text;
}

/* The empty name becomes "_". */
const char *ir_names_clean(tec_context *cx, const char *wanted)
{
    if (!wanted || !*wanted)
        return "_";
    if (ir_names_is_name(wanted))
        return wanted;
    char *clean = base_format(cx, "%s%s", in_name(*wanted) && !starts_name(*wanted) ? "_" : "", wanted);
    for (char *p = clean + strlen(clean); p-- > clean;)
        if (!belongs(clean, p))
            *p = '_';
    return clean;
}

/* A name whose holder no expression here mentions may be taken over (`unused`). */
static bool is_free(const ir_names *names, ir_name_kind kind, const void *node, const char *name)
{
    const void *holder = base_dict_get(&names->holder[kind], name);

    if (ir_is_reserved(kind, name))
        return false;
    return !holder || holder == node || (names->unused && base_map_has(names->unused, holder));
}

/* The wanted name if it is free, otherwise the name with the next number: i, i'2, i'3. `next` remembers where
 * counting stopped, so that a thousand namesakes do not take a million attempts. */
static const char *choose(ir_names *names, ir_name_kind kind, const void *node, const char *wanted)
{
    intptr_t number = (intptr_t)base_dict_get(&names->next[kind], wanted);
    const char *name = wanted;

    if (is_free(names, kind, node, wanted))
        return wanted;
    for (number = number < 2 ? 2 : number;; number++) {
        name = base_format(names->cx, "%s'%lld", wanted, (long long)number);
        if (is_free(names, kind, node, name))
            break;
    }
    base_dict_put(names->cx, &names->next[kind], wanted, (const void *)(number + 1));
    return name;
}

/* Canonical names are counted: v0, v1, ... */
static const char *wish(ir_names *names, const char *wanted)
{
    return names->canonical ? base_format(names->cx, "v%d", names->count++)
                            : ir_names_clean(names->cx, wanted);
}

/* Gives `node` a name until the scope is released (ir_names_release); what the name meant before is put on
 * the undo stack. */
const char *ir_names_bind(ir_names *names, ir_name_kind kind, const void *node, const char *wanted)
{
    undo *u = base_new(names->cx, undo);

    wanted = wish(names, wanted);
    u->old_next = (intptr_t)base_dict_get(&names->next[kind], wanted);
    u->kind = kind;
    u->node = node;
    u->wanted = wanted;
    u->name = choose(names, kind, node, wanted);
    u->old_holder = base_dict_get(&names->holder[kind], u->name);
    u->old_name = base_map_get(&names->of, node);
    base_push(names->cx, &names->undo, u);
    base_dict_put(names->cx, &names->holder[kind], u->name, node);
    base_map_put(names->cx, &names->of, node, u->name);
    return u->name;
}

/* Not on the undo stack: a node that no binder encloses keeps its name to the end of the text. */
const char *ir_names_of(ir_names *names, ir_name_kind kind, const void *node, const char *wanted)
{
    const char *name = base_map_get(&names->of, node);

    if (name)
        return name;
    name = choose(names, kind, node, wish(names, wanted));
    base_dict_put(names->cx, &names->holder[kind], name, node);
    base_map_put(names->cx, &names->of, node, name);
    return name;
}

int ir_names_mark(const ir_names *names)
{
    return names->undo.n;
}

void ir_names_release(ir_names *names, int mark)
{
    while (names->undo.n > mark) {
        const undo *u = names->undo.at[--names->undo.n];
        /* Someone unbound may have taken the name meanwhile, where it was shadowed. */
        if (base_dict_get(&names->holder[u->kind], u->name) == u->node)
            base_dict_put(names->cx, &names->holder[u->kind], u->name, u->old_holder);
        base_map_put(names->cx, &names->of, u->node, u->old_name);
        base_dict_put(names->cx, &names->next[u->kind], u->wanted, (const void *)u->old_next);
    }
}
