/* runtime/bytecode.c -- instructions as words and as text.
 *
 *     get_field 4 1 1 0      r4 = get_field r1 1 0
 *     invoke 1 1 7 1 8       r8 = invoke @fold r7
 */
#include "runtime/bytecode.h"

#include <string.h>

#include "runtime/error.h"

static const struct {
    const char *name, *operands;
} instructions[] = {
#define RT_INSTRUCTION(name, text, operands) {text, operands},
#include "runtime/instructions.def"
};

/* Lists stand last, and no instruction has more than two. FROM_END("S", 2) is the closing zero. */
#define FROM_END(operands, k) (operands)[(sizeof(operands) - 1 - (k)) % sizeof(operands)]
#define IS_LIST(letter) ((letter) >= 'A' && (letter) <= 'Z')
#define N_LISTS(operands) (IS_LIST(FROM_END(operands, 1)) + IS_LIST(FROM_END(operands, 2)))

const rt_instruction_shape rt_instruction_shapes[RT_N_INSTRUCTIONS] = {
#define RT_INSTRUCTION(name, text, operands)                                                                 \
    {(uint8_t)(sizeof(operands) - 1 - N_LISTS(operands)), N_LISTS(operands)},
#include "runtime/instructions.def"
};

const char *rt_instruction_name(int op)
{
    return op >= 0 && op < RT_N_INSTRUCTIONS ? instructions[op].name : "?";
}

const char *rt_instruction_operands(int op)
{
    return op >= 0 && op < RT_N_INSTRUCTIONS ? instructions[op].operands : "";
}

/* Capital letters are lists: a count, and as many words of the kind of the small letter. */
static bool is_list(char letter)
{
    return IS_LIST(letter);
}

/* Follows the letters of the operands; a list is as long as its first word says. In 64 bits, as a count in
 * damaged code may be near 2^31. */
int32_t rt_instruction_words(const int32_t *words, int32_t at, int32_t count)
{
    int64_t end = (int64_t)at + 1;

    if (at < 0 || at >= count || words[at] < 0 || words[at] >= RT_N_INSTRUCTIONS)
        return 0;
    for (const char *c = instructions[words[at]].operands; *c; c++) {
        if (end >= count)
            return 0;
        if (is_list(*c) && words[end] < 0)
            return 0;
        end += is_list(*c) ? 1 + (int64_t)words[end] : 1;
    }
    return end <= count ? (int32_t)(end - at) : 0;
}

/* Rows are sorted by word: the last row that is not behind the word counts. */
int32_t rt_line_of(const rt_routine_desc *routine, int32_t word)
{
    int32_t line = 0;

    for (int32_t i = 0; i < routine->n_lines && routine->lines[i].word <= word; i++)
        line = routine->lines[i].line;
    return line;
}

/* Without a line, the word is named where it is one of the code. */
bool rt_fail_at(const rt_program_desc *program, const rt_routine_desc *routine, int32_t word,
                tec_status status, const char *text, tec_error *err)
{
    int32_t line = rt_line_of(routine, word);

    if (routine->file && line > 0)
        return rt_fail(err, status, "%s:%d: in '%s': %s", routine->file, (int)line, routine->name, text);
    if (line < 0)
        return rt_fail(err, status, "%s: %s", program->texts[-1 - line], text);
    if (word < 0)
        return rt_fail(err, status, "in '%s': %s", routine->name, text);
    return rt_fail(err, status, "in '%s', word %d: %s", routine->name, (int)word, text);
}

/* ---- text ---- */

/* One operand, by its letter. */
static void put_operand(rt_line *line, const rt_program_desc *program, char letter, int32_t word)
{
    char text[256];

    switch (letter | 0x20) {
    case 'd':
    case 's': rt_put(line, "r%d", (int)word); break;
    case 'f': rt_put(line, "@%s", program->functions[word].name); break;
    case 'm': rt_put(line, "\"%s\"", program->texts[word]); break;
    case 'e': rt_put(line, "{%s}", rt_dim_text(program->dims[word], NULL, text, sizeof text)); break;
    case 'j': rt_put(line, "L%d", (int)word); break;
    case 'k': rt_put(line, "kernel %d", (int)word); break;
    case 'c': rt_put(line, "const %d", (int)word); break;
    case 'a': rt_put(line, word >= 0 ? "r%d" : "const %d", (int)(word >= 0 ? word : -1 - word)); break;
    default: rt_put(line, "%d", (int)word); break;
    }
}

/* The operands of one kind: those that are written, or the others. `r4 = get_field r1 1 0`: a first pass over
 * the letters prints r4, a second one the rest. */
static int put_operands(rt_line *line, const rt_program_desc *program, const int32_t *words, bool written)
{
    const int32_t *at = words + 1;
    int n = 0;

    for (const char *c = instructions[words[0]].operands; *c; c++) {
        int32_t count = is_list(*c) ? *at++ : 1;
        bool shown = ((*c | 0x20) == 'd') == written;

        if (shown && is_list(*c) && !written)
            rt_put(line, "%s(", n++ ? " " : "");
        for (int32_t i = 0; i < count && shown; i++) {
            rt_put(line, "%s", i > 0 ? ", " : is_list(*c) && !written ? "" : n ? " " : "");
            put_operand(line, program, *c, at[i]);
            n++;
        }
        if (shown && is_list(*c) && !written)
            rt_put(line, ")");
        at += count;
    }
    return n;
}

const char *rt_instruction_text(const rt_program_desc *program, const rt_routine_desc *routine, int32_t at,
                                char *buffer, size_t size)
{
    const int32_t *words = routine->words + at;
    rt_line line = {buffer, size, 0};

    buffer[0] = '\0';
    if (put_operands(&line, program, words, true))
        rt_put(&line, " = ");
    rt_put(&line, "%s ", rt_instruction_name(words[0]));
    put_operands(&line, program, words, false);
    return buffer;
}
