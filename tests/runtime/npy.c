#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "runtime/alloc.h"
#include "tec/runtime.h"
#include "tests/runtime/files.h"

/* A file of version 1 with this dictionary and these elements. */
static size_t make(uint8_t *out, const char *header, const void *elements, size_t size)
{
    size_t n = strlen(header);

    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    memcpy(out + 10, header, n);
    memcpy(out + 10 + n, elements, size);
    return 10 + n + size;
}

static tec_array *decode(const char *header, const void *elements, size_t size, tec_error *err)
{
    uint8_t file[1024];

    return tec_npy_decode(file, make(file, header, elements, size), err);
}

Test(npy, round_trips_every_dtype)
{
    const base_dtype dtypes[] = {BASE_BOOL, BASE_I8,  BASE_I16, BASE_I32, BASE_I64, BASE_U8,
                                 BASE_U16,  BASE_U32, BASE_U64, BASE_F16, BASE_F32, BASE_F64};
    folder dir = folder_new();
    const char *path = in_folder(&dir, "a.npy");

    for (int i = 0; i < BASE_COUNT(dtypes); i++)
        for (int ndim = 0; ndim <= 3; ndim++) {
            tec_array *a = tec_array_new(dtypes[i], ndim, (int64_t[]){3, 2, 5}, NULL), *b;
            const DLTensor *t = tec_array_tensor(a);
            tec_error err = {0};

            for (int64_t k = 0; k < tec_tensor_bytes(t); k++)
                ((uint8_t *)t->data)[k] = (uint8_t)(k * 3 + 1);
            cr_assert(tec_npy_write(path, t, &err), "%s", err.text);
            b = tec_npy_read(path, &err);
            cr_assert(b, "%s", err.text);
            cr_assert(base_dtype_same(tec_array_tensor(b)->dtype, dtypes[i]));
            cr_assert_eq(tec_array_tensor(b)->ndim, ndim);
            cr_assert(memcmp(tec_array_tensor(b)->shape, t->shape, (size_t)ndim * 8) == 0);
            cr_assert(memcmp(tec_array_data(b), t->data, (size_t)tec_tensor_bytes(t)) == 0);
            tec_array_free(a);
            tec_array_free(b);
        }
    folder_remove(&dir);
}

Test(npy, written_to_a_pipe_leaves_the_pipe_in_its_place)
{
    folder dir = folder_new();
    const char *path = in_folder(&dir, "pipe");
    tec_array *a = tec_array_new(BASE_F32, 1, (int64_t[]){2}, NULL);
    tec_error err = {0};
    char got[200];
    struct stat s;

    cr_assert_eq(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert(tec_npy_write(path, tec_array_tensor(a), &err), "%s", err.text);
    cr_assert_eq(read(fd, got, sizeof got), 128 + 8);
    cr_assert(stat(path, &s) == 0 && S_ISFIFO(s.st_mode), "a file has taken the place of the pipe");
    close(fd);
    tec_array_free(a);
    folder_remove(&dir);
}

Test(npy, writes_the_bytes_that_numpy_writes)
{
    folder dir = folder_new();
    const char *path = in_folder(&dir, "a.npy");
    tec_array *a = tec_array_new(BASE_F32, 1, (int64_t[]){2}, NULL);
    bytes b;

    cr_assert(tec_npy_write(path, tec_array_tensor(a), NULL));
    b = read_bytes(path);
    cr_assert_eq(b.size, 128 + 8);
    cr_assert(memcmp(b.data,
                     "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } ",
                     68) == 0);
    cr_assert_eq(b.data[127], '\n');
    free(b.data);
    tec_array_free(a);
    folder_remove(&dir);
}

Test(npy, reads_other_orders_of_bytes_and_dimensions)
{
    const uint8_t big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
    tec_error err = {0};
    tec_array *a = decode("{'shape': (2, 3), 'fortran_order': True, 'descr': '>i2'}", big, sizeof big, &err);
    const int16_t expected[] = {1, 3, 5, 2, 4, 6};

    cr_assert(a, "%s", err.text);
    cr_assert(memcmp(tec_array_data(a), expected, sizeof expected) == 0);
    tec_array_free(a);
}

static void assert_refused(const char *header, size_t size, const char *part)
{
    const uint8_t elements[64] = {0};
    tec_error err = {0};
    int64_t before = rt_alloc_live();

    cr_assert_null(decode(header, elements, size, &err));
    cr_assert(strstr(err.text, part), "%s", err.text);
    cr_assert_eq(rt_alloc_live(), before);
}

Test(npy, refuses_what_it_cannot_read)
{
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8,
                   "has 8 bytes of elements, but its shape needs 12");
    assert_refused("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8,
                   "its header is not one of bool");
    assert_refused("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8,
                   "its header is not one of bool");
    assert_refused("{'descr': '<f4', 'shape': (2,), }", 8, "its header is not one of bool");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8,
                   "its header is not one of bool");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8,
                   "its header");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }", 8,
                   "has 8 bytes of elements");
    assert_refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8,
                   "its header");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2), }",
                   8, "its header");
    assert_refused("", 8, "its header");
}

Test(npy, refuses_bfloat16)
{
    tec_array *a = tec_array_new(BASE_BF16, 1, (int64_t[]){2}, NULL);
    tec_error err = {0};

    cr_assert(!tec_npy_write("never.npy", tec_array_tensor(a), &err));
    cr_assert_str_eq(err.text, "never.npy: a .npy file cannot store bf16");
    cr_assert_eq(err.status, TEC_UNSUPPORTED);
    tec_array_free(a);
}

Test(npy, survives_any_change_of_a_file)
{
    uint8_t file[256] = {0}, changed[256];
    size_t size = make(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", file, 24);
    uint64_t seed = 99;
    int64_t before = rt_alloc_live();
    int read = 0;

    for (int i = 0; i < 50000; i++) {
        size_t length = i < (int)size ? (size_t)i : size;
        uint8_t *exact = malloc(length + 1);
        tec_array *a;

        memcpy(changed, file, size);
        for (int64_t k = base_random_below(&seed, 4); k > 0; k--)
            changed[base_random_below(&seed, (int64_t)size)] = (uint8_t)base_random(&seed);
        memcpy(exact, changed, length);
        a = tec_npy_decode(exact, length, NULL);
        read += a != NULL;
        tec_array_free(a);
        free(exact);
    }
    cr_assert_eq(rt_alloc_live(), before);
    cr_assert_gt(read, 1000);
}
