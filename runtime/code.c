/* code.c -- loads the shared object of a module file, and makes sure that it is the one of this file.
 *
 * dlopen knows objects by name and inode: when a module was replaced by a new file of its name while the old
 * one is still in use, it would give the old code. So the result is compared with the file, and another
 * spelling of the path ("./" added) is tried until they agree. What is compared are the program headers,
 * which tell how the object lies in memory, and then all segments that are not writable: code, constants,
 * symbol and relocation tables.
 */
#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/file.h"

enum { MAX_SPELLINGS = 64 };

/* What the loader knows of one object: where it lies, and its program headers in memory. */
typedef struct {
    ElfW(Addr) base;
    const ElfW(Phdr) * headers;
    int n;
} image;

/* Stops at the object whose base it is. */
static int take_image(struct dl_phdr_info *info, size_t size, void *user)
{
    image *i = user;

    (void)size;
    if (info->dlpi_addr != i->base)
        return 0;
    i->headers = info->dlpi_phdr;
    i->n = info->dlpi_phnum;
    return 1;
}

/* Every number that comes from the file is compared with its size before it is used as an offset. */
static bool has_headers(const rt_blob *elf, uint64_t size, const image *self)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(const void *)elf->data;
    uint64_t bytes = (uint64_t)self->n * sizeof *self->headers;

    return size >= sizeof *header && header->e_phnum == self->n && header->e_phoff <= size &&
           size - header->e_phoff >= bytes && memcmp(elf->data + header->e_phoff, self->headers, bytes) == 0;
}

/* Writable segments differ once the program has run, so they are left out. */
static bool same_segment(const rt_blob *elf, uint64_t size, const image *self, const ElfW(Phdr) * segment)
{
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) || !(segment->p_flags & PF_R))
        return true;
    return segment->p_offset <= size && size - segment->p_offset >= segment->p_filesz &&
           segment->p_filesz <= segment->p_memsz &&
           memcmp(elf->data + segment->p_offset, (const void *)(uintptr_t)(self->base + segment->p_vaddr),
                  segment->p_filesz) == 0;
}

/* Whether the loaded object is the one whose bytes are in `elf`: program headers and all segments that are
 * not writable. */
static bool is_code_of(void *handle, const rt_blob *elf)
{
    struct link_map *map;
    image i = {0};

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return false;
    i.base = map->l_addr;
    if (!dl_iterate_phdr(take_image, &i) || !has_headers(elf, elf->length, &i))
        return false;
    for (int k = 0; k < i.n; k++)
        if (!same_segment(elf, elf->length, &i, &i.headers[k]))
            return false;
    return true;
}

/* "/folder/" and `spelling` times "./" and the file's name; false where it becomes too long. "/m/./a.so" is
 * another name than "/m/a.so" to the loader, and the same file. */
static bool spell(char name[PATH_MAX], const char *path, int spelling)
{
    const char *file = strrchr(path, '/') + 1;
    int folder = (int)(file - path);
    int n = snprintf(name, PATH_MAX, "%.*s", folder, path);

    if (n + 2 * spelling + (int)strlen(file) >= PATH_MAX)
        return false;
    for (int i = 0; i < spelling; i++, n += 2)
        memcpy(name + n, "./", 2);
    strcpy(name + n, file);
    return true;
}

/* The handle of dlopen. The path is spelled in other ways until the loader gives the object of this file. The
 * loader compares inodes of names that it does not know, so a wrong object is the exception. */
void *rt_code_open(const char *path, const rt_blob *elf, tec_error *err)
{
    char whole[PATH_MAX], name[PATH_MAX];

    /* A path from the root is kept as it is: that of a file in memory (/proc/self/fd/N) leads to no name. */
    if (path[0] == '/' ? !spell(whole, path, 0) : !realpath(path, whole))
        return rt_fail(err, TEC_IO, "%s: its full path cannot be found", path), NULL;
    for (int i = 0; i < MAX_SPELLINGS && spell(name, whole, i); i++) {
        void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

        if (!handle)
            return rt_fail(err, TEC_INVALID, "%s: its code cannot be loaded: %s", path, dlerror()), NULL;
        if (is_code_of(handle, elf))
            return handle;
        dlclose(handle);
    }
    return rt_fail(err, TEC_IO, "%s: was replaced while it was opened", path), NULL;
}

/* The code as a file in memory, which is mapped as that of a module file is: the caller's bytes may lie at
 * any address. */
static void *open_copy(int fd, const char *name, const rt_blob *elf, tec_error *err)
{
    rt_source file = {.name = name, .size = elf->length, .fd = fd};
    rt_blob copy = {0};
    char path[40];
    void *handle;

    if (write(fd, elf->data, elf->length) != (ssize_t)elf->length)
        return rt_fail(err, TEC_IO, "%s: its code cannot be written to a file in memory", name), NULL;
    if (!rt_blob_map(&copy, &file, 0, elf->length, err))
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    handle = rt_code_open(path, &copy, err);
    rt_blob_free(&copy);
    return handle;
}

void *rt_code_open_bytes(const char *name, const rt_blob *elf, tec_error *err)
{
    int fd = memfd_create("module", MFD_CLOEXEC);
    void *handle;

    if (fd < 0)
        return rt_fail(err, TEC_IO, "%s: no file in memory can be made for its code", name), NULL;
    handle = open_copy(fd, name, elf, err);
    close(fd);
    return handle;
}
