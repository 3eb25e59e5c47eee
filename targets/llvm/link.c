/* targets/llvm/link.c -- objects to one ELF shared object, by running ld.lld-19; and what an object imports.
 * Most objects that stand alone need no linker (shared.c).
 *
 * The linker reads the objects as one archive, and writes to its standard output: files in memory, so that
 * nothing is left behind even where this process is killed.
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

/* What an object imports, beside what every kernel may. */
typedef struct {
    tec_context *cx;
    const char *known; /* how the architecture's helpers begin; NULL: there are none */
    base_text helpers, others;
} imports;

static void add_import(imports *all, const char *name)
{
    bool helper = all->known && base_starts_with(name, all->known);
    base_text *list = helper ? &all->helpers : &all->others;
    if (!allowed(name))
        base_addf(all->cx, list, "%s%s", list->n ? ", " : "", name);
}

/* A section header, of a file of 32 or of 64 bits. */
static Elf64_Shdr section_at(const char *object, unsigned i)
{
    const Elf64_Ehdr *wide = (const void *)object;
    const Elf32_Ehdr *narrow = (const void *)object;
    if (wide->e_ident[EI_CLASS] != ELFCLASS32)
        return ((const Elf64_Shdr *)(const void *)(object + wide->e_shoff))[i];
    const Elf32_Shdr *s = (const Elf32_Shdr *)(const void *)(object + narrow->e_shoff) + i;
    return (Elf64_Shdr){
        .sh_type = s->sh_type, .sh_offset = s->sh_offset, .sh_size = s->sh_size, .sh_link = s->sh_link};
}

static void add_undefined(imports *all, const char *object, const Elf64_Shdr *table)
{
    bool narrow = object[EI_CLASS] == ELFCLASS32;
    const char *names = object + section_at(object, table->sh_link).sh_offset,
               *at = object + table->sh_offset;
    size_t step = narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
    for (const char *end = at + table->sh_size; at + step <= end; at += step) {
        const Elf64_Sym *s = (const void *)at;
        const Elf32_Sym *t = (const void *)at;
        if ((narrow ? t->st_shndx : s->st_shndx) == SHN_UNDEF)
            add_import(all, names + (narrow ? t->st_name : s->st_name));
    }
}

static void find_imports(imports *all, const char *object)
{
    const Elf64_Ehdr *wide = (const void *)object;
    const Elf32_Ehdr *narrow = (const void *)object;
    unsigned n = wide->e_ident[EI_CLASS] == ELFCLASS32 ? narrow->e_shnum : wide->e_shnum;
    for (unsigned i = 0; i < n; i++) {
        Elf64_Shdr section = section_at(object, i);
        if (section.sh_type == SHT_SYMTAB)
            add_undefined(all, object, &section);
    }
}

/* Kernels may import a handful of functions, which every loader provides. *helpers: functions of the
 * compiler's own library that the architecture needs, or NULL. */
