/* runtime/verify.c -- whether bytecode may run: every word against the types, the registers that are set, and
 * the places that are jumped to.
 *
 * The registers that are set at a place are those that are set on every way to it:
 *
 *      0  if r0 L3 L6        {r0}
 *      3  load_consti r1 7   {r0}        r1 is set behind it
 *      6  ret r1             {r0}        refused: over L6, r1 is not set
 *
 * A place that is jumped to keeps the set of registers common to all jumps so far; the code is walked until
 * no set becomes smaller. Code that nothing reaches is compared with the types alone.
 */
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/format.h"

/* `now` and `flows` belong to the place that is looked at; the sets to places of the whole function.
 * `classes` maps each type to the first one that is the same. */
typedef struct {
    const rt_module_desc *m;
    const rt_program_desc *p;
    const rt_routine_desc *f;
    int32_t *classes; /* of types */
    tec_error *err;
    int32_t at;      /* the instruction that is looked at */
    uint8_t *starts; /* for each word: 1: an instruction begins there; 2: it is jumped to as well */
    int32_t *place;  /* for each word that is jumped to, which set */
    uint64_t *sets;  /* of the places */
    bool *reached;   /* places with a set */
    uint64_t *now;   /* the registers that are set here */
    bool flows;      /* the instruction before goes on here */
    bool changed;
    int32_t n_places;
    size_t set_words;
} checker;

enum { MAX_SET_BYTES = 1 << 26, MAX_PASSES = 1000 };

#define REFUSE(c, fmt, ...)                                                                                  \
    rt_fail((c)->err, TEC_INVALID, "bytecode of '%s', word %d (%s): " fmt, (c)->f->name, (int)(c)->at,       \
            rt_instruction_name((c)->f->words[(c)->at]), __VA_ARGS__)
#define REFUSE_PROGRAM(c, fmt, ...) rt_fail((c)->err, TEC_INVALID, "program: " fmt, __VA_ARGS__)

/* ---- types ---- */

/* Parts are compared by their classes, which were found before: no recursion. */
static bool same_class(const rt_type_desc *left, const rt_type_desc *right, const int32_t *classes)
{
    if (left->kind != right->kind || left->rank != right->rank || left->data != right->data ||
        left->n_parts != right->n_parts || left->n_params != right->n_params ||
        !base_dtype_same(left->dtype, right->dtype))
        return false;
    for (int32_t i = 0; i < left->n_parts; i++)
        if (classes[left->parts[i]] != classes[right->parts[i]])
            return false;
    return true;
}

/* Elements of whole bytes, as a tensor of the heap has. */
static bool good_dtype(base_dtype dtype)
{
    return dtype.lanes == 1 && base_dtype_bytes(dtype) >= 1 && base_dtype_bytes(dtype) <= 8 &&
           dtype.bits >= 8 && (dtype.bits & (dtype.bits - 1)) == 0 &&
           (dtype.code <= kDLBfloat || dtype.code == kDLBool);
}

/* Counts, extents and references of one type. Parts stand before it, so that types cannot be circular. */
static bool check_type(const checker *self, int32_t index)
{
    const rt_type_desc *type = &self->p->types[index];

    if (type->kind < RT_TYPE_NUMBER || type->kind > RT_TYPE_FUNCTION)
        return REFUSE_PROGRAM(self, "type %d is of unknown kind %d", (int)index, (int)type->kind);
    if (type->rank < 0 || type->rank > RT_MAX_RANK || type->n_parts < 0 || type->n_parts > RT_MAX_FIELDS ||
        type->n_params < 0 || type->n_params > type->n_parts)
        return REFUSE_PROGRAM(self, "type %d has counts out of range", (int)index);
    if (type->kind == RT_TYPE_TENSOR ? !good_dtype(type->dtype) : type->rank != 0)
        return REFUSE_PROGRAM(self, "type %d has no valid elements", (int)index);
    for (int32_t d = 0; d < type->rank; d++)
        if (type->extents[d] < -1)
            return REFUSE_PROGRAM(self, "type %d has extent %lld", (int)index, (long long)type->extents[d]);
    if (type->kind == RT_TYPE_DATA ? type->data < 0 || type->data >= self->p->n_data : type->data != 0)
        return REFUSE_PROGRAM(self, "type %d is data type %d of %d", (int)index, (int)type->data,
                              (int)self->p->n_data);
    if (type->n_parts && type->kind != RT_TYPE_TUPLE && type->kind != RT_TYPE_FUNCTION)
        return REFUSE_PROGRAM(self, "type %d has parts", (int)index);
    for (int32_t k = 0; k < type->n_parts; k++)
        if (type->parts[k] < 0 || type->parts[k] >= index ||
            self->p->types[type->parts[k]].kind < RT_TYPE_TENSOR)
            return REFUSE_PROGRAM(self, "part %d of type %d is not a type of values before it", (int)k,
                                  (int)index);
    return true;
}

