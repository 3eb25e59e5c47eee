/* arena_place.c -- lets Criterion run under the thread sanitizer; part of every test executable in those
 * builds alone.
 *
 * Criterion hands its settings to the processes of its tests through memory at an address that it draws with
 * rand_r: the draw counts steps of 2^24 from 0x200000000000. On x86-64 the thread sanitizer leaves programs
 * little of that range: 0x550000000000 to 0x568000000000. Criterion gives up after three bad draws, so this
 * rand_r, which stands before libc's, draws good ones. Places that are taken already, such as the program's
 * own, are found and skipped by Criterion.
 */
#include <stdlib.h>

enum { FIRST = 0x350000, COUNT = 0x18000 };

__attribute__((visibility("default"))) int rand_r(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return FIRST + (int)((*seed >> 8) % COUNT);
}
