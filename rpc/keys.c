/* rpc/keys.c -- see keys.h.
 *
 * Secrets leave no copies behind: the text of the file, the rows and the hexadecimal form of a secret are
 * overwritten before their memory is given back. A write never changes the file in place: it makes PATH.new,
 * which then takes the place of PATH, so that a crash leaves either the old file or the new one, and never
 * half of it.
 */
#include "rpc/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rpc/link.h"
#include "runtime/alloc.h"

enum { MOST_BYTES = 1 << 22, LINE = 600 };

static const char users_word[] = "users=";
static const char *const state_names[] = {"active", "loopback", "revoked"};

/* ---- words ---- */

static const struct {
    const char *name;
    unsigned bit;
} role_names[] = {
    {"submit", RPC_ROLE_SUBMIT}, {"serve", RPC_ROLE_SERVE}, {"administer", RPC_ROLE_ADMINISTER}};

/* A role that is given twice, an empty one and a comma at the end are refused: a slip in this file should be
 * seen. */
bool rpc_parse_roles(const char *text, unsigned *roles)
{
    *roles = 0;
    while (*text) {
        size_t n = strcspn(text, ",");
        unsigned bit = 0;

        for (int i = 0; i < BASE_COUNT(role_names); i++)
            if (strlen(role_names[i].name) == n && strncmp(text, role_names[i].name, n) == 0)
                bit = role_names[i].bit;
        if (!bit || (*roles & bit))
            return false;
        *roles |= bit;
        text += n;
        if (*text == ',' && !*++text)
            return false;
    }
    return *roles != 0;
}

/* By the bits of the mask, so that the text needs no memory; the order is the one that rpc_parse_roles
 * accepts. */
const char *rpc_show_roles(unsigned roles)
{
    static const char *const names[] = {"none",
                                        "submit",
                                        "serve",
                                        "submit,serve",
                                        "administer",
                                        "submit,administer",
                                        "serve,administer",
                                        "submit,serve,administer"};

    return names[roles & RPC_ROLE_ANY];
}

/* Compares whole names: "gpu" does not allow "gpu2". */
bool rpc_class_allowed(const char *classes, const char *name)
{
    size_t wanted = strlen(name);

    if (strcmp(classes, "*") == 0)
        return true;
    while (*classes) {
        size_t n = strcspn(classes, ",");

        if (n == wanted && strncmp(classes, name, n) == 0)
            return true;
        classes += n + (classes[n] == ',');
    }
    return false;
}

