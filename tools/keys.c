/* tools/keys.c -- `tec keys`: makes, lists and revokes the keys that let clients and servers of devices
 * connect. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "rpc/keys.h"
#include "rpc/link.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/key_file.h"

static const char *const states[] = {"active", "loopback", "revoked"};

/* False: the path is too long, or nothing says where the file is. */
bool tool_key_file(const char *given, char *to, size_t size)
{
    if (given)
        return snprintf(to, size, "%s", given) < (int)size;
    return rpc_keys_default_path(getenv("XDG_STATE_HOME"), getenv("HOME"), to, size);
}

/* A table, or one JSON array with the same columns. Secrets are never printed. */
static int list(const char *path, bool json, tec_error *err)
{
    rpc_keys k;

    if (!rpc_keys_read(&k, path, err))
        return tool_fail_run("keys", err);
    cJSON *all = json ? cJSON_CreateArray() : NULL;
    for (int i = 0; i < k.n; i++) {
        const rpc_key_row *r = &k.rows[i];
        const rpc_id_text id = rpc_show_id(r->key.id);

        if (!all) {
            printf("%s  %-8s  %-23s  %-12s  %-12s  %s\n", id.text, states[r->state], rpc_show_roles(r->roles),
                   r->classes, r->users[0] ? r->users : id.text, r->note);
            continue;
        }
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "id", id.text);
        cJSON_AddStringToObject(row, "state", states[r->state]);
        cJSON_AddStringToObject(row, "roles", rpc_show_roles(r->roles));
        cJSON_AddStringToObject(row, "classes", r->classes);
        cJSON_AddStringToObject(row, "users", r->users[0] ? r->users : id.text);
        cJSON_AddStringToObject(row, "note", r->note);
        cJSON_AddItemToArray(all, row);
    }
    if (all) {
        char *text = cJSON_Print(all);

        puts(text);
        cJSON_free(text);
        cJSON_Delete(all);
    }
    rpc_keys_free(&k);
    return TOOL_OK;
}

/* Adds a key with a random secret to the file and prints its id; the secret stays in the file. */
static int make(const char *path, const char *roles, const char *classes, const char *users, const char *note,
                tec_error *err)
{
    rpc_key_row row = {0};

    if (!rpc_parse_roles(roles, &row.roles))
        return tool_misuse("keys", "--roles wants 'submit', 'serve', 'administer' with commas, found '%s'",
                           roles);
    if (strlen(classes) >= sizeof row.classes || strlen(users) >= sizeof row.users ||
        strlen(note) >= sizeof row.note)
        return tool_misuse("keys", "--classes, --users and --note have at most %d characters",
                           RPC_KEY_TEXT - 1);
    strcpy(row.classes, classes);
    strcpy(row.users, users);
    strcpy(row.note, note);
    if (!rpc_keys_add(path, &row, err))
        return tool_fail_run("keys", err);
    printf("%s\n", rpc_show_id(row.key.id).text);
    return TOOL_OK;
}

/* The file is that of --key-file, or the one that the loopback server of this machine uses. */
int tool_keys(int argc, char **argv)
{
    const char *file = NULL, *roles = "submit", *classes = "*", *users = "", *note = "";
    bool json = false;
    tool_list words = {0};
    const tool_option options[] = {
        {"key-file", TOOL_TEXT, &file, "F", "the key file (that of this machine's loopback server)"},
        {"roles", TOOL_TEXT, &roles, "R", "of a new key: submit, serve, administer, with commas (submit)"},
        {"classes", TOOL_TEXT, &classes, "C", "device classes that a new key may use, with commas (*: all)"},
        {"users", TOOL_TEXT, &users, "U",
         "users whose requests for devices a new key may make, with commas (only those under its own id)"},
        {"note", TOOL_TEXT, &note, "TEXT", "whose a new key is"},
        {"json", TOOL_FLAG, &json, NULL, "'list' prints JSON"},
    };
    const tool_usage usage = {
        "keys",
        "(new|list|revoke ID)",
        "new makes a key and prints its id. list prints all keys without their secrets. revoke makes a key "
        "invalid for connections that begin later.",
        options,
        BASE_COUNT(options),
        1,
        2};
    int status = tool_parse(&usage, argc, argv, &words);
    tec_error err = {0};
    char path[4096];

    if (status != TOOL_GO_ON)
        return status;
    if (!tool_key_file(file, path, sizeof path))
        return tool_misuse("keys", "cannot find the key file: --key-file is not given and HOME is not set");
    const char *what = words.at[0];
    if (words.n == 1 && strcmp(what, "list") == 0)
        return list(path, json, &err);
    if (words.n == 1 && strcmp(what, "new") == 0)
        return make(path, roles, classes, users, note, &err);
    if (words.n == 2 && strcmp(what, "revoke") == 0)
        return rpc_keys_revoke(path, words.at[1], &err) ? TOOL_OK : tool_fail_run("keys", &err);
    return tool_misuse("keys", "expected 'new', 'list' or 'revoke ID', found '%s'%s", what,
                       words.n == 2 ? " and another word" : "");
}
