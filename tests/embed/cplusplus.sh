#!/bin/bash
# cplusplus -- the macros of include/tec/ in C++: a definition, a schedule and a graph are made, compiled and run by
# programs of g++ and clang++, as C++11 and C++20, without a warning.
#
# Needs TEC_BUILD_DIR, a finished build. A sanitizer's library asks for a program with the same sanitizer.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/all.cpp" <<'CPP'
#include <cstdio>
#include <tec/tec.h>

static int calls;

static const tec_expr *counted(const tec_expr *e)
{
    calls++;
    return e;
}

/* C = A B with n rows, split and vectorised, called on two rows. */
static bool product(tec_context *cx)
{
    tec_def *d = tec_def_new(cx, "product");
    const tec_expr *n = tec_symbol(d, "n"), *m = tec_int(cx, 16);
    tec_tensor *A = tec_input(d, "A", TEC_F32, n, m), *B = tec_input(d, "B", TEC_F32, m, counted(m));
    const tec_expr *y = tec_axis(cx, "y", n), *x = tec_axis(cx, "x", m), *k = tec_reduce_axis(cx, "k", m);
    tec_tensor *C = tec_compute(d, "C", tec_sum(cx, tec_mul(cx, tec_at(A, y, k), tec_at(B, k, x)), k), y, x);
    const char *xs[2];

    tec_output(d, C);
    tec_schedule *s = tec_schedule_new(cx, d, "native");
    if (!tec_split(s, "C.x", xs, TEC_INFER, 8) || !tec_reorder(s, xs[0], "C.k", xs[1]) || !tec_vectorize(s, xs[1]))
        return std::printf("%s\n", tec_schedule_error(s)), false;
    tec_module *module = tec_build(s, nullptr);
    tec_error err = {};
    tec_function *f = tec_function_new(module, nullptr, nullptr, &err);
    float a[2 * 16], b[16 * 16], c[2 * 16];
    int64_t rows[] = {2, 16}, square[] = {16, 16};
    DLTensor ta = {}, tb, tc;

    for (float &v : a)
        v = 2;
    for (float &v : b)
        v = 3;
    ta.data = a;
    ta.device.device_type = kDLCPU;
    ta.ndim = 2;
    ta.dtype = DLDataType{kDLFloat, 32, 1};
    ta.shape = rows;
    tb = tc = ta;
    tb.data = b;
    tb.shape = square;
    tc.data = c;
    DLTensor *args[] = {&ta, &tb, &tc};
    bool ok = tec_function_call(f, args, 3, &err);
    std::printf("C[1, 5] = %g %s\n", ok ? c[16 + 5] : 0.f, err.text);
    tec_function_free(f);
    tec_module_free(module);
    return ok;
}

static bool network(tec_context *cx)
{
    tec_graph *g = tec_graph_new(cx, "net");
    tec_value *x = tec_graph_input(g, "x", TEC_F32, tec_graph_symbol(g, "n"), tec_int(cx, 6));
    tec_value *t = tec_graph_op(g, "transpose", "t", TEC_ATTRS(TEC_INTS("perm", 1, 0)), x);
    tec_value *y = tec_graph_op(g, "relu", "r", TEC_NO_ATTRS, t);

    tec_graph_output(g, "y", y);
    std::printf("y: %s\n", y ? tec_value_type(g, y) : tec_context_error(cx));
    return y != nullptr;
}

int main()
{
    tec_context *cx = tec_context_new();
    bool ok = product(cx) && network(cx);

    if (tec_context_status(cx) != TEC_OK)
        std::printf("%s\n", tec_context_error(cx));
    tec_context_free(cx);
    std::printf("evaluated %d times\n", calls);
    return !ok;
}
CPP

expected='C[1, 5] = 96 
y: f32[6, n]
evaluated 1 times'
for compiler in g++ clang++-19; do
    for standard in c++11 c++20; do
        "$compiler" -std=$standard -Wall -Wextra -Wpedantic -Wshadow -Werror ${TEC_SANITIZE:+-fsanitize=$TEC_SANITIZE} \
            -Iinclude "$dir/all.cpp" -o "$dir/all" -L"$TEC_BUILD_DIR" -ltec -Wl,-rpath,"$(realpath "$TEC_BUILD_DIR")"
        said=$("$dir/all") || { echo "cplusplus: $compiler -std=$standard: $said"; exit 1; }
        [ "$said" = "$expected" ] || { echo "cplusplus: $compiler -std=$standard: the program says: $said"; exit 1; }
    done
done
echo "cplusplus: ok"
