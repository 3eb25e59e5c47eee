/* tests/lower/remove.h -- a program without one of the places where its threads meet, which the interpreter
 * then has to report.
 *
 *     without(p, -1, &total);                                  // how many there are
 *     for (int i = 0; i < total; i++) ... without(p, i, &total) ...
 *
 * To be included behind what defines `cx`.
 */
#ifndef TESTS_LOWER_REMOVE_H
#define TESTS_LOWER_REMOVE_H

#include "ir/build.h"
#include "ir/calls.h"
#include "ir/walk.h"

typedef struct {
    ir_rewrite rw;
    int seen, leave_out;
} remover;

static inline bool orders(const ir_stmt *s)
{
    const char *name = s->kind == IR_EVALUATE && s->value->op == IR_CALL ? s->value->call.name : NULL;

    return base_same(name, IR_CALL_BARRIER) || base_same(name, IR_CALL_COMMIT) ||
           base_same(name, IR_CALL_WAIT);
}

static inline const ir_stmt *remove_one(ir_rewrite *rw, const ir_stmt *s)
{
    remover *r = (remover *)rw;

    if (orders(s))
        return r->seen++ == r->leave_out ? ir_nothing(rw->cx) : s;
    return ir_rewrite_stmt_children(rw, s);
}

/* p without the barrier, wait or commit of that number; how many there are. */
static inline const ir_program *without(const ir_program *p, int which, int *total)
{
    remover r = {.rw = {.cx = cx, .stmt = remove_one, .no_memo = true}, .leave_out = which};
    ir_program *out = ir_program_copy(cx, p);

    out->body = ir_rewrite_stmt(&r.rw, p->body);
    *total = r.seen;
    return out;
}

/* Whether the interpreter's message is about threads that do not wait for each other. */
static inline bool blames_order(const char *fault)
{
    return strstr(fault, "race") || strstr(fault, "which nothing has written") ||
           strstr(fault, "not waited for");
}

#endif
