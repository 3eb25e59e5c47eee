/* tests/tools/report.c -- what is printed of modules. */
#include "tools/report.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>

/* A graph may have as many symbols as a module: the last one has its name, not its number. */
Test(report, names_the_symbols_however_many, .init = cr_redirect_stdout)
{
    const rt_dim last = {.word = (const int64_t[]){RT_DIM_SYMBOL, RT_MAX_SYMBOLS - 1}, .n = 2};
    static char name[RT_MAX_SYMBOLS][16];
    static rt_symbol_desc symbols[RT_MAX_SYMBOLS];
    const rt_tensor_desc input = {.name = "x", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = &last};

    for (int i = 0; i < RT_MAX_SYMBOLS; i++) {
        snprintf(name[i], sizeof name[i], "len%d", i);
        symbols[i].name = name[i];
    }
    tool_print_graph(&(rt_graph_desc){
        .name = "main", .symbols = symbols, .n_symbols = RT_MAX_SYMBOLS, .inputs = &input, .n_inputs = 1});
    fflush(stdout);
    cr_assert_stdout_eq_str("graph main: 0 steps\n  input x: f32[len1023]\n");
}
