/* targets/source/print.c -- lines and names. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "targets/source/printer.h"

source_printer *source_new(tec_context *cx, const source_dialect *dialect)
{
    source_printer *p = base_new(cx, source_printer);

    p->cx = cx;
    p->d = dialect;
    return p;
}

const char *source_text(source_printer *printer)
{
    return base_text_str(printer->cx, &printer->out);
}

/* One line at the current indentation. */
void source_line(source_printer *printer, const char *fmt, ...)
{
    va_list args, again;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, args);
    char *line = base_alloc(printer->cx, (size_t)n + 1);
    vsnprintf(line, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    for (int i = 0; i < printer->indent; i++)
        base_add(printer->cx, &printer->out, "    ");
    base_add(printer->cx, &printer->out, line);
    base_add(printer->cx, &printer->out, "\n");
}

void source_open(source_printer *printer)
{
    printer->indent++;
}

void source_close(source_printer *printer)
{
    printer->indent--;
}

void source_set_axis(source_printer *printer, ir_how how, int64_t size)
{
    printer->axis[how] = size;
}

/* Whether the language calls a function of its own so: what is named after an operator often is ("acos"). */
static bool is_function(const source_dialect *dialect, const char *name)
{
    for (int op = 0; op < IR_N_OPS; op++) {
        const char *single = dialect->function((ir_op)op, BASE_F32),
                   *twice = dialect->function((ir_op)op, BASE_F64);

        if ((single && strcmp(single, name) == 0) || (twice && strcmp(twice, name) == 0))
            return true;
    }
    return false;
}

/* Letters and digits, a letter first; an underscore ends what would be a word of the language ("in",
 * "float", "local"). */
static char *legal_name(source_printer *printer, const char *wanted)
{
    static const char *const words[] = {
        "auto", "bool", "break", "case", "char", "const", "constant", "continue", "default", "do", "double",
        "else", "enum", "extern", "float", "for", "global", "goto", "half", "if", "inline", "int", "kernel",
        "local", "long", "main", "private", "register", "restrict", "return", "short", "signed", "sizeof",
        "static", "struct", "switch", "typedef", "uchar", "uint", "ulong", "union", "unsigned", "ushort",
        "void", "volatile", "while", "min", "max", "floor", "ceil", "round", "exp", "log", "select",
        "shuffle", "dot", "step", "sign", "any", "all", "size_t", "NAN", "INFINITY", "M_PI", "abs", "clamp",
        "mix", "length", "distance", "cross", "normalize", "fmin", "fmax", "fmod", "hypot", "mad", "rotate",
        "barrier", "event_t", "printf",
        /* of C++ */
        "alignas", "alignof", "and", "and_eq", "asm", "bitand", "bitor", "catch", "class", "compl",
        "constexpr", "decltype", "delete", "explicit", "export", "false", "friend", "mutable", "namespace",
        "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "protected", "public",
        "template", "this", "throw", "true", "try", "typeid", "typename", "using", "virtual", "wchar_t",
        "xor", "xor_eq", "schar", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"};
    char *name = base_format(printer->cx, "%s%s", isalpha((unsigned char)wanted[0]) ? "" : "v", wanted);
    bool clash = strncmp(name, "tec_", 4) == 0 || strncmp(name, "get_", 4) == 0;

    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    for (int i = 0; i < BASE_COUNT(words); i++)
        clash |= strcmp(words[i], name) == 0;
    clash |= is_function(printer->d, name);
    return clash ? base_format(printer->cx, "%s_", name) : name;
}

const char *source_name(source_printer *printer, const void *what, const char *wanted)
{
    const char *first = legal_name(printer, wanted), *name = first;

    for (int i = 2; base_dict_has(&printer->taken, name); i++)
        name = base_format(printer->cx, "%s_%d", first, i);
    base_dict_put(printer->cx, &printer->taken, name, name);
    if (what)
        base_map_put(printer->cx, &printer->names, what, name);
    return name;
}

const char *source_name_of(source_printer *printer, const void *what)
{
    return base_map_get(&printer->names, what);
}
