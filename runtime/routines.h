/* runtime/routines.h -- inside the room: functions that generated code asks for by name, and that the runtime
 * itself has: selecting and scattering, which a loop nest over the result would do in quadratic time.
 *
 *     int32_t top_k(const float *x, int64_t *positions, int64_t n0, int64_t n1, ...) = "tec_top_k_f32_2"
 *
 * A name ends with the element type and the rank. ops/routine.c makes the calls, and says what each computes.
 */
#ifndef RUNTIME_ROUTINES_H
#define RUNTIME_ROUTINES_H

void *rt_routine(const char *name); /* NULL: the runtime has no such function */

#endif
