/* lower/imports.c -- what pragmas import becomes notes of the program, where code generators find it.
 *
 *     program f(...) {                                        program f(...) @import_c.0("dot.c") {
 *       for y in 0..n @import_c("dot.c") { ... }      =>        for y in 0..n { ... }
 *
 * requires  a loop tree
 * provides  no loop or block has the notes import_c or import_llvm
 * breaks    nothing
 *
 * Equal ones are listed once, in the order of the tree. The first pass, since loops and blocks come and go.
 */
#include <string.h>

#include "lower/util.h"

static const char *const keys[] = {"import_c", "import_llvm"};

typedef struct {
    ir_rewrite rw;
    const ir_note *notes; /* of the program */
    int n;
} importer;

/* Two blocks that name the same code share one note: the code would be defined twice otherwise. */
static bool is_listed(const importer *im, const char *key, const ir_expr *value)
{
    for (const ir_note *note = im->notes; note; note = note->next)
        if (strncmp(note->key, key, strlen(key)) == 0 && ir_same(note->value, value))
            return true;
    return false;
}

/* The notes without imports. The notes are those of one loop or block; what is imported goes to the program's
 * notes, numbered in the order in which it was found. */
static const ir_note *take(importer *im, const ir_note *notes, base_loc loc)
{
    tec_context *cx = im->rw.cx;

    for (int i = 0; i < BASE_COUNT(keys); i++) {
        const ir_expr *value = ir_note_get(notes, keys[i]);

        if (!value)
            continue;
        if (value->op != IR_STRING)
            return base_fail(
                cx, TEC_INVALID, loc,
                "expected a text or a file name in quotes as the value of the pragma %s, found %s", keys[i],
                ir_expr_text(cx, value));
        if (!is_listed(im, keys[i], value))
            im->notes = ir_note_set(cx, im->notes, base_format(cx, "%s.%d", keys[i], im->n++), value);
        notes = ir_note_set(cx, notes, keys[i], NULL);
    }
    return notes;
}

/* Children are visited after the statement's own notes, so that imports keep the order of the text. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    importer *im = (importer *)rw;
    const ir_note *notes = stmt->kind == IR_FOR     ? stmt->loop.notes
                           : stmt->kind == IR_BLOCK ? stmt->block.block->notes
                                                    : NULL;
    const ir_note *rest = take(im, notes, stmt->loc);
    const ir_stmt *out = base_failed(rw->cx) ? NULL : ir_rewrite_stmt_children(rw, stmt);

    if (!out || rest == notes)
        return out;
    ir_stmt *copy = ir_stmt_copy(rw->cx, out);
    if (stmt->kind == IR_FOR) {
        copy->loop.notes = rest;
        return copy;
    }
    ir_block *block = ir_block_copy(rw->cx, out->block.block);
    block->notes = rest;
    return ir_block_stmt(rw->cx, block, out->block.bind, out->block.where);
}

const ir_program *lower_imports(const lower_options *options, const ir_program *program)
{
    importer im = {.rw = {.cx = options->cx, .stmt = visit}, .notes = program->notes};
    const ir_stmt *body = ir_rewrite_stmt(&im.rw, program->body);

    if (!body || !im.n || BASE_PLANT_ON(options->cx, imports_lost))
        return body ? program : NULL;
    ir_program *out = ir_program_copy(options->cx, program);
    out->body = body;
    out->notes = im.notes;
    return out;
}
