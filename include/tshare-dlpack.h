/* SPDX-License-Identifier: MIT */
/*
 * DLPack 1.3, as tshare produces and consumes it.
 *
 * The structures of the DLPack ABI, for programs that don't bring a dlpack.h
 * of their own. Include that one first, or this one alone: both have the same
 * include guard.
 */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

#define DLPACK_FLAG_BITMASK_READ_ONLY		   (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED		   (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

typedef struct {
	uint32_t major;
	uint32_t minor;
} DLPackVersion;

typedef enum {
	kDLCPU = 1,
	kDLCUDA = 2,
	kDLCUDAHost = 3,
	kDLCUDAManaged = 13,
} DLDeviceType;

typedef struct {
	DLDeviceType device_type;
	int32_t device_id;
} DLDevice;

typedef enum {
	kDLInt = 0,
	kDLUInt = 1,
	kDLFloat = 2,
	kDLOpaqueHandle = 3,
	kDLBfloat = 4,
	kDLComplex = 5,
	kDLBool = 6,
	kDLFloat8_e3m4 = 7,
	kDLFloat8_e4m3 = 8,
	kDLFloat8_e4m3b11fnuz = 9,
	kDLFloat8_e4m3fn = 10,
	kDLFloat8_e4m3fnuz = 11,
	kDLFloat8_e5m2 = 12,
	kDLFloat8_e5m2fnuz = 13,
	kDLFloat8_e8m0fnu = 14,
	kDLFloat6_e2m3fn = 15,
	kDLFloat6_e3m2fn = 16,
	kDLFloat4_e2m1fn = 17,
} DLDataTypeCode;

typedef struct {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
} DLDataType;

/* strides count elements; NULL on import means C-contiguous. */
typedef struct {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape;
	int64_t *strides;
	uint64_t byte_offset;
} DLTensor;

/* The legacy form, before DLPack 1.0. */
typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
	DLPackVersion version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	DLTensor dl_tensor;
} DLManagedTensorVersioned;

/*
 * The exchange table, since DLPack 1.3. A type of tensors that has one carries
 * it as a PyCapsule named "dlpack_exchange_api" in its attribute
 * __dlpack_c_exchange_api__; it stays for the life of the process. py_object is
 * a PyObject * of that very type or a subclass.
 *
 * The functions return 0, or -1 with a Python error set (the allocator instead
 * calls set_error); those with PyObjects need the GIL, and none synchronises
 * with a stream of work. What they hand out is the caller's, but for a DLTensor
 * alone, which is valid as long as the object is.
 */
typedef int (*DLPackManagedTensorAllocator)(DLTensor *prototype, DLManagedTensorVersioned **out,
					    void *error_ctx,
					    void (*set_error)(void *error_ctx, const char *kind,
							      const char *message));
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void *py_object,
						     DLManagedTensorVersioned **out);
typedef int (*DLPackManagedTensorToPyObjectNoSync)(DLManagedTensorVersioned *tensor,
						   void **out_py_object);
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void *py_object, DLTensor *out);
typedef int (*DLPackCurrentWorkStream)(DLDeviceType device_type, int32_t device_id,
				       void **out_current_stream);

/* What stays the same in all versions; prev_api is an older table, or NULL. */
typedef struct DLPackExchangeAPIHeader {
	DLPackVersion version;
	struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

/* dltensor_from_py_object_no_sync may be NULL. */
typedef struct DLPackExchangeAPI {
	DLPackExchangeAPIHeader header;
	DLPackManagedTensorAllocator managed_tensor_allocator;
	DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
	DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
	DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync;
	DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_DLPACK_H_ */
