/* base/base.h -- what every room stands on: the context from inside, arena, text, containers, dtypes.
 *
 *     base_vec names = {0};
 *     base_push(cx, &names, base_format(cx, "%s.%d", stage, 0));
 *     if (!ok)
 *         return base_fail(cx, TEC_INVALID, loc, "cannot split '%s': factor %lld is not positive", name,
 *             factor);
 *
 * Lifetime: all memory comes from the context's arena; nothing is freed alone. A function that has something
 *   else besides (a file, a child process, an object of a library) while it allocates holds it: base/guard.h.
 * Errors: base_fail records the first error and gives NULL, so a constructor can return it directly.
 * Threads: as the context: one thread. A child context may read what its parent holds while the parent is
 * still.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base.h"

#define BASE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define BASE_COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Where something was written: a file and line of the user's, or an ONNX node ("model.onnx: node 'conv1'
 * (Conv)") with line 0. `file` NULL: nowhere. */
typedef struct {
    const char *file;
    int line;
    int column;       /* of the first byte, counted from 1; 0: unknown */
    const char *text; /* the line itself, in memory that lives as long as `file`; NULL: not at hand */
} base_loc;

/* ---- context and errors (context.c) ---- */

/* A scratch context: its own arena and error slot; log and level of the parent. What it builds may point into
 * the parent, never the other way. Freed with tec_context_free, or with its parent; base_reset drops all that
 * it made and keeps its memory. */
tec_context *base_child(tec_context *parent);
/* `to`, an ancestor of the child's parent, holds the child from now on: the child outlives its old parent, in
 * whose memory it may point to nothing. */
void base_hand_up(tec_context *child, tec_context *to);
void base_reset(tec_context *cx);

base_loc base_where(const tec_context *cx); /* what tec_here last said */
void base_set_where(tec_context *cx, base_loc loc);

/* Records an error if it is the first; always NULL. */
void *base_fail(tec_context *cx, tec_status status, base_loc loc, const char *fmt, ...) BASE_PRINTF(4, 5);
/* Adds a note to the error that base_fail just recorded (dropped where that error was not the first). */
void base_note(tec_context *cx, base_loc loc, const char *fmt, ...) BASE_PRINTF(3, 4);
bool base_failed(const tec_context *cx);
/* The text of an error that is complete (as tec_context_error gives one), as this context's error if it is
 * the first; always NULL. Who goes on after an error keeps its text, clears the context and hands all of them
 * in at the end. */
void *base_fail_whole(tec_context *cx, tec_status status, const char *text);
const char *base_cuda(const tec_context *cx); /* what tec_context_set_cuda said; NULL: nothing */
/* Makes the error of another context, notes and all, this one's, if it is the first here. */
void base_adopt(tec_context *cx, const tec_context *from);

/* Our bug: aborts in debug builds (TEC_DEBUG), otherwise an INTERNAL error. */
#define BASE_BUG(cx, ...) base_bug((cx), __FILE__, __LINE__, __VA_ARGS__)
void *base_bug(tec_context *cx, const char *file, int line, const char *fmt, ...) BASE_PRINTF(4, 5);

int base_log_level(const tec_context *cx);
void base_log(tec_context *cx, int level, const char *fmt, ...) BASE_PRINTF(3, 4);
/* A line that is ready, from whichever thread: allocates nothing. */
void base_forward_log(tec_context *cx, int level, const char *text);

/* ---- planted faults (plant.c): what `tec fuzz --plant` must find ----
 *
 *     // a row of base/plants.def; nothing at all in a release build
 *     if (BASE_PLANT_ON(cx, cut_point)) point++;
 */
#ifdef TEC_DEBUG
typedef enum {
    BASE_PLANT_none,
#define BASE_PLANT(name, room, what) BASE_PLANT_##name,
#include "base/plants.def"
} base_plant_id;

typedef struct {
    const char *name, *room, *what; /* room: the primitive or pass that it is in */
} base_plant_row;
extern const base_plant_row base_plants[]; /* row 0: none */
extern const int base_n_plants;

bool base_set_plant(tec_context *cx, const char *name); /* false: there is no such fault */
bool base_planted(const tec_context *cx, base_plant_id fault);
#define BASE_PLANT_ON(cx, name) base_planted((cx), BASE_PLANT_##name)
#else
#define BASE_PLANT_ON(cx, name) false
#endif

/* ---- arena (arena.c) ---- */

/* Zeroed, aligned for any type; a size of 0 is legal. Never NULL: without memory the call gives up
 * (base/guard.h). */
