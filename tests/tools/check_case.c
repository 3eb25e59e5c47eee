/* tests/tools/check_case.c -- a model with more inputs and outputs than anyone would write by hand: a data
 * set may have any number of files. */
#include "tools/check_case.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/graph/onnx/kit.h"
#include "tools/data.h"

enum { MANY = 300 };

static char folder[64];

static void open_folder(void)
{
    open_context();
    snprintf(folder, sizeof folder, "/tmp/tec-check-case-XXXXXX");
    cr_assert(mkdtemp(folder));
    cr_assert_eq(mkdir(base_format(cx, "%s/test_data_set_0", folder), 0700), 0);
}

static void drop_folder(void)
{
    for (int i = 0; i < MANY; i++) {
        unlink(base_format(cx, "%s/test_data_set_0/input_%d.pb", folder, i));
        unlink(base_format(cx, "%s/test_data_set_0/output_%d.pb", folder, i));
    }
    unlink(base_format(cx, "%s/model.onnx", folder));
    rmdir(base_format(cx, "%s/test_data_set_0", folder));
    rmdir(folder);
    close_context();
}
TestSuite(check_case, .init = open_folder, .fini = drop_folder);

static void write_number(const char *kind, int i, float value)
{
    DLTensor *t = tool_new_tensor(cx, (DLDataType){kDLFloat, 32, 1}, 1, (const int64_t[]){1});

    *(float *)t->data = value;
    cr_assert(tool_write(cx, base_format(cx, "%s/test_data_set_0/%s_%d.pb", folder, kind, i), t), "%s",
              tec_context_error(cx));
}

static void write_model(void)
{
    const char *path = base_format(cx, "%s/model.onnx", folder);
    size_t size;
    const uint8_t *bytes = packed(&size);
    FILE *f = fopen(path, "wb");

    cr_assert(f);
    cr_assert_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

/* Output i is -i; the data says so of all but the last, of which they say `last`. */
static void write_case(float last)
{
    open_model(13);
    for (int i = 0; i < MANY; i++) {
        input(base_format(cx, "x%d", i), 1, "1");
        node("Neg", base_format(cx, "x%d", i), base_format(cx, "y%d", i), NULL);
        output(base_format(cx, "y%d", i));
        write_number("input", i, (float)i);
        write_number("output", i, i == MANY - 1 ? last : (float)-i);
    }
    write_model();
}

Test(check_case, sets_every_input_however_many)
{
    write_case(1 - MANY);
    check_result r = check_case(cx, folder, target_native(cx), &(check_options){0});
    cr_assert_eq(r.outcome, CHECK_PASS, "%s", r.reason);
}

Test(check_case, compares_every_output_however_many)
{
    write_case(7);
    check_result r = check_case(cx, folder, target_native(cx), &(check_options){0});
    cr_assert_eq(r.outcome, CHECK_FAIL);
    cr_assert(strstr(r.reason, "output 'y299'"), "%s", r.reason);
}
