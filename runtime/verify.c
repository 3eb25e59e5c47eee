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
 * no
 * set becomes smaller. Code that nothing reaches is held against the types alone.
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
static bool same_class(const rt_type_desc *a, const rt_type_desc *b, const int32_t *classes)
{
    if (a->kind != b->kind || a->rank != b->rank || a->data != b->data || a->n_parts != b->n_parts ||
        a->n_params != b->n_params || !base_dtype_same(a->dtype, b->dtype))
        return false;
    for (int32_t i = 0; i < a->n_parts; i++)
        if (classes[a->parts[i]] != classes[b->parts[i]])
            return false;
    return true;
}

/* Elements of whole bytes, as a tensor of the heap has. */
static bool good_dtype(base_dtype t)
{
    return t.lanes == 1 && base_dtype_bytes(t) >= 1 && base_dtype_bytes(t) <= 8 && t.bits >= 8 &&
           (t.bits & (t.bits - 1)) == 0 && (t.code <= kDLBfloat || t.code == kDLBool);
}

/* Counts, extents and references of one type. Parts stand before it, so that types cannot be circular. */
static bool check_type(const checker *c, int32_t i)
{
    const rt_type_desc *t = &c->p->types[i];

    if (t->kind < RT_TYPE_NUMBER || t->kind > RT_TYPE_FUNCTION)
        return REFUSE_PROGRAM(c, "type %d is of unknown kind %d", (int)i, (int)t->kind);
    if (t->rank < 0 || t->rank > RT_MAX_RANK || t->n_parts < 0 || t->n_parts > RT_MAX_FIELDS ||
        t->n_params < 0 || t->n_params > t->n_parts)
        return REFUSE_PROGRAM(c, "type %d has counts out of range", (int)i);
    if (t->kind == RT_TYPE_TENSOR ? !good_dtype(t->dtype) : t->rank != 0)
        return REFUSE_PROGRAM(c, "type %d has no valid elements", (int)i);
    for (int32_t d = 0; d < t->rank; d++)
        if (t->extents[d] < -1)
            return REFUSE_PROGRAM(c, "type %d has extent %lld", (int)i, (long long)t->extents[d]);
    if (t->kind == RT_TYPE_DATA ? t->data < 0 || t->data >= c->p->n_data : t->data != 0)
        return REFUSE_PROGRAM(c, "type %d is data type %d of %d", (int)i, (int)t->data, (int)c->p->n_data);
    if (t->n_parts && t->kind != RT_TYPE_TUPLE && t->kind != RT_TYPE_FUNCTION)
        return REFUSE_PROGRAM(c, "type %d has parts", (int)i);
    for (int32_t k = 0; k < t->n_parts; k++)
        if (t->parts[k] < 0 || t->parts[k] >= i || c->p->types[t->parts[k]].kind < RT_TYPE_TENSOR)
            return REFUSE_PROGRAM(c, "part %d of type %d is not a type of values before it", (int)k, (int)i);
    return true;
}

/* Looks only at types that are the first of their class. */
static int32_t class_of(const rt_program_desc *p, const int32_t *classes, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (classes[k] == k && same_class(&p->types[k], &p->types[i], classes))
            return k;
    return i;
}

/* In the order of types, so that parts come first. */
bool rt_type_classes(const rt_program_desc *p, int32_t *classes, tec_error *err)
{
    checker c = {.p = p, .err = err};

    for (int32_t i = 0; i < p->n_types; i++) {
        if (!check_type(&c, i))
            return false;
        classes[i] = class_of(p, classes, i);
    }
    return true;
}

/* Types that objects of users may have. */
static bool check_value_types(const checker *c, const int32_t *types, int32_t n, const char *what)
{
    if (n < 0 || n > RT_MAX_FIELDS)
        return REFUSE_PROGRAM(c, "%s: %d; expected 0 to %d", what, (int)n, RT_MAX_FIELDS);
    for (int32_t i = 0; i < n; i++)
        if (types[i] < 0 || types[i] >= c->p->n_types || c->p->types[types[i]].kind < RT_TYPE_TENSOR)
            return REFUSE_PROGRAM(c, "%s: %d of them is no type of values", what, (int)i);
    return true;
}

