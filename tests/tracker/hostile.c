/* tests/tracker/hostile.c -- random messages with valid keys: the tracker answers or closes, and its books
 * stay in order. TEC_MUTATIONS sets how many; TEC_TRACKER_SEED the first seed.
 *
 * A message is past the first check if it is whole, the key of its sender may send it, and it reached a
 * connection that nothing before it had ended. */
#include <stdlib.h>

#include "base/base.h"
#include "tests/tracker/kit.h"

enum { SIDES = 4, USUAL_MESSAGES = 20000, AT_ONCE = 20 };

typedef struct {
    kit k;
    kit_side sides[SIDES];
    uint64_t seed;
    int64_t sent, past, closed, granted;
    unsigned roles[SIDES]; /* of the keys of the sides */
} storm;

static int64_t below(storm *s, int64_t n)
{
    return base_random_below(&s->seed, n);
}

/* ---- bodies from the table of messages ---- */

/* Mostly a value that makes sense in the field, sometimes one that does not anywhere. */
static int64_t draw_number(storm *s, const char *field)
{
    static const int64_t odd[] = {0, -1, 1000, 20000, 3600001, INT64_MAX, INT64_MIN, 101, 1LL << 32};

    if (below(s, 10) == 0)
        return odd[below(s, BASE_COUNT(odd))];
    if (strcmp(field, "lease") == 0)
        return s->granted - below(s, 8);
    if (strcmp(field, "term_ms") == 0)
        return below(s, 2) * 2000;
    return strcmp(field, "on") == 0 ? below(s, 4) == 0 : below(s, 40);
}

static const char *draw_text(storm *s, const char *field)
{
    static const struct {
        const char *field, *values[4];
    } usual[] = {{"class", {"rpi4", "rpi4", "rpi4", "rpi5"}}, {"fingerprint", {"f", "f", "f", ""}},
                 {"name", {"a", "b", "c", "cpu:0"}},          {"device", {"a/cpu:0", "b/a", "c/b", "a/b"}},
                 {"prefer", {"", "a/cpu:0", "b/a", "none"}},  {"reason", {"", "", "", "hot"}}};
    static const char *const odd[] = {"x\n", "/", "a/", "[::1]:99999", "%s%n", "\x7f", ":0", ""};

    if (below(s, 30) == 0)
        return odd[below(s, BASE_COUNT(odd))];
    if (strcmp(field, "address") == 0)
        return kit_serve(&s->k);
    for (size_t i = 0; i < BASE_COUNT(usual); i++)
        if (strcmp(field, usual[i].field) == 0)
            return usual[i].values[below(s, 4)];
    return below(s, 2) ? "ann" : "bob";
}

static void put_record(storm *s, rt_bytes *b, const rpc_record *r)
{
    for (int i = 0; i < r->n_fields; i++) {
        const rpc_field *f = &r->fields[i];
        int64_t n = below(s, 4);

        switch (f->type) {
        case RPC_TYPE_i64: worker_put_i64(b, draw_number(s, f->name)); break;
        case RPC_TYPE_f64: worker_put_f64(b, (double)draw_number(s, f->name)); break;
        case RPC_TYPE_text: worker_put_text(b, draw_text(s, f->name)); break;
        case RPC_TYPE_bytes: worker_put_bytes(b, "xyz", (size_t)n); break;
        case RPC_TYPE_i64s:
        case RPC_TYPE_rows:
            worker_put_i64(b, n);
            for (int64_t k = 0; k < n; k++)
                if (f->record)
                    put_record(s, b, f->record);
                else
                    worker_put_i64(b, draw_number(s, f->name));
            break;
        }
    }
}

static bool is_whole(const rpc_link *l, const rpc_message *m, const rt_bytes *body)
{
    rt_arena arena = {0};
    rpc_any any;
    bool whole = rpc_decode(&any, (uint32_t)m->kind, body->data, body->n, rpc_link_version(l), &arena);

    rt_arena_free(&arena);
    return whole;
}

