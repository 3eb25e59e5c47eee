/* base/plant.c -- planted faults: which there are, and which one a context has switched on. Debug builds
 * only. */
#include <string.h>

#include "base/context.h"

#ifdef TEC_DEBUG

const base_plant_row base_plants[] = {
    {"none", "", ""},
#define BASE_PLANT(name, room, what) {#name, room, what},
#include "base/plants.def"
};
const int base_n_plants = BASE_COUNT(base_plants);

bool base_set_plant(tec_context *cx, const char *name)
{
    for (int i = 0; i < base_n_plants; i++)
        if (strcmp(base_plants[i].name, name) == 0) {
            cx->plant = (base_plant_id)i;
            return true;
        }
    return false;
}

bool base_planted(const tec_context *cx, base_plant_id fault)
{
    return cx->plant == fault;
}

#endif