void *base_alloc(tec_context *cx, size_t size);
#define base_new(cx, type) ((type *)base_alloc((cx), sizeof(type)))
#define base_array(cx, type, n) ((type *)base_alloc_array((cx), (size_t)(n), sizeof(type)))
void *base_alloc_array(tec_context *cx, size_t n, size_t size);
void *base_copy(tec_context *cx, const void *data, size_t size);
size_t base_used(const tec_context *cx); /* bytes handed out, for tests and limits */

/* A mark gives back all that was allocated after it; nothing made in between may be used again. */
typedef struct {
    void *chunk;
    size_t used;
    void *large;
    size_t handed_out;
} base_mark;
base_mark base_arena_mark(tec_context *cx);
void base_arena_release(tec_context *cx, base_mark mark);

/* ---- text (text.c) ---- */

char *base_strdup(tec_context *cx, const char *s);
char *base_strndup(tec_context *cx, const char *s, size_t n);
char *base_format(tec_context *cx, const char *fmt, ...) BASE_PRINTF(2, 3);
char *base_vformat(tec_context *cx, const char *fmt, va_list args);
bool base_same(const char *a, const char *b); /* equal, or both NULL */
bool base_starts_with(const char *s, const char *prefix);
bool base_ends_with(const char *s, const char *suffix);
int base_compare_doubles(const void *a, const void *b); /* for qsort, rising */

/* A growing string; `{0}` is empty. `data` is always terminated (or NULL when nothing was added yet). */
typedef struct {
    char *data;
    size_t n, cap;
} base_text;
void base_add(tec_context *cx, base_text *text, const char *s);
void base_addn(tec_context *cx, base_text *text, const char *s, size_t n);
void base_addf(tec_context *cx, base_text *text, const char *fmt, ...) BASE_PRINTF(3, 4);
const char *base_text_str(tec_context *cx, base_text *text); /* "" when empty */

/* "FILE:LINE:COLUMN: ", or as much of it as is known (excerpt.c). */
void base_add_place(tec_context *cx, base_text *text, base_loc loc);
/* A line break, the source's line, and a line with a caret below the column; nothing where these are not
 * known. */
void base_add_excerpt(tec_context *cx, base_text *text, base_loc loc);

/* A whole file; NULL with an IO error. Terminated by a NUL that *size does not count. */
char *base_read_file(tec_context *cx, const char *path, size_t *size);
/* The same without the NUL. A large regular file is mapped as long as the context lives, and *mapped says so:
 * its bytes are not copied. Nobody may shorten the file meanwhile. */
const void *base_view_file(tec_context *cx, const char *path, size_t *size, bool *mapped);
/* Bytes that are zero and stay so: where there are many, one page stands for all. For the context's life. */
const void *base_zeros(tec_context *cx, size_t size);
/* Writes beside the target and renames, so that no partial file is ever seen; false with an IO error. */
/* A device or a pipe: written into, since a file that is renamed to its name would take its place. */
bool base_is_special(const char *path);
bool base_write_file(tec_context *cx, const char *path, const void *data, size_t size);

/* ---- containers (containers.c) ---- */

/* A growing array of pointers; `{0}` is empty. */
typedef struct {
    void **at;
    int n, cap;
} base_vec;
void base_push(tec_context *cx, base_vec *vec, const void *item);

/* Pointer -> pointer, open addressing, insertion only; `{0}` is empty. NULL is no key. */
typedef struct {
    struct base_map_slot *slots;
    int n, cap;
} base_map;
struct base_map_slot {
    const void *key;
    void *value;
};
void base_map_put(tec_context *cx, base_map *map, const void *key, const void *value); /* replaces */
/* empty again, with the memory that it has */
void base_map_clear(base_map *map);

/* The slot of the key, or the empty one where it belongs; the table has room. Here, since most passes do
 * little else. */
