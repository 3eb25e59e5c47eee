/* tools/value.c -- see value.h. The type says how JSON is read: an array is a tensor, a tuple or a list. */
#include "tools/value.h"

#include <string.h>

#include "graph/entry.h"
#include "runtime/module.h"
#include "tools/data.h"
#include "tools/json.h"

typedef struct {
    tec_context *cx;
    const tool_value_home *home;
    const rt_program_desc *desc;
    const char *path;
    int parameter; /* of the entry, whose value is read */
} reader;

/* A part of the value, and the constructor whose field it is; data is -1 where it is no field of one. */
typedef struct part_step {
    tool_json_step json;
    const struct part_step *outer;
    int data, which;
} part_step;

static tool_value *read_json(const reader *in, int32_t type, const cJSON *json, const part_step *at);

/* ---- errors ---- */

static tool_json_place place_of(const reader *in, const part_step *at)
{
    return (tool_json_place){in->path, &at->json};
}

/* Adds to an error where the program declares the innermost constructor around the part, or else the input.
 * The prelude's constructors have no line. */
static tool_value *note_declaration(const reader *in, const part_step *at)
{
    const rt_routine_desc *entry = &in->desc->functions[0];
    base_loc loc = {.file = entry->file};

    for (; at && loc.line == 0; at = at->outer) {
        if (at->data >= 0)
            loc.line = graph_constructor_line(in->desc, at->data, at->which);
        if (loc.file && loc.line > 0)
            base_note(in->cx, loc, "'%s' is declared here",
                      in->desc->data[at->data].constructors[at->which].name);
    }
    if (loc.line > 0)
        return NULL;
    loc.line = rt_line_of(entry, in->parameter - entry->n_params);
    if (loc.file && loc.line > 0)
        base_note(in->cx, loc, "input '%s' is declared here", entry->params[in->parameter]);
    return NULL;
}

static tool_value *refuse(const reader *in, const char *expected, const cJSON *json, const part_step *at)
{
    tool_json_place place = place_of(in, at);

    tool_refuse_json(in->cx, &place, expected, json);
    return note_declaration(in, at);
}

static tool_value *take(const reader *in, tool_value *object, const tec_error *err, const part_step *at)
{
    if (object)
        return object;
    base_fail(in->cx, err->status, (base_loc){.file = in->path}, "%s: %s", tool_json_path(in->cx, &at->json),
              err->text);
    return note_declaration(in, at);
}

/* ---- tensors ---- */

/* Whether a part of another value has the type that is declared. Of a whole input, the program tells more: it
 * knows the names of extents. */
static bool fits(const rt_type_desc *type, const DLTensor *tensor)
{
    if (!base_dtype_same(tensor->dtype, type->dtype) || tensor->ndim != type->rank)
        return false;
    for (int d = 0; d < type->rank; d++)
        if (type->extents[d] >= 0 && type->extents[d] != tensor->shape[d])
            return false;
    return true;
}

static const DLTensor *load_tensor(const reader *in, const rt_type_desc *type, const cJSON *json,
                                   const part_step *at)
{
    const char *text = cJSON_IsString(json) ? json->valuestring : "";
    tool_json_place place = place_of(in, at);

    if (!base_ends_with(text, ".npy") && !base_ends_with(text, ".pb"))
        return tool_json_tensor(in->cx, &place, json, type->dtype, type->rank);
    const DLTensor *tensor = tool_read(in->cx, text);
    if (!tensor)
        base_note(in->cx, (base_loc){.file = in->path}, "%s is read from that file",
                  tool_json_path(in->cx, &at->json));
    return tensor;
}

/* A file, or what JSON says itself. */
static tool_value *read_tensor(const reader *in, int32_t number, const cJSON *json, const part_step *at)
{
    const rt_type_desc *type = &in->desc->types[number];
    const DLTensor *t = load_tensor(in, type, json, at);
    tool_json_place place = place_of(in, at);
    char expected[256], found[256];
    tec_error err = {0};

    if (!t)
        return note_declaration(in, at);
    if (!at->outer || fits(type, t))
        return take(in, in->home->tensor(in->home->user, t, &err), &err, at);
    tool_refuse_value(in->cx, &place, rt_type_text(in->desc, number, expected, sizeof expected),
                      tec_tensor_text(t, found, sizeof found));
    return note_declaration(in, at);
}

/* ---- tuples and data ---- */