/* A body of the message; one of fifty is damaged. False: the tracker ends the connection for it. */
static bool send_one(storm *s, const kit_side *side, bool counts)
{
    rpc_link *l = rpc_conn_link(side->conn);
    rt_bytes body = {0};
    const rpc_message *m;

    do
        m = &rpc_messages[below(s, rpc_n_messages)];
    while (m->kind < 100 || !(m->sender & RPC_FROM_CLIENT) ||
           (m->kind == RPC_KIND_arrive && below(s, 20))); /* which ends the connection: nobody asked for it */
    put_record(s, &body, m->record);
    if (body.n && below(s, 50) == 0)
        ((uint8_t *)body.data)[below(s, (int64_t)body.n)] ^= (uint8_t)(1 + below(s, 255));
    if (body.n && below(s, 100) == 0)
        body.n = (size_t)below(s, (int64_t)body.n);
    bool whole = is_whole(l, m, &body);
    rpc_link_send_body(l, 0, m->kind, body.data, body.n);
    rpc_conn_flush(side->conn);
    rt_bytes_free(&body);
    s->sent++;
    s->past += counts && whole && (m->roles & s->roles[side - s->sides]);
    return whole && m->kind != RPC_KIND_arrive;
}

/* ---- books ---- */

static void check_class(const track_pool *p, const track_class *c, int64_t *leased)
{
    int64_t n_free = 0, n_leased = 0, n = 0;

    for (const track_entry *e = track_devices(p)->first; e; e = e->later) {
        const track_device *d = TRACK_OWNER(e, track_device, entry);

        if (d->class != c)
            continue;
        n++;
        n_leased += d->lease != NULL;
        n_free += d->is_free;
        cr_assert_eq(d->is_free, track_device_status(d) == TRACK_FREE, "%s", e->name);
        cr_assert(!d->lease || d->lease->device == d);
    }
    cr_assert(n == c->n_devices && n_leased == c->n_leased && n_free == c->n_free);
    cr_assert_eq(c->root.at_work, n_leased);
    cr_assert(!n_free || !c->root.waiting, "%lld are free while %lld wait", (long long)n_free,
              (long long)c->root.waiting);
    *leased += n_leased;
}

static int64_t check_books(storm *s)
{
    const track_pool *p = track_service_pool(s->k.service);
    int64_t leased = 0, granted = 0;

    for (const track_entry *e = track_classes(p)->first; e; e = e->later)
        check_class(p, TRACK_OWNER(e, track_class, entry), &leased);
    for (const track_entry *e = track_classes(p)->first; e; e = e->later)
        granted += TRACK_OWNER(e, track_class, entry)->granted;
    cr_assert_eq(leased, track_leases(p)->n);
    return granted;
}

Test(tracker_hostile, keeps_its_books_under_random_messages)
{
    const char *given = getenv("TEC_TRACKER_SEED"), *many = getenv("TEC_MUTATIONS");
    int64_t messages = many ? strtoll(many, NULL, 10) : USUAL_MESSAGES;
    storm *s = calloc(1, sizeof *s);
    int64_t answers = 0;

    s->seed = given ? strtoull(given, NULL, 10) : 1;
    cr_log_info("seed %llu", (unsigned long long)s->seed);
    kit_open(&s->k, (track_service_options){.term_ms = 1000});
    while (s->sent < messages) {
        kit_side *side = &s->sides[below(s, SIDES)];

        if (!side->conn) {
            s->closed += side->closed;
            int key = below(s, 4) == 0;
            s->roles[side - s->sides] = key ? RPC_ROLE_SUBMIT : RPC_ROLE_ANY;
            kit_join(&s->k, side, key);
        }
        bool counts = true;
        for (int i = 0; i < AT_ONCE; i++)
            counts = send_one(s, side, counts) && counts;
        /* The answer to a last, whole question: all before it was taken, or the connection is closed. */
        int before = side->n[RPC_KIND_state];
        rpc_conn_send(side->conn, 0, RPC_KIND_inquire, &(rpc_inquire){0});
        while (!side->closed && side->n[RPC_KIND_state] == before)
            rpc_loop_run(s->k.loop);
        answers += !side->closed;
        s->granted = check_books(s);
    }
    printf("messages to a tracker: %lld of %lld inputs past the first check (%.1f %%); %lld answers, %lld "
           "connections closed, %lld grants\n",
           (long long)s->past, (long long)s->sent, 100.0 * (double)s->past / (double)s->sent,
           (long long)answers, (long long)s->closed, (long long)s->granted);
    fflush(stdout);
    cr_assert_geq(10 * s->past, 3 * s->sent);
    cr_assert(answers > messages / AT_ONCE / 4 && s->closed > 0 && s->granted > messages / 500);
    kit_close(&s->k);
    free(s);
}
