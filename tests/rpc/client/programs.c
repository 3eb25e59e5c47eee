/* tests/rpc/client/programs.c -- programs on a server: trees go there, tuples of tensors and trees come back;
 * what does not fit is refused by name, and the session goes on. */
#include "tec/program.h"
#include "tests/rpc/client/kit.h"

#define PROGRAM                                                                                              \
    "type Tree = Leaf(f32[2]) | Node(Tree, Tree)\n"                                                          \
    "def main(t: Tree, more: bool) -> (f32[2], Tree) {\n"                                                    \
    "  match t {\n"                                                                                          \
    "    Leaf(x) => (if more { x * 2 } else { x }, t)\n"                                                     \
    "    Node(l, r) => {\n"                                                                                  \
    "      let (a, m) = main(l, more)\n"                                                                     \
    "      let (b, n) = main(r, more)\n"                                                                     \
    "      (a + b, Node(n, m))\n"                                                                            \
    "    }\n"                                                                                                \
    "  }\n"                                                                                                  \
    "}\n"

static fixture f;
static tec_rpc *client;
static tec_rpc_session *session;
static int64_t module, program;

static void write_program(const char *path)
{
    FILE *file = fopen(path, "we");

    cr_assert(file && fputs(PROGRAM, file) >= 0 && fclose(file) == 0);
}

static void start(void)
{
    char text[100], made[100], command[400];

    f = kit_start((const char *[]){NULL});
    client = kit_connect(&f);
    session = kit_open(&f, client);
    snprintf(text, sizeof text, "%s/p.tecp", f.folder);
    snprintf(made, sizeof made, "%s/p.tec", f.folder);
    write_program(text);
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=detect_leaks=0 " TEC_BINARY_DIR "/tec compile %s -o %s --quiet", text, made);
    cr_assert_eq(system(command), 0);
    module = tec_rpc_upload(session, made, &f.err);
    program = tec_rpc_program(session, module, NULL, 1, &f.err);
    cr_assert(program, "%s", f.err.text);
}

static void stop(void)
{
    tec_rpc_close(session);
    tec_rpc_disconnect(client);
    cr_assert_eq(kit_stop(&f), 0);
}

TestSuite(rpc_programs, .init = start, .fini = stop, .timeout = 60);

static int64_t make_tensor(DLDataType dtype, int ndim, int64_t n, void *data)
{
    DLTensor from = {data, {kDLCPU, 0}, ndim, dtype, &n, NULL, 0};
    int64_t array = tec_rpc_array(session, dtype, ndim, &n, &f.err);

    cr_assert(array && tec_rpc_write(session, array, &from, &f.err), "%s", f.err.text);
    int64_t value = tec_rpc_tensor(session, program, array, &f.err);
    cr_assert(value && tec_rpc_release(session, array, &f.err), "%s", f.err.text);
    return value;
}

static int64_t make_leaf(float a, float b)
{
    int64_t x = make_tensor((DLDataType){kDLFloat, 32, 1}, 1, 2, (float[]){a, b});
    int64_t leaf = tec_rpc_compound(session, program, "Leaf", &x, 1, &f.err);

    cr_assert(leaf, "%s", f.err.text);
    return leaf;
}

static int64_t make_truth(bool truth)
{
    return make_tensor((DLDataType){kDLBool, 8, 1}, 0, 1, &(uint8_t){truth});
}

static void expect_tensor(int64_t value, float a, float b)
{
    tec_array *array = tec_rpc_fetch_tensor(session, value, &f.err);

    cr_assert(array, "%s", f.err.text);
    const float *got = tec_array_data(array);
    cr_assert_float_eq(got[0], a, 1e-6F);
    cr_assert_float_eq(got[1], b, 1e-6F);
    tec_array_free(array);
}

static tec_rpc_value look(int64_t value)
{
    tec_rpc_value seen;

    cr_assert(tec_rpc_look(session, value, &seen, &f.err), "%s", f.err.text);
    return seen;
}

Test(rpc_programs, take_trees_and_give_tuples)
{
    int64_t parts[] = {make_leaf(1, 2), make_leaf(10, 20)}, y;
    int64_t in[] = {tec_rpc_compound(session, program, "Node", parts, 2, &f.err), make_truth(true)};
    double seconds = -1;

    cr_assert(tec_rpc_execute(session, program, in, 2, &y, 1, &seconds, &f.err), "%s", f.err.text);
    cr_assert(seconds >= 0);
    tec_rpc_value both = look(y);
    cr_assert(!both.is_tensor && !*both.constructor && both.n_parts == 2);
    cr_assert(tec_rpc_release(session, y, &f.err), "parts stay when the whole is given back");
    expect_tensor(both.parts[0], 22, 44);
    tec_rpc_value node = look(both.parts[1]);
    cr_assert_str_eq(node.constructor, "Node");
    tec_rpc_value leaf = look(node.parts[0]);
    cr_assert_str_eq(leaf.constructor, "Leaf");
    expect_tensor(leaf.parts[0], 10, 20);
    tec_rpc_value_free(&leaf);
    tec_rpc_value_free(&node);
    tec_rpc_value_free(&both);
}