/* "*", or names with commas between them. */
static bool is_name_list(const char *text)
{
    static const char usual[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,";

    return strcmp(text, "*") == 0 || (*text && text[strspn(text, usual)] == '\0');
}

/* A key without users is its own user, under the name of its id. */
bool rpc_key_user(const rpc_key_row *row, const char *wanted, char *to, size_t size)
{
    rpc_id_text id = rpc_show_id(row->key.id);
    const char *users = row->users[0] ? row->users : id.text;
    bool any = strcmp(users, "*") == 0;

    if (*wanted)
        snprintf(to, size, "%s", wanted);
    else
        snprintf(to, size, "%.*s", (int)strcspn(any ? id.text : users, ","), any ? id.text : users);
    return !*wanted || rpc_class_allowed(users, wanted);
}

static bool is_note(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

/* Relative paths are not taken, since the file would then depend on the folder that a program was started
 * in. */
bool rpc_keys_default_path(const char *state_home, const char *home, char *to, size_t size)
{
    int n = state_home && *state_home == '/' ? snprintf(to, size, "%s/tec/loopback.keys", state_home)
            : home && *home == '/'           ? snprintf(to, size, "%s/.local/state/tec/loopback.keys", home)
                                             : -1;

    return n > 0 && (size_t)n < size;
}

/* ---- reading ---- */

/* Exactly n bytes, without blanks or signs between the digits. */
static bool parse_hex(const char *text, uint8_t *to, size_t n)
{
    size_t got = 0;

    return strlen(text) == 2 * n && sodium_hex2bin(to, n, text, 2 * n, NULL, &got, NULL) == 0 && got == n;
}

/* A line without its newline; false: no row.
 *
 *     1f2e3d4c5b6a7988 5b0c... submit,serve * active laptop of Ann
 *
 * Five words and a note, which is what is left of the line and may have blanks. The line is cut at its
 * blanks. */
static bool parse_row(char *line, rpc_key_row *row)
{
    char *word[5], *at = line;

    *row = (rpc_key_row){0};
    for (int i = 0; i < 5; i++) {
        at += strspn(at, " ");
        word[i] = at;
        at += strcspn(at, " ");
        if (at == word[i])
            return false;
        if (*at)
            *at++ = '\0';
    }
    at += strspn(at, " ");
    if (strncmp(at, users_word, sizeof users_word - 1) == 0) {
        const char *users = at + sizeof users_word - 1;

        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
        at += strspn(at, " ");
        if (!is_name_list(users) || strlen(users) >= RPC_KEY_TEXT)
            return false;
        strcpy(row->users, users);
    }
    int state = 0;
    while (state < BASE_COUNT(state_names) && strcmp(word[4], state_names[state]) != 0)
        state++;
    if (state == BASE_COUNT(state_names) || !parse_hex(word[0], row->key.id, RPC_ID_BYTES) ||
        !parse_hex(word[1], row->key.secret, RPC_SECRET_BYTES) || !rpc_parse_roles(word[2], &row->roles) ||
        !is_name_list(word[3]) || strlen(word[3]) >= RPC_KEY_TEXT || strlen(at) >= RPC_KEY_TEXT ||
        !is_note(at))
        return false;
    row->state = (rpc_key_state)state;
    strcpy(row->classes, word[3]);
    strcpy(row->note, at);
    return true;
}

/* The whole file, terminated; it must be the user's alone. Asks the open file, not the path, for its mode: a
 * file that is exchanged in between is not taken for the other. */
static char *read_private(const char *path, size_t *size, tec_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat s;
    char *text = NULL;

    if (fd < 0)
        return rt_fail_io(err, path, "open", errno), NULL;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size > MOST_BYTES)
        rt_fail(err, TEC_INVALID, "%s: is not a key file", path);
    else if (s.st_mode & 077)
        rt_fail(err, TEC_DENIED, "%s: other users may read or change this key file: run 'chmod 600 %s'", path,
                path);
    else if ((text = rt_alloc((size_t)s.st_size + 1, err))) {
        ssize_t got = read(fd, text, (size_t)s.st_size);

        *size = got > 0 ? (size_t)got : 0;
        text[*size] = '\0';
    }
    close(fd);
    return text;
}

/* Ids are looked up among the rows before, so reading takes n * n steps; with 10,000 rows that is still
 * short. */
static bool parse_rows(rpc_keys *keys, char *text, const char *path, tec_error *err)
{
    int number = 0;

    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        if (line[strspn(line, " ")] == '\0' || line[strspn(line, " ")] == '#')
            continue;
        if (keys->n == RPC_MOST_KEYS)
            return rt_fail(err, TEC_INVALID, "%s: expected at most %d keys", path, RPC_MOST_KEYS);
        if (!parse_row(line, &keys->rows[keys->n]))
            return rt_fail(
                err, TEC_INVALID,
                "%s:%d: expected an id of 16 hexadecimal digits, a secret of 64, roles, classes of "
                "devices, 'active', 'loopback' or 'revoked', 'users=NAME,...' or no such word, and a note",
                path, number);
        if (rpc_keys_find(keys, keys->rows[keys->n].key.id))
            return rt_fail(err, TEC_INVALID, "%s:%d: two keys have the id %s", path, number,
                           rpc_show_id(keys->rows[keys->n].key.id).text);
        keys->n++;
    }
    return true;
}

/* Gives an upper bound for the rows, since comments and empty lines count as well. */
static int count_lines(const char *text)
{
    int n = 1;

    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n < RPC_MOST_KEYS ? n : RPC_MOST_KEYS;
}

/* All or nothing: after an error *keys has no rows, so that a server can go on with the rows that it had. */
bool rpc_keys_read(rpc_keys *keys, const char *path, tec_error *err)
{
    size_t n = 0;
    char *text = read_private(path, &n, err);

    *keys = (rpc_keys){0};
    if (!text)
        return false;
    keys->rows = rt_alloc_array(count_lines(text), sizeof *keys->rows, err);
    bool good = keys->rows && parse_rows(keys, text, path, err);
    sodium_memzero(text, n);
    rt_free(text);
    if (!good)
        rpc_keys_free(keys);
    return good;
}

