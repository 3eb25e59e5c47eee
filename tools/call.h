/* tools/call.h -- a function of a module on the tensors of a feed, where the function runs.
 *
 *     tool_call c = {0};
 *     if (tool_call_open(&c, &feed, module, function, NULL, &options, &err) && tool_call_once(&c, &err) &&
 *         tool_call_fetch(&c, &err))
 *         use(feed.port[0].tensor);
 *     tool_call_close(&c);
 *
 * A function of a device gets copies of the feed's tensors in the device's memory; scalars stay in main
 * memory.
 * Lifetime: the feed stays until the call is closed. An opened call is closed, also after an error.
 */
#ifndef TOOLS_CALL_H
#define TOOLS_CALL_H

#include "tec/device.h"
#include "tools/feed.h"

typedef struct {
    tec_function *f;
    tec_device *device; /* NULL: the CPU */
    const tool_feed *feed;
    DLTensor **arg;    /* [feed->n]: what the function gets */
    tec_array **array; /* [feed->n] in the device's memory; NULL: arg is the feed's tensor */
} tool_call;

/* The feed has a tensor for each parameter of the function. on: the device, as in tec_device_open; NULL: the
 * first of the function's kind. */
bool tool_call_open(tool_call *call, const tool_feed *feed, tec_module *module,
                    const rt_function_desc *function, const char *on, const tec_run_options *options,
                    tec_error *err);
bool tool_call_once(tool_call *call, tec_error *err);
/* Copies the outputs from the device into the feed's tensors. */
bool tool_call_fetch(tool_call *call, tec_error *err);
void tool_call_close(tool_call *call);

#endif