Test(rpc_programs, run_again_and_again_in_one_session)
{
    int64_t in[] = {make_leaf(3, 4), make_truth(false)}, y;

    for (int i = 0; i < 100; i++) {
        cr_assert(tec_rpc_execute(session, program, in, 2, &y, 1, NULL, &f.err), "%s", f.err.text);
        tec_rpc_value both = look(y);
        expect_tensor(both.parts[0], 3, 4);
        tec_rpc_release(session, both.parts[0], &f.err);
        tec_rpc_release(session, both.parts[1], &f.err);
        tec_rpc_release(session, y, &f.err);
        tec_rpc_value_free(&both);
    }
    cr_assert_lt(y, 64, "handles that were given back are used again");
}

static void expect_refusal(bool done, const char *words)
{
    cr_assert(!done);
    cr_assert(strstr(f.err.text, words), "'%s' does not say '%s'", f.err.text, words);
    f.err = (tec_error){0};
}

Test(rpc_programs, refuse_what_does_not_fit_and_go_on)
{
    int64_t leaf = make_leaf(1, 2), truth = make_truth(true), y[2];
    int64_t other = tec_rpc_program(session, module, NULL, 1, &f.err);

    expect_refusal(tec_rpc_program(session, module, "nobody", 1, &f.err), "nobody");
    expect_refusal(tec_rpc_program(session, leaf, NULL, 1, &f.err), "this session has no module");
    expect_refusal(tec_rpc_compound(session, program, "Nope", &leaf, 1, &f.err), "Nope");
    expect_refusal(tec_rpc_compound(session, program, "Leaf", &leaf, 1, &f.err), "Leaf");
    expect_refusal(tec_rpc_compound(session, other, NULL, &leaf, 1, &f.err), "is of program");
    expect_refusal(tec_rpc_compound(session, program, NULL, &(int64_t){999}, 1, &f.err), "no value 999");
    expect_refusal(tec_rpc_execute(session, program, &leaf, 1, y, 1, NULL, &f.err), "1");
    expect_refusal(tec_rpc_execute(session, program, (int64_t[]){truth, leaf}, 2, y, 1, NULL, &f.err), "");
    expect_refusal(tec_rpc_execute(session, program, (int64_t[]){leaf, truth}, 2, y, 2, NULL, &f.err),
                   "gives 1 results, not 2");
    expect_refusal(tec_rpc_fetch_tensor(session, leaf, &f.err) != NULL, "no array or tensor");
    expect_refusal(tec_rpc_look(session, module, &(tec_rpc_value){0}, &f.err), "no value");
    cr_assert(tec_rpc_release(session, program, &f.err));
    expect_refusal(tec_rpc_look(session, leaf, &(tec_rpc_value){0}, &f.err), "no value");
    cr_assert(tec_rpc_release(session, other, &f.err), "%s", f.err.text);
}

Test(rpc_programs, tell_what_their_runs_took)
{
    const tec_rpc_program_options o = {.threads = 1, .profile = true};
    int64_t plain = program, in[2], y;
    tec_rpc_profile_rows rows;
    double share = 0;
    int kernels = 0;

    program = tec_rpc_program_with(session, module, NULL, &o, &f.err);
    cr_assert(program, "%s", f.err.text);
    in[0] = make_leaf(1, 2);
    in[1] = make_truth(true);
    expect_refusal(tec_rpc_profile(session, program, &rows, &f.err), "has not run");
    cr_assert(tec_rpc_execute(session, program, in, 2, &y, 1, NULL, &f.err), "%s", f.err.text);
    cr_assert(tec_rpc_profile(session, program, &rows, &f.err), "%s", f.err.text);
    for (int i = 0; i < rows.n; i++) {
        const tec_profile_row *row = &rows.at[i];

        kernels += row->group == TEC_ROW_KERNEL;
        share += row->share;
        cr_assert(*row->name && row->calls > 0 && row->min_s <= row->total_s);
    }
    cr_assert(kernels > 0 && kernels < rows.n);
    cr_assert_float_eq(share, 1, 1e-6);
    tec_rpc_profile_free(&rows);
    cr_assert(rows.n == 0 && !rows.at);
    expect_refusal(tec_rpc_profile(session, plain, &rows, &f.err), "made without `profile`");
    expect_refusal(tec_rpc_profile(session, in[0], &rows, &f.err), "no executor");
}

Test(rpc_programs, are_measured_and_limited)
{
    int64_t in[] = {make_leaf(1, 2), make_truth(true)}, parts[] = {in[0], in[0]}, y;
    tec_rpc_call_options call = {.program = program, .arrays = in, .n = 2};
    tec_timing t = {0};

    cr_assert(tec_rpc_time(session, &call, &(tec_time_options){.repeats = 3, .max_repeats = 3}, &t, &f.err),
              "%s", f.err.text);
    cr_assert(t.repeats == 3 && t.min_s > 0 && t.min_s <= t.median_s);
    call.n = 1;
    expect_refusal(tec_rpc_time(session, &call, NULL, &t, &f.err), "2 inputs");

    int64_t flat =
        tec_rpc_program_with(session, module, NULL, &(tec_rpc_program_options){.max_depth = 1}, &f.err);
    expect_refusal(tec_rpc_execute(session, flat, in, 2, &y, 1, NULL, &f.err), "is of program");
    in[0] = tec_rpc_compound(session, program, "Node", parts, 2, &f.err);
    cr_assert(tec_rpc_execute(session, program, in, 2, &y, 1, NULL, &f.err), "%s", f.err.text);
    expect_refusal(
        tec_rpc_program_with(session, module, NULL, &(tec_rpc_program_options){.max_steps = -1}, &f.err),
        "expected limits of a program from 0 on");
}