/* Looks only at types that are the first of their class. */
static int32_t class_of(const rt_program_desc *program, const int32_t *classes, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (classes[k] == k && same_class(&program->types[k], &program->types[i], classes))
            return k;
    return i;
}

/* In the order of types, so that parts come first. */
bool rt_type_classes(const rt_program_desc *program, int32_t *classes, tec_error *err)
{
    checker c = {.p = program, .err = err};

    for (int32_t i = 0; i < program->n_types; i++) {
        if (!check_type(&c, i))
            return false;
        classes[i] = class_of(program, classes, i);
    }
    return true;
}

/* Types that objects of users may have. */
static bool check_value_types(const checker *self, const int32_t *types, int32_t n, const char *what)
{
    if (n < 0 || n > RT_MAX_FIELDS)
        return REFUSE_PROGRAM(self, "%s: %d; expected 0 to %d", what, (int)n, RT_MAX_FIELDS);
    for (int32_t i = 0; i < n; i++)
        if (types[i] < 0 || types[i] >= self->p->n_types || self->p->types[types[i]].kind < RT_TYPE_TENSOR)
            return REFUSE_PROGRAM(self, "%s: %d of them is no type of values", what, (int)i);
    return true;
}

/* Fields may name the data type itself. */
static bool check_data(const checker *self, const rt_data_desc *data)
{
    if (!data->name || data->n_constructors < 1 || data->n_constructors > RT_MAX_FIELDS)
        return REFUSE_PROGRAM(self, "data type '%s' has %d constructors", data->name ? data->name : "?",
                              (int)data->n_constructors);
    for (int32_t i = 0; i < data->n_constructors; i++)
        if (!data->constructors[i].name ||
            !check_value_types(self, data->constructors[i].fields, data->constructors[i].n_fields,
                               "fields of a constructor"))
            return data->constructors[i].name
                       ? false
                       : REFUSE_PROGRAM(self, "data type '%s' has a constructor without a name", data->name);
    return true;
}

/* ---- operands ---- */

/* The register is in range since check_operand. */
static const rt_type_desc *type_of(const checker *self, int32_t r)
{
    return &self->p->types[self->f->registers[r]];
}

static bool is_kind(const checker *self, int32_t r, rt_type_kind kind)
{
    return type_of(self, r)->kind == kind || REFUSE(self, "r%d is of the wrong kind", (int)r);
}

/* Types are compared by class, so two descriptions of one type do. */
static bool has_type(const checker *self, int32_t r, int32_t type)
{
    return self->classes[self->f->registers[r]] == self->classes[type] ||
           REFUSE(self, "r%d has another type than is expected there", (int)r);
}

static bool all_numbers(const checker *self, const int32_t *list)
{
    for (int32_t i = 1; i <= list[0]; i++)
        if (!is_kind(self, list[i], RT_TYPE_NUMBER))
            return false;
    return true;
}

static bool all_objects(const checker *self, const int32_t *list)
{
    for (int32_t i = 1; i <= list[0]; i++)
        if (type_of(self, list[i])->kind == RT_TYPE_NUMBER)
            return REFUSE(self, "r%d holds no object", (int)list[i]);
    return true;
}

/* `list` begins with its count. */
static bool have_types(const checker *self, const int32_t *list, const int32_t *types, int32_t n)
{
    if (list[0] != n)
        return REFUSE(self, "%d registers; expected %d", (int)list[0], (int)n);
    for (int32_t i = 0; i < n; i++)
        if (!has_type(self, list[1 + i], types[i]))
            return false;
    return true;
}