/* Values of the types. `at` is the step to all of them. -1 with an error. What was made goes to `out`. */
static int read_parts(const reader *in, const int32_t *types, int count, const cJSON *list, tool_value **out,
                      part_step at)
{
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != count)
        return refuse(in, base_format(in->cx, "an array of %d values", count), list, &at), -1;
    for (int i = 0; i < count; i++) {
        at.json.index = i;
        out[i] = read_json(in, types[i], cJSON_GetArrayItem(list, i), &at);
        if (!out[i]) {
            while (i > 0)
                in->home->drop(in->home->user, out[--i]);
            return -1;
        }
    }
    return count;
}

/* A tuple where `data` is NULL. The parts belong to the new object from here on. */
static tool_value *make(const reader *in, const rt_data_desc *data, const char *constructor,
                        tool_value **part, int n, const part_step *at)
{
    tec_error err = {0};
    if (data)
        constructor = base_format(in->cx, "%s.%s", data->name, constructor);
    tool_value *o = in->home->compound(in->home->user, constructor, part, n, &err);

    for (int i = 0; i < n; i++)
        in->home->drop(in->home->user, part[i]);
    return take(in, o, &err, at);
}

/* Nil | Cons(T, List): the constructors without fields and with an element and the rest. */
static bool is_list(const reader *in, const rt_type_desc *type, const rt_constructor_desc **nil,
                    const rt_constructor_desc **cons)
{
    const rt_data_desc *d = &in->desc->data[type->data];

    *nil = *cons = NULL;
    for (int i = 0; i < d->n_constructors && d->n_constructors == 2; i++) {
        const rt_constructor_desc *constructor = &d->constructors[i];

        if (constructor->n_fields == 0)
            *nil = constructor;
        else if (constructor->n_fields == 2 && in->desc->types[constructor->fields[1]].kind == RT_TYPE_DATA &&
                 in->desc->types[constructor->fields[1]].data == type->data)
            *cons = constructor;
    }
    return *nil && *cons;
}

/* From the end, so that no list is too long. */
static tool_value *read_list(const reader *in, int number, const rt_constructor_desc *nil,
                             const rt_constructor_desc *cons, const cJSON *json, const part_step *outer)
{
    const rt_data_desc *data = &in->desc->data[number];
    int which = (int)(cons - data->constructors), i = cJSON_GetArraySize(json);
    tool_value *rest = make(in, data, nil->name, NULL, 0, outer), *cell[2];
    const cJSON *item = json->child ? json->child->prev : NULL; /* a list's first item knows its last */

    for (; rest && item; item = item == json->child ? NULL : item->prev) {
        part_step at = {{&outer->json, NULL, --i}, outer, number, which};

        cell[0] = read_json(in, cons->fields[0], item, &at);
        cell[1] = rest;
        rest = cell[0] ? make(in, data, cons->name, cell, 2, &at) : NULL;
        if (!cell[0])
            in->home->drop(in->home->user, cell[1]);
    }
    return rest;
}

/* A value by the constructor: an object with an array of its fields, or its name where it has none. */
static tool_value *read_fields(const reader *in, int data, int which, const cJSON *json,
                               const part_step *outer)
{
    const rt_constructor_desc *constructor = &in->desc->data[data].constructors[which];
    tool_value **part = base_array(in->cx, tool_value *, constructor->n_fields);
    part_step at = {{&outer->json, constructor->name, -1}, outer, data, which};

    if (!cJSON_IsObject(json) && constructor->n_fields > 0)
        return refuse(in, base_format(in->cx, "{\"%s\": [...]}", constructor->name), json, outer);
    if (cJSON_IsObject(json) &&
        read_parts(in, constructor->fields, constructor->n_fields, json->child, part, at) < 0)
        return NULL;
    return make(in, &in->desc->data[data], constructor->name, part, constructor->n_fields, outer);
}

/* A constructor by its name with its fields, or an array where the type is a list. */
static tool_value *read_data(const reader *in, const rt_type_desc *type, const cJSON *json,
                             const part_step *at)
{
    const rt_data_desc *d = &in->desc->data[type->data];
    const rt_constructor_desc *nil, *cons;
    const char *name = cJSON_IsString(json)                                    ? json->valuestring
                       : cJSON_IsObject(json) && cJSON_GetArraySize(json) == 1 ? json->child->string
                                                                               : NULL;

    if (cJSON_IsArray(json) && is_list(in, type, &nil, &cons))
        return read_list(in, type->data, nil, cons, json, at);
    for (int i = 0; name && i < d->n_constructors; i++)
        if (strcmp(d->constructors[i].name, name) == 0)
            return read_fields(in, type->data, i, json, at);
    return refuse(in, base_format(in->cx, "{\"CONSTRUCTOR\": [fields]} of '%s'", d->name), json, at);
}

