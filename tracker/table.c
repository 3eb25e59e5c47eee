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
static track_entry **bucket_of(const track_table *table, uint64_t hash)
{
    return &table->buckets[hash & (uint64_t)(table->n_buckets - 1)];
}

/* Twice as many buckets; entries stay where they are and are only linked anew. */
static bool grow(track_table *table)
{
    track_table wide = {.n_buckets = table->n_buckets ? 2 * table->n_buckets : 16};

    wide.buckets = rt_alloc_array(wide.n_buckets, sizeof(track_entry *), NULL);
    if (!wide.buckets)
        return false;
    for (track_entry *entry = table->first; entry; entry = entry->later) {
        track_entry **b = bucket_of(&wide, entry->hash);

        entry->next = *b;
        *b = entry;
    }
    rt_free(table->buckets);
    table->buckets = wide.buckets;
    table->n_buckets = wide.n_buckets;
    return true;
}

/* The entry also joins the list of all, at its end: a walk over the table follows the order of arrival. */
bool track_table_put(track_table *table, track_entry *entry, const char *name)
{
    if (table->n >= table->n_buckets && !grow(table))
        return false;
    entry->name = rt_strdup(name, NULL);
    if (!entry->name)
        return false;
    entry->hash = hash_of(name);
    track_entry **b = bucket_of(table, entry->hash);
    entry->next = *b;
    *b = entry;
    entry->earlier = table->last;
    entry->later = NULL;
    *(table->last ? &table->last->later : &table->first) = entry;
    table->last = entry;
    table->n++;
    return true;
}

/* Hashes are compared first, so names of one bucket are rarely compared. */
track_entry *track_table_get(const track_table *table, const char *name)
{
    uint64_t hash = hash_of(name);

    for (track_entry *e = table->n ? *bucket_of(table, hash) : NULL; e; e = e->next)
        if (e->hash == hash && strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

/* The entry must be in the table. */
void track_table_take(track_table *table, track_entry *entry)
{
    track_entry **at = bucket_of(table, entry->hash);

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    *(entry->earlier ? &entry->earlier->later : &table->first) = entry->later;
    *(entry->later ? &entry->later->earlier : &table->last) = entry->earlier;
    table->n--;
    rt_free(entry->name);
    entry->name = NULL;
}

/* The entries are the caller's, who has taken them out or frees them. */
void track_table_free(track_table *table)
{
    rt_free(table->buckets);
    *table = (track_table){0};
}
