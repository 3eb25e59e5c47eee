/* tec/tec.h -- the whole public C API: every header of it.
 *
 *     #include <tec/tec.h>
 *     printf("tec %s\n", tec_version());
 */
#ifndef TEC_TEC_H
#define TEC_TEC_H

#include "tec/base.h"
#include "tec/build.h"
#include "tec/device.h"
#include "tec/dlpack.h"
#include "tec/graph.h"
#include "tec/kernel.h"
#include "tec/program.h"
#include "tec/records.h"
#include "tec/rpc.h"
#include "tec/runtime.h"
#include "tec/schedule.h"
#include "tec/space.h"
#include "tec/te.h"

#endif