/* Fields may name the data type itself. */
static bool check_data(const checker *c, const rt_data_desc *d)
{
    if (!d->name || d->n_constructors < 1 || d->n_constructors > RT_MAX_FIELDS)
        return REFUSE_PROGRAM(c, "data type '%s' has %d constructors", d->name ? d->name : "?",
                              (int)d->n_constructors);
    for (int32_t i = 0; i < d->n_constructors; i++)
        if (!d->constructors[i].name ||
            !check_value_types(c, d->constructors[i].fields, d->constructors[i].n_fields,
                               "fields of a constructor"))
            return d->constructors[i].name
                       ? false
                       : REFUSE_PROGRAM(c, "data type '%s' has a constructor without a name", d->name);
    return true;
}

/* ---- operands ---- */

/* The register is in range since check_operand. */
static const rt_type_desc *type_of(const checker *c, int32_t r)
{
    return &c->p->types[c->f->registers[r]];
}

static bool is_kind(const checker *c, int32_t r, rt_type_kind kind)
{
    return type_of(c, r)->kind == kind || REFUSE(c, "r%d is of the wrong kind", (int)r);
}

/* Types are compared by class, so two descriptions of one type do. */
static bool has_type(const checker *c, int32_t r, int32_t type)
{
    return c->classes[c->f->registers[r]] == c->classes[type] ||
           REFUSE(c, "r%d has another type than is expected there", (int)r);
}

static bool all_numbers(const checker *c, const int32_t *list)
{
    for (int32_t i = 1; i <= list[0]; i++)
        if (!is_kind(c, list[i], RT_TYPE_NUMBER))
            return false;
    return true;
}

/* `list` begins with its count. */
static bool have_types(const checker *c, const int32_t *list, const int32_t *types, int32_t n)
{
    if (list[0] != n)
        return REFUSE(c, "%d registers; expected %d", (int)list[0], (int)n);
    for (int32_t i = 0; i < n; i++)
        if (!has_type(c, list[1 + i], types[i]))
            return false;
    return true;
}

/* Each operand is in range, whatever the instruction makes of it. */
static bool check_operand(const checker *c, char letter, int32_t word)
{
    const rt_program_desc *p = c->p;
    int32_t n = INT32_MAX;

    switch (letter | 0x20) {
    case 'd':
    case 's': n = c->f->n_registers; break;
    case 'f': n = p->n_functions; break;
    case 'k': n = c->m->n_functions; break;
    case 'c': n = c->m->n_constants; break;
    case 'e': n = p->n_dims; break;
    case 'm': n = p->n_texts; break;
    case 'j':
        return (word >= 0 && word < c->f->n_words && c->starts[word]) ||
               REFUSE(c, "no instruction begins at word %d", (int)word);
    case 'i': return true;
    }
    return (word >= 0 && word < n) || REFUSE(c, "operand %d of %d", (int)word, (int)n);
}

/* ---- types of each instruction ---- */

/* The first registers of a function are its parameters. */
static bool check_call(const checker *c, const rt_routine_desc *f, const int32_t *in, const int32_t *out)
{
    return have_types(c, in, f->registers, f->n_params) &&
           (!out || have_types(c, out, f->results, f->n_results));
}

/* The frame's caller expects this function's results. */
static bool check_tail(const checker *c, const rt_routine_desc *f, const int32_t *in)
{
    if (f->n_results != c->f->n_results)
        return REFUSE(c, "'%s' gives %d results; expected %d", f->name, (int)f->n_results,
                      (int)c->f->n_results);
    for (int32_t i = 0; i < f->n_results; i++)
        if (c->classes[f->results[i]] != c->classes[c->f->results[i]])
            return REFUSE(c, "'%s' gives results of other types", f->name);
    return check_call(c, f, in, NULL);
}

/* Layout: the closure, the arguments, the results. */
static bool check_closure_call(const checker *c, const int32_t *w)
{
    const rt_type_desc *t = type_of(c, w[1]);
    const int32_t *in = w + 2, *out = in + 1 + in[0];

    return is_kind(c, w[1], RT_TYPE_FUNCTION) && have_types(c, in, t->parts, t->n_params) &&
           have_types(c, out, t->parts + t->n_params, t->n_parts - t->n_params);
}

