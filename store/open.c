/* store/open.c -- opening and closing, for writing where that is possible and for reading where it is not.
 *
 * Durability: a write-ahead log with synchronous=FULL, so that a commit is on the disk before store_add
 * returns. The end of a process at any moment leaves a log that the next opener takes in as far as its last
 * commit.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sql.h"

enum { BUSY_MS = 30000, LEAST_PAGE = 512 };

/* As realpath, in the context; NULL with errno. */
static const char *real_path(tec_context *cx, const char *path)
{
    base_held held;
    char *real = realpath(path, NULL);

    if (!real)
        return NULL;
    base_hold(cx, &held, free, real);
    const char *text = base_strdup(cx, real);
    base_drop(&held);
    return text;
}

/* The path that links lead to. The last part need not exist, the folder must. NULL with an error. */
static const char *resolve(tec_context *cx, const char *path)
{
    const char *real = real_path(cx, path), *folder = NULL;

    if (real)
        return real;
    if (errno == ENOENT && (folder = real_path(cx, dirname(base_strdup(cx, path)))))
        return base_format(cx, "%s/%s", folder, basename(base_strdup(cx, path)));
    return base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot open the record store: %s",
                     strerror(errno));
}

/* Whether the file is there and one that can be opened; false with an error. */
static bool look(tec_context *cx, store *db, const store_options *options, bool *there)
{
    base_loc at = {.file = db->path};
    struct stat st;

    *there = stat(db->real_path, &st) == 0;
    if (!*there && errno != ENOENT)
        return base_fail(cx, TEC_IO, at, "cannot open the record store: %s", strerror(errno));
    if (!*there && (options->read_only || options->must_exist))
        return base_fail(cx, TEC_IO, at, "the record store does not exist");
    if (*there && !S_ISREG(st.st_mode))
        return base_fail(cx, TEC_INVALID, at, "not a record store: %s",
                         S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
    /* SQLite would take such a file for a new one. */
    if (*there && st.st_size > 0 && st.st_size < LEAST_PAGE)
        return base_fail(cx, TEC_INVALID, at,
                         "not a record store: a file of %lld bytes cannot be a SQLite file",
                         (long long)st.st_size);
    return true;
}

/* Why the file may not be written; NULL: it may. The log lies beside it, so the folder counts as well. */
static const char *why_read_only(tec_context *cx, store *db, const store_options *options, bool there)
{
    const char *folder = dirname(base_strdup(cx, db->real_path));

    if (options->read_only)
        return "it was opened for reading only";
    if (there && faccessat(AT_FDCWD, db->real_path, W_OK, AT_EACCESS) != 0)
        return "the file may not be written by this user";
    if (there && faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) != 0)
        return "its folder may not be written by this user";
    return NULL;
}

/* A name for SQLite that promises that nobody writes the file: then it needs neither log nor shared
 * memory. */
static const char *immutable_name(tec_context *cx, const char *path)
{
    base_text uri = {0};

    base_add(cx, &uri, "file:");
    for (; *path; path++) {
        if (strchr("%?#", *path))
            base_addf(cx, &uri, "%%%02X", (unsigned char)*path);
        else
            base_addn(cx, &uri, path, 1);
    }
    base_add(cx, &uri, "?immutable=1");
    return base_text_str(cx, &uri);
}

