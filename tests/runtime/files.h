/* tests/runtime/files.h -- a folder for a test's files, and the shared object of kernels.c made by the
 * system's C compiler. */
#ifndef TESTS_RUNTIME_FILES_H
#define TESTS_RUNTIME_FILES_H

#include <criterion/criterion.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef TEC_TEST_CC
#define TEC_TEST_CC "cc" /* for the machine that runs the tests */
#endif

typedef struct {
    char path[PATH_MAX];
} folder;

typedef struct {
    uint8_t *data;
    size_t size;
} bytes;

static inline folder folder_new(void)
{
    folder f;

    snprintf(f.path, sizeof f.path, "%s/tests/rt-XXXXXX", TEC_BINARY_DIR);
    cr_assert(mkdtemp(f.path), "%s", f.path);
    return f;
}

/* "FOLDER/name"; a few results are alive at once. */
static inline const char *in_folder(const folder *f, const char *name)
{
    static char text[4][2 * PATH_MAX];
    static int next;
    char *path = text[next++ % 4];

    snprintf(path, sizeof *text, "%s/%s", f->path, name);
    return path;
}

static inline void folder_remove(const folder *f)
{
    char command[2 * PATH_MAX];

    snprintf(command, sizeof command, "rm -rf '%s'", f->path);
    cr_assert_eq(system(command), 0);
}

static inline bytes read_bytes(const char *path)
{
    FILE *file = fopen(path, "rb");
    bytes b = {0};

    cr_assert(file, "%s", path);
    fseek(file, 0, SEEK_END);
    b.size = (size_t)ftell(file);
    rewind(file);
    b.data = malloc(b.size + 1);
    cr_assert_eq(fread(b.data, 1, b.size, file), b.size);
    fclose(file);
    return b;
}

static inline void write_bytes(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    cr_assert(file, "%s", path);
    cr_assert_eq(fwrite(data, 1, size, file), size);
    fclose(file);
}

/* `flags` are added to the compiler's. */
static inline bytes compile_kernels(const folder *f, const char *flags)
{
    const char *path = in_folder(f, "kernels.so");
    char command[4 * PATH_MAX];

    snprintf(command, sizeof command,
             TEC_TEST_CC " -std=c11 -O1 -fPIC -shared -nostdlib %s -I'%s' -I'%s/include' -o '%s' "
                         "'%s/tests/runtime/kernels/kernels.c'",
             flags, TEC_SOURCE_DIR, TEC_SOURCE_DIR, path, TEC_SOURCE_DIR);
    cr_assert_eq(system(command), 0, "%s", command);
    return read_bytes(path);
}

#endif