/* r = alloc_closure f (given): r's parameters are f's behind those that are given. */
static bool check_closure(const checker *c, const int32_t *w)
{
    const rt_type_desc *t = type_of(c, w[1]);
    const rt_routine_desc *f = &c->p->functions[w[2]];
    const int32_t *in = w + 3;

    if (!is_kind(c, w[1], RT_TYPE_FUNCTION))
        return false;
    if (in[0] > f->n_params || f->n_params - in[0] != t->n_params || t->n_parts - t->n_params != f->n_results)
        return REFUSE(c, "'%s' has other parameters or results", f->name);
    for (int32_t i = 0; i < t->n_params; i++)
        if (c->classes[t->parts[i]] != c->classes[f->registers[in[0] + i]])
            return REFUSE(c, "parameter %d of '%s' has another type", (int)(in[0] + i), f->name);
    for (int32_t i = 0; i < f->n_results; i++)
        if (c->classes[t->parts[t->n_params + i]] != c->classes[f->results[i]])
            return REFUSE(c, "result %d of '%s' has another type", (int)i, f->name);
    return have_types(c, in, f->registers, in[0]);
}

/* The fields of a tuple, or of constructor `which` of a data type. */
static bool fields_of(const checker *c, int32_t r, int32_t which, const int32_t **types, int32_t *n)
{
    const rt_type_desc *t = type_of(c, r);

    if (t->kind == RT_TYPE_TUPLE && which == 0) {
        *types = t->parts;
        *n = t->n_parts;
        return true;
    }
    if (t->kind != RT_TYPE_DATA || which < 0 || which >= c->p->data[t->data].n_constructors)
        return REFUSE(c, "r%d has no constructor %d", (int)r, (int)which);
    *types = c->p->data[t->data].constructors[which].fields;
    *n = c->p->data[t->data].constructors[which].n_fields;
    return true;
}

/* One constructor for tuples, number 0. */
static bool check_adt(const checker *c, const int32_t *w)
{
    const int32_t *types;
    int32_t n;

    return fields_of(c, w[1], w[2], &types, &n) && have_types(c, w + 3, types, n);
}

/* Which constructor the value really has is looked at when the code runs (get_field in vm.c). */
static bool check_field(const checker *c, const int32_t *w)
{
    const int32_t *types;
    int32_t n;

    if (!fields_of(c, w[2], w[3], &types, &n))
        return false;
    if (w[4] < 0 || w[4] >= n)
        return REFUSE(c, "field %d of %d", (int)w[4], (int)n);
    return has_type(c, w[1], types[w[4]]);
}

static bool check_constant(const checker *c, const int32_t *w)
{
    const rt_constant_desc *k = &c->m->constants[w[2]];
    const rt_type_desc *t = type_of(c, w[1]);

    return is_kind(c, w[1], RT_TYPE_TENSOR) &&
           ((t->rank == k->rank && base_dtype_same(t->dtype, k->dtype)) ||
            REFUSE(c, "constant %d has another type than r%d", (int)w[2], (int)w[1]));
}

/* Tensors of the heap are compact and in main memory. */
static bool check_kernel_param(const checker *c, const rt_function_desc *k, int32_t i, int32_t r)
{
    const rt_param_desc *p = &k->params[i];
    const rt_type_desc *t = type_of(c, r);

    if (p->kind != RT_PARAM_BUFFER || p->strides)
        return REFUSE(c, "kernel '%s' takes a scalar or strides", k->name);
    return is_kind(c, r, RT_TYPE_TENSOR) &&
           ((t->rank == p->rank && base_dtype_same(t->dtype, p->dtype)) ||
            REFUSE(c, "r%d is no '%s' of kernel '%s'", (int)r, p->name, k->name));
}

/* A kernel of host code, with as many numbers as it has symbols, and tensors of its parameters' types. */
static bool check_packed(const checker *c, const int32_t *w)
{
    const rt_function_desc *k = &c->m->functions[w[1]];
    const int32_t *dims = w + 2, *args = dims + 1 + dims[0];

    if (k->device)
        return REFUSE(c, "kernel '%s' is code for %s", k->name, k->device);
    if (dims[0] != k->n_symbols || args[0] != k->n_params)
        return REFUSE(c, "kernel '%s' takes %d symbols and %d arguments; found %d and %d", k->name,
                      (int)k->n_symbols, (int)k->n_params, (int)dims[0], (int)args[0]);
    for (int32_t i = 0; i < k->n_params; i++)
        if (!check_kernel_param(c, k, i, args[1 + i]))
            return false;
    return all_numbers(c, dims);
}