/* Each operand is in range, whatever the instruction makes of it. */
static bool check_operand(const checker *self, char letter, int32_t word)
{
    const rt_program_desc *program = self->p;
    int32_t n = INT32_MAX;

    switch (letter | 0x20) {
    case 'd':
    case 's': n = self->f->n_registers; break;
    case 'a':
        n = word >= 0 ? self->f->n_registers : self->m->n_constants;
        word = word >= 0 ? word : -1 - word;
        break;
    case 'f': n = program->n_functions; break;
    case 'k': n = self->m->n_functions; break;
    case 'c': n = self->m->n_constants; break;
    case 'e': n = program->n_dims; break;
    case 'm': n = program->n_texts; break;
    case 'j':
        return (word >= 0 && word < self->f->n_words && self->starts[word]) ||
               REFUSE(self, "no instruction begins at word %d", (int)word);
    case 'i': return true;
    }
    return (word >= 0 && word < n) || REFUSE(self, "operand %d of %d", (int)word, (int)n);
}

/* ---- types of each instruction ---- */

/* The first registers of a function are its parameters. */
static bool check_call(const checker *self, const rt_routine_desc *routine, const int32_t *in,
                       const int32_t *out)
{
    return have_types(self, in, routine->registers, routine->n_params) &&
           (!out || have_types(self, out, routine->results, routine->n_results));
}

/* The frame's caller expects this function's results. */
static bool check_tail(const checker *self, const rt_routine_desc *routine, const int32_t *in)
{
    if (routine->n_results != self->f->n_results)
        return REFUSE(self, "'%s' gives %d results; expected %d", routine->name, (int)routine->n_results,
                      (int)self->f->n_results);
    for (int32_t i = 0; i < routine->n_results; i++)
        if (self->classes[routine->results[i]] != self->classes[self->f->results[i]])
            return REFUSE(self, "'%s' gives results of other types", routine->name);
    return check_call(self, routine, in, NULL);
}

/* Layout: the closure, the arguments, the results. */
static bool check_closure_call(const checker *self, const int32_t *w)
{
    const rt_type_desc *t = type_of(self, w[1]);
    const int32_t *in = w + 2, *out = in + 1 + in[0];

    return is_kind(self, w[1], RT_TYPE_FUNCTION) && have_types(self, in, t->parts, t->n_params) &&
           have_types(self, out, t->parts + t->n_params, t->n_parts - t->n_params);
}

/* r = alloc_closure f (given): r's parameters are f's behind those that are given. */
static bool check_closure(const checker *self, const int32_t *words)
{
    const rt_type_desc *type = type_of(self, words[1]);
    const rt_routine_desc *f = &self->p->functions[words[2]];
    const int32_t *in = words + 3;

    if (!is_kind(self, words[1], RT_TYPE_FUNCTION))
        return false;
    if (in[0] > f->n_params || f->n_params - in[0] != type->n_params ||
        type->n_parts - type->n_params != f->n_results)
        return REFUSE(self, "'%s' has other parameters or results", f->name);
    for (int32_t i = 0; i < type->n_params; i++)
        if (self->classes[type->parts[i]] != self->classes[f->registers[in[0] + i]])
            return REFUSE(self, "parameter %d of '%s' has another type", (int)(in[0] + i), f->name);
    for (int32_t i = 0; i < f->n_results; i++)
        if (self->classes[type->parts[type->n_params + i]] != self->classes[f->results[i]])
            return REFUSE(self, "result %d of '%s' has another type", (int)i, f->name);
    return have_types(self, in, f->registers, in[0]);
}

/* The fields of a tuple, or of constructor `which` of a data type. */
static bool fields_of(const checker *self, int32_t reg, int32_t which, const int32_t **types, int32_t *count)
{
    const rt_type_desc *type = type_of(self, reg);

    if (type->kind == RT_TYPE_TUPLE && which == 0) {
        *types = type->parts;
        *count = type->n_parts;
        return true;
    }
    if (type->kind != RT_TYPE_DATA || which < 0 || which >= self->p->data[type->data].n_constructors)
        return REFUSE(self, "r%d has no constructor %d", (int)reg, (int)which);
    *types = self->p->data[type->data].constructors[which].fields;
    *count = self->p->data[type->data].constructors[which].n_fields;
    return true;
}

/* One constructor for tuples, number 0. */
static bool check_adt(const checker *self, const int32_t *w)
{
    const int32_t *types;
    int32_t n;

    return fields_of(self, w[1], w[2], &types, &n) && have_types(self, w + 3, types, n);
}

