/* targets/llvm/link.c -- objects to one ELF shared object, by running ld.lld-19; and what an object imports.
 *
 * The linker reads the objects as one archive, and writes to its standard output: files in memory, so that nothing is left behind even
 * where this process is killed.
 */
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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

/* The files of one run, all in memory; -1 where it could not be made. */
typedef struct {
    tec_context *cx;
    int archive, output, messages;
} job;

/* Above the numbers that the linker gets them by, so that none is overwritten while they are handed over. */
static int memory_file(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC), above = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 10) : -1;

    close(fd);
    return above;
}

/* An archive without an index: a mark, then each member behind a line of 60 characters, at an even place. */
static bool put_archive(FILE *f, const target_code *const *codes, int n)
{
    fputs("!<arch>\n", f);
    for (int i = 0; i < n; i++) {
        size_t size = codes[i]->size;

        fprintf(f, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", "o/", 0, 0, 0, 0644, size);
        fwrite(codes[i]->bytes, 1, size, f);
        if (size % 2)
            fputc('\n', f);
    }
    return fflush(f) == 0 && !ferror(f);
}

static bool write_archive(const job *j, const target_code *const *codes, int n)
{
    int copy = dup(j->archive);
    FILE *f = copy >= 0 ? fdopen(copy, "w") : NULL;
    bool good = f && put_archive(f, codes, n);

    if (f)
        good = fclose(f) == 0 && good;
    else if (copy >= 0)
        close(copy);
    return good;
}

/* The exit status of the linker; 127: it did not run. */
static int run_linker(const job *j)
{
    const char *const args[] = {linker, "-shared", "--build-id=none", "--hash-style=gnu", "--threads=1", "-z", "noexecstack", "-o", "-", "--whole-archive",
                                "/proc/self/fd/3", NULL};
    posix_spawn_file_actions_t files;
    pid_t child;
    int status;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, j->output, 1);
    posix_spawn_file_actions_adddup2(&files, j->messages, 2);
    posix_spawn_file_actions_adddup2(&files, j->archive, 3);
    int failed = posix_spawnp(&child, linker, &files, NULL, (char *const *)(uintptr_t)args, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        return 127;
    while (waitpid(child, &status, 0) < 0)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* All that was written to a file, terminated; NULL with an error. */
static const char *contents(const job *j, int fd, size_t *size)
{
    off_t end = lseek(fd, 0, SEEK_END);
    char *bytes = end >= 0 ? base_alloc(j->cx, (size_t)end + 1) : NULL;

    for (off_t at = 0; bytes && at < end;) {
        ssize_t n = pread(fd, bytes + at, (size_t)(end - at), at);

        if (n <= 0)
            return base_fail(j->cx, TEC_IO, (base_loc){0}, "cannot read what the linker '%s' wrote", linker);
        at += n;
    }
    *size = (size_t)end;
    return bytes;
}

static const void *link_in(const job *j, const target_code *const *codes, int n, size_t *size)
{
    if (j->archive < 0 || j->output < 0 || j->messages < 0 || !write_archive(j, codes, n))
        return base_fail(j->cx, TEC_IO, (base_loc){0}, "cannot write the objects to files in memory for the linker");
    int status = run_linker(j);
    if (status == 127)
        return base_fail(j->cx, TEC_IO, (base_loc){0}, "cannot run the linker '%s'; is it installed (package lld-19)?", linker);
    if (status == 0)
        return contents(j, j->output, size);
    const char *why = contents(j, j->messages, size);
    return base_fail(j->cx, TEC_INTERNAL, (base_loc){0}, "the linker '%s' failed: %s", linker, why && *size ? why : "it said nothing");
}

const void *llvm_link(tec_context *cx, const target_code *const *codes, int n, size_t *size)
{
    for (int i = 0; i < n; i++)
        if (!codes[i])
            return NULL;
    job j = {cx, memory_file("objects"), memory_file("linked"), memory_file("messages")};
    const void *bytes = link_in(&j, codes, n, size);

    close(j.archive);
    close(j.output);
    close(j.messages);
    return bytes;
}
