/* worker/health.h -- what the CPU is, and how it is while it measures: its name, its clock and its
 * temperature, where the system tells.
 *
 *     answer.clock_mhz = worker_clock_mhz();
 */
#ifndef WORKER_HEALTH_H
#define WORKER_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number in a file of /sys; 0: there is none. */
int64_t worker_system_number(const char *path);
int64_t worker_clock_mhz(void);  /* of the core that this thread runs on; 0: unknown */
double worker_temperature(void); /* degrees Celsius; 0: unknown */
/* Bytes of the caches of the first core, 0 for one that is not there or that the system does not tell of. */
enum { WORKER_L1_DATA, WORKER_L1_CODE, WORKER_L2, WORKER_L3, WORKER_N_CACHES };
void worker_caches(int64_t bytes[WORKER_N_CACHES]);
/* The model of the board, or of the CPU: "Raspberry Pi 4 Model B Rev 1.4". False: the system does not
 * tell. */
bool worker_cpu_name(char *name, size_t size);

#endif
