/* tests/rpc/keys.c -- the key file: written, read back, revoked, refused. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/keys.h"
#include "rpc/link.h"

static char folder[64], path[128];

static void setup(void)
{
    strcpy(folder, "/tmp/tec-keys-XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.keys", folder);
}

static void teardown(void)
{
    unlink(path);
    rmdir(folder);
}

TestSuite(keys, .init = setup, .fini = teardown);

static void write_text(const char *text, int mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    fchmod(fd, (mode_t)mode);
    close(fd);
}

Test(keys, come_back_as_they_were_added)
{
    rpc_key_row a = {.roles = RPC_ROLE_SUBMIT, .classes = "gpu,board", .note = "laptop of Ann"};
    rpc_key_row b = {.roles = RPC_ROLE_SERVE | RPC_ROLE_ADMINISTER, .classes = "*"};
    rpc_keys k;
    tec_error err = {0};
    struct stat s;

    cr_assert(rpc_keys_add(path, &a, &err) && rpc_keys_add(path, &b, &err), "%s", err.text);
    cr_assert(stat(path, &s) == 0 && (s.st_mode & 0777) == 0600);
    cr_assert(rpc_keys_read(&k, path, &err), "%s", err.text);
    cr_assert_eq(k.n, 2);
    const rpc_key_row *found = rpc_keys_find(&k, a.key.id);
    cr_assert(found && memcmp(found, &a, sizeof a) == 0);
    cr_assert(memcmp(a.key.secret, b.key.secret, RPC_SECRET_BYTES) != 0);
    cr_assert_eq(rpc_keys_find(&k, b.key.id)->roles, b.roles);
    rpc_keys_free(&k);
}

Test(keys, of_a_client_are_the_first_in_force)
{
    rpc_key_row a = {.roles = 1, .classes = "*"}, b = a;
    rpc_keys k;
    tec_error err = {0};

    cr_assert(rpc_keys_add(path, &a, &err) && rpc_keys_add(path, &b, &err));
    cr_assert(rpc_keys_revoke(path, rpc_show_id(a.key.id).text, &err), "%s", err.text);
    cr_assert(rpc_keys_read(&k, path, &err));
    cr_assert_eq(rpc_keys_find(&k, a.key.id)->state, RPC_KEY_REVOKED);
    cr_assert(memcmp(rpc_keys_pick(&k, NULL, &err)->key.id, b.key.id, RPC_ID_BYTES) == 0);
    cr_assert(rpc_keys_pick(&k, rpc_show_id(a.key.id).text, &err));
    cr_assert_null(rpc_keys_pick(&k, "0011223344556677", &err));
    cr_assert(strstr(err.text, "'0011223344556677'"));
    rpc_keys_free(&k);
}

Test(keys, that_are_unknown_cannot_be_revoked)
{
    rpc_key_row a = {.roles = 1, .classes = "*"};
    tec_error err = {0};

    cr_assert(rpc_keys_add(path, &a, &err));
    cr_assert_not(rpc_keys_revoke(path, "00", &err));
    cr_assert(strstr(err.text, "has no key '00'"), "%s", err.text);
    cr_assert(access("a.keys.new", F_OK) != 0);
}

Test(keys, of_a_file_that_others_may_read_are_refused)
{
    rpc_keys k;
    tec_error err = {0};

    write_text("", 0640);
    cr_assert_not(rpc_keys_read(&k, path, &err));
    cr_assert_eq(err.status, TEC_DENIED);
    cr_assert(strstr(err.text, "chmod 600"));
}

Test(keys, in_a_bad_line_are_named_by_its_number_and_not_shown)
{
    static const char *const bad[] = {
        "12 34 submit * active\n",
        "1f2e3d4c5b6a7988 5b0c submit * active\n",
        "1f2e3d4c5b6a7988 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff "
        "submits * active\n",
        "1f2e3d4c5b6a7988 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff "
        "submit * live\n",
        "1f2e3d4c5b6a7988 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff "
        "submit a/b active\n",
    };
    char text[400];

    for (int i = 0; i < BASE_COUNT(bad); i++) {
        rpc_keys k;
        tec_error err = {0};

        snprintf(text, sizeof text, "# a comment\n\n%s", bad[i]);
        write_text(text, 0600);
        cr_assert_not(rpc_keys_read(&k, path, &err), "%s", bad[i]);
        cr_assert(strstr(err.text, "a.keys:3:"), "%s", err.text);
        cr_assert_null(strstr(err.text, "5b0c"));
    }
}

Test(keys, that_stand_twice_are_refused)
{
    static const char row[] =
        "1f2e3d4c5b6a7988 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff submit * active\n";
    char text[400];
    rpc_keys k;
    tec_error err = {0};

    snprintf(text, sizeof text, "%s%s", row, row);
    write_text(text, 0600);
    cr_assert_not(rpc_keys_read(&k, path, &err));
    cr_assert(strstr(err.text, "two keys have the id"));
}

Test(keys, of_loopback_are_made_once)
{
    rpc_keys k;
    tec_error err = {0};

    cr_assert(rpc_keys_prepare(path, &err), "%s", err.text);
    cr_assert(rpc_keys_prepare(path, &err));
    cr_assert(rpc_keys_read(&k, path, &err));
    cr_assert(k.n == 1 && k.rows[0].state == RPC_KEY_LOOPBACK && k.rows[0].roles == RPC_ROLE_ANY);
    rpc_keys_free(&k);
}

Test(keys, have_classes_of_devices)
{
    cr_assert(rpc_class_allowed("*", "gpu"));
    cr_assert(rpc_class_allowed("board,gpu", "gpu"));
    cr_assert_not(rpc_class_allowed("board,gpus", "gpu"));
    cr_assert_not(rpc_class_allowed("board", ""));
}

Test(keys, have_roles)
{
    unsigned roles;

    cr_assert(rpc_parse_roles("submit,administer", &roles) && roles == 5);
    cr_assert_str_eq(rpc_show_roles(roles), "submit,administer");
    cr_assert_not(rpc_parse_roles("submit,", &roles));
    cr_assert_not(rpc_parse_roles("submit,submit", &roles));
    cr_assert_not(rpc_parse_roles("", &roles));
}

Test(keys, have_a_usual_place)
{
    char text[100];

    cr_assert(rpc_keys_default_path("/state", "/users/a", text, sizeof text));
    cr_assert_str_eq(text, "/state/tec/loopback.keys");
    cr_assert(rpc_keys_default_path("", "/users/a", text, sizeof text));
    cr_assert_str_eq(text, "/users/a/.local/state/tec/loopback.keys");
    cr_assert_not(rpc_keys_default_path(NULL, NULL, text, sizeof text));
}
