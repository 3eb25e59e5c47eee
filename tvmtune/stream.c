/* tvmtune/stream.c -- see stream.h. The jobs as they were last seen form a list in which each has the number
 * of its last
 * change; a client remembers the number up to which it was told. */
#include "tvmtune/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "tvmtune/routes.h"

enum { REFRESH_MS = 200, QUIET_MS = 15000 };

typedef struct {
    int64_t id, change;
    char *user, *json; /* json NULL: the job was removed */
} seen;

typedef struct client {
    tvm_streams *all;
    struct MHD_Connection *connection;
    char *user;
    bool admin, suspended;
    int64_t told;
    int64_t last; /* when it was sent something, by tvm_clock_ms */
    char *text;   /* to be sent, from `at` */
    size_t at, size;
    struct client *next;
} client;

struct tvm_streams {
    store *db;
    const tvm_ahead *ahead;
    seen *jobs;
    int n;
    int64_t change, stamp, looked; /* looked: by tvm_clock_ms */
    pthread_mutex_t lock;          /* of the clients */
    client *clients;
    bool ending;
};

/* ---- what has changed ---- */

static void drop_seen(seen *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        free(jobs[i].user);
        free(jobs[i].json);
    }
    free(jobs);
}

/* The last change that every client was told of. */
static int64_t told_to_all(tvm_streams *streams)
{
    int64_t least = INT64_MAX;

    pthread_mutex_lock(&streams->lock);
    for (const client *c = streams->clients; c; c = c->next)
        if (c->told && c->told < least)
            least = c->told;
    pthread_mutex_unlock(&streams->lock);
    return least;
}

/* A removed job is remembered as such until every client was told; `told` is what all know. */
static void add_gone(tvm_streams *streams, seen *to, int *n, seen *old, int64_t told)
{
    if (!old->json && old->change <= told)
        return;
    if (old->json) {
        free(old->json);
        old->json = NULL;
        old->change = ++streams->change;
    }
    to[(*n)++] = *old;
    *old = (seen){0};
}

/* A job whose text is the same keeps its number of change, so that clients that know it are not woken for
 * it. */
static bool add_seen(tvm_streams *streams, seen *to, int *count, seen *old, const store_queued *queued,
                     const char *json)
{
    bool same = old && old->json && strcmp(old->json, json) == 0;
    seen now = {.id = queued->id,
                .change = same ? old->change : ++streams->change,
                .user = strdup(queued->user),
                .json = strdup(json)};

    to[(*count)++] = now;
    return now.user && now.json;
}

/* Both lists are in the order of ids. False: no memory; then everything counts as changed. */
static bool merge(tec_context *cx, tvm_streams *streams, const store_queued *const *jobs, int n_jobs)
{
    seen *to = calloc((size_t)(n_jobs + streams->n) + 1, sizeof *to);
    int64_t told = told_to_all(streams);
    int n = 0, i = 0;
    bool ok = to;

    for (int k = 0; ok && k < n_jobs; k++) {
        while (i < streams->n && streams->jobs[i].id < jobs[k]->id)
            add_gone(streams, to, &n, &streams->jobs[i++], told);
        seen *old = i < streams->n && streams->jobs[i].id == jobs[k]->id ? &streams->jobs[i++] : NULL;
        ok = add_seen(streams, to, &n, old, jobs[k], tvm_job_json(cx, jobs[k]));
    }
    while (ok && i < streams->n)
        add_gone(streams, to, &n, &streams->jobs[i++], told);
    drop_seen(streams->jobs, streams->n);
    if (!ok)
        drop_seen(to, to ? n : 0);
    streams->jobs = ok ? to : NULL;
    streams->n = ok ? n : 0;
    return ok;
}

/* The stamp tells cheaply whether anything was written since; only then are all jobs read. */
static void look_in(tec_context *cx, tvm_streams *streams)
{
    int64_t stamp;
    int n;

    BASE_GUARD(cx, );
    if (!store_queue_stamp(cx, streams->db, &stamp) || stamp == streams->stamp)
        return;
    const store_queued *const *jobs = store_queue_all(cx, streams->db, &n);
    if (jobs && merge(cx, streams, jobs, n))
        streams->stamp = stamp;
}

static void look(tvm_streams *streams)
{
    int64_t now = tvm_clock_ms(streams->ahead);

    if (now - streams->looked < REFRESH_MS)
        return;
    streams->looked = now;
    tec_context *cx = tec_context_new();
    if (cx)
        look_in(cx, streams);
    tec_context_free(cx);
}

