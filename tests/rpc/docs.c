/* tests/rpc/docs.c -- the tables of docs/rpc-messages.md are those of rpc/messages.def. TEC_UPDATE=1 writes
 * them anew. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/message.h"

static const char page[] = TEC_SOURCE_DIR "/docs/rpc-messages.md";
static const char begin[] = "<!-- messages -->\n", end[] = "<!-- end -->\n";

static void print_fields(FILE *to, const rpc_record *r)
{
    static const char *const types[] = {"i64", "f64", "text", "bytes", "i64s", "list of"};

    fprintf(to, "\n| field | type | since | |\n| --- | --- | --- | --- |\n");
    for (int i = 0; i < r->n_fields; i++) {
        const rpc_field *f = &r->fields[i];

        fprintf(to, "| `%s` | %s%s%s%s | %d | %s |\n", f->name, types[f->type], f->record ? " `" : "",
                f->record ? f->record->name : "", f->record ? "`" : "", f->since, f->what);
    }
}

/* Records are shown below the first message that lists them. */
static void print_records(FILE *to, const rpc_message *m)
{
    for (int i = 0; i < m->record->n_fields; i++)
        if (m->record->fields[i].record) {
            fprintf(to, "\nRecord `%s`:\n", m->record->fields[i].record->name);
            print_fields(to, m->record->fields[i].record);
        }
}

static void print_message(FILE *to, const rpc_message *m)
{
    static const char *const senders[] = {"", "client", "server", "either side"};
    char roles[64];

    snprintf(roles, sizeof roles, "%s%s%s", m->roles & RPC_ROLE_SUBMIT ? "submit " : "",
             m->roles & RPC_ROLE_SERVE ? "serve " : "", m->roles & RPC_ROLE_ADMINISTER ? "administer " : "");
    fprintf(to, "\n## `%s` (%d)\n\nFrom %s, on %s; key: %s; at most %zu bytes:\n%s.\n", m->record->name,
            (int)m->kind, senders[m->sender], m->place == RPC_ON_SESSION ? "a session's stream" : "stream 0",
            m->roles == RPC_ROLE_ANY ? "any" : strtok(roles, " "), m->limit, m->what);
    print_fields(to, m->record);
    print_records(to, m);
}

static char *print_all(void)
{
    char *text;
    size_t n;
    FILE *to = open_memstream(&text, &n);

    for (int i = 0; i < rpc_n_messages; i++)
        print_message(to, &rpc_messages[i]);
    fprintf(to, "\n");
    fclose(to);
    return text;
}

static char *read_page(void)
{
    char *text = calloc(1, 1 << 20);
    FILE *f = fopen(page, "r");

    cr_assert(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

Test(rpc_docs, has_the_tables_of_messages)
{
    char *text = read_page(), *made = print_all();
    char *from = strstr(text, begin), *to = strstr(text, end);

    cr_assert(from && to && from < to);
    from += strlen(begin);
    if (getenv("TEC_UPDATE")) {
        FILE *f = fopen(page, "w");

        cr_assert(f);
        fprintf(f, "%.*s%s%s", (int)(from - text), text, made, to);
        cr_assert_eq(fclose(f), 0);
    } else {
        cr_assert(
            (size_t)(to - from) == strlen(made) && strncmp(from, made, strlen(made)) == 0,
            "docs/rpc-messages.md is out of date: run TEC_UPDATE=1 build/debug/tests/test_rpc_docs and read "
            "what changed");
    }
    free(text);
    free(made);
}
