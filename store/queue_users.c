/* store/queue_users.c -- see queue_users.h. */
#include "store/queue_users.h"

#include <string.h>
#include <time.h>

#include "store/sql.h"

static const char *const roles[] = {"user", "admin"};

const char *store_role_text(store_role role)
{
    return (unsigned)role < BASE_COUNT(roles) ? roles[role] : "unknown role";
}

bool store_role_parse(const char *text, store_role *out)
{
    int found = store_find_word(roles, BASE_COUNT(roles), text);

    *out = found < 0 ? STORE_USER : (store_role)found;
    return found >= 0;
}

/* ---- users ---- */

static bool check_name(tec_context *cx, const char *name)
{
    enum { LONGEST = 64 };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = name ? strlen(name) : 0;

    return (n > 0 && n <= LONGEST && strspn(name, letters) == n) ||
           base_fail(cx, TEC_INVALID, (base_loc){0},
                     "expected the name of a user (at most %d letters, digits, '-', '_' and '.'), found '%s'",
                     LONGEST, name ? name : "");
}

/* 1: there is one; 0: there is none; -1: an error. */
static int has_user(tec_context *cx, store *s, const char *name)
{
    store_stmt st = store_statement(cx, s, "SELECT 1 FROM users WHERE name = ?");

    store_bind_text(&st, name);
    int got = store_step(&st);
    store_finish(&st);
    return got;
}

static bool insert_user(tec_context *cx, store *s, const store_user *u)
{
    int has = has_user(cx, s, u->name);

    if (has)
        return has > 0 && base_fail(cx, TEC_INVALID, (base_loc){0}, "there is a user '%s' already", u->name);
    store_stmt st =
        store_statement(cx, s, "INSERT INTO users (name, role, token, created) VALUES (?, ?, ?, ?)");
    store_bind_text(&st, u->name);
    store_bind_text(&st, store_role_text(u->role));
    store_bind_text(&st, u->token);
    store_bind_int(&st, (int64_t)time(NULL));
    return store_done(&st);
}

bool store_user_add(tec_context *cx, store *s, const store_user *u)
{
    return check_name(cx, u->name) && store_begin(cx, s) && store_end_write(cx, s, insert_user(cx, s, u));
}

static bool delete_user(tec_context *cx, store *s, const char *name)
{
    int has = has_user(cx, s, name);

    if (has <= 0)
        return has == 0 && base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no user '%s'", name);
    store_stmt st = store_statement(cx, s, "DELETE FROM users WHERE name = ?");
    store_bind_text(&st, name);
    return store_done(&st);
}

bool store_user_remove(tec_context *cx, store *s, const char *name)
{
    return check_name(cx, name) && store_begin(cx, s) && store_end_write(cx, s, delete_user(cx, s, name));
}

static store_user decode(store_stmt *st)
{
    store_user u = {.name = base_strdup(st->cx, store_text(st, 0)), .created = store_int(st, 2)};

    store_role_parse(store_text(st, 1), &u.role);
    return u;
}

/* Nobody has a token that the store does not know: NULL is an answer, not an error. */
const store_user *store_user_find(tec_context *cx, store *s, const char *token)
{
    store_user *u = NULL;

    if (!store_usable(cx, s))
        return NULL;
    store_stmt st = store_statement(cx, s, "SELECT name, role, created FROM users WHERE token = ?");
    store_bind_text(&st, token);
    if (store_step(&st) == 1) {
        u = base_new(cx, store_user);
        *u = decode(&st);
    }
    store_finish(&st);
    return u;
}

/* The first column of a count; -1 with an error. */
static int64_t count(store_stmt *st)
{
    int64_t n = store_step(st) == 1 ? store_int(st, 0) : -1;

    store_finish(st);
    return n;
}

/* The number of users is read first, because arrays of the context do not grow. */
const store_user *store_users(tec_context *cx, store *s, int *n)
{
    int64_t most;
    int got = 0;

    *n = 0;
    if (!store_usable(cx, s) || !store_number(cx, s, "SELECT COUNT(*) FROM users", &most))
        return NULL;
    store_user *all = base_array(cx, store_user, (int)most + 1);
    store_stmt st = store_statement(cx, s, "SELECT name, role, created FROM users ORDER BY name");
    while (*n < most && (got = store_step(&st)) == 1)
        all[(*n)++] = decode(&st);
    store_finish(&st);
    return got < 0 ? NULL : all;
}

/* ---- what they did ---- */

static bool insert_audit(tec_context *cx, store *s, const store_audit *a)
{
    store_stmt st =
        store_statement(cx, s, "INSERT INTO audit (time, user, action, job, detail) VALUES (?, ?, ?, ?, ?)");

    store_bind_int(&st, (int64_t)time(NULL));
    store_bind_text(&st, a->user);
    store_bind_text(&st, a->action);
    store_bind_int(&st, a->job);
    store_bind_text(&st, a->detail);
    return store_done(&st);
}

bool store_audit_add(tec_context *cx, store *s, const store_audit *a)
{
    return store_begin(cx, s) && store_end_write(cx, s, insert_audit(cx, s, a));
}

/* At most `most` rows, by falling id. */
const store_audit *store_audit_last(tec_context *cx, store *s, int most, int *n)
{
    store_audit *all = base_array(cx, store_audit, most + 1);
    int got = 0;

    *n = 0;
    if (!store_usable(cx, s))
        return NULL;
    store_stmt st = store_statement(
        cx, s, "SELECT id, time, user, action, job, detail FROM audit ORDER BY id DESC LIMIT ?");
    store_bind_int(&st, most);
    while (*n < most && (got = store_step(&st)) == 1)
        all[(*n)++] = (store_audit){.id = store_int(&st, 0),
                                    .time = store_int(&st, 1),
                                    .user = base_strdup(cx, store_text(&st, 2)),
                                    .action = base_strdup(cx, store_text(&st, 3)),
                                    .job = store_int(&st, 4),
                                    .detail = base_strdup(cx, store_text(&st, 5))};
    store_finish(&st);
    return got < 0 ? NULL : all;
}

/* ---- quota and retention ---- */

int64_t store_queue_open(tec_context *cx, store *s, const char *user)
{
    if (!store_usable(cx, s))
        return -1;
    store_stmt st = store_statement(
        cx, s, "SELECT COUNT(*) FROM queue WHERE user = ? AND state NOT IN ('done', 'failed')");
    store_bind_text(&st, user);
    return count(&st);
}

#define OVER "(SELECT id FROM queue WHERE state IN ('done', 'failed') AND updated < ?)"

/* Inside a transaction: files and parts first, because they name their job. */
static bool expire(tec_context *cx, store *s, int64_t before, int64_t *n)
{
    static const char *const sql[] = {"DELETE FROM queue_files WHERE job IN " OVER,
                                      "DELETE FROM queue_parts WHERE job IN " OVER,
                                      "DELETE FROM queue WHERE id IN " OVER};
    store_stmt st = store_statement(cx, s, "SELECT COUNT(*) FROM queue WHERE id IN " OVER);

    store_bind_int(&st, before);
    *n = count(&st);
    for (int i = 0; *n > 0 && i < BASE_COUNT(sql); i++) {
        st = store_statement(cx, s, sql[i]);
        store_bind_int(&st, before);
        if (!store_done(&st))
            return false;
    }
    return *n >= 0;
}

bool store_queue_expire(tec_context *cx, store *s, int64_t before, int64_t *n)
{
    return store_begin(cx, s) && store_end_write(cx, s, expire(cx, s, before, n));
}
