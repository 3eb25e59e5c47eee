/* tracker/table.h -- things by name, in a hash table whose entries lie in the things.
 *
 *     track_table t = {0};
 *     if (!track_table_put(&t, &server->entry, "shelf-3")) ... no memory
 *     track_server *s = TRACK_OWNER(track_table_get(&t, "shelf-3"), track_server, entry);   // NULL stays
 * NULL
 *
 * Lifetime: the table owns copies of the names. Errors: put gives false without memory. Threads: one at a
 * time.
 */
#ifndef TRACKER_TABLE_H
#define TRACKER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct track_entry {
    char *name;
    uint64_t hash;
    struct track_entry *next;            /* of the same bucket */
    struct track_entry *earlier, *later; /* in the order of coming */
} track_entry;

typedef struct {
    track_entry **buckets;
    int n, n_buckets; /* a power of two */
    track_entry *first, *last;
} track_table;

bool track_table_put(track_table *table, track_entry *entry, const char *name); /* the name must be new */
track_entry *track_table_get(const track_table *table, const char *name);       /* NULL: there is none */
void track_table_take(track_table *table, track_entry *entry);                  /* and frees its name */
void track_table_free(track_table *table);                                      /* an empty one */

#endif