static inline struct base_map_slot *base_map_slot(struct base_map_slot *slots, int cap, const void *key)
{
    int i = (int)(((uint64_t)((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15u >> 32) & (uint64_t)(cap - 1));

    while (slots[i].key && slots[i].key != key)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

/* NULL where absent. */
static inline void *base_map_get(const base_map *map, const void *key)
{
    return map->cap && key ? base_map_slot(map->slots, map->cap, key)->value : NULL;
}

static inline bool base_map_has(const base_map *map, const void *key)
{
    return map->cap && key && base_map_slot(map->slots, map->cap, key)->key;
}

/* String -> pointer, the same; keys are borrowed. Iteration in order of insertion: `order` holds the keys. */
typedef struct {
    struct base_dict_slot *slots;
    int n, cap;
    base_vec order;
} base_dict;
struct base_dict_slot {
    const char *key;
    uint64_t hash;
    void *value;
};
void base_dict_put(tec_context *cx, base_dict *dict, const char *key, const void *value);
void *base_dict_get(const base_dict *dict, const char *key);
bool base_dict_has(const base_dict *dict, const char *key);

/* The name of `names` (const char *) that is nearest to `name`, by at most a third of its letters and one;
 * NULL where none is (nearest.c). */
const char *base_nearest(const char *name, const base_vec *names);
/* "; did you mean 'batch'?", or "": the end of a message about a name that is not there. */
const char *base_did_you_mean(tec_context *cx, const char *name, const base_vec *names);

uint64_t base_hash(const void *data, size_t size, uint64_t seed); /* the same on every run and machine */
#define BASE_HASH_SEED 0x9e3779b97f4a7c15u

/* A small repeatable generator (SplitMix64); the state is one number. */
uint64_t base_random(uint64_t *state);
int64_t base_random_below(uint64_t *state, int64_t limit); /* 0..n-1; limit >= 1 */
double base_random_unit(uint64_t *state);                  /* [0, 1) */

/* Up to where extents are nearer to `left` by ratio than to `right`: the largest b below `right` with
 * b * b <= left * right. Of 4 and 8: 5. 1 <= left < right; rounded where the product has over 53 bits. */
int64_t base_ratio_middle(int64_t left, int64_t right);

/* ---- dtypes (dtype.c) ---- */

typedef DLDataType base_dtype;

#define BASE_DTYPE(code, bits, lanes) ((base_dtype){(uint8_t)(code), (uint8_t)(bits), (uint16_t)(lanes)})
#define BASE_BOOL BASE_DTYPE(kDLBool, 8, 1) /* one byte in memory, as DLPack says; one bit in registers */
#define BASE_I8 BASE_DTYPE(kDLInt, 8, 1)
#define BASE_I16 BASE_DTYPE(kDLInt, 16, 1)
#define BASE_I32 BASE_DTYPE(kDLInt, 32, 1)
#define BASE_I64 BASE_DTYPE(kDLInt, 64, 1)
#define BASE_U8 BASE_DTYPE(kDLUInt, 8, 1)
#define BASE_U16 BASE_DTYPE(kDLUInt, 16, 1)
#define BASE_U32 BASE_DTYPE(kDLUInt, 32, 1)
#define BASE_U64 BASE_DTYPE(kDLUInt, 64, 1)
#define BASE_F16 BASE_DTYPE(kDLFloat, 16, 1)
#define BASE_BF16 BASE_DTYPE(kDLBfloat, 16, 1)
#define BASE_F32 BASE_DTYPE(kDLFloat, 32, 1)
#define BASE_F64 BASE_DTYPE(kDLFloat, 64, 1)
#define BASE_HANDLE BASE_DTYPE(kDLOpaqueHandle, 64, 1)

static inline bool base_dtype_same(base_dtype left, base_dtype right)
{
    return left.code == right.code && left.bits == right.bits && left.lanes == right.lanes;
}
static inline base_dtype base_dtype_lanes(base_dtype dtype, int lanes)
{
    return BASE_DTYPE(dtype.code, dtype.bits, lanes);
}
static inline bool base_is_int(base_dtype dtype)
{
    return dtype.code == kDLInt || dtype.code == kDLUInt;
} /* not bool */
static inline bool base_is_signed(base_dtype dtype)
{
    return dtype.code == kDLInt;
}
static inline bool base_is_float(base_dtype dtype)
{
    return dtype.code == kDLFloat || dtype.code == kDLBfloat;
}
static inline bool base_is_bool(base_dtype dtype)
{
    return dtype.code == kDLBool;
}
/* Bytes of one element in an array: bits of all lanes, rounded up. i4 and i1 take a byte each until packed
 * storage. */
static inline int base_dtype_bytes(base_dtype dtype)
{
    return (dtype.bits + 7) / 8 * dtype.lanes;
}

/* "f32", "bf16", "bool", "i8", "u1", "f32x16", "handle". Static or arena text. */
const char *base_dtype_text(tec_context *cx, base_dtype dtype);
bool base_dtype_parse(const char *text, base_dtype *out);
/* Without a context, into the caller's buffer (24 bytes suffice); gives buffer. */
const char *base_dtype_print(base_dtype dtype, char *buffer, size_t size);

/* Half and bfloat16 <-> float, round to nearest even, NaN kept. */
float base_half_to_float(uint16_t half);
uint16_t base_float_to_half(float f);
float base_bfloat_to_float(uint16_t h);
uint16_t base_float_to_bfloat(float f);
uint16_t base_double_to_half(double f); /* one rounding */
uint16_t base_double_to_bfloat(double f);

#endif