/* Which constructor the value really has is looked at when the code runs (get_field in vm.c). */
static bool check_field(const checker *self, const int32_t *words)
{
    const int32_t *types;
    int32_t n;

    if (!fields_of(self, words[2], words[3], &types, &n))
        return false;
    if (words[4] < 0 || words[4] >= n)
        return REFUSE(self, "field %d of %d", (int)words[4], (int)n);
    return has_type(self, words[1], types[words[4]]);
}

static bool check_constant(const checker *self, const int32_t *w)
{
    const rt_constant_desc *k = &self->m->constants[w[2]];
    const rt_type_desc *t = type_of(self, w[1]);

    return is_kind(self, w[1], RT_TYPE_TENSOR) &&
           ((t->rank == k->rank && base_dtype_same(t->dtype, k->dtype)) ||
            REFUSE(self, "constant %d has another type than r%d", (int)w[2], (int)w[1]));
}

/* Tensors of the heap are compact and in main memory. arg: a register, or -1 - c for constant c. */
static bool check_kernel_param(const checker *self, const rt_function_desc *kernel, int32_t index,
                               int32_t arg)
{
    const rt_param_desc *param = &kernel->params[index];
    const rt_type_desc *type = arg >= 0 ? type_of(self, arg) : NULL;
    const rt_constant_desc *constant = arg < 0 ? &self->m->constants[-1 - arg] : NULL;

    if (param->kind != RT_PARAM_BUFFER || param->strides)
        return REFUSE(self, "kernel '%s' takes a scalar or strides", kernel->name);
    if (type && !is_kind(self, arg, RT_TYPE_TENSOR))
        return false;
    return ((type ? type->rank : constant->rank) == param->rank &&
            base_dtype_same(type ? type->dtype : constant->dtype, param->dtype)) ||
           REFUSE(self, "%s%d is no '%s' of kernel '%s'", type ? "r" : "constant ",
                  (int)(type ? arg : -1 - arg), param->name, kernel->name);
}

/* A kernel of the host or of a device, with as many numbers as it has symbols, and tensors of its
 * parameters' types. */
static bool check_packed(const checker *self, const int32_t *words)
{
    const rt_function_desc *k = &self->m->functions[words[1]];
    const int32_t *dims = words + 2, *args = dims + 1 + dims[0];

    if (dims[0] != k->n_symbols || args[0] != k->n_params)
        return REFUSE(self, "kernel '%s' takes %d symbols and %d arguments; found %d and %d", k->name,
                      (int)k->n_symbols, (int)k->n_params, (int)dims[0], (int)args[0]);
    for (int32_t i = 0; i < k->n_params; i++)
        if (!check_kernel_param(self, k, i, args[1 + i]))
            return false;
    return all_numbers(self, dims);
}

/* Extents of a tensor that is made: so many as its type has. Where they are numbers in the code, they are
 * those of the type, if the type knows them: a kernel that takes this type relies on it (runtime/layouts.h).
 */
static bool check_extents(const checker *self, int32_t r, const int32_t *list, bool numbers)
{
    if (!is_kind(self, r, RT_TYPE_TENSOR) || (numbers && !all_numbers(self, list)))
        return false;
    const rt_type_desc *type = type_of(self, r);
    if (list[0] != type->rank)
        return REFUSE(self, "%d extents; r%d has %d", (int)list[0], (int)r, (int)type->rank);
    for (int32_t d = 0; d < type->rank && !numbers; d++)
        if (type->extents[d] >= 0 && list[1 + d] != type->extents[d])
            return REFUSE(self, "extent %d is %d; r%d has %lld", (int)d, (int)list[1 + d], (int)r,
                          (long long)type->extents[d]);
    return true;
}

static bool check_copy(const checker *self, const int32_t *w)
{
    return is_kind(self, w[1], RT_TYPE_TENSOR) && has_type(self, w[2], self->f->registers[w[1]]);
}

static bool check_reshape(const checker *self, const int32_t *w)
{
    return is_kind(self, w[2], RT_TYPE_TENSOR) && check_extents(self, w[1], w + 3, true) &&
           (base_dtype_same(type_of(self, w[1])->dtype, type_of(self, w[2])->dtype) ||
            REFUSE(self, "r%d has other elements than r%d", (int)w[1], (int)w[2]));
}

