/* worker/health.h -- how the CPU is while it measures: its clock and its temperature, where the system tells.
 *
 *     answer.clock_mhz = run_clock_mhz();
 */
#ifndef WORKER_HEALTH_H
#define WORKER_HEALTH_H

#include <stdint.h>

int64_t run_clock_mhz(void);  /* of the core that this thread runs on; 0: unknown */
double run_temperature(void); /* degrees Celsius; 0: unknown */

#endif
