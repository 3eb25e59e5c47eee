/* te/element.h -- the public names of dtypes as dtypes, for the rooms that have a public face.
 *
 *     base_dtype t = te_element(TEC_F32);
 */
#ifndef TE_ELEMENT_H
#define TE_ELEMENT_H

#include "base/base.h"
#include "tec/te.h"

base_dtype te_element(tec_dtype dtype);

#endif
