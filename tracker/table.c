/* tracker/table.c -- see table.h.
 *
 * The number of buckets is a power of two, at least the number of entries. Entries are parts of the caller's
 * structs; the table owns only their names.
 */
#include "tracker/table.h"

#include <string.h>

#include "base/base.h"
#include "runtime/alloc.h"

static uint64_t hash_of(const char *name)
{
    return base_hash(name, strlen(name), 0);
}

/* Only for a table that has buckets. */
static track_entry **bucket_of(const track_table *t, uint64_t hash)
{
    return &t->buckets[hash & (uint64_t)(t->n_buckets - 1)];
}

/* Twice as many buckets; entries stay where they are and are only linked anew. */
static bool grow(track_table *t)
{
    track_table wide = {.n_buckets = t->n_buckets ? 2 * t->n_buckets : 16};

    wide.buckets = rt_alloc_array(wide.n_buckets, sizeof(track_entry *), NULL);
    if (!wide.buckets)
        return false;
    for (track_entry *e = t->first; e; e = e->later) {
        track_entry **b = bucket_of(&wide, e->hash);

        e->next = *b;
        *b = e;
    }
    rt_free(t->buckets);
    t->buckets = wide.buckets;
    t->n_buckets = wide.n_buckets;
    return true;
}

/* The entry also joins the list of all, at its end: whoever walks the table sees the order of coming. */
bool track_table_put(track_table *t, track_entry *e, const char *name)
{
    if (t->n >= t->n_buckets && !grow(t))
        return false;
    e->name = rt_strdup(name, NULL);
    if (!e->name)
        return false;
    e->hash = hash_of(name);
    track_entry **b = bucket_of(t, e->hash);
    e->next = *b;
    *b = e;
    e->earlier = t->last;
    e->later = NULL;
    *(t->last ? &t->last->later : &t->first) = e;
    t->last = e;
    t->n++;
    return true;
}

/* Hashes are compared first, so names of one bucket are rarely compared. */
track_entry *track_table_get(const track_table *t, const char *name)
{
    uint64_t hash = hash_of(name);

    for (track_entry *e = t->n ? *bucket_of(t, hash) : NULL; e; e = e->next)
        if (e->hash == hash && strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

/* The entry must be in the table. */
void track_table_take(track_table *t, track_entry *e)
{
    track_entry **at = bucket_of(t, e->hash);

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    *(e->earlier ? &e->earlier->later : &t->first) = e->later;
    *(e->later ? &e->later->earlier : &t->last) = e->earlier;
    t->n--;
    rt_free(e->name);
    e->name = NULL;
}

/* The entries are the caller's, who has taken them out or frees them. */
void track_table_free(track_table *t)
{
    rt_free(t->buckets);
    *t = (track_table){0};
}
