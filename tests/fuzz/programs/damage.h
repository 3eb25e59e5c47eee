/* tests/fuzz/programs/damage.h -- one instruction is changed, so that the verifier often still takes the
 * function: an operand becomes another of its kind, or the instruction goes, changes places with the next
 * one, or becomes a copy of another one of its length.
 *
 *     wound w = {.m = m, .f = f, .words = copy, .classes = classes, .state = &state};
 *     damage_instruction(&w);
 *
 *     r5 = move r6       =>   r5 = move r3         r3 and r6 have one type
 *     if r4 L20 L38      =>   if r4 L20 L53        an instruction begins at L53
 *     r6 = new_tensor (2)  => r6 = new_tensor (-1)
 *     free (r3)          =>   free ()
 */
#ifndef TESTS_FUZZ_PROGRAMS_DAMAGE_H
#define TESTS_FUZZ_PROGRAMS_DAMAGE_H

#include <string.h>

#include "fuzz/programs/inside.h"
#include "runtime/module.h"

typedef struct {
    const rt_module_desc *m;
    const rt_routine_desc *f;
    int32_t *words;         /* a copy of the function's words, which is changed */
    const int32_t *classes; /* of types */
    uint64_t *state;
} wound;

static inline int32_t draw_below(const wound *self, int32_t below)
{
    return below > 0 ? (int32_t)fuzz_draw(self->state, (uint64_t)below) : 0;
}

/* ---- instructions ---- */

static inline int32_t length_at(const wound *self, int32_t at)
{
    return rt_instruction_words(self->words, at, self->f->n_words);
}

/* Where an instruction begins: the one that holds a random word. */
static inline int32_t draw_instruction(const wound *self)
{
    int32_t word = draw_below(self, self->f->n_words), at = 0;

    while (length_at(self, at) > 0 && at + length_at(self, at) <= word)
        at += length_at(self, at);
    return at;
}

/* Instructions that do nothing, in so many words. An odd number needs one of three words, and so a register
 * for numbers: without such a register the words stay. */
static inline void put_nothing(const wound *self, int32_t at, int32_t n)
{
    int32_t r = 0;

    while (n % 2 && r < self->f->n_registers &&
           self->m->program.types[self->f->registers[r]].kind != RT_TYPE_NUMBER)
        r++;
    if (n < 2 || (n % 2 && r == self->f->n_registers))
        return;
    for (int32_t k = 0; k + 1 < n; k += 2)
        memcpy(self->words + at + k, (const int32_t[]){RT_FREE, 0}, 2 * sizeof(int32_t));
    if (n % 2)
        memcpy(self->words + at + n - 3, (const int32_t[]){RT_LOAD_CONSTI, r, draw_below(self, 4)},
               3 * sizeof(int32_t));
}

/* The two lie one behind the other: n words, then `more`. */
static inline void swap_instructions(const wound *self, int32_t at, int32_t n, int32_t more)
{
    int32_t *both = malloc((size_t)(n + more) * sizeof *both);

    memcpy(both, self->words + at + n, (size_t)more * sizeof *both);
    memcpy(both + more, self->words + at, (size_t)n * sizeof *both);
    memcpy(self->words + at, both, (size_t)(n + more) * sizeof *both);
    free(both);
}

static inline void copy_instruction(const wound *self, int32_t at, int32_t n)
{
    for (int attempt = 0; attempt < 8; attempt++) {
        int32_t from = draw_instruction(self);

        if (from != at && length_at(self, from) == n) {
            memcpy(self->words + at, self->words + from, (size_t)n * sizeof *self->words);
            return;
        }
    }
}

/* ---- operands ---- */

/* The next register of the same type behind a random one. */
static inline int32_t draw_register(const wound *self, int32_t old)
{
    int32_t n = self->f->n_registers, r = draw_below(self, n);

    if (old < 0 || old >= n)
        return r;
    while (self->classes[self->f->registers[r]] != self->classes[self->f->registers[old]])
        r = (r + 1) % n;
    return r;
}

static inline int32_t draw_number(const wound *self, int32_t old)
{
    switch (draw_below(self, 5)) {
    case 0: return (int32_t)((uint32_t)old + 1);
    case 1: return (int32_t)((uint32_t)old - 1);
    case 2: return draw_below(self, 8);
    case 3: return -1 - draw_below(self, 3);
    default: return (int32_t)1 << draw_below(self, 31);
    }
}

/* Another operand for the letter of instructions.def. */
static inline int32_t draw_operand(const wound *self, char letter, int32_t old)
{
    const rt_program_desc *program = &self->m->program;

    switch (letter) {
    case 'd':
    case 's': return draw_register(self, old);
    case 'a': return old < 0 ? -1 - draw_below(self, self->m->n_constants) : draw_register(self, old);
    case 'j': return draw_instruction(self);
    case 'f': return draw_below(self, program->n_functions);
    case 'k': return draw_below(self, self->m->n_functions);
    case 'c': return draw_below(self, self->m->n_constants);
    case 'e': return draw_below(self, program->n_dims);
    case 'm': return draw_below(self, program->n_texts);
    default: return draw_number(self, old);
    }
}

/* Each operand word, also of a list, is as likely as any other. */
static inline void change_operand(const wound *self, int32_t at)
{
    int32_t next = at + 1, seen = 0, which = -1;
    char letter = 0;

    for (const char *o = rt_instruction_operands(self->words[at]); *o; o++) {
        int32_t n = *o < 'a' ? self->words[next++] : 1;

        for (int32_t i = 0; i < n; i++, next++)
            if (draw_below(self, ++seen) == 0) {
                which = next;
                letter = (char)(*o | 0x20);
            }
    }
    if (which >= 0)
        self->words[which] = draw_operand(self, letter, self->words[which]);
}

static inline void damage_instruction(const wound *self)
{
    int32_t at = draw_instruction(self), n = length_at(self, at), more = n ? length_at(self, at + n) : 0;

    if (n == 0)
        return;
    switch (draw_below(self, 8)) {
    case 0: put_nothing(self, at, n); return;
    case 1:
        if (more)
            swap_instructions(self, at, n, more);
        return;
    case 2: copy_instruction(self, at, n); return;
    default: change_operand(self, at); return;
    }
}

#endif
