#include "tests/runtime/kit.h"

#include "base/base.h"

/* A copy of the kit's module that a test may change. */
typedef struct {
    rt_module_desc m;
    rt_function_desc functions[4];
    rt_param_desc relu[2];
    rt_constant_desc constants[2];
    rt_graph_desc g;
    rt_symbol_desc symbol;
    rt_tensor_desc inputs[1];
    rt_value_desc values[6];
    rt_step_desc steps[3];
} parts;

static void take_apart(parts *p)
{
    p->m = kit_module();
    memcpy(p->functions, kit_functions, sizeof p->functions);
    memcpy(p->relu, relu_params, sizeof p->relu);
    memcpy(p->constants, kit_constants, sizeof p->constants);
    memcpy(p->values, kit_values, sizeof p->values);
    memcpy(p->steps, kit_steps, sizeof p->steps);
    p->g = kit_graphs[0];
    p->symbol = p->g.symbols[0];
    p->inputs[0] = p->g.inputs[0];
    p->m.arch = "any";
    p->m.functions = p->functions;
    p->m.constants = p->constants;
    p->m.graphs = &p->g;
    p->functions[0].params = p->relu;
    p->g.symbols = &p->symbol;
    p->g.inputs = p->inputs;
    p->g.values = p->values;
    p->g.steps = p->steps;
}

static void assert_says(const parts *p, const char *text)
{
    tec_error err = {0};

    cr_assert(!rt_module_check(&p->m, &err), "not refused: %s", text);
    cr_assert_eq(err.status, TEC_INVALID);
    cr_assert_str_eq(err.text, text);
}

/* One change to the module, and what must be said about it. */
#define REFUSES(change, text)                                                                                \
    do {                                                                                                     \
        parts p;                                                                                             \
        take_apart(&p);                                                                                      \
        change;                                                                                              \
        assert_says(&p, text);                                                                               \
    } while (0)

Test(check, accepts_the_module_of_the_tests)
{
    tec_error err = {0};
    parts p;

    take_apart(&p);
    cr_assert(rt_module_check(&p.m, &err), "%s", err.text);
}

Test(check, wants_what_a_module_must_say)
{
    REFUSES(p.m.target = NULL, "module: has no target");
    REFUSES(p.m.arch = NULL, "module: has functions but no architecture");
    REFUSES(p.m.flags = 6, "module: unknown flags 0x6");
    REFUSES((p.m.features = (const char *const[]){""}, p.m.n_features = 1),
            "module: CPU feature 0 has no name");
    REFUSES(p.m.n_graphs = -3, "module 'test': -3 graphs; expected 0 to 1024");
}

Test(check, wants_well_formed_functions)
{
    REFUSES(p.functions[0].symbol = "", "function 'relu': has no name or no symbol");
    REFUSES(p.functions[0].n_params = 5000, "function 'relu': 5000 parameters; expected 0 to 4096");
    REFUSES((p.functions[0].symbols = (const char *const[]){"n", NULL}),
            "function 'relu': symbol 1 has no name");
    REFUSES(p.functions[2].aliases = (&(const rt_alias_desc){0, 3}),
            "function 'scale': alias pair (0, 3) of 3 parameters");
    REFUSES(p.functions[0].n_symbols = 1, "function 'relu': x: dimension code: symbol 1 of 1");
    REFUSES(p.functions[1].workspace = ((rt_dim){(const int64_t[]){99}, 1}),
            "function 'matmul': workspace: dimension code: unknown operation 99 at word 0");
    REFUSES((p.functions[0].facts = &(const rt_fact_desc){CONST(1), NULL}, p.functions[0].n_facts = 1),
            "function 'relu': condition 0 has no text");
}

/* Function 3 becomes another relu, which runs calls of the first one for few rows. */
#define RANGED                                                                                               \
    (p.functions[3] = p.functions[0], p.functions[3].name = "few",                                           \
     p.functions[0].ranges = (const rt_range_desc[]){{4, 3}, {8, 3}}, p.functions[0].n_ranges = 2)

Test(check, accepts_ranges)
{
    tec_error err = {0};
    parts p;

    take_apart(&p);
    RANGED;
    cr_assert(rt_module_check(&p.m, &err), "%s", err.text);
}

Test(check, wants_ranges_that_hand_calls_on_once)
{
    REFUSES((RANGED, p.functions[0].n_ranges = 65), "function 'relu': 65 ranges; expected 0 to 64");
    REFUSES((RANGED, p.functions[0].chooser = 2), "function 'relu': has ranges, but no symbol that chooses");
    REFUSES((RANGED, p.functions[0].ranges = (const rt_range_desc[]){{4, 3}, {4, 3}}),
            "function 'relu': range 1 ends where an earlier one does, or before");
    REFUSES((RANGED, p.functions[0].ranges = (const rt_range_desc[]){{4, 3}, {8, 4}}),
            "function 'relu': range 1 calls function 4 of 4");
    REFUSES((RANGED, p.functions[0].ranges = (const rt_range_desc[]){{4, -1}, {8, 3}}),
            "function 'relu': range 0 calls function -1 of 4");
#define OTHER(name)                                                                                          \
    "function 'relu': range 0 calls '" name "', which takes other arguments, runs elsewhere or has ranges"
    REFUSES((RANGED, p.functions[0].ranges = (const rt_range_desc[]){{4, 2}, {8, 3}}), OTHER("scale"));
    REFUSES((RANGED, p.functions[3].params = relu_params, p.functions[3].n_params = 1), OTHER("few"));
    REFUSES((RANGED, p.relu[0].alignment = 16, p.functions[3].params = relu_params), OTHER("few"));
}