/* Extents of a tensor that is made: so many as its type has. */
static bool check_extents(const checker *c, int32_t r, const int32_t *list, bool numbers)
{
    if (!is_kind(c, r, RT_TYPE_TENSOR) || (numbers && !all_numbers(c, list)))
        return false;
    return list[0] == type_of(c, r)->rank ||
           REFUSE(c, "%d extents; r%d has %d", (int)list[0], (int)r, (int)type_of(c, r)->rank);
}

static bool check_copy(const checker *c, const int32_t *w)
{
    return is_kind(c, w[1], RT_TYPE_TENSOR) && has_type(c, w[2], c->f->registers[w[1]]);
}

static bool check_reshape(const checker *c, const int32_t *w)
{
    return is_kind(c, w[2], RT_TYPE_TENSOR) && check_extents(c, w[1], w + 3, true) &&
           (base_dtype_same(type_of(c, w[1])->dtype, type_of(c, w[2])->dtype) ||
            REFUSE(c, "r%d has other elements than r%d", (int)w[1], (int)w[2]));
}

static bool check_shape_of(const checker *c, const int32_t *w)
{
    const rt_type_desc *t = type_of(c, w[1]);

    return is_kind(c, w[2], RT_TYPE_TENSOR) && is_kind(c, w[1], RT_TYPE_TENSOR) &&
           ((t->rank == 1 && base_dtype_same(t->dtype, BASE_I64)) ||
            REFUSE(c, "r%d is no vector of i64", (int)w[1]));
}

/* A tensor that can hold a number: an integer or a truth value of rank 0. */
static bool is_scalar(const checker *c, int32_t r)
{
    const rt_type_desc *t = type_of(c, r);

    return is_kind(c, r, RT_TYPE_TENSOR) &&
           ((t->rank == 0 && (t->dtype.code == kDLBool || t->dtype.code == kDLInt)) ||
            REFUSE(c, "r%d is no integer or truth value of rank 0", (int)r));
}

/* `part` has the elements of `whole`, and `less` axes fewer. */
static bool is_part(const checker *c, int32_t whole, int32_t part, int32_t less)
{
    const rt_type_desc *t = type_of(c, whole), *p = type_of(c, part);

    return is_kind(c, whole, RT_TYPE_TENSOR) && is_kind(c, part, RT_TYPE_TENSOR) &&
           ((t->rank >= 1 && p->rank == t->rank - less && base_dtype_same(t->dtype, p->dtype)) ||
            REFUSE(c, "r%d is no row of r%d", (int)part, (int)whole));
}

static bool check_append(const checker *c, const int32_t *w)
{
    return has_type(c, w[1], c->f->registers[w[2]]) &&
           is_part(c, w[2], w[3], type_of(c, w[3])->rank < type_of(c, w[2])->rank);
}

static bool check_switch(const checker *c, const int32_t *w)
{
    return is_kind(c, w[1], RT_TYPE_NUMBER) && (w[2] > 0 || REFUSE(c, "%s", "no places"));
}

