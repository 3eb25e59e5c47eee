/* ir/intrinsic.c -- the text of intrinsics, and their meaning as a plain nest: see intrinsic.h.
 *
 *     for i { for k { block c(i, k reduce) { init { c[i] = 0 } c[i] sum= a[i, k] } } }
 * =>  for i { c[i] = 0 }  for i { for k { c[i] sum= a[i, k] } }
 */
#include "ir/intrinsic.h"

#include <ctype.h>
#include <string.h>

#include "ir/build.h"
#include "ir/text.h"
#include "ir/walk.h"

enum { MAX_LOOPS = 16 };

/* ---- the text ---- */

/* The name behind `word` ("call ") and nothing behind the name; else NULL. */
static const char *name_behind(tec_context *cx, const char *text, const char *word)
{
    const char *name = text && strncmp(text, word, strlen(word)) == 0 ? text + strlen(word) : NULL;

    if (!name || !(isalpha((unsigned char)*name) || *name == '_'))
        return NULL;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return NULL;
    return base_strdup(cx, name);
}

const char *ir_intrinsic_function(tec_context *cx, const ir_intrinsic *in)
{
    return name_behind(cx, in->text, "call ");
}

/* The words in front of the name say how many threads do the instruction; without one of them the text is
 * something else. */
const char *ir_intrinsic_instruction(tec_context *cx, const ir_intrinsic *in, int *group)
{
    static const struct {
        const char *word;
        int threads;
    } groups[] = {{"thread ", 1}, {"warp ", 32}, {"warpgroup ", 128}};

    for (int i = 0; i < BASE_COUNT(groups); i++) {
        const char *name = name_behind(cx, in->text, groups[i].word);

        *group = groups[i].threads;
        if (name)
            return name;
    }
    return NULL;
}

/* The meaning's head with the text as body: an intrinsic's text may use the meaning's parameters by name. */
const ir_program *ir_intrinsic_program(tec_context *cx, const ir_intrinsic *in)
{
    ir_program *head = ir_program_copy(cx, in->meaning);

    head->body = ir_nothing(cx);
    head->n_intrinsics = 0;
    const char *text = ir_program_text(cx, head), *close = strrchr(text, '}');
    text = base_format(cx, "%.*s%s\n}\n", (int)(close - text), text, in->text ? in->text : "");
    return ir_parse_program(cx, base_format(cx, "the text of '%s'", in->name), text);
}

/* ---- without blocks ---- */

/* Whether the loop chooses which element is written. */
static bool feeds_spatial(tec_context *cx, const ir_stmt *stmt, const ir_expr *var)
{
    for (int i = 0; i < stmt->block.block->n_iters; i++)
        if (stmt->block.block->iters[i].kind != IR_REDUCE_ITER && ir_uses_var(cx, stmt->block.bind[i], var))
            return true;
    return false;
}

/* The block's part with the loops' expressions in place of its iteration variables. */
static const ir_stmt *inside(tec_context *cx, const ir_stmt *stmt, const ir_stmt *part)
{
    const ir_block *b = stmt->block.block;
    ir_subst map = {0};

    for (int i = 0; i < b->n_iters; i++)
        base_map_put(cx, &map.vars, b->iters[i].var, stmt->block.bind[i]);
    part = ir_apply_stmt(cx, &map, part);
    return part && stmt->block.where ? ir_if(cx, stmt->block.where, part, NULL) : part;
}

/* The init moves out in front of the loops that only reduce; loops that choose the output element are kept
 * around it, with variables of their own. MAX_LOOPS loops at most; what is deeper stays as it is, and has its
 * block inside. */
const ir_stmt *ir_plain_nest(tec_context *cx, const ir_stmt *stmt)
{
    const ir_stmt *loop[MAX_LOOPS], *body, *init;
    int n = 0;

    for (; stmt->kind == IR_FOR && n < MAX_LOOPS; stmt = stmt->loop.body)
        loop[n++] = stmt;
    if (stmt->kind != IR_BLOCK)
        body = stmt, init = NULL;
    else {
        body = inside(cx, stmt, stmt->block.block->body);
        init = stmt->block.block->init ? inside(cx, stmt, stmt->block.block->init) : NULL;
    }
    for (int i = n - 1; i >= 0; i--) {
        body = ir_for_like(cx, loop[i], loop[i]->loop.min, loop[i]->loop.extent, body);
        if (init && feeds_spatial(cx, stmt, loop[i]->loop.var))
            init = ir_for(cx, loop[i]->loop.var, loop[i]->loop.min, loop[i]->loop.extent, loop[i]->loop.how,
                          init);
    }
    return init ? ir_seq2(cx, ir_rename(cx, init), body) : body;
}
