/* tools/report.h -- summaries that commands print, as text or JSON.
 *
 *     tool_report_module(cx, &desc, "net.tec", 1.5, false, false);
 */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "base/base.h"
#include "runtime/format.h"
#include "tec/program.h"

void tool_report_module(tec_context *cx, const rt_module_desc *module, const char *path, double seconds,
                        bool json, bool quiet);
/* Of --precision tf32: how many of the kernels round products of f32. Where no schedule takes tensor cores,
 * they are exact ones. */
void tool_report_tf32(const char *model, int rounded, int kernels);
void tool_print_timing(const char *what, const tec_timing *timing, double flops, bool json);
/* Of a program: kernels and instructions, the shares of kernels, shape kernels, memory and control, and the
 * memory and copies of the last run, unless `counts` is NULL. */
void tool_print_program_profile(const tec_profile_row *rows, int n, const tec_program_counts *counts,
                                bool json);
/* One line per step, in the order in which they run. */
void tool_print_profile(const tec_profile_row *rows, int n, bool json);
/* One "name: type" line for each input and output of a graph. */
void tool_print_graph(const rt_graph_desc *graph);

#endif