Test(check, wants_well_formed_parameters)
{
    REFUSES(p.relu[0].name = NULL, "function 'relu': a parameter has no name");
    REFUSES(p.relu[0].dtype.bits = 33, "function 'relu': parameter 'x' has no valid dtype");
    REFUSES(p.relu[0].dtype.lanes = 0, "function 'relu': parameter 'x' has no valid dtype");
    REFUSES(p.relu[0].kind = (rt_param_kind)7, "function 'relu': parameter 'x' is of unknown kind 7");
    REFUSES(p.relu[0].kind = RT_PARAM_SCALAR,
            "function 'relu': parameter 'x' is a scalar with dimensions or written");
    REFUSES(p.relu[0].alignment = 24,
            "function 'relu': parameter 'x' is aligned to 24; expected a power of two up to 64");
    REFUSES(p.relu[0].rank = 17, "function 'relu': 17 dimensions; expected 0 to 16");
    REFUSES(p.relu[0].shape = ((const rt_dim[]){SYMBOL(0), {NULL, 0}}),
            "function 'relu': x: dimension code: 0 words; expected 1 to 1024");
}

Test(check, wants_constants_of_sane_size)
{
    REFUSES(p.constants[0].dtype.bits = 0, "constant 'bias': has no valid dtype");
    REFUSES(p.constants[0].shape = ((const int64_t[]){-1}), "constant 'bias': extent -1");
    REFUSES(p.constants[0].shape = ((const int64_t[]){INT64_MAX}), "constant 'bias': is larger than 1 TB");
    REFUSES(p.constants[0].rank = -1, "constant 'bias': -1 dimensions; expected 0 to 16");
}

Test(check, wants_graphs_whose_symbols_are_bound)
{
    REFUSES(p.g.name = "", "graph '': has no name");
    REFUSES(p.symbol.name = NULL, "graph 'net': symbol 0 has no name");
    REFUSES(p.symbol.input = 1,
            "graph 'net': symbol 'n' is bound to dimension 0 of input 1, which is not there");
    REFUSES(p.symbol.dim = 2,
            "graph 'net': symbol 'n' is bound to dimension 2 of input 0, which is not there");
    REFUSES(p.symbol.dim = 1,
            "graph 'net': symbol 'n' is bound to dimension 1 of input 'x', which is something else");
    REFUSES(p.inputs[0].name = NULL, "graph 'net': an input or output has no name");
    REFUSES(p.inputs[0].dtype.code = 9, "graph 'net': 'x' has no valid dtype");
}

Test(check, wants_values_that_lie_somewhere)
{
    REFUSES(p.values[1].index = 2, "graph 'net': value 1 lies in storage 2 of kind 2, of which there are 2");
    REFUSES(p.values[1].index = -1,
            "graph 'net': value 1 lies in storage -1 of kind 2, of which there are 2");
    REFUSES(p.values[1].storage = (rt_storage)5,
            "graph 'net': value 1 lies in storage 1 of kind 5, of which there are 0");
    REFUSES(p.values[1].dtype.bits = 7, "graph 'net': value 1 has no valid dtype");
}

Test(check, wants_steps_that_fit_their_functions)
{
    REFUSES(p.steps[0].function = 4, "graph 'net': step 0 calls function 4 of 4");
    REFUSES(p.steps[0].function = -2, "graph 'net': step 0 calls function -2 of 4");
    REFUSES(p.steps[0].name = NULL, "graph 'net': step 0 has no name");
    REFUSES(p.steps[0].n_values = 2,
            "graph 'net': step 0 gives 'matmul' 2 values and 3 dimensions; expected 3 and 3");
    REFUSES(p.steps[0].values = ((const int32_t[]){0, 1, 6}), "graph 'net': step 0 uses value 6 of 6");
    REFUSES(p.steps[0].values = ((const int32_t[]){0, 1, 4}),
            "graph 'net': step 0: value 4 has not the dtype and rank of 'c' of 'matmul'");
    REFUSES(p.steps[0].values = ((const int32_t[]){0, 1, 1}),
            "graph 'net': step 0 writes value 1, an input or a constant");
    REFUSES(p.steps[2].values = ((const int32_t[]){3, 0}),
            "graph 'net': step 2 writes value 0, an input or a constant");
    REFUSES(p.steps[2].n_values = 1, "graph 'net': step 2 copies 1 values; expected 2");
    REFUSES(p.relu[0].strides = p.relu[0].shape,
            "graph 'net': step 1: 'x' of 'relu' is strided; values are compact");
}
