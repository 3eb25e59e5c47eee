/* tests/ops/pool.c -- pooling windows against loops over every tap. */
#include "tests/ops/kit.h"

TestSuite(pool, .init = open_context, .fini = close_context);

typedef struct {
    /* pads: both begins, then both ends */
    int64_t n, c, extent[2], kernel[2], stride[2], dilation[2], pads[4];
    int ceil_mode, with_pads;
} geometry;

/* As the ONNX standard says: a last window that begins in the padding behind the input is dropped. */
static int64_t out_extent(const geometry *g, int i)
{
    int64_t room = g->extent[i] + g->pads[i] + g->pads[2 + i] - ((g->kernel[i] - 1) * g->dilation[i] + 1);
    int64_t n = room / g->stride[i] + 1;

    n += g->ceil_mode && room % g->stride[i];
    return g->ceil_mode && (n - 1) * g->stride[i] >= g->extent[i] + g->pads[i] ? n - 1 : n;
}

static nd reference(const geometry *g, const nd *x, bool average)
{
    nd y = new_nd(x->t, SHAPE(g->n, g->c, out_extent(g, 0), out_extent(g, 1)));
    int64_t at[4];

    for (int64_t i = 0; i < y.size; i++) {
        double sum = 0, top = -INFINITY;
        int64_t count = 0;

        unravel(&y, i, at);
        for (int64_t a = 0; a < g->kernel[0]; a++)
            for (int64_t b = 0; b < g->kernel[1]; b++) {
                int64_t p = at[2] * g->stride[0] + a * g->dilation[0] - g->pads[0],
                        q = at[3] * g->stride[1] + b * g->dilation[1] - g->pads[1];
                bool inside = p >= 0 && p < g->extent[0] && q >= 0 && q < g->extent[1];
                bool padded = p < g->extent[0] + g->pads[2] && q < g->extent[1] + g->pads[3];

                count += inside || (g->with_pads && padded);
                if (!inside)
                    continue;
                double v = x->v[((at[0] * g->c + at[1]) * g->extent[0] + p) * g->extent[1] + q];
                sum += v;
                top = v > top ? v : top;
            }
        y.v[i] = average ? sum / (double)count : top;
    }
    return y;
}

static void check_with(geometry g, bool symbolic_batch)
{
    nd x = random_nd(BASE_F32, SHAPE(g.n, g.c, g.extent[0], g.extent[1]));
    op_attr attr[] = {op_attr_ints(cx, "kernel", g.kernel, 2),
                      op_attr_ints(cx, "strides", g.stride, 2),
                      op_attr_ints(cx, "dilations", g.dilation, 2),
                      op_attr_ints(cx, "pads", g.pads, 4),
                      op_attr_int("ceil_mode", g.ceil_mode),
                      op_attr_int("count_include_pad", g.with_pads),
                      op_attr_int("packed", 1)};
    nd most = reference(&g, &x, false), mean = reference(&g, &x, true);

    x.symbolic = symbolic_batch;
    gives("max_pool", attr, BASE_COUNT(attr) - 1, &x, 1, most, 0);
    gives("average_pool", attr, BASE_COUNT(attr) - 1, &x, 1, mean, 1e-6);
    gives("max_pool", attr, BASE_COUNT(attr), IN(packed(&x, g.c)), packed(&most, g.c), 0);
    gives("average_pool", attr, BASE_COUNT(attr), IN(packed(&x, g.c)), packed(&mean, g.c), 1e-6);
}

static void check(geometry g)
{
    check_with(g, false);
}

/* One launch by the default schedule of GPUs, whose threads fetch what their windows read together. */
static void shares_windows(const char *op, const op_attr *attr, int n_attrs, const nd *x, nd expected)
{
    op_call c = call_of(op, attr, n_attrs, x, 1);
    const char *text;
    int launches = 0;

    c.target = target_parse(cx, "cuda -arch=sm_80");
    cr_assert(op_infer(&c) && op_choose(&c), "%s", tec_context_error(cx));
    const ir_program *p = tree_of(&c, &c.op->impls[0]);
    const sched *s = space_default(cx, p, c.target);
    cr_assert(s && !sched_failed(s), "%s", s ? sched_error(s) : tec_context_error(cx));
    text = ir_program_text(cx, sched_tree(s));
    cr_assert(strstr(text, "in0.cache.shared"), "%s", text);
    for (const char *at = text; (at = strstr(at, " blockIdx.")) != NULL; at++)
        launches++;
    cr_assert_eq(launches, 1, "%s", text);
    run_tree(op, sched_tree(s), x, 1, &expected, 1e-6);
}

