/* Strings, growing texts and files. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static tec_context *cx;
static char dir[64];

static void set_up(void)
{
    cx = tec_context_new();
    strcpy(dir, "/tmp/tec_text_XXXXXX");
    cr_assert(mkdtemp(dir) != NULL);
}

static void tear_down(void)
{
    rmdir(dir);
    tec_context_free(cx);
}

TestSuite(text, .init = set_up, .fini = tear_down);

Test(text, formats_into_the_arena)
{
    cr_assert(eq(str, base_format(cx, "%s.%d", "C.y", 0), "C.y.0"));
    cr_assert(eq(str, base_format(cx, "%s", ""), ""));
}

/* A comma stands for the point in German, where that locale is installed; the C locale otherwise. */
Test(text, writes_numbers_alike_in_every_locale)
{
    setlocale(LC_ALL, "de_DE.UTF-8");
    cr_assert(eq(str, base_format(cx, "%g", 1.5), "1.5"));
    setlocale(LC_ALL, "C");
}

Test(text, copies_at_most_n_characters)
{
    cr_assert(eq(str, base_strndup(cx, "abcdef", 3), "abc"));
    cr_assert(eq(str, base_strndup(cx, "ab", 30), "ab"));
    cr_assert(eq(str, base_strndup(cx, "ab", 0), ""));
}

Test(text, compares_with_null)
{
    cr_assert(base_same(NULL, NULL));
    cr_assert(not(base_same("a", NULL)));
    cr_assert(not(base_same(NULL, "a")));
    cr_assert(base_same("a", (char[]){'a', 0}));
    cr_assert(not(base_same("a", "b")));
}

Test(text, knows_prefixes)
{
    cr_assert(base_starts_with("llvm -mcpu", "llvm"));
    cr_assert(base_starts_with("a", ""));
    cr_assert(not(base_starts_with("ll", "llvm")));
}

Test(text, is_empty_before_anything_was_added)
{
    base_text t = {0};

    cr_assert(eq(str, (char *)base_text_str(cx, &t), ""));
    base_add(cx, &t, "");
    cr_assert(eq(str, (char *)base_text_str(cx, &t), ""));
}

Test(text, grows_the_same_however_it_is_added)
{
    base_text t = {0};
    char expected[20000];
    size_t n = 0;

    for (int i = 0; i < 1000; i++) {
        base_add(cx, &t, "ab");
        base_addn(cx, &t, "cdef", 2);
        base_addf(cx, &t, "<%d>", i);
        n += (size_t)sprintf(expected + n, "abcd<%d>", i);
        cr_assert(eq(sz, t.n, n));
        cr_assert(eq(chr, t.data[n], '\0'));
    }
    cr_assert(eq(str, t.data, expected));
}

Test(text, comes_back_from_a_file_as_it_was_written)
{
    const char *path = base_format(cx, "%s/a.bin", dir);
    uint64_t seed = 7;
    size_t n;

    for (size_t size = 0; size < 100000; size = size * 4 + 1) {
        char *data = base_alloc(cx, size);
        for (size_t i = 0; i < size; i++)
            data[i] = (char)base_random(&seed);
        cr_assert(base_write_file(cx, path, data, size));
        char *back = base_read_file(cx, path, &n);
        cr_assert(eq(sz, n, size));
        cr_assert(eq(int, memcmp(back, data, size), 0));
        cr_assert(eq(chr, back[size], '\0'));
    }
    unlink(path);
}

Test(text, of_a_pipe_is_read_to_its_end)
{
    int ends[2];
    size_t n;

    cr_assert(eq(int, pipe(ends), 0));
    cr_assert(eq(long, (long)write(ends[1], "hello", 5), 5));
    close(ends[1]);
    char *back = base_read_file(cx, base_format(cx, "/dev/fd/%d", ends[0]), &n);
    cr_assert(eq(str, back, "hello"));
    cr_assert(eq(sz, n, 5));
    close(ends[0]);
}

Test(text, of_a_missing_file_is_an_error_with_the_reason)
{
    cr_assert(base_read_file(cx, "/nowhere/model.onnx", NULL) == NULL);
    cr_assert(eq(str, (char *)tec_context_error(cx),
                 "/nowhere/model.onnx: error: cannot open: No such file or directory"));
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_IO));
}

Test(text, of_a_directory_is_an_error_with_the_reason)
{
    cr_assert(base_read_file(cx, dir, NULL) == NULL);
    cr_assert(strstr(tec_context_error(cx), "error: cannot read: Is a directory") != NULL);
}

Test(text, that_cannot_be_written_leaves_the_old_file_and_no_other)
{
    const char *path = base_format(cx, "%s/sub", dir);

    cr_assert(eq(int, mkdir(path, 0777), 0));
    cr_assert(not(base_write_file(cx, path, "x", 1)));
    cr_assert(strstr(tec_context_error(cx), "error: cannot write: Is a directory") != NULL, "%s",
              tec_context_error(cx));
    cr_assert(eq(int, rmdir(path), 0));
    cr_assert(eq(int, rmdir(dir), 0), "something was left in the directory");
}

Test(text, that_is_written_to_a_pipe_leaves_the_pipe_in_its_place)
{
    const char *path = base_format(cx, "%s/pipe", dir);
    char got[8] = "";
    struct stat s;

    cr_assert(eq(int, mkfifo(path, 0600), 0));
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert(base_write_file(cx, path, "abc", 3), "%s", tec_context_error(cx));
    cr_assert(eq(int, (int)read(fd, got, sizeof got), 3));
    cr_assert(eq(str, got, "abc"));
    cr_assert(stat(path, &s) == 0 && S_ISFIFO(s.st_mode), "a file has taken the place of the pipe");
    close(fd);
    unlink(path);
    cr_assert(eq(int, rmdir(dir), 0), "something was left in the directory");
}

Test(text, that_is_written_nowhere_is_an_error_with_the_reason)
{
    cr_assert(not(base_write_file(cx, "/nowhere/out", "x", 1)));
    cr_assert(eq(str, (char *)tec_context_error(cx),
                 "/nowhere/out: error: cannot create: No such file or directory"));
}

Test(text, many_zeros_take_no_memory)
{
    tec_context *own = tec_context_new();
    const size_t sizes[] = {0, 1, 4096, (size_t)1 << 20, (size_t)1 << 36};

    for (int i = 0; i < BASE_COUNT(sizes); i++) {
        const char *zeros = base_zeros(own, sizes[i]);

        cr_assert(zeros != NULL);
        cr_assert(sizes[i] == 0 || (zeros[0] == 0 && zeros[sizes[i] - 1] == 0 && zeros[sizes[i] / 2] == 0));
    }
    cr_assert(base_used(own) < (size_t)1 << 20);
    tec_context_free(own);
}
