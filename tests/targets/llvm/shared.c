/* tests/targets/llvm/shared.c -- shared objects that are made without a linker: the loader takes them, their
 * functions find constants, each other and what they import; and what is left to the linker.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "targets/llvm/gen.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(shared, .init = open_context, .fini = close_context);

/* The object that clang makes of a C text, with a target's machine number in its header. */
static target_code object_of(const char *text, const char *options)
{
    char folder[] = TEC_BINARY_DIR "/tests/shared-XXXXXX";

    cr_assert(mkdtemp(folder));
    const char *command =
        base_format(cx,
                    "cd '%s' && cat >f.c <<'END'\n%s\nEND\nclang-19 -O2 -fPIC -ffreestanding "
                    "-fno-asynchronous-unwind-tables -fvisibility=default %s -c f.c -o f.o",
                    folder, text, options);
    cr_assert_eq(system(command), 0, "%s", command);
    target_code code = {.bytes = base_read_file(cx, base_format(cx, "%s/f.o", folder), &code.size)};
    cr_assert_eq(system(base_format(cx, "rm -r '%s'", folder)), 0);
    cr_assert(code.bytes, "%s", tec_context_error(cx));
    return code;
}

static void *open_bytes(const void *bytes, size_t size)
{
    int file = memfd_create("shared", MFD_CLOEXEC);

    cr_assert_eq(write(file, bytes, size), (ssize_t)size);
    void *handle = dlopen(base_format(cx, "/proc/self/fd/%d", file), RTLD_NOW | RTLD_LOCAL);
    cr_assert(handle, "%s", dlerror());
    close(file);
    return handle;
}

/* Puts the address of a function into a pointer to functions. */
static void find(void *handle, const char *name, void *pointer)
{
    void *found = dlsym(handle, name);

    cr_assert(found, "%s", dlerror());
    memcpy(pointer, &found, sizeof found);
}

/* Constants of three sizes, calls between functions, a table of jumps, and two imports. */
static const char text[] =
    "void *memcpy(void *, const void *, unsigned long); void *memset(void *, int, unsigned long);\n"
    "double line(double x) { return 0.7 * x + 0.3; }\n"
    "__attribute__((noinline)) float other(float x) { return x * 1.7f - 2.3f; }\n"
    "float twice(float x) { return other(other(x)); }\n"
    "void zero(char *to, unsigned long n) { memset(to, 0, n); }\n"
    "void copy(char *to, const char *from, unsigned long n) { memcpy(to + 1, from, n - 1); to[0] = 'x'; }\n"
    "static __attribute__((noinline)) int square(int x) { return x * x; }\n"
    "int pick(int n, int x) { switch (n) { case 0: return square(x); case 1: return x / 3; case 2: return x "
    "- "
    "9;\n"
    "case 3: return x << 3; case 4: return x ^ 77; case 5: return -x; default: return 1; } }\n";

Test(shared, functions_find_constants_each_other_and_imports)
{
    target_code code = object_of(text, "");
    size_t size;
    const void *bytes = llvm_shared(cx, &code, &size);

    cr_assert(bytes);
    void *handle = open_bytes(bytes, size);
    double (*line)(double);
    float (*twice)(float);
    int (*pick)(int, int);
    void (*copy)(char *, const char *, unsigned long), (*zero)(char *, unsigned long);
    char to[8] = "........";

    find(handle, "line", &line);
    find(handle, "twice", &twice);
    find(handle, "pick", &pick);
    find(handle, "copy", &copy);
    find(handle, "zero", &zero);

    cr_expect_eq(line(2), 0.7 * 2 + 0.3);
    cr_expect_float_eq(twice(3), 1.7f * (1.7f * 3 - 2.3f) - 2.3f, 1e-5f);
    cr_expect_eq(pick(3, 5), 40);
    cr_expect_eq(pick(4, 5), 5 ^ 77);
    copy(to, "abcdefg", 5);
    cr_expect_arr_eq(to, "xabcd...", 8);
    zero(to + 2, 3);
    cr_expect_arr_eq(to, "xa\0\0\0...", 8);
    dlclose(handle);
}

/* What a program of LLVM says of the file, sorted. */
static const char *asked(const void *bytes, size_t size, const char *program, const char *filter)
{
    char path[] = TEC_BINARY_DIR "/tests/names-XXXXXX";
    int file = mkstemp(path);
    base_text all = {0};
    char line[200];

    cr_assert_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
    FILE *out = popen(base_format(cx, "%s '%s' | awk '%s' | sort", program, path, filter), "r");
    while (fgets(line, sizeof line, out))
        base_addf(cx, &all, "%s", line);
    cr_assert_eq(pclose(out), 0);
    unlink(path);
    return base_text_str(cx, &all);
}

/* The kind, binding and name of each symbol that a loader sees. */
static const char *names_of(const void *bytes, size_t size)
{
    return asked(bytes, size, "llvm-readelf-19 --dyn-symbols", "NR > 4 {print $4, $5, $8}");
}

/* The functions that a disassembler sees, local ones too. */
static const char *functions_of(const void *bytes, size_t size)
{
    return asked(bytes, size, "llvm-objdump-19 -d", "/>:$/ {print $2}");
}

Test(shared, has_the_names_of_a_linked_one)
{
    static const char *const options[] = {"", "--target=aarch64-linux-gnu"};

    for (int i = 0; i < BASE_COUNT(options); i++) {
        target_code code = object_of(text, options[i]), empty = object_of("", options[i]);
        size_t size, linked_size;
        const void *bytes = llvm_shared(cx, &code, &size);
        const void *linked = llvm_link(cx, (const target_code *const[]){&code, &empty}, 2, &linked_size);

        cr_assert(bytes && linked, "%s: %s", options[i], tec_context_error(cx));
        cr_expect_str_eq(names_of(bytes, size), names_of(linked, linked_size));
        cr_expect(strstr(functions_of(bytes, size), "<square>:"), "%s", functions_of(bytes, size));
    }
}

Test(shared, leaves_the_rest_to_the_linker)
{
    static const struct {
        const char *text, *options;
    } cases[] = {
        {"int f(int x) { return x + 1; }", "--target=armv7-linux-gnueabihf"},
        {"int counter; int f(void) { return ++counter; }", ""},
        {"static int value = 3; int f(int x) { int y = value; value = x; return y; }", ""},
        {"extern int far; int *f(void) { return &far; }", ""},
        {"int a, b; int *const table[] = {&a, &b}; int *f(int i) { return table[i]; }", ""},
    };

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        target_code code = object_of(cases[i].text, cases[i].options);
        size_t size;

        cr_expect_null(llvm_shared(cx, &code, &size), "%s", cases[i].text);
        cr_expect_null(tec_context_error(cx));
    }
}
