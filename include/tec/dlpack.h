/* tec/dlpack.h -- the in-memory array of the C ABI, after the published DLPack layout, version 1.
 *
 *     float data[6]; int64_t shape[2] = {2, 3};
 *     DLTensor t = { .data = data, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1},
 *         .shape = shape };
 *
 * Layout facts only: names, order and widths of the fields are DLPack's, so that arrays cross to other
 * libraries without a copy. `strides` counts elements, NULL means compact row-major.
 * Lifetime: a DLTensor borrows data, shape and strides; a DLManagedTensorVersioned owns them until its
 * deleter runs.
 * Errors, Threads: plain data; nothing here fails or locks.
 */
#ifndef TEC_DLPACK_H
#define TEC_DLPACK_H

#include <stdint.h>

/* A program that already has DLPack's own header uses that one. */
#ifndef DLPACK_DLPACK_H_

#ifdef __cplusplus
extern "C" {
#endif

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0

typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLOpenCL = 4, kDLExtDev = 12 } DLDeviceType;

typedef struct {
    int32_t device_type; /* a DLDeviceType; stored with a fixed width */
    int32_t device_id;
} DLDevice;

typedef enum {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLOpaqueHandle = 3,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6
} DLDataTypeCode;

typedef struct {
    uint8_t code; /* a DLDataTypeCode */
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* The managed tensor of DLPack before version 1.0, which some libraries still ask for. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#ifdef __cplusplus
}
#endif

#endif
#endif