/* Also right for a zeroed *keys. */
void rpc_keys_free(rpc_keys *keys)
{
    if (keys->rows)
        sodium_memzero(keys->rows, (size_t)keys->n * sizeof *keys->rows);
    rt_free(keys->rows);
    *keys = (rpc_keys){0};
}

/* Ids are no secrets, so a comparison that stops early tells nobody anything. */
const rpc_key_row *rpc_keys_find(const rpc_keys *keys, const uint8_t id[RPC_ID_BYTES])
{
    for (int i = 0; i < keys->n; i++)
        if (memcmp(keys->rows[i].key.id, id, RPC_ID_BYTES) == 0)
            return &keys->rows[i];
    return NULL;
}

/* A key that is named is given even if it is revoked: the server then says so, which is the better
 * message. */
const rpc_key_row *rpc_keys_pick(const rpc_keys *keys, const char *id, tec_error *err)
{
    for (int i = 0; i < keys->n; i++) {
        const rpc_key_row *row = &keys->rows[i];

        if (id ? strcmp(rpc_show_id(row->key.id).text, id) == 0 : row->state != RPC_KEY_REVOKED)
            return row;
    }
    rt_fail(err, TEC_DENIED, id ? "the key file has no key '%s'" : "the key file has no active key", id);
    return NULL;
}

/* ---- writing ---- */

/* Writes what parse_row reads; the blank before the note is left out with the note. */
static void put_row(FILE *to, const rpc_key_row *row)
{
    char secret[2 * RPC_SECRET_BYTES + 1];

    sodium_bin2hex(secret, sizeof secret, row->key.secret, RPC_SECRET_BYTES);
    fprintf(to, "%s %s %s %s %s%s%s%s%s%s\n", rpc_show_id(row->key.id).text, secret,
            rpc_show_roles(row->roles), row->classes, state_names[row->state], row->users[0] ? " " : "",
            row->users[0] ? users_word : "", row->users, row->note[0] ? " " : "", row->note);
    sodium_memzero(secret, sizeof secret);
}

/* The file that will take the place of `path`; only one writer at a time has it. PATH.new is made only if it
 * is not there, which is the lock: a second writer waits up to two seconds for the first. After a crash the
 * file stays and must be removed by hand, because nothing tells a dead writer from a slow one. */
static FILE *begin_change(const char *path, char **temporary, tec_error *err)
{
    size_t size = strlen(path) + 8;
    struct timespec pause = {.tv_nsec = 20000000};
    int fd = -1;

    *temporary = rt_alloc(size, err);
    if (!*temporary)
        return NULL;
    snprintf(*temporary, size, "%s.new", path);
    for (int i = 0; i < 100 && fd < 0; i++) {
        fd = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return rt_fail_io(err, *temporary, "create", errno), NULL;
        if (fd < 0)
            nanosleep(&pause, NULL);
    }
    if (fd < 0)
        return rt_fail(err, TEC_IO, "%s: another program is changing the key file, or died while changing it",
                       *temporary),
               NULL;
    FILE *f = fdopen(fd, "w");
    if (!f) {
        close(fd);
        unlink(*temporary);
    }
    return f ? f : (rt_fail_memory(err, sizeof *f), NULL);
}

/* The data are on the disk before the name is: otherwise a crash of the machine could leave an empty file
 * under the old name. */
static bool end_change(FILE *file, const char *path, const char *temporary, bool good, tec_error *err)
{
    good = good && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int failure = errno;

    if (fclose(file) == 0 && good && rename(temporary, path) == 0)
        return true;
    failure = good ? errno : failure;
    unlink(temporary);
    return rt_fail_io(err, path, "write", failure);
}

/* Changes one row of the file, or adds `fresh`. The file is read after PATH.new has been made, that is, under
 * the lock: two programs that add keys at once both have theirs in the file. With `unless_there`, a file that
 * is there is left alone, and that counts as success: two servers that start at once then use one key. *err
 * may hold a text in this case, which the caller ignores. */
