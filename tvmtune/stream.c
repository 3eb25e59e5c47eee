/* tvmtune/stream.c -- see stream.h. The jobs as they were last seen form a list in which each has the number
 * of its last
 * change; a client remembers the number up to which it was told. */
#include "tvmtune/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "tvmtune/routes.h"

enum { REFRESH_MS = 200, QUIET_SECONDS = 15 };

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
    time_t last;
    char *text; /* to be sent, from `at` */
    size_t at, size;
    struct client *next;
} client;

struct tvm_streams {
    store *db;
    seen *jobs;
    int n;
    int64_t change, stamp, looked; /* looked: milliseconds */
    pthread_mutex_t lock;          /* of the clients */
    client *clients;
    bool ending;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what has changed ---- */

static void drop_seen(seen *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        free(jobs[i].user);
        free(jobs[i].json);
    }
    free(jobs);
}

/* A removed job is remembered as such. */
static void add_gone(tvm_streams *s, seen *to, int *n, seen *old)
{
    if (old->json) {
        free(old->json);
        old->json = NULL;
        old->change = ++s->change;
    }
    to[(*n)++] = *old;
    *old = (seen){0};
}

static bool add_seen(tvm_streams *s, seen *to, int *n, seen *old, const store_queued *j, const char *json)
{
    bool same = old && old->json && strcmp(old->json, json) == 0;
    seen now = {.id = j->id,
                .change = same ? old->change : ++s->change,
                .user = strdup(j->user),
                .json = strdup(json)};

    to[(*n)++] = now;
    return now.user && now.json;
}

/* Both lists are in the order of ids. False: no memory; then everything counts as changed. */
static bool merge(tec_context *cx, tvm_streams *s, const store_queued *const *jobs, int n_jobs)
{
    seen *to = calloc((size_t)(n_jobs + s->n) + 1, sizeof *to);
    int n = 0, i = 0;
    bool ok = to;

    for (int k = 0; ok && k < n_jobs; k++) {
        while (i < s->n && s->jobs[i].id < jobs[k]->id)
            add_gone(s, to, &n, &s->jobs[i++]);
        seen *old = i < s->n && s->jobs[i].id == jobs[k]->id ? &s->jobs[i++] : NULL;
        ok = add_seen(s, to, &n, old, jobs[k], tvm_job_json(cx, jobs[k]));
    }
    while (ok && i < s->n)
        add_gone(s, to, &n, &s->jobs[i++]);
    drop_seen(s->jobs, s->n);
    if (!ok)
        drop_seen(to, to ? n : 0);
    s->jobs = ok ? to : NULL;
    s->n = ok ? n : 0;
    return ok;
}

static void look_in(tec_context *cx, tvm_streams *s)
{
    int64_t stamp;
    int n;

    BASE_GUARD(cx, );
    if (!store_queue_stamp(cx, s->db, &stamp) || stamp == s->stamp)
        return;
    const store_queued *const *jobs = store_queue_all(cx, s->db, &n);
    if (jobs && merge(cx, s, jobs, n))
        s->stamp = stamp;
}

static void look(tvm_streams *s)
{
    int64_t now = now_ms();

    if (now - s->looked < REFRESH_MS)
        return;
    s->looked = now;
    tec_context *cx = tec_context_new();
    if (cx)
        look_in(cx, s);
    tec_context_free(cx);
}

/* ---- one client ---- */

static bool is_for(const client *c, const seen *j)
{
    return j->change > c->told && (c->admin || strcmp(c->user, j->user) == 0);
}

/* All that the client was not told, or a comment when it was told nothing for long: so a client that is gone
 * is noticed. */
static void write_news(client *c)
{
    const tvm_streams *s = c->all;
    size_t size = 0;
    FILE *f = open_memstream(&c->text, &size);

    for (int i = 0; f && i < s->n; i++)
        if (is_for(c, &s->jobs[i]) && s->jobs[i].json)
            fprintf(f, "event: job\ndata: %s\n\n", s->jobs[i].json);
        else if (is_for(c, &s->jobs[i]) && c->told)
            fprintf(f, "event: gone\ndata: %lld\n\n", (long long)s->jobs[i].id);
    if (f && ftell(f) == 0 && time(NULL) - c->last >= QUIET_SECONDS)
        fputs(": still here\n\n", f);
    if (f)
        fclose(f);
    c->size = f ? size : 0;
    c->at = 0;
    c->told = f ? s->change : c->told;
    if (c->size)
        c->last = time(NULL);
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
struct MHD_Response *tvm_streams_answer(tvm_streams *s, struct MHD_Connection *connection, const char *user,
                                        bool admin)
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
    *c = (client){.all = s, .connection = connection, .user = name, .admin = admin, .last = time(NULL)};
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    pthread_mutex_lock(&s->lock);
    c->next = s->clients;
    s->clients = c;
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* ---- all of them ---- */

static void wake(tvm_streams *s, bool ending)
{
    pthread_mutex_lock(&s->lock);
    s->ending |= ending;
    for (client *c = s->clients; c; c = c->next) {
        if (c->suspended)
            MHD_resume_connection(c->connection);
        c->suspended = false;
    }
    pthread_mutex_unlock(&s->lock);
}

void tvm_streams_tick(tvm_streams *s)
{
    wake(s, false);
}

void tvm_streams_end(tvm_streams *s)
{
    wake(s, true);
}

tvm_streams *tvm_streams_open(store *db)
{
    tvm_streams *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->db = db;
    s->stamp = -1;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void tvm_streams_close(tvm_streams *s)
{
    if (!s)
        return;
    drop_seen(s->jobs, s->n);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
