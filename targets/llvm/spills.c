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
static void split(listing *l, const char *text)
{
    const char *ends = base_format(l->cx, "\n%s", l->words->comment);
    int n = 1;
    for (const char *p = text; *p; p++)
        n += *p == '\n';
    l->lines = base_array(l->cx, line, n);
    while (*text) {
        size_t length = strcspn(text, "\n"), lead = strspn(text, " \t");
        lead = lead < length ? lead : length;
        size_t end = lead + strcspn(text + lead, ends);
        l->lines[l->n++] = (line){text + lead, end - lead};
        text += length + (text[length] == '\n');
    }
}

static bool contains_n(const line *s, const char *word, size_t n)
{
    for (size_t i = 0; i + n <= s->n; i++)
        if (!memcmp(s->text + i, word, n))
            return true;
    return false;
}

static bool contains(const line *s, const char *word)
{
    return contains_n(s, word, strlen(word));
}

/* Whether the line has one of the words of a list. */
static bool contains_any(const line *s, const char *list)
{
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (contains_n(s, p, n))
            return true;
        p += n;
    }
    return false;
}

/* Whether the line begins with one of the words of a list. */
static bool begins(const line *s, const char *list)
{
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (s->n >= n && !memcmp(s->text, p, n))
            return true;
        p += n;
    }
    return false;
}

static bool is_label(const line *s)
{
    const char *colon = memchr(s->text, ':', s->n);
    return colon && !memchr(s->text, ' ', (size_t)(colon - s->text)) &&
           !memchr(s->text, '\t', (size_t)(colon - s->text));
}

static void find_labels(listing *l)
{
    for (int i = 0; i < l->n; i++)
        if (is_label(&l->lines[i])) {
            size_t n =
                (size_t)((const char *)memchr(l->lines[i].text, ':', l->lines[i].n) - l->lines[i].text);
            base_dict_put(l->cx, &l->labels, base_strndup(l->cx, l->lines[i].text, n), &l->lines[i]);
        }
}

/* The line that a jump goes to, or -1. */
static int jump_goal(const listing *l, int i)
{
    const line *s = &l->lines[i];
    const char *dot = begins(s, l->words->jumps) ? memchr(s->text, '.', s->n) : NULL;
    while (dot && strncmp(dot, ".L", 2)) /* b.ne .LBB0_1 */
        dot = memchr(dot + 1, '.', s->n - (size_t)(dot + 1 - s->text));
    if (!dot)
        return -1;
    size_t n = strspn(dot, ".ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const line *goal = base_dict_get(&l->labels, base_strndup(l->cx, dot, n));
    return goal ? (int)(goal - l->lines) : -1;
}

static bool is_vector_fma(const listing *l, const line *s)
{
    const target_assembly *w = l->words;
    return begins(s, w->multiply_adds) && (!*w->vector_operands || contains_any(s, w->vector_operands)) &&
           !contains_any(s, w->scalar_operands);
}

static bool is_stack_reference(const listing *l, const line *s, bool frame)
{
    return contains(s, l->words->stack) || (frame && contains(s, l->words->frame));
}

/* Without instructions that store: the destination is last, so a memory operand at the end is written. */
static bool is_store(const listing *l, const line *s)
{
    if (l->words->stores)
        return begins(s, l->words->stores);
    size_t n = s->n;
    while (n && (s->text[n - 1] == ' ' || s->text[n - 1] == '\t'))
        n--;
    return n && s->text[n - 1] == ')' && strncmp(s->text, "cmp", 3) && strncmp(s->text, "test", 4);
}

/* Adds the loop from line `begin` to `end`. A loop without vector multiply-adds is not counted. */
static void count_loop(const listing *l, int begin, int end, bool frame, llvm_spills *out)
{
    int adds = 0, loads = 0, stores = 0;
    for (int i = begin; i <= end; i++) {
        adds += is_vector_fma(l, &l->lines[i]);
        if (is_stack_reference(l, &l->lines[i], frame))
            *(is_store(l, &l->lines[i]) ? &stores : &loads) += 1;
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
llvm_spills llvm_count_spills(tec_context *cx, const target *t, const char *assembly)
{
    listing l = {.cx = cx, .words = &t->arch->assembly};
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