/* Guided by the type: the same JSON may be a tuple, a tensor or a value of a data type. */
static tool_value *read_json(const reader *in, int32_t type, const cJSON *json, const part_step *at)
{
    const rt_type_desc *t = &in->desc->types[type];

    if (t->kind == RT_TYPE_TENSOR)
        return read_tensor(in, type, json, at);
    if (t->kind == RT_TYPE_DATA)
        return read_data(in, t, json, at);
    if (t->kind != RT_TYPE_TUPLE)
        return refuse(in, "a value that JSON can express: a function cannot be an input", json, at);
    tool_value **part = base_array(in->cx, tool_value *, t->n_parts);
    part_step parts = {{&at->json, NULL, -1}, at, -1, 0};
    return read_parts(in, t->parts, t->n_parts, json, part, parts) < 0
               ? NULL
               : make(in, NULL, NULL, part, t->n_parts, at);
}

/* The ending of the name tells JSON from the file of a tensor. */
tool_value *tool_read_value(tec_context *cx, const tool_value_home *home, const rt_program_desc *desc,
                            int parameter, const char *path)
{
    const rt_routine_desc *entry = &desc->functions[0];
    reader r = {cx, home, desc, path, parameter};
    part_step whole = {{NULL, entry->params[parameter], 0}, NULL, -1, 0};
    tec_error err = {0};

    if (!base_ends_with(path, ".json")) {
        const DLTensor *t = tool_read(cx, path);
        return t ? take(&r, home->tensor(home->user, t, &err), &err, &whole) : NULL;
    }
    cJSON *j = tool_parse_json(cx, path);
    tool_value *object = j ? read_json(&r, entry->registers[parameter], j, &whole) : NULL;
    cJSON_Delete(j);
    return object;
}

/* ---- writing ---- */

/* What is still to be written: a value, or a text. */
typedef struct {
    tool_value *value;
    const char *text;
} task;

static void later(tec_context *cx, base_vec *stack, tool_value *value, const char *text)
{
    task *t = base_new(cx, task);

    *t = (task){value, text};
    base_push(cx, stack, t);
}

/* The constructor now; the parts go to the stack, the last one first. */
static void add_parts(tec_context *cx, base_text *out, base_vec *stack, const tool_value_seen *seen)
{
    if (seen->constructor && seen->n == 0) {
        base_addf(cx, out, "\"%s\"", seen->constructor);
        return;
    }
    if (seen->constructor)
        base_addf(cx, out, "{\"%s\": ", seen->constructor);
    base_addf(cx, out, "[");
    later(cx, stack, NULL, seen->constructor ? "]}" : "]");
    for (int i = seen->n - 1; i >= 0; i--) {
        later(cx, stack, seen->part[i], NULL);
        if (i > 0)
            later(cx, stack, NULL, ", ");
    }
}

/* false: the value could not be seen. */
static bool add_value(tec_context *cx, const tool_value_home *home, base_text *out, base_vec *stack,
                      const tool_value *value)
{
    tool_value_seen seen = {0};
    tec_error err = {0};

    if (!home->look(home->user, value, &seen, &err))
        return base_fail(cx, err.status, (base_loc){0}, "%s", err.text);
    if (seen.tensor)
        tool_write_json(cx, out, seen.tensor);
    else
        add_parts(cx, out, stack, &seen);
    return true;
}

/* With a stack of its own: values may be deep. Parts are dropped as soon as they are written, or when an
 * error leaves them unwritten. */
const char *tool_value_text(tec_context *cx, const tool_value_home *home, const tool_value *value)
{
    base_vec stack = {0};
    base_text out = {0};
    bool good = add_value(cx, home, &out, &stack, value);

    while (stack.n) {
        const task *t = stack.at[--stack.n];

        if (t->text) {
            base_addf(cx, &out, "%s", t->text);
            continue;
        }
        good = good && add_value(cx, home, &out, &stack, t->value);
        home->drop(home->user, t->value);
    }
    return good ? base_text_str(cx, &out) : NULL;
}
