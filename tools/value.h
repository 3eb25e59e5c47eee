/* tools/value.h -- values of programs as JSON.
 *
 *     tensor    1.5, [[1, 2], [3, 4]], {"shape": [0, 2], "data": []}, "x.npy"
 *     tuple     [1.5, "x.npy"]
 *     data      {"Node": [{"Leaf": [[1, 2]]}, "Nil"]}; a list, of a type like Nil | Cons(T, List), also [1,
 * 2, 3]
 *
 * A value lies where its program runs: in this process, or in a session of a device far away. A home knows
 * how values are made and seen there (run_program.c, run_program_there.c).
 *
 * Lifetime: values are the caller's. Errors: in the context, with the path in the JSON and the line where the
 * program declares the constructor around it.
 */
#ifndef TOOLS_VALUE_H
#define TOOLS_VALUE_H

#include "base/base.h"
#include "runtime/format.h"
#include "tec/program.h"

typedef struct tool_value tool_value; /* what it is, its home knows */

typedef struct {
    const DLTensor *tensor;  /* NULL: a tuple or data; lives as long as the value and the context */
    const char *constructor; /* of data */
    int n;
    tool_value **part; /* the caller's */
} tool_value_seen;

typedef struct {
    void *user;
    tool_value *(*tensor)(void *user, const DLTensor *tensor, tec_error *err);
    /* constructor NULL: a tuple. The parts stay the caller's. */
    tool_value *(*compound)(void *user, const char *constructor, tool_value *const *part, int n,
                            tec_error *err);
    void (*drop)(void *user, tool_value *value);
    bool (*look)(void *user, const tool_value *value, tool_value_seen *out, tec_error *err);
} tool_value_home;

/* The value of that parameter of the program's entry, from a .json, .npy or .pb file. NULL with an error. */
tool_value *tool_read_value(tec_context *cx, const tool_value_home *home, const rt_program_desc *desc,
                            int parameter, const char *path);
/* One line of JSON; NULL with an error: the value could not be seen. */
const char *tool_value_text(tec_context *cx, const tool_value_home *home, const tool_value *value);

#endif