static bool check_shape_of(const checker *self, const int32_t *w)
{
    const rt_type_desc *t = type_of(self, w[1]);

    return is_kind(self, w[2], RT_TYPE_TENSOR) && is_kind(self, w[1], RT_TYPE_TENSOR) &&
           ((t->rank == 1 && base_dtype_same(t->dtype, BASE_I64)) ||
            REFUSE(self, "r%d is not a vector of i64", (int)w[1]));
}

/* A tensor that can hold a number: an integer or a truth value of rank 0. */
static bool is_scalar(const checker *self, int32_t r)
{
    const rt_type_desc *t = type_of(self, r);

    return is_kind(self, r, RT_TYPE_TENSOR) &&
           ((t->rank == 0 && (t->dtype.code == kDLBool || t->dtype.code == kDLInt)) ||
            REFUSE(self, "r%d is not an integer or truth value of rank 0", (int)r));
}

/* `part` has the elements of `whole`, and `less` axes fewer. */
static bool is_part(const checker *self, int32_t whole, int32_t part, int32_t less)
{
    const rt_type_desc *t = type_of(self, whole), *p = type_of(self, part);

    return is_kind(self, whole, RT_TYPE_TENSOR) && is_kind(self, part, RT_TYPE_TENSOR) &&
           ((t->rank >= 1 && p->rank == t->rank - less && base_dtype_same(t->dtype, p->dtype)) ||
            REFUSE(self, "r%d is not a row of r%d", (int)part, (int)whole));
}

static bool check_append(const checker *self, const int32_t *w)
{
    return has_type(self, w[1], self->f->registers[w[2]]) &&
           is_part(self, w[2], w[3], type_of(self, w[3])->rank < type_of(self, w[2])->rank);
}

static bool check_switch(const checker *self, const int32_t *w)
{
    return is_kind(self, w[1], RT_TYPE_NUMBER) && (w[2] > 0 || REFUSE(self, "%s", "no places"));
}

static bool check_dim(const checker *self, const int32_t *words)
{
    int32_t symbols = self->p->dim_symbols[words[2]];

    return is_kind(self, words[1], RT_TYPE_NUMBER) && all_numbers(self, words + 3) &&
           (words[3] == symbols ||
            REFUSE(self, "%d numbers; the code takes %d", (int)words[3], (int)symbols));
}

static bool check_extent(const checker *self, const int32_t *words)
{
    return is_kind(self, words[1], RT_TYPE_NUMBER) && is_kind(self, words[2], RT_TYPE_TENSOR) &&
           ((words[3] >= 0 && words[3] < type_of(self, words[2])->rank) ||
            REFUSE(self, "axis %d of r%d", (int)words[3], (int)words[2]));
}