bool llvm_check_imports(tec_context *cx, const target_arch *arch, const void *object, size_t size,
                        const char **helpers)
{
    const Elf32_Ehdr *header = object; /* the machine lies at the same place in files of 64 bits */
    imports all = {.cx = cx, .known = arch->helpers};
    if (size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
        header->e_machine != arch->elf_machine) {
        BASE_BUG(cx, "LLVM gave an object that is not ELF for %s", arch->name);
        return false;
    }
    find_imports(&all, object);
    *helpers = all.helpers.n ? base_text_str(cx, &all.helpers) : NULL;
    if (all.others.n)
        base_fail(cx, TEC_INTERNAL, (base_loc){0},
                  "generated code calls functions that kernels must not import: %s",
                  base_text_str(cx, &all.others));
    return !all.others.n;
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
static bool put_archive(FILE *file, const target_code *const *codes, int count)
{
    fputs("!<arch>\n", file);
    for (int i = 0; i < count; i++) {
        size_t size = codes[i]->size;

        fprintf(file, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", "o/", 0, 0, 0, 0644, size);
        fwrite(codes[i]->bytes, 1, size, file);
        if (size % 2)
            fputc('\n', file);
    }
    return fflush(file) == 0 && !ferror(file);
}

static bool write_archive(const job *work, const target_code *const *codes, int count)
{
    int copy = dup(work->archive);
    FILE *f = copy >= 0 ? fdopen(copy, "w") : NULL;
    bool good = f && put_archive(f, codes, count);

    if (f)
        good = fclose(f) == 0 && good;
    else if (copy >= 0)
        close(copy);
    return good;
}

/* The exit status of the linker; 127: it did not run. */
static int run_linker(const job *work)
{
    const char *const args[] = {
        linker, "-shared", "--build-id=none", "--hash-style=gnu", "--threads=1", "-z", "noexecstack",
        "-o",   "-",       "--whole-archive", "/proc/self/fd/3",  NULL};
    posix_spawn_file_actions_t files;
    pid_t child;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, work->output, 1);
    posix_spawn_file_actions_adddup2(&files, work->messages, 2);
    posix_spawn_file_actions_adddup2(&files, work->archive, 3);
    int failed = posix_spawnp(&child, linker, &files, NULL, (char *const *)(uintptr_t)args, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        return 127;
    return llvm_wait(work->cx, child);
}

/* All that was written to a file, terminated; NULL with an error. */
static const char *contents(const job *work, int fd, size_t *size)
{
    off_t end = lseek(fd, 0, SEEK_END);
    char *bytes = end >= 0 ? base_alloc(work->cx, (size_t)end + 1) : NULL;

    for (off_t at = 0; bytes && at < end;) {
        ssize_t n = pread(fd, bytes + at, (size_t)(end - at), at);

        if (n <= 0)
            return base_fail(work->cx, TEC_IO, (base_loc){0},
                             "cannot read the file that the linker '%s' wrote", linker);
        at += n;
    }
    *size = (size_t)end;
    return bytes;
}

/* Runs the linker on the archive in memory; its messages become the error. */
static const void *link_in(const job *work, const target_code *const *codes, int count, size_t *size)
{
    if (work->archive < 0 || work->output < 0 || work->messages < 0 || !write_archive(work, codes, count))
        return base_fail(work->cx, TEC_IO, (base_loc){0},
                         "cannot write the objects to files in memory for the linker");
    int status = run_linker(work);
    if (status == 127)
        return base_fail(work->cx, TEC_IO, (base_loc){0},
                         "cannot run the linker '%s'; is it installed (package lld-19)?", linker);
    if (status == 0)
        return contents(work, work->output, size);
    const char *why = contents(work, work->messages, size);
    return base_fail(work->cx, TEC_INTERNAL, (base_loc){0}, "the linker '%s' failed: %s", linker,
                     why && *size ? why : "it said nothing");
}

static void close_files(void *files)
{
    const job *j = files;

    close(j->archive);
    close(j->output);
    close(j->messages);
}

/* The codes, and an object with the helpers of the architecture behind them where one calls some; NULL with
 * an error. */
static const target_code *const *with_helpers(tec_context *cx, const target_code *const *codes, int *count)
{
    const target_code **all = base_array(cx, const target_code *, *count + 1);
    bool called = false;

    for (int i = 0; i < *count; i++) {
        if (!codes[i])
            return NULL;
        all[i] = codes[i];
        called = called || codes[i]->helpers;
    }
    if (called && !(all[(*count)++] = llvm_helpers(cx, codes[0]->target)))
        return NULL;
    return all;
}

/* The bytes of one shared object, in the context's arena. */
const void *llvm_link(tec_context *cx, const target_code *const *codes, int count, size_t *size)
{
    if (!(codes = with_helpers(cx, codes, &count)))
        return NULL;
    const void *alone = count == 1 ? llvm_shared(cx, codes[0], size) : NULL;
    if (alone)
        return alone;
    job j = {cx, memory_file("objects"), memory_file("linked"), memory_file("messages")};
    base_held files;

    base_hold(cx, &files, close_files, &j);
    const void *bytes = link_in(&j, codes, count, size);
    base_drop(&files);
    return bytes;
}