Test(pool, shares_what_windows_read_among_threads_of_a_gpu)
{
    static const geometry all[] = {{1, 3, {12, 20}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 0, 0},
                                   {1, 2, {8, 16}, {2, 2}, {2, 2}, {1, 1}, {0}, 0, 0},
                                   {2, 2, {9, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 0, 0}};

    for (int i = 0; i < BASE_COUNT(all); i++) {
        const geometry *g = &all[i];
        nd x = random_nd(BASE_F32, SHAPE(g->n, g->c, g->extent[0], g->extent[1]));
        op_attr attr[] = {op_attr_ints(cx, "kernel", g->kernel, 2), op_attr_ints(cx, "strides", g->stride, 2),
                          op_attr_ints(cx, "pads", g->pads, 4)};

        shares_windows("max_pool", attr, BASE_COUNT(attr), &x, reference(g, &x, false));
        shares_windows("average_pool", attr, BASE_COUNT(attr), &x, reference(g, &x, true));
    }
}

Test(pool, of_windows_that_tile_the_plane)
{
    check((geometry){1, 3, {6, 8}, {2, 2}, {2, 2}, {1, 1}, {0}, 0, 0});
}

Test(pool, of_overlapping_windows_of_odd_sizes)
{
    check((geometry){2, 2, {7, 9}, {3, 2}, {2, 1}, {1, 1}, {0}, 0, 0});
}

Test(pool, with_asymmetric_padding_counted_and_not)
{
    for (int with_pads = 0; with_pads <= 1; with_pads++)
        check((geometry){1, 2, {7, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 0, 2, 1}, 0, with_pads});
}

Test(pool, with_ceil_mode)
{
    for (int with_pads = 0; with_pads <= 1; with_pads++) {
        check((geometry){1, 2, {7, 8}, {3, 3}, {2, 2}, {1, 1}, {0}, 1, with_pads});
        check((geometry){1, 2, {6, 7}, {2, 3}, {3, 2}, {1, 1}, {1, 1, 1, 1}, 1, with_pads});
    }
}

Test(pool, drops_a_window_that_begins_behind_the_input)
{
    check((geometry){1, 1, {5, 5}, {1, 1}, {3, 3}, {1, 1}, {0, 0, 2, 2}, 1, 0});
}

Test(pool, with_dilations)
{
    for (int with_pads = 0; with_pads <= 1; with_pads++)
        check((geometry){1, 2, {9, 8}, {3, 2}, {1, 2}, {2, 3}, {1, 2, 1, 1}, 0, with_pads});
}

Test(pool, of_whole_planes)
{
    check((geometry){2, 5, {4, 5}, {4, 5}, {1, 1}, {1, 1}, {0}, 0, 0});
}

Test(pool, of_wide_planes)
{
    check((geometry){1, 2, {4, 37}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 0, 0});
}

Test(pool, with_a_batch_known_when_it_runs)
{
    for (int64_t n = 1; n <= 3; n++)
        check_with((geometry){n, 3, {5, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 0, 1}, true);
}

Test(pool, in_one_and_three_dimensions)
{
    nd x = random_nd(BASE_F32, SHAPE(1, 2, 7)), y = new_nd(BASE_F32, SHAPE(1, 2, 5));
    for (int64_t i = 0; i < 10; i++)
        y.v[i] = fmax(fmax(x.v[i / 5 * 7 + i % 5], x.v[i / 5 * 7 + i % 5 + 1]), x.v[i / 5 * 7 + i % 5 + 2]);
    gives("max_pool", ATTRS(INTS("kernel", 3)), IN(x), y, 0);

    nd cube = random_nd(BASE_F32, SHAPE(1, 1, 2, 2, 2)), mean = new_nd(BASE_F32, SHAPE(1, 1, 1, 1, 1));
    for (int i = 0; i < 8; i++)
        mean.v[0] += cube.v[i] / 8;
    gives("average_pool", ATTRS(INTS("kernel", 2, 2, 2)), IN(cube), mean, 0);
}

Test(pool, of_integers_and_halves)
{
    nd x = random_nd(BASE_U8, SHAPE(1, 1, 4, 4)), y = new_nd(BASE_U8, SHAPE(1, 1, 2, 2)), h = x, z = y;

    for (int64_t i = 0; i < 4; i++) {
        const double *p = x.v + i / 2 * 8 + i % 2 * 2;
        y.v[i] = fmax(fmax(p[0], p[1]), fmax(p[4], p[5]));
    }
    gives("max_pool", ATTRS(INTS("kernel", 2, 2), INTS("strides", 2, 2)), IN(x), y, 0);
    h.t = z.t = BASE_F16;
    gives("max_pool", ATTRS(INTS("kernel", 2, 2), INTS("strides", 2, 2)), IN(h), z, 0);
}

Test(pool, refuses_what_does_not_fit)
{
    nd x = new_nd(BASE_F32, SHAPE(1, 3, 8, 8));

    refuses("max_pool 'max_pool': 'kernel' has 1 values, but the operand is f32[1, 3, 8, 8]", "max_pool",
            ATTRS(INTS("kernel", 2)), IN(x));
    refuses("a window of 9 does not fit into spatial dimension 1 of extent 8", "average_pool",
            ATTRS(INTS("kernel", 2, 9)), IN(x));
    refuses("the kernel has extent 0 in spatial dimension 0", "max_pool", ATTRS(INTS("kernel", 0, 2)), IN(x));
    refuses("expected [n, channels, spatial dimensions...]", "max_pool", ATTRS(INTS("kernel", 2)),
            IN(new_nd(BASE_F32, SHAPE(3, 3))));
}
