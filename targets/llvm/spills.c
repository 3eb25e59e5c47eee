/* targets/llvm/spills.c -- reads an assembly text for what its hot loops do to the stack.
 *
 * A loop is a jump back to a label before it; it is innermost where no other jump back lies between. Hot are
 * innermost loops with vector multiply-adds. A reference to the stack pointer (or, in a function that keeps
 * one, the frame pointer) in such a loop is a spill: what the loop works on was brought into registers
 * before.
 */
#include <string.h>

#include "targets/llvm/gen.h"

/* One instruction line: without leading blanks, up to a comment. */
typedef struct {
    const char *text;
    size_t n;
} line;

typedef struct {
    tec_context *cx;
    const target_assembly *words; /* of the architecture */
    line *lines;
    int n;
    base_dict labels; /* label -> its line number + 1, as a pointer into `lines` */
} listing;

/* Lines without leading blanks and comments; they point into `text`, which must stay. */
static void split(listing *self, const char *text)
{
    const char *ends = base_format(self->cx, "\n%s", self->words->comment);
    int n = 1;
    for (const char *p = text; *p; p++)
        n += *p == '\n';
    self->lines = base_array(self->cx, line, n);
    while (*text) {
        size_t length = strcspn(text, "\n"), lead = strspn(text, " \t");
        lead = lead < length ? lead : length;
        size_t end = lead + strcspn(text + lead, ends);
        self->lines[self->n++] = (line){text + lead, end - lead};
        text += length + (text[length] == '\n');
    }
}

static bool contains_n(const line *spill, const char *word, size_t n)
{
    for (size_t i = 0; i + n <= spill->n; i++)
        if (!memcmp(spill->text + i, word, n))
            return true;
    return false;
}

static bool contains(const line *spill, const char *word)
{
    return contains_n(spill, word, strlen(word));
}

/* Whether the line has one of the words of a list. */
static bool contains_any(const line *spill, const char *list)
{
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (contains_n(spill, p, n))
            return true;
        p += n;
    }
    return false;
}

/* Whether the line begins with one of the words of a list. */
static bool begins(const line *spill, const char *list)
{
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (spill->n >= n && !memcmp(spill->text, p, n))
            return true;
        p += n;
    }
    return false;
}

static bool is_label(const line *spill)
{
    const char *colon = memchr(spill->text, ':', spill->n);
    return colon && !memchr(spill->text, ' ', (size_t)(colon - spill->text)) &&
           !memchr(spill->text, '\t', (size_t)(colon - spill->text));
}

static void find_labels(listing *self)
{
    for (int i = 0; i < self->n; i++)
        if (is_label(&self->lines[i])) {
            size_t n = (size_t)((const char *)memchr(self->lines[i].text, ':', self->lines[i].n) -
                                self->lines[i].text);
            base_dict_put(self->cx, &self->labels, base_strndup(self->cx, self->lines[i].text, n),
                          &self->lines[i]);
        }
}

/* The line that a jump goes to, or -1. */
static int jump_goal(const listing *self, int index)
{
    const line *s = &self->lines[index];
    const char *dot = begins(s, self->words->jumps) ? memchr(s->text, '.', s->n) : NULL;
    while (dot && strncmp(dot, ".L", 2)) /* b.ne .LBB0_1 */
        dot = memchr(dot + 1, '.', s->n - (size_t)(dot + 1 - s->text));
    if (!dot)
        return -1;
    size_t n = strspn(dot, ".ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const line *goal = base_dict_get(&self->labels, base_strndup(self->cx, dot, n));
    return goal ? (int)(goal - self->lines) : -1;
}

static bool is_vector_fma(const listing *self, const line *spill)
{
    const target_assembly *w = self->words;
    return begins(spill, w->multiply_adds) &&
           (!*w->vector_operands || contains_any(spill, w->vector_operands)) &&
           !contains_any(spill, w->scalar_operands);
}

static bool is_stack_reference(const listing *self, const line *spill, bool frame)
{
    return contains(spill, self->words->stack) || (frame && contains(spill, self->words->frame));
}

/* Without instructions that store: the destination is last, so a memory operand at the end is written. */
static bool is_store(const listing *self, const line *spill)
{
    if (self->words->stores)
        return begins(spill, self->words->stores);
    size_t n = spill->n;
    while (n && (spill->text[n - 1] == ' ' || spill->text[n - 1] == '\t'))
        n--;
    return n && spill->text[n - 1] == ')' && strncmp(spill->text, "cmp", 3) &&
           strncmp(spill->text, "test", 4);
}

/* Adds the loop from line `begin` to `end`. A loop without vector multiply-adds is not counted. */
static void count_loop(const listing *self, int begin, int end, bool frame, llvm_spills *out)
{
    int adds = 0, loads = 0, stores = 0;
    for (int i = begin; i <= end; i++) {
        adds += is_vector_fma(self, &self->lines[i]);
        if (is_stack_reference(self, &self->lines[i], frame))
            *(is_store(self, &self->lines[i]) ? &stores : &loads) += 1;
    }
    if (!adds)
        return;
    out->loops++;
    out->multiply_adds += adds;
    out->stack_loads += loads;
    out->stack_stores += stores;
    out->worst = loads + stores > out->worst ? loads + stores : out->worst;
}

/* What the hot loops of an assembly text do to the stack. `assembly` is LLVM's output for the target. */
llvm_spills llvm_count_spills(tec_context *cx, const target *machine, const char *assembly)
{
    listing l = {.cx = cx, .words = &machine->arch->assembly};
    llvm_spills out = {0};
    bool frame = false;
    int last = -1; /* where the last innermost loop began: an outer loop begins before it */
    split(&l, assembly);
    find_labels(&l);
    for (int i = 0; i < l.n; i++) {
        if (contains(&l.lines[i], ".cfi_startproc") || contains(&l.lines[i], "@function"))
            frame = false;
        frame |= contains(&l.lines[i], l.words->keeps_frame);
        int goal = jump_goal(&l, i);
        if (goal < 0 || goal > i)
            continue;
        if (goal > last)
            count_loop(&l, goal, i, frame, &out);
        last = goal > last ? goal : last;
    }
    return out;
}
