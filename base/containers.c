/* containers.c -- vector, pointer map, dictionary, hash and generator.
 *
 * The tables use open addressing with linear probing and a power-of-two capacity, at most half full; an empty
 * slot has a NULL key. Old storage stays in the arena: growing by doubling wastes no more than what is in
 * use.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* The old array stays in the arena, where it dies with the context. */
void base_push(tec_context *cx, base_vec *vec, const void *item)
{
    if (vec->n == vec->cap) {
        int cap = vec->cap ? 2 * vec->cap : 8;
        void **at = base_array(cx, void *, cap);
        if (vec->n)
            memcpy(at, vec->at, (size_t)vec->n * sizeof *at);
        vec->at = at;
        vec->cap = cap;
    }
    vec->at[vec->n++] = (void *)item;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Maps are many and mostly small, so they grow fast: what a map leaves behind stays in the arena. */
enum { FAST_GROWTH = 1 << 16 };

/* Small maps grow fast, as most maps of a pass end with some hundred entries; from then on they double. */
static void grow_map(tec_context *cx, base_map *map)
{
    int cap = map->cap ? (map->cap < FAST_GROWTH ? 4 : 2) * map->cap : 16;
    struct base_map_slot *slots = base_array(cx, struct base_map_slot, cap);

    for (int i = 0; i < map->cap; i++)
        if (map->slots[i].key)
            *base_map_slot(slots, cap, map->slots[i].key) = map->slots[i];
    map->slots = slots;
    map->cap = cap;
}

/* At most half of the slots are in use, so that a search ends soon. */
void base_map_put(tec_context *cx, base_map *map, const void *key, const void *value)
{
    if (2 * (map->n + 1) > map->cap)
        grow_map(cx, map);
    struct base_map_slot *slot = base_map_slot(map->slots, map->cap, key);
    map->n += !slot->key;
    slot->key = key;
    slot->value = (void *)value;
}

void base_map_clear(base_map *map)
{
    if (map->n)
        memset(map->slots, 0, (size_t)map->cap * sizeof *map->slots);
    map->n = 0;
}

static uint64_t hash_string(const char *s)
{
    return base_hash(s, strlen(s), BASE_HASH_SEED);
}

/* The hash is compared first: keys with equal hashes are almost always equal. */
static struct base_dict_slot *dict_slot(struct base_dict_slot *slots, int cap, const char *key, uint64_t hash)
{
    int i = (int)(hash & (uint64_t)(cap - 1));

    while (slots[i].key && (slots[i].hash != hash || strcmp(slots[i].key, key) != 0))
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

static void grow_dict(tec_context *cx, base_dict *dict)
{
    int cap = dict->cap ? 2 * dict->cap : 16;
    struct base_dict_slot *slots = base_array(cx, struct base_dict_slot, cap);

    for (int i = 0; i < dict->cap; i++)
        if (dict->slots[i].key)
            *dict_slot(slots, cap, dict->slots[i].key, dict->slots[i].hash) = dict->slots[i];
    dict->slots = slots;
    dict->cap = cap;
}

/* `order` holds the keys as they came, for walks that must not depend on hashes. */
void base_dict_put(tec_context *cx, base_dict *dict, const char *key, const void *value)
{
    if (2 * (dict->n + 1) > dict->cap)
        grow_dict(cx, dict);
    uint64_t hash = hash_string(key);
    struct base_dict_slot *slot = dict_slot(dict->slots, dict->cap, key, hash);
    if (!slot->key) {
        base_push(cx, &dict->order, key);
        slot->key = key;
        slot->hash = hash;
        dict->n++;
    }
    slot->value = (void *)value;
}

void *base_dict_get(const base_dict *dict, const char *key)
{
    return dict->cap && key ? dict_slot(dict->slots, dict->cap, key, hash_string(key))->value : NULL;
}

bool base_dict_has(const base_dict *dict, const char *key)
{
    return dict->cap && key && dict_slot(dict->slots, dict->cap, key, hash_string(key))->key;
}

/* Up to eight bytes as a little-endian number, so that the order of bytes in a machine's words plays no
 * part. */
static uint64_t read_word(const unsigned char *p, size_t n)
{
    uint64_t word = 0;

    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

/* Eight bytes at a time, the rest as one short word; the size is part of the seed, so that zeros at the end
 * count. */
uint64_t base_hash(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = mix(seed ^ size);

    for (; size >= 8; size -= 8, p += 8)
        h = mix(h ^ read_word(p, 8)) + 0x9e3779b97f4a7c15u;
    return size ? mix(h ^ read_word(p, size)) : h;
}

uint64_t base_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return mix(*state);
}

int64_t base_random_below(uint64_t *state, int64_t limit)
{
    uint64_t range = (uint64_t)limit;
    /* 2^64 mod limit: so many draws would favour the small results */
    uint64_t uneven = (UINT64_MAX - range + 1) % range;
    uint64_t draw;

    do
        draw = base_random(state);
    while (draw < uneven);
    return (int64_t)(draw % range);
}

double base_random_unit(uint64_t *state)
{
    return (double)(base_random(state) >> 11) * 0x1p-53;
}

/* By halving, since base/ has no mathematical library. */
int64_t base_ratio_middle(int64_t left, int64_t right)
{
    int64_t low = left, high = right;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if ((double)middle * (double)middle <= (double)left * (double)right)
            low = middle;
        else
            high = middle;
    }
    return low;
}