/* Types of one instruction, whose operands are in range. */
static bool check_instruction(const checker *self, const int32_t *words)
{
    const rt_program_desc *program = self->p;

    switch ((rt_instruction)words[0]) {
    case RT_MOVE: return has_type(self, words[1], self->f->registers[words[2]]);
    case RT_RET: return have_types(self, words + 1, self->f->results, self->f->n_results);
    case RT_IF: return is_kind(self, words[1], RT_TYPE_NUMBER);
    case RT_LOAD_CONST: return check_constant(self, words);
    case RT_LOAD_CONSTI: return is_kind(self, words[1], RT_TYPE_NUMBER);
    case RT_ALLOC_STORAGE:
        return is_kind(self, words[1], RT_TYPE_STORAGE) && is_kind(self, words[2], RT_TYPE_NUMBER) &&
               (words[3] == 0 || REFUSE(self, "device %d; there is the host alone", (int)words[3]));
    case RT_ALLOC_TENSOR:
        return is_kind(self, words[2], RT_TYPE_STORAGE) && check_extents(self, words[1], words + 4, false);
    case RT_ALLOC_TENSOR_REG:
        return is_kind(self, words[2], RT_TYPE_STORAGE) && is_kind(self, words[3], RT_TYPE_NUMBER) &&
               check_extents(self, words[1], words + 4, true);
    case RT_ALLOC_ADT: return check_adt(self, words);
    case RT_ALLOC_CLOSURE: return check_closure(self, words);
    case RT_NEW_TENSOR: return check_extents(self, words[1], words + 2, false);
    case RT_NEW_TENSOR_REG: return check_extents(self, words[1], words + 2, true);
    case RT_FREE: return all_objects(self, words + 1);
    case RT_FREE_STORAGE: return is_kind(self, words[1], RT_TYPE_STORAGE);
    case RT_FREE_TENSOR:
        return type_of(self, words[1])->kind >= RT_TYPE_TENSOR ||
               REFUSE(self, "r%d holds no object", (int)words[1]);
    case RT_INVOKE: return check_call(self, &program->functions[words[1]], words + 2, words + 3 + words[2]);
    case RT_INVOKE_CLOSURE: return check_closure_call(self, words);
    case RT_INVOKE_PACKED: return check_packed(self, words);
    case RT_GET_FIELD: return check_field(self, words);
    case RT_GET_TAG: return is_kind(self, words[1], RT_TYPE_NUMBER) && is_kind(self, words[2], RT_TYPE_DATA);
    case RT_DEVICE_COPY: return check_copy(self, words);
    case RT_SHAPE_OF: return check_shape_of(self, words);
    case RT_RESHAPE_TENSOR: return check_reshape(self, words);
    case RT_DIM: return check_dim(self, words);
    case RT_CHECK: return is_kind(self, words[1], RT_TYPE_NUMBER);
    case RT_EQUAL: return is_kind(self, words[1], RT_TYPE_NUMBER) && is_kind(self, words[2], RT_TYPE_NUMBER);
    case RT_TAIL: return check_tail(self, &program->functions[words[1]], words + 2);
    case RT_EXTENT: return check_extent(self, words);
    case RT_SCALAR: return is_kind(self, words[1], RT_TYPE_NUMBER) && is_scalar(self, words[2]);
    case RT_TO_TENSOR: return is_kind(self, words[2], RT_TYPE_NUMBER) && is_scalar(self, words[1]);
    case RT_ROW: return is_kind(self, words[3], RT_TYPE_NUMBER) && is_part(self, words[2], words[1], 1);
    case RT_APPEND: return check_append(self, words);
    case RT_SWITCH: return check_switch(self, words);
    case RT_GOTO:
    case RT_FATAL: return true;
    case RT_N_INSTRUCTIONS: break;
    }
    return REFUSE(self, "unknown instruction %d", (int)words[0]);
}

/* ---- registers that are set ---- */

/* Behind these, the next instruction is reached only by a jump. */
static bool ends_flow(int32_t op)
{
    return op == RT_RET || op == RT_IF || op == RT_GOTO || op == RT_FATAL || op == RT_TAIL || op == RT_SWITCH;
}

static bool is_set(const checker *self, int32_t r)
{
    return self->now[r / 64] >> (r % 64) & 1;
}

/* The registers that are set here are what the place has at most. The first jump gives the set as it is, each
 * further one takes away what it lacks. */
static void jump_to(checker *self, int32_t word)
{
    int32_t k = self->place[word];
    uint64_t *set = self->sets + (size_t)k * self->set_words;

    for (size_t i = 0; i < self->set_words; i++) {
        uint64_t both = self->reached[k] ? set[i] & self->now[i] : self->now[i];

        self->changed = self->changed || !self->reached[k] || both != set[i];
        set[i] = both;
    }
    self->reached[k] = true;
}

/* A place that is jumped to begins with its set, whether or not the code above flows into it. */
static void arrive(checker *self, int32_t word)
{
    if (self->starts[word] != 2)
        return;
    if (self->flows)
        jump_to(self, word);
    self->flows = self->reached[self->place[word]];
    if (self->flows)
        memcpy(self->now, self->sets + (size_t)self->place[word] * self->set_words,
               self->set_words * sizeof *self->now);
}

/* Small letters: the caller has turned lists into their items. */
static bool use_operand(checker *self, char letter, int32_t word)
{
    if ((letter == 's' || (letter == 'a' && word >= 0)) && !is_set(self, word))
        return REFUSE(self, "r%d is read before it is set", (int)word);
    if (letter == 'j')
        jump_to(self, word);
    return true;
}

static void unset(checker *self, int32_t r)
{
    self->now[r / 64] &= ~((uint64_t)1 << (r % 64));
}

/* Freeing unsets, so a use after it is refused. */
static void set_registers(checker *self, const int32_t *words)
{
    const int32_t *at = words + 1;

    for (const char *o = rt_instruction_operands(words[0]); *o; o++) {
        int32_t n = *o < 'a' ? *at++ : 1;

        for (int32_t i = 0; i < n && (*o | 0x20) == 'd'; i++)
            self->now[at[i] / 64] |= (uint64_t)1 << (at[i] % 64);
        at += n;
    }
    if (words[0] == RT_FREE_STORAGE || words[0] == RT_FREE_TENSOR)
        unset(self, words[1]);
    for (int32_t i = 1; words[0] == RT_FREE && i <= words[1]; i++)
        unset(self, words[1 + i]);
}