/* Limits, durability, and the schema. Nothing that a file of unknown origin holds may run as code. */
static bool set_up(tec_context *cx, store *db, const store_options *options)
{
    sqlite3_busy_timeout(db->db, db->busy_ms);
    sqlite3_extended_result_codes(db->db, 1);
    /* The file may come from anywhere: no code in its schema runs. */
    sqlite3_db_config(db->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    if (!store_run(cx, db,
                   "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; "
                   "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY"))
        return false;
    if (!store_settle_file(cx, db))
        return false;
    int64_t page;
    if (options->max_bytes <= 0)
        return true;
    return store_number(cx, db, "PRAGMA page_size", &page) &&
           store_run(
               cx, db,
               base_format(cx, "PRAGMA max_page_count = %lld", (long long)(options->max_bytes / page + 1)));
}

static bool connect_with(tec_context *cx, store *db, const char *name, int flags)
{
    int rc = sqlite3_open_v2(name, &db->db, flags, NULL);

    return rc == SQLITE_OK || store_fail(cx, db, rc);
}

/* A folder that may not be written has no room for the log's shared memory. Without a log the file alone is
 * all there is. */
static bool log_is_empty(tec_context *cx, const store *db)
{
    struct stat st;

    return stat(base_format(cx, "%s-wal", db->real_path), &st) != 0 || st.st_size == 0;
}

/* What the first read of the file says. */
static int probe(tec_context *cx, store *db)
{
    tec_context *trial = base_child(cx);
    int64_t ignored;
    int rc =
        store_number(trial, db, "PRAGMA user_version", &ignored) ? SQLITE_OK : sqlite3_errcode(db->db) & 0xff;

    tec_context_free(trial);
    return rc;
}

/* A reader needs the log's index, which it may not be able to make; with an empty log the file alone is read
 * as unchanging. */
static bool connect_read_only(tec_context *cx, store *db)
{
    if (!connect_with(cx, db, db->real_path, SQLITE_OPEN_READONLY | SQLITE_OPEN_FULLMUTEX))
        return false;
    sqlite3_busy_timeout(db->db, db->busy_ms);
    int rc = probe(cx, db);
    if (rc != SQLITE_CANTOPEN && rc != SQLITE_READONLY)
        return true;
    if (!log_is_empty(cx, db))
        return base_fail(
            cx, TEC_IO, (base_loc){.file = db->path},
            "its log '%s-wal' has changes that only a process with write permission for the folder can "
            "apply: open the store once for writing, or copy both files to another folder",
            db->path);
    sqlite3_close_v2(db->db);
    db->db = NULL;
    return connect_with(cx, db, immutable_name(cx, db->real_path),
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX);
}

static bool connect_to(tec_context *cx, store *db)
{
    if (db->read_only)
        return connect_read_only(cx, db);
    return connect_with(cx, db, db->real_path,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX);
}

/* The whole way to a store in a file: place, permissions, connection, limits, schema. */
bool store_open_file(tec_context *cx, store *db, const store_options *options)
{
    bool there;

    if (!look(cx, db, options, &there) || !store_check_place(cx, db->path, db->real_path))
        return false;
    db->read_only = why_read_only(cx, db, options, there);
    return connect_to(cx, db) && set_up(cx, db, options);
}

static char *duplicate(tec_context *cx, const char *text)
{
    return strcpy(base_calloc(cx, strlen(text) + 1, 1), text);
}

static void close_store(void *s)
{
    store_close(s);
}

/* Who prints the address of a server does not print its password: everything between the user and the '@'. */
static const char *without_password(tec_context *cx, const char *address)
{
    const char *names = strstr(address, "//") + 2, *end = names + strcspn(names, "/?");
    const char *at = memrchr(names, '@', (size_t)(end - names));
    const char *colon = at ? memchr(names, ':', (size_t)(at - names)) : NULL;

    return colon ? base_format(cx, "%.*s%s", (int)(colon - address), address, at) : address;
}

/* The engine, and the paths; false with an error. */
static bool find_engine(tec_context *cx, store *db, const char *path)
{
    bool server = store_is_address(path);
    const char *real = server ? path : resolve(cx, path);

    if (!real)
        return false;
    db->engine = server ? &store_postgres : &store_sqlite;
    db->path = duplicate(cx, server ? without_password(cx, path) : path);
    db->real_path = duplicate(cx, real);
    return true;
}

/* NULL with an error. The store is opened for reading where it cannot be written; store->read_only says why.
 */
store *store_open(tec_context *cx, const char *path, const store_options *options)
{
    store_options o = options ? *options : (store_options){0};
    base_held held;

    if (!path || !*path)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "a record store needs a path");
    store *s = base_calloc(cx, 1, sizeof *s);
    base_hold(cx, &held, close_store, s);
    s->pid = getpid();
    s->busy_ms = o.busy_ms > 0 ? o.busy_ms : BUSY_MS;
    if (find_engine(cx, s, path) && s->engine->open(cx, s, &o)) {
        base_keep(&held);
        return s;
    }
    base_drop(&held);
    return NULL;
}

void store_close(store *db)
{
    if (!db)
        return;
    /* In a child of fork the connection is still the parent's: closing it there could take its log away. */
    if (db->pid == getpid() && db->engine)
        db->engine->close(db);
    free(db->path);
    free(db->real_path);
    free(db);
}

bool store_is_read_only(const store *db)
{
    return db && db->read_only;
}

const char *store_path(const store *db)
{
    return db->path;
}

bool store_is_server(const store *db)
{
    return db && db->engine == &store_postgres;
}

bool store_is_away(const store *db)
{
    return db && db->away;
}

/* Nothing is taken where processes exclude each other by files beside the store. */
bool store_lock(tec_context *cx, store *db, const char *name)
{
    return store_usable(cx, db) && (!db->engine->lock || db->engine->lock(cx, db, name));
}
