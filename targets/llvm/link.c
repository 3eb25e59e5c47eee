/* targets/llvm/link.c -- objects to one ELF shared object, by running ld.lld-19; and what an object imports.
 *
 * The linker reads and writes files, so it works in a directory of its own under /tmp, which is removed whatever happens.
 * Nothing of the directory's name gets into the result.
 */
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "targets/llvm/gen.h"

static const char linker[] = "ld.lld-19";

/* ---- imports ---- */

static bool allowed(const char *name)
{
    return !*name || !strcmp(name, "memcpy") || !strcmp(name, "memset") || !strcmp(name, "memmove");
}

static bool check_symbols(tec_context *cx, const char *object, const Elf64_Shdr *table, const Elf64_Shdr *names)
{
    const Elf64_Sym *symbol = (const Elf64_Sym *)(object + table->sh_offset);
    base_text list = {0};
    for (size_t i = 0; i < table->sh_size / sizeof *symbol; i++) {
        const char *name = object + names->sh_offset + symbol[i].st_name;
        if (symbol[i].st_shndx == SHN_UNDEF && !allowed(name))
            base_addf(cx, &list, "%s%s", list.n ? ", " : "", name);
    }
    if (!list.n)
        return true;
    base_fail(cx, TEC_INTERNAL, (base_loc){0}, "generated code calls functions that kernels must not import: %s", list.data);
    return false;
}

bool llvm_check_imports(tec_context *cx, const void *object, size_t size)
{
    const Elf64_Ehdr *header = object;
    if (size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG)) {
        BASE_BUG(cx, "LLVM gave an object that is not ELF");
        return false;
    }
    const Elf64_Shdr *section = (const Elf64_Shdr *)((const char *)object + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++)
        if (section[i].sh_type == SHT_SYMTAB && !check_symbols(cx, object, &section[i], &section[section[i].sh_link]))
            return false;
    return true;
}

/* ---- linking ---- */

/* The files of one run: objects 0 .. n-1, the result, the linker's messages. */
typedef struct {
    tec_context *cx;
    char dir[32];
    int n;
} job;

static const char *object_path(const job *j, int i)
{
    return base_format(j->cx, "%s/%d.o", j->dir, i);
}

static const char *output_path(const job *j)
{
    return base_format(j->cx, "%s/out.so", j->dir);
}

static const char *message_path(const job *j)
{
    return base_format(j->cx, "%s/messages", j->dir);
}

static void remove_all(const job *j)
{
    for (int i = 0; i < j->n; i++)
        unlink(object_path(j, i));
    unlink(output_path(j));
    unlink(message_path(j));
    rmdir(j->dir);
}

static bool write_objects(const job *j, const llvm_code *const *codes)
{
    for (int i = 0; i < j->n; i++)
        if (!base_write_file(j->cx, object_path(j, i), codes[i]->object, codes[i]->object_size))
            return false;
    return true;
}

static int spawn_linker(const job *j)
{
    base_vec args = {0};
    const char *const fixed[] = {linker,        "-shared", "--build-id=none", "--hash-style=gnu",
                                 "--threads=1", "-z",      "noexecstack",     "-o"};
    for (int i = 0; i < BASE_COUNT(fixed); i++)
        base_push(j->cx, &args, fixed[i]);
    base_push(j->cx, &args, output_path(j));
    for (int i = 0; i < j->n; i++)
        base_push(j->cx, &args, object_path(j, i));
    base_push(j->cx, &args, NULL);
    posix_spawn_file_actions_t files;
    pid_t child;
    int status;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, message_path(j), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int failed = posix_spawnp(&child, linker, &files, NULL, (char *const *)args.at, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        return 127;
    while (waitpid(child, &status, 0) < 0)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static const void *link_in(const job *j, const llvm_code *const *codes, size_t *size)
{
    if (!write_objects(j, codes))
        return NULL;
    int status = spawn_linker(j);
    if (status == 127)
        return base_fail(j->cx, TEC_IO, (base_loc){0}, "cannot run the linker '%s'; is it installed (package lld-19)?", linker);
    if (status) {
        size_t n;
        const char *why = access(message_path(j), R_OK) == 0 ? base_read_file(j->cx, message_path(j), &n) : NULL;
        return base_fail(j->cx, TEC_INTERNAL, (base_loc){0}, "the linker '%s' failed: %s", linker, why ? why : "it said nothing");
    }
    return base_read_file(j->cx, output_path(j), size);
}

const void *llvm_link(tec_context *cx, const llvm_code *const *codes, int n, size_t *size)
{
    job j = {.cx = cx, .dir = "/tmp/tec-XXXXXX", .n = n};
    for (int i = 0; i < n; i++)
        if (!codes[i])
            return NULL;
    if (!mkdtemp(j.dir))
        return base_fail(cx, TEC_IO, (base_loc){0}, "cannot make a directory under /tmp to link in");
    const void *bytes = link_in(&j, codes, size);
    remove_all(&j);
    return bytes;
}