/* Each operand that is read is set here; jumps take along what is set; then the results are set. */
static bool flow_through(checker *self, const int32_t *words)
{
    const int32_t *at = words + 1;

    for (const char *o = rt_instruction_operands(words[0]); *o; o++) {
        int32_t n = *o < 'a' ? *at++ : 1;

        for (int32_t i = 0; i < n; i++)
            if (!use_operand(self, (char)(*o | 0x20), at[i]))
                return false;
        at += n;
    }
    set_registers(self, words);
    self->flows = !ends_flow(words[0]);
    return true;
}

/* Walks the code until no place loses a register any more. Sets only become smaller, so this ends; code of
 * the compiler needs two or three passes. */
static bool follow_registers(checker *self)
{
    self->changed = true;
    for (int pass = 0; self->changed; pass++) {
        if (pass == MAX_PASSES)
            return REFUSE(self, "its jumps are too entangled after %d passes", pass);
        self->changed = false;
        self->flows = true;
        memset(self->now, 0, self->set_words * sizeof *self->now);
        for (int32_t r = 0; r < self->f->n_params; r++)
            self->now[r / 64] |= (uint64_t)1 << (r % 64);
        for (self->at = 0; self->at < self->f->n_words;
             self->at += rt_instruction_words(self->f->words, self->at, self->f->n_words)) {
            arrive(self, self->at);
            if (self->flows && !flow_through(self, self->f->words + self->at))
                return false;
        }
        self->at = 0;
        if (self->flows)
            return REFUSE(self, "%s", "the code goes on behind its end");
    }
    return true;
}

/* ---- functions ---- */

/* Marks where instructions begin. The last one must not go on. */
static bool find_starts(checker *self)
{
    int32_t n, last = 0;

    for (self->at = 0; self->at < self->f->n_words; self->at += n) {
        n = rt_instruction_words(self->f->words, self->at, self->f->n_words);
        if (n == 0)
            return REFUSE(self, "no whole instruction (%d)", (int)self->f->words[self->at]);
        self->starts[self->at] = 1;
        last = self->at;
    }
    self->at = last;
    return (self->f->n_words > 0 && ends_flow(self->f->words[last])) ||
           rt_fail(self->err, TEC_INVALID, "bytecode of '%s': the code goes on behind its end",
                   self->f->name);
}

/* Operands in range, then their types. Places that are jumped to get numbers on the way. Jumps may go
 * forward, so starts must be known for all words before. */
static bool check_operands(checker *self)
{
    const int32_t *w = self->f->words + self->at, *at = w + 1;

    for (const char *o = rt_instruction_operands(w[0]); *o; o++) {
        int32_t n = *o < 'a' ? *at++ : 1;

        for (int32_t i = 0; i < n; i++) {
            if (!check_operand(self, *o, at[i]))
                return false;
            if ((*o | 0x20) == 'j' && self->starts[at[i]] == 1) {
                self->starts[at[i]] = 2;
                self->place[at[i]] = self->n_places++;
            }
        }
        at += n;
    }
    return check_instruction(self, w);
}

/* Parameters, registers and names of a function, before its code is looked at. */
static bool check_header(const checker *self)
{
    const rt_routine_desc *f = self->f;

    if (!f->name || f->n_params < 0 || f->n_params > f->n_registers || f->n_registers > RT_MAX_REGISTERS)
        return REFUSE_PROGRAM(self, "function '%s' has %d parameters in %d registers",
                              f->name ? f->name : "?", (int)f->n_params, (int)f->n_registers);
    for (int32_t i = 0; i < f->n_registers; i++)
        if (f->registers[i] < 0 || f->registers[i] >= self->p->n_types)
            return REFUSE_PROGRAM(self, "register %d of '%s' has type %d of %d", (int)i, f->name,
                                  (int)f->registers[i], (int)self->p->n_types);
    if (f->n_names != f->n_params)
        return REFUSE_PROGRAM(self, "function '%s' has %d names for %d parameters", f->name, (int)f->n_names,
                              (int)f->n_params);
    for (int32_t i = 0; i < f->n_params; i++)
        if (!f->params[i])
            return REFUSE_PROGRAM(self, "parameter %d of '%s' has no name", (int)i, f->name);
    for (int32_t i = 0; i < f->n_lines; i++)
        if (f->lines[i].line < -self->p->n_texts)
            return REFUSE_PROGRAM(self, "a place in '%s' is text %d of %d", f->name,
                                  (int)(-1 - f->lines[i].line), (int)self->p->n_texts);
    for (int32_t i = 1; i < f->n_lines; i++)
        if (f->lines[i].word < f->lines[i - 1].word)
            return REFUSE_PROGRAM(self, "the lines of '%s' are not in order", f->name);
    return check_value_types(self, f->registers, f->n_params, "parameters") &&
           check_value_types(self, f->results, f->n_results, "results");
}

