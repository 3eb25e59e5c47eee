/* runtime/layouts.h -- inside the room: numbers for the shapes that a program knows before it runs.
 *
 *     f32[1, 450] of a register's type, of a parameter of a kernel, of a constant: 3
 *     f32[1, 300]:                                                                 4
 *
 * Two tensors with one number have the same element type and the same extents, so a kernel's argument is
 * checked by one comparison. The heap keeps freed tensors by these numbers, with their heads filled
 * (runtime/object.h). A tensor without a number, 0, is looked at extent by extent.
 *
 * The table is needed while an instance is set up and for tensors that its user makes; a run needs the
 * numbers alone. Lifetime: a layout points to extents, which must live as long. Threads: plain data.
 */
#ifndef RUNTIME_LAYOUTS_H
#define RUNTIME_LAYOUTS_H

#include "runtime/format.h"

/* Numbers are 1 to RT_MOST_LAYOUTS and fit into a byte. Further shapes have none, which bounds the time to
 * find one. */
enum { RT_MOST_LAYOUTS = 255 };

typedef struct {
    base_dtype dtype;
    int32_t rank;
    const int64_t *extents;
} rt_layout;

typedef struct {
    int32_t n;
    rt_layout at[RT_MOST_LAYOUTS];
} rt_layouts;

/* The number of a shape; 0 where it has none, or an extent is negative: unknown. */
int32_t rt_layout_find(const rt_layouts *layouts, base_dtype dtype, int32_t rank, const int64_t *extents);
/* The same for a shape that gets the next number where it has none. */
int32_t rt_layout_add(rt_layouts *layouts, base_dtype dtype, int32_t rank, const int64_t *extents);

#endif
