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

/* Names stand in addresses and logs, so that they are made of letters that need no escape there. */
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
static int has_user(tec_context *cx, store *db, const char *name)
{
    store_stmt st = store_statement(cx, db, "SELECT 1 FROM users WHERE name = ?");

    store_bind_text(&st, name);
    int got = store_step(&st);
    store_finish(&st);
    return got;
}

/* Adds a user of the daemon; an error where the name is taken. */
static bool insert_user(tec_context *cx, store *db, const store_user *user)
{
    int has = has_user(cx, db, user->name);

    if (has)
        return has > 0 &&
               base_fail(cx, TEC_INVALID, (base_loc){0}, "there is a user '%s' already", user->name);
    store_stmt st =
        store_statement(cx, db, "INSERT INTO users (name, role, token, created) VALUES (?, ?, ?, ?)");
    store_bind_text(&st, user->name);
    store_bind_text(&st, store_role_text(user->role));
    store_bind_text(&st, user->token);
    store_bind_int(&st, (int64_t)time(NULL));
    return store_done(&st);
}

bool store_user_add(tec_context *cx, store *db, const store_user *user)
{
    return check_name(cx, user->name) && store_begin(cx, db) &&
           store_end_write(cx, db, insert_user(cx, db, user));
}

static bool delete_user(tec_context *cx, store *db, const char *name)
{
    int has = has_user(cx, db, name);

    if (has <= 0)
        return has == 0 && base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no user '%s'", name);
    store_stmt st = store_statement(cx, db, "DELETE FROM users WHERE name = ?");
    store_bind_text(&st, name);
    return store_done(&st);
}

bool store_user_remove(tec_context *cx, store *db, const char *name)
{
    return check_name(cx, name) && store_begin(cx, db) && store_end_write(cx, db, delete_user(cx, db, name));
}

static store_user decode(store_stmt *st)
{
    store_user u = {.name = base_strdup(st->cx, store_text(st, 0)), .created = store_int(st, 2)};

    store_role_parse(store_text(st, 1), &u.role);
    return u;
}

/* Nobody has a token that the store does not know: NULL is an answer, not an error. */
const store_user *store_user_find(tec_context *cx, store *db, const char *token)
{
    store_user *user = NULL;

    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = store_statement(cx, db, "SELECT name, role, created FROM users WHERE token = ?");
    store_bind_text(&st, token);
    if (store_step(&st) == 1) {
        user = base_new(cx, store_user);
        *user = decode(&st);
    }
    store_finish(&st);
    return user;
}

/* The first column of a count; -1 with an error. */
static int64_t count(store_stmt *st)
{
    int64_t n = store_step(st) == 1 ? store_int(st, 0) : -1;

    store_finish(st);
    return n;
}

/* The number of users is read first, because arrays of the context do not grow. */
const store_user *store_users(tec_context *cx, store *db, int *count)
{
    int64_t most;
    int got = 0;

    *count = 0;
    if (!store_usable(cx, db) || !store_number(cx, db, "SELECT COUNT(*) FROM users", &most))
        return NULL;
    store_user *all = base_array(cx, store_user, (int)most + 1);
    store_stmt st = store_statement(cx, db, "SELECT name, role, created FROM users ORDER BY name");
    while (*count < most && (got = store_step(&st)) == 1)
        all[(*count)++] = decode(&st);
    store_finish(&st);
    return got < 0 ? NULL : all;
}

/* ---- what they did ---- */

static bool insert_audit(tec_context *cx, store *db, const store_audit *audit)
{
    store_stmt st =
        store_statement(cx, db, "INSERT INTO audit (time, user, action, job, detail) VALUES (?, ?, ?, ?, ?)");

    store_bind_int(&st, (int64_t)time(NULL));
    store_bind_text(&st, audit->user);
    store_bind_text(&st, audit->action);
    store_bind_int(&st, audit->job);
    store_bind_text(&st, audit->detail);
    return store_done(&st);
}

bool store_audit_add(tec_context *cx, store *db, const store_audit *audit)
{
    return store_begin(cx, db) && store_end_write(cx, db, insert_audit(cx, db, audit));
}

/* At most `most` rows, by falling id. */
const store_audit *store_audit_last(tec_context *cx, store *db, int most, int *count)
{
    store_audit *all = base_array(cx, store_audit, most + 1);
    int got = 0;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = store_statement(
        cx, db, "SELECT id, time, user, action, job, detail FROM audit ORDER BY id DESC LIMIT ?");
    store_bind_int(&st, most);
    while (*count < most && (got = store_step(&st)) == 1)
        all[(*count)++] = (store_audit){.id = store_int(&st, 0),
                                        .time = store_int(&st, 1),
                                        .user = base_strdup(cx, store_text(&st, 2)),
                                        .action = base_strdup(cx, store_text(&st, 3)),
                                        .job = store_int(&st, 4),
                                        .detail = base_strdup(cx, store_text(&st, 5))};
    store_finish(&st);
    return got < 0 ? NULL : all;
}

/* ---- quota and retention ---- */

int64_t store_queue_open(tec_context *cx, store *db, const char *user)
{
    if (!store_usable(cx, db))
        return -1;
    store_stmt st = store_statement(
        cx, db, "SELECT COUNT(*) FROM queue WHERE user = ? AND state NOT IN ('done', 'failed')");
    store_bind_text(&st, user);
    return count(&st);
}

#define OVER "(SELECT id FROM queue WHERE state IN ('done', 'failed') AND updated < ?)"

/* Inside a transaction: files and parts first, because they name their job. */
static bool expire(tec_context *cx, store *db, int64_t before, int64_t *number)
{
    static const char *const sql[] = {"DELETE FROM queue_files WHERE job IN " OVER,
                                      "DELETE FROM queue_parts WHERE job IN " OVER,
                                      "DELETE FROM queue WHERE id IN " OVER};
    store_stmt st = store_statement(cx, db, "SELECT COUNT(*) FROM queue WHERE id IN " OVER);

    store_bind_int(&st, before);
    *number = count(&st);
    for (int i = 0; *number > 0 && i < BASE_COUNT(sql); i++) {
        st = store_statement(cx, db, sql[i]);
        store_bind_int(&st, before);
        if (!store_done(&st))
            return false;
    }
    return *number >= 0;
}

bool store_queue_expire(tec_context *cx, store *db, int64_t before, int64_t *n)
{
    return store_begin(cx, db) && store_end_write(cx, db, expire(cx, db, before, n));
}