/* ---- one client ---- */

static bool is_for(const client *peer, const seen *self)
{
    return self->change > peer->told && (peer->admin || strcmp(peer->user, self->user) == 0);
}

/* All that the client was not told, or a comment when it was told nothing for long: so a client that is gone
 * is noticed. */
static void write_news(client *peer)
{
    const tvm_streams *streams = peer->all;
    size_t size = 0;
    FILE *f = open_memstream(&peer->text, &size);

    for (int i = 0; f && i < streams->n; i++)
        if (is_for(peer, &streams->jobs[i]) && streams->jobs[i].json)
            fprintf(f, "event: job\ndata: %s\n\n", streams->jobs[i].json);
        else if (is_for(peer, &streams->jobs[i]) && peer->told)
            fprintf(f, "event: gone\ndata: %lld\n\n", (long long)streams->jobs[i].id);
    if (f && ftell(f) == 0 && tvm_clock_ms(streams->ahead) - peer->last >= QUIET_MS)
        fputs(": still here\n\n", f);
    if (f)
        fclose(f);
    peer->size = f ? size : 0;
    peer->at = 0;
    peer->told = f ? streams->change : peer->told;
    if (peer->size)
        peer->last = tvm_clock_ms(streams->ahead);
}

/* Called by the doors when the client can take more: what is left of the last text, or what has changed
 * since. */
static ssize_t read_news(void *user, uint64_t position, char *to, size_t most)
{
    client *c = user;

    (void)position;
    if (c->at == c->size) {
        free(c->text);
        c->text = NULL;
        look(c->all);
        write_news(c);
    }
    pthread_mutex_lock(&c->all->lock);
    bool ending = c->all->ending;
    if (!ending && c->at == c->size) {
        MHD_suspend_connection(c->connection);
        c->suspended = true;
    }
    pthread_mutex_unlock(&c->all->lock);
    if (ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    size_t n = c->size - c->at < most ? c->size - c->at : most;
    if (n)
        memcpy(to, c->text + c->at, n);
    c->at += n;
    return (ssize_t)n;
}

/* The answer has ended: the client leaves the list. */
static void forget(void *user)
{
    client *c = user;

    pthread_mutex_lock(&c->all->lock);
    for (client **at = &c->all->clients; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    pthread_mutex_unlock(&c->all->lock);
    free(c->text);
    free(c->user);
    free(c);
}

/* The client is in the list before its first event is read, so that a tick finds it. */
struct MHD_Response *tvm_streams_answer(tvm_streams *streams, struct MHD_Connection *connection,
                                        const char *user, bool admin)
{
    client *c = calloc(1, sizeof *c);
    char *name = strdup(user);
    struct MHD_Response *r =
        c && name ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1 << 14, read_news, c, forget) : NULL;

    if (!r) {
        free(name);
        free(c);
        return NULL;
    }
    *c = (client){.all = streams,
                  .connection = connection,
                  .user = name,
                  .admin = admin,
                  .last = tvm_clock_ms(streams->ahead)};
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    pthread_mutex_lock(&streams->lock);
    c->next = streams->clients;
    streams->clients = c;
    pthread_mutex_unlock(&streams->lock);
    return r;
}

/* ---- all of them ---- */

/* Under the lock, since the threads of the server add and remove clients. */
static void wake(tvm_streams *streams, bool ending)
{
    pthread_mutex_lock(&streams->lock);
    streams->ending |= ending;
    for (client *c = streams->clients; c; c = c->next) {
        if (c->suspended)
            MHD_resume_connection(c->connection);
        c->suspended = false;
    }
    pthread_mutex_unlock(&streams->lock);
}

void tvm_streams_tick(tvm_streams *streams)
{
    wake(streams, false);
}

void tvm_streams_end(tvm_streams *streams)
{
    wake(streams, true);
}

tvm_streams *tvm_streams_open(store *db, const tvm_ahead *ahead)
{
    tvm_streams *streams = calloc(1, sizeof *streams);

    if (!streams)
        return NULL;
    streams->db = db;
    streams->ahead = ahead;
    streams->stamp = -1;
    pthread_mutex_init(&streams->lock, NULL);
    return streams;
}

void tvm_streams_close(tvm_streams *streams)
{
    if (!streams)
        return;
    drop_seen(streams->jobs, streams->n);
    pthread_mutex_destroy(&streams->lock);
    free(streams);
}