static bool change(const char *path, const char *revoke, const rpc_key_row *fresh, bool unless_there,
                   tec_error *err)
{
    rpc_keys k = {0};
    char *temporary = NULL;
    FILE *f = begin_change(path, &temporary, err);
    bool there = access(path, F_OK) == 0, found = false;
    bool good = f && (!there || (!unless_there && rpc_keys_read(&k, path, err)));

    if (good) {
        fprintf(f, "# id, secret, roles, classes of devices, state, users, note: see 'tec help keys'\n");
        for (int i = 0; i < k.n; i++) {
            rpc_key_row row = k.rows[i];

            if (revoke && strcmp(rpc_show_id(row.key.id).text, revoke) == 0) {
                row.state = RPC_KEY_REVOKED;
                found = true;
            }
            put_row(f, &row);
            sodium_memzero(&row, sizeof row);
        }
        if (fresh)
            put_row(f, fresh);
        if (revoke && !found)
            good = rt_fail(err, TEC_INVALID, "%s: has no key '%s'", path, revoke);
    }
    if (f && good)
        good = end_change(f, path, temporary, !ferror(f), err);
    else if (f) {
        fclose(f);
        unlink(temporary);
    }
    rpc_keys_free(&k);
    rt_free(temporary);
    return good || (f && there && unless_there);
}

/* Says for a person what is wrong, where parse_row only refuses. */
static bool is_row(const rpc_key_row *row, tec_error *err)
{
    if (!is_name_list(row->classes))
        return rt_fail(err, TEC_INVALID,
                       "'%s' is not a list of device classes: expected '*', or names of letters, digits, "
                       "'-', '_' and '.' with commas between them",
                       row->classes);
    if (row->users[0] && !is_name_list(row->users))
        return rt_fail(err, TEC_INVALID,
                       "'%s' is not a list of users: expected '*', or names of letters, digits, '-', '_' and "
                       "'.' with commas between them",
                       row->users);
    return is_note(row->note) || rt_fail(err, TEC_INVALID, "expected one line as the note of a key");
}

/* Ids are drawn as well, not counted: two machines then never give one id away twice. */
static bool make_key(rpc_key *key, tec_error *err)
{
    if (!rpc_seal_ready())
        return rt_fail(err, TEC_IO, "cannot get random numbers from the system");
    rpc_random(key->id, sizeof key->id);
    rpc_random(key->secret, sizeof key->secret);
    return true;
}

bool rpc_keys_add(const char *path, rpc_key_row *row, tec_error *err)
{
    return is_row(row, err) && make_key(&row->key, err) && change(path, NULL, row, false, err);
}

/* The row stays with its new state, so that the log of a server can tell a revoked key from an unknown
 * one. */
bool rpc_keys_revoke(const char *path, const char *id, tec_error *err)
{
    if (access(path, F_OK) != 0)
        return rt_fail_io(err, path, "open", errno);
    return change(path, id, NULL, false, err);
}

/* All folders of a path, those that are missing for the user alone. */
static bool make_folders(const char *path, tec_error *err)
{
    char *copy = rt_strdup(path, err);
    bool good = copy != NULL;

    for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash && good; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            good = rt_fail_io(err, copy, "make the folder", errno);
        *slash = '/';
    }
    rt_free(copy);
    return good;
}

/* The folders are made for the user alone as well, since a folder that others may write to lets them exchange
 * the file. */
bool rpc_keys_prepare(const char *path, tec_error *err)
{
    rpc_key_row row = {.roles = RPC_ROLE_ANY,
                       .state = RPC_KEY_LOOPBACK,
                       .classes = "*",
                       .users = "*",
                       .note = "made at the first start, for this machine alone"};

    if (access(path, F_OK) == 0)
        return true;
    bool good = make_folders(path, err) && make_key(&row.key, err) && change(path, NULL, &row, true, err);
    sodium_memzero(&row, sizeof row);
    return good;
}

/* "127.example.org" is a name, and may lead anywhere. */
bool rpc_is_loopback(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : strlen(address);

    return (strncmp(address, "127.", 4) == 0 && strspn(address, "0123456789.") == n) ||
           strncmp(address, "[::1]", 5) == 0 || strcmp(address, "::1") == 0 ||
           (n == strlen("localhost") && strncmp(address, "localhost", n) == 0);
}