/* All memory of the check is one arena, which is freed before it returns. Sizes are bounded before the sets
 * are allocated: a hostile function could ask for places times registers. */
static bool check_code(checker *self)
{
    rt_arena arena = {0};
    const rt_routine_desc *f = self->f;
    bool ok;

    self->n_places = 0;
    self->set_words = (size_t)f->n_registers / 64 + 1;
    self->starts = rt_arena_alloc(&arena, f->n_words, sizeof *self->starts, self->err);
    self->place = rt_arena_alloc(&arena, f->n_words, sizeof *self->place, self->err);
    self->now = rt_arena_alloc(&arena, (int64_t)self->set_words, sizeof *self->now, self->err);
    ok = self->starts && self->place && self->now && find_starts(self);
    for (self->at = 0; ok && self->at < f->n_words;
         self->at += rt_instruction_words(f->words, self->at, f->n_words))
        ok = check_operands(self);
    self->at = 0;
    if (ok && (size_t)self->n_places * self->set_words * 8 > MAX_SET_BYTES)
        ok = REFUSE(self, "%d places with %d registers are too many", (int)self->n_places,
                    (int)f->n_registers);
    self->sets =
        ok ? rt_arena_alloc(&arena, (int64_t)self->n_places * (int64_t)self->set_words, 8, self->err) : NULL;
    self->reached = ok ? rt_arena_alloc(&arena, self->n_places, sizeof *self->reached, self->err) : NULL;
    ok = ok && self->sets && self->reached && follow_registers(self);
    rt_arena_free(&arena);
    return ok;
}

/* Dimension code, texts and data types, which instructions refer to by number. */
static bool check_tables(const checker *self)
{
    const rt_program_desc *program = self->p;

    if (program->n_dims != program->n_dim_symbols)
        return REFUSE_PROGRAM(self, "%d pieces of dimension code, %d numbers of symbols",
                              (int)program->n_dims, (int)program->n_dim_symbols);
    for (int32_t i = 0; i < program->n_dims; i++)
        if (program->dim_symbols[i] < 0 || program->dim_symbols[i] > RT_MAX_SYMBOLS ||
            !rt_dim_verify(program->dims[i], program->dim_symbols[i], NULL))
            return REFUSE_PROGRAM(self, "dimension code %d is malformed", (int)i);
    for (int32_t i = 0; i < program->n_texts; i++)
        if (!program->texts[i])
            return REFUSE_PROGRAM(self, "text %d is absent", (int)i);
    for (int32_t i = 0; i < program->n_data; i++)
        if (!check_data(self, &program->data[i]))
            return false;
    return true;
}

/* Headers of all functions first: a call is compared with the header of its callee. */
bool rt_program_check(const rt_module_desc *module, tec_error *err)
{
    const rt_program_desc *program = &module->program;
    checker c = {.m = module, .p = program, .err = err};
    bool ok;

    if (program->n_types < 0 || program->n_types > RT_MAX_TYPES)
        return REFUSE_PROGRAM(&c, "%d types; expected 0 to %d", (int)program->n_types, RT_MAX_TYPES);
    c.classes = rt_alloc_array(program->n_types, sizeof *c.classes, err);
    ok = c.classes && rt_type_classes(program, c.classes, err) && check_tables(&c);
    for (int32_t i = 0; ok && i < program->n_functions; i++) {
        c.f = &program->functions[i];
        ok = check_header(&c);
    }
    for (int32_t i = 0; ok && i < program->n_functions; i++) {
        c.f = &program->functions[i];
        ok = check_code(&c);
    }
    rt_free(c.classes);
    return ok;
}