/* Types of one instruction, whose operands are in range. */
static bool check_instruction(const checker *c, const int32_t *w)
{
    const rt_program_desc *p = c->p;

    switch ((rt_instruction)w[0]) {
    case RT_MOVE: return has_type(c, w[1], c->f->registers[w[2]]);
    case RT_RET: return have_types(c, w + 1, c->f->results, c->f->n_results);
    case RT_IF: return is_kind(c, w[1], RT_TYPE_NUMBER);
    case RT_LOAD_CONST: return check_constant(c, w);
    case RT_LOAD_CONSTI: return is_kind(c, w[1], RT_TYPE_NUMBER);
    case RT_ALLOC_STORAGE:
        return is_kind(c, w[1], RT_TYPE_STORAGE) && is_kind(c, w[2], RT_TYPE_NUMBER) &&
               (w[3] == 0 || REFUSE(c, "device %d; there is the host alone", (int)w[3]));
    case RT_ALLOC_TENSOR: return is_kind(c, w[2], RT_TYPE_STORAGE) && check_extents(c, w[1], w + 4, false);
    case RT_ALLOC_TENSOR_REG:
        return is_kind(c, w[2], RT_TYPE_STORAGE) && is_kind(c, w[3], RT_TYPE_NUMBER) &&
               check_extents(c, w[1], w + 4, true);
    case RT_ALLOC_ADT: return check_adt(c, w);
    case RT_ALLOC_CLOSURE: return check_closure(c, w);
    case RT_FREE_STORAGE: return is_kind(c, w[1], RT_TYPE_STORAGE);
    case RT_FREE_TENSOR:
        return type_of(c, w[1])->kind >= RT_TYPE_TENSOR || REFUSE(c, "r%d holds no object", (int)w[1]);
    case RT_INVOKE: return check_call(c, &p->functions[w[1]], w + 2, w + 3 + w[2]);
    case RT_INVOKE_CLOSURE: return check_closure_call(c, w);
    case RT_INVOKE_PACKED: return check_packed(c, w);
    case RT_GET_FIELD: return check_field(c, w);
    case RT_GET_TAG: return is_kind(c, w[1], RT_TYPE_NUMBER) && is_kind(c, w[2], RT_TYPE_DATA);
    case RT_DEVICE_COPY: return check_copy(c, w);
    case RT_SHAPE_OF: return check_shape_of(c, w);
    case RT_RESHAPE_TENSOR: return check_reshape(c, w);
    case RT_DIM:
        return is_kind(c, w[1], RT_TYPE_NUMBER) && all_numbers(c, w + 3) &&
               (w[3] == p->dim_symbols[w[2]] ||
                REFUSE(c, "%d numbers; the code takes %d", (int)w[3], (int)p->dim_symbols[w[2]]));
    case RT_CHECK: return is_kind(c, w[1], RT_TYPE_NUMBER);
    case RT_TAIL: return check_tail(c, &p->functions[w[1]], w + 2);
    case RT_EXTENT:
        return is_kind(c, w[1], RT_TYPE_NUMBER) && is_kind(c, w[2], RT_TYPE_TENSOR) &&
               ((w[3] >= 0 && w[3] < type_of(c, w[2])->rank) ||
                REFUSE(c, "axis %d of r%d", (int)w[3], (int)w[2]));
    case RT_SCALAR: return is_kind(c, w[1], RT_TYPE_NUMBER) && is_scalar(c, w[2]);
    case RT_TO_TENSOR: return is_kind(c, w[2], RT_TYPE_NUMBER) && is_scalar(c, w[1]);
    case RT_ROW: return is_kind(c, w[3], RT_TYPE_NUMBER) && is_part(c, w[2], w[1], 1);
    case RT_APPEND: return check_append(c, w);
    case RT_SWITCH: return check_switch(c, w);
    case RT_GOTO:
    case RT_FATAL: return true;
    case RT_N_INSTRUCTIONS: break;
    }
    return REFUSE(c, "unknown instruction %d", (int)w[0]);
}

/* ---- registers that are set ---- */

/* Behind these, the next instruction is reached only by a jump. */
static bool ends_flow(int32_t op)
{
    return op == RT_RET || op == RT_IF || op == RT_GOTO || op == RT_FATAL || op == RT_TAIL || op == RT_SWITCH;
}

static bool is_set(const checker *c, int32_t r)
{
    return c->now[r / 64] >> (r % 64) & 1;
}

/* The registers that are set here are what the place has at most. The first jump gives the set as it is, each
 * further one takes away what it lacks. */
static void jump_to(checker *c, int32_t word)
{
    int32_t k = c->place[word];
    uint64_t *set = c->sets + (size_t)k * c->set_words;

    for (size_t i = 0; i < c->set_words; i++) {
        uint64_t both = c->reached[k] ? set[i] & c->now[i] : c->now[i];

        c->changed = c->changed || !c->reached[k] || both != set[i];
        set[i] = both;
    }
    c->reached[k] = true;
}

/* A place that is jumped to begins with its set, whether or not the code above flows into it. */
static void arrive(checker *c, int32_t word)
{
    if (c->starts[word] != 2)
        return;
    if (c->flows)
        jump_to(c, word);
    c->flows = c->reached[c->place[word]];
    if (c->flows)
        memcpy(c->now, c->sets + (size_t)c->place[word] * c->set_words, c->set_words * sizeof *c->now);
}

/* Small letters: the caller has turned lists into their items. */
static bool use_operand(checker *c, char letter, int32_t word)
{
    if (letter == 's' && !is_set(c, word))
        return REFUSE(c, "r%d is read before it is set", (int)word);
    if (letter == 'j')
        jump_to(c, word);
    return true;
}

/* Freeing unsets, so a use after it is refused. */
static void set_registers(checker *c, const int32_t *w)
{
    const int32_t *at = w + 1;

    for (const char *o = rt_instruction_operands(w[0]); *o; o++) {
        int32_t n = *o < 'a' ? *at++ : 1;

        for (int32_t i = 0; i < n && (*o | 0x20) == 'd'; i++)
            c->now[at[i] / 64] |= (uint64_t)1 << (at[i] % 64);
        at += n;
    }
    if (w[0] == RT_FREE_STORAGE || w[0] == RT_FREE_TENSOR)
        c->now[w[1] / 64] &= ~((uint64_t)1 << (w[1] % 64));
}

/* Each operand that is read is set here; jumps take along what is set; then the results are set. */
static bool flow_through(checker *c, const int32_t *w)
{
    const int32_t *at = w + 1;

    for (const char *o = rt_instruction_operands(w[0]); *o; o++) {
        int32_t n = *o < 'a' ? *at++ : 1;

        for (int32_t i = 0; i < n; i++)
            if (!use_operand(c, (char)(*o | 0x20), at[i]))
                return false;
        at += n;
    }
    set_registers(c, w);
    c->flows = !ends_flow(w[0]);
    return true;
}

/* Walks the code until no place loses a register any more. Sets only become smaller, so this ends; code of
 * the compiler needs two or three passes. */
static bool follow_registers(checker *c)
{
    c->changed = true;
    for (int pass = 0; c->changed; pass++) {
        if (pass == MAX_PASSES)
            return REFUSE(c, "its jumps are too entangled after %d passes", pass);
        c->changed = false;
        c->flows = true;
        memset(c->now, 0, c->set_words * sizeof *c->now);
        for (int32_t r = 0; r < c->f->n_params; r++)
            c->now[r / 64] |= (uint64_t)1 << (r % 64);
        for (c->at = 0; c->at < c->f->n_words;
             c->at += rt_instruction_words(c->f->words, c->at, c->f->n_words)) {
            arrive(c, c->at);
            if (c->flows && !flow_through(c, c->f->words + c->at))
                return false;
        }
        c->at = 0;
        if (c->flows)
            return REFUSE(c, "%s", "the code goes on behind its end");
    }
    return true;
}

/* ---- functions ---- */

/* Marks where instructions begin. The last one must not go on. */
static bool find_starts(checker *c)
{
    int32_t n, last = 0;

    for (c->at = 0; c->at < c->f->n_words; c->at += n) {
        n = rt_instruction_words(c->f->words, c->at, c->f->n_words);
        if (n == 0)
            return REFUSE(c, "no whole instruction (%d)", (int)c->f->words[c->at]);
        c->starts[c->at] = 1;
        last = c->at;
    }
    c->at = last;
    return (c->f->n_words > 0 && ends_flow(c->f->words[last])) ||
           rt_fail(c->err, TEC_INVALID, "bytecode of '%s': the code goes on behind its end", c->f->name);
}

/* Operands in range, then their types. Places that are jumped to get numbers on the way. Jumps may go
 * forward, so starts must be known for all words before. */
static bool check_operands(checker *c)
{
    const int32_t *w = c->f->words + c->at, *at = w + 1;

    for (const char *o = rt_instruction_operands(w[0]); *o; o++) {
        int32_t n = *o < 'a' ? *at++ : 1;

        for (int32_t i = 0; i < n; i++) {
            if (!check_operand(c, *o, at[i]))
                return false;
            if ((*o | 0x20) == 'j' && c->starts[at[i]] == 1) {
                c->starts[at[i]] = 2;
                c->place[at[i]] = c->n_places++;
            }
        }
        at += n;
    }
    return check_instruction(c, w);
}

/* Parameters, registers and names of a function, before its code is looked at. */
static bool check_header(const checker *c)
{
    const rt_routine_desc *f = c->f;

    if (!f->name || f->n_params < 0 || f->n_params > f->n_registers || f->n_registers > RT_MAX_REGISTERS)
        return REFUSE_PROGRAM(c, "function '%s' has %d parameters in %d registers", f->name ? f->name : "?",
                              (int)f->n_params, (int)f->n_registers);
    for (int32_t i = 0; i < f->n_registers; i++)
        if (f->registers[i] < 0 || f->registers[i] >= c->p->n_types)
            return REFUSE_PROGRAM(c, "register %d of '%s' has type %d of %d", (int)i, f->name,
                                  (int)f->registers[i], (int)c->p->n_types);
    if (f->n_names != f->n_params)
        return REFUSE_PROGRAM(c, "function '%s' has %d names for %d parameters", f->name, (int)f->n_names,
                              (int)f->n_params);
    for (int32_t i = 0; i < f->n_params; i++)
        if (!f->params[i])
            return REFUSE_PROGRAM(c, "parameter %d of '%s' has no name", (int)i, f->name);
    for (int32_t i = 1; i < f->n_lines; i++)
        if (f->lines[i].word < f->lines[i - 1].word)
            return REFUSE_PROGRAM(c, "the lines of '%s' are not in order", f->name);
    return check_value_types(c, f->registers, f->n_params, "parameters") &&
           check_value_types(c, f->results, f->n_results, "results");
}

/* All memory of the check is one arena, which is freed before it returns. Sizes are bounded before the sets
 * are allocated: a hostile function could ask for places times registers. */
static bool check_code(checker *c)
{
    rt_arena arena = {0};
    const rt_routine_desc *f = c->f;
    bool ok;

    c->n_places = 0;
    c->set_words = (size_t)f->n_registers / 64 + 1;
    c->starts = rt_arena_alloc(&arena, f->n_words, sizeof *c->starts, c->err);
    c->place = rt_arena_alloc(&arena, f->n_words, sizeof *c->place, c->err);
    c->now = rt_arena_alloc(&arena, (int64_t)c->set_words, sizeof *c->now, c->err);
    ok = c->starts && c->place && c->now && find_starts(c);
    for (c->at = 0; ok && c->at < f->n_words; c->at += rt_instruction_words(f->words, c->at, f->n_words))
        ok = check_operands(c);
    c->at = 0;
    if (ok && (size_t)c->n_places * c->set_words * 8 > MAX_SET_BYTES)
        ok = REFUSE(c, "%d places with %d registers are too many", (int)c->n_places, (int)f->n_registers);
    c->sets = ok ? rt_arena_alloc(&arena, (int64_t)c->n_places * (int64_t)c->set_words, 8, c->err) : NULL;
    c->reached = ok ? rt_arena_alloc(&arena, c->n_places, sizeof *c->reached, c->err) : NULL;
    ok = ok && c->sets && c->reached && follow_registers(c);
    rt_arena_free(&arena);
    return ok;
}

/* Dimension code, texts and data types, which instructions refer to by number. */
static bool check_tables(const checker *c)
{
    const rt_program_desc *p = c->p;

    if (p->n_dims != p->n_dim_symbols)
        return REFUSE_PROGRAM(c, "%d pieces of dimension code, %d numbers of symbols", (int)p->n_dims,
                              (int)p->n_dim_symbols);
    for (int32_t i = 0; i < p->n_dims; i++)
        if (p->dim_symbols[i] < 0 || p->dim_symbols[i] > RT_MAX_SYMBOLS ||
            !rt_dim_verify(p->dims[i], p->dim_symbols[i], NULL))
            return REFUSE_PROGRAM(c, "dimension code %d is malformed", (int)i);
    for (int32_t i = 0; i < p->n_texts; i++)
        if (!p->texts[i])
            return REFUSE_PROGRAM(c, "text %d is absent", (int)i);
    for (int32_t i = 0; i < p->n_data; i++)
        if (!check_data(c, &p->data[i]))
            return false;
    return true;
}

/* Headers of all functions first: a call is held against the header of its callee. */
bool rt_program_check(const rt_module_desc *m, tec_error *err)
{
    const rt_program_desc *p = &m->program;
    checker c = {.m = m, .p = p, .err = err};
    bool ok;

    if (p->n_types < 0 || p->n_types > RT_MAX_TYPES)
        return REFUSE_PROGRAM(&c, "%d types; expected 0 to %d", (int)p->n_types, RT_MAX_TYPES);
    c.classes = rt_alloc_array(p->n_types, sizeof *c.classes, err);
    ok = c.classes && rt_type_classes(p, c.classes, err) && check_tables(&c);
    for (int32_t i = 0; ok && i < p->n_functions; i++) {
        c.f = &p->functions[i];
        ok = check_header(&c);
    }
    for (int32_t i = 0; ok && i < p->n_functions; i++) {
        c.f = &p->functions[i];
        ok = check_code(&c);
    }
    rt_free(c.classes);
    return ok;
}
