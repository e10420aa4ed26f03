/* SPDX-License-Identifier: MIT */
/*
 * DLPack 1.3, as tshare produces and consumes it.
 *
 * The structures of the DLPack ABI, for programs that don't bring a dlpack.h of their own,
 * and for those that do: it may be included before or after this header. The second of the two
 * adds nothing that the first one has. A dlpack.h from 0.6 on that comes first keeps its
 * version, and this header adds what tshare needs and that version lacks. If this header
 * comes first, it is DLPack 1.3 for the whole program: a newer dlpack.h has to be included
 * before.
 */
#ifndef TSHARE_DLPACK_H
#define TSHARE_DLPACK_H

#include <stddef.h>
#include <stdint.h>

/* The dlpack.h that is there already: 0 for nothing, 6 for DLPack 0.6, 100 for 1.0, 103 for 1.3. */
#if !defined(DLPACK_DLPACK_H_)
#define TSHARE_DLPACK_THERE 0
#elif defined(DLPACK_MAJOR_VERSION)
#define TSHARE_DLPACK_THERE (DLPACK_MAJOR_VERSION * 100 + DLPACK_MINOR_VERSION)
#else
#define TSHARE_DLPACK_THERE (DLPACK_VERSION / 10)
#endif

#if TSHARE_DLPACK_THERE && (TSHARE_DLPACK_THERE < 6 || TSHARE_DLPACK_THERE >= 200)
#error "tshare-dlpack.h goes with a dlpack.h of version 0.6 to 1.x"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if TSHARE_DLPACK_THERE == 0

#define DLPACK_DLPACK_H_

#ifdef __cplusplus
#define DLPACK_EXTERN_C extern "C"
#else
#define DLPACK_EXTERN_C
#endif
#define DLPACK_DLL

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
	kDLCPU = 1,
	kDLCUDA = 2,
	kDLCUDAHost = 3,
	kDLOpenCL = 4,
	kDLVulkan = 7,
	kDLMetal = 8,
	kDLVPI = 9,
	kDLROCM = 10,
	kDLROCMHost = 11,
	kDLExtDev = 12,
	kDLCUDAManaged = 13,
	kDLOneAPI = 14,
	kDLWebGPU = 15,
	kDLHexagon = 16,
	kDLMAIA = 17,
	kDLTrn = 18,
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

#endif /* nothing was there */

#if TSHARE_DLPACK_THERE < 100

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

typedef struct {
	uint32_t major;
	uint32_t minor;
} DLPackVersion;

struct DLManagedTensorVersioned {
	DLPackVersion version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	DLTensor dl_tensor;
};

#endif /* before 1.0 */

#if TSHARE_DLPACK_THERE < 102

/* In C, 1.0 and 1.1 have the struct without this name. */
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;

#endif

#if TSHARE_DLPACK_THERE && TSHARE_DLPACK_THERE < 8

enum {
	kDLBool = 6,
};

#endif

#if TSHARE_DLPACK_THERE && TSHARE_DLPACK_THERE < 101

enum {
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
};

#endif

#ifndef DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)
#endif

#if TSHARE_DLPACK_THERE < 102

/*
 * The exchange table, since DLPack 1.3. A type of tensors that has one carries
 * it as a PyCapsule named "dlpack_exchange_api" in its attribute
 * __dlpack_c_exchange_api__; it stays for the life of the process. py_object is
 * a PyObject * of that very type or a subclass.
 *
 * The functions return 0, or -1 with a Python error set (the allocator instead
 * calls set_error); those with PyObjects need the GIL, and none synchronises
 * with a stream of work. The caller owns their results, but for a DLTensor
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

/* The part that stays the same in all versions; prev_api is an older table, or NULL. */
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

#endif /* before 1.2 */

#ifdef __cplusplus
}
#endif

#undef TSHARE_DLPACK_THERE

#endif /* TSHARE_DLPACK_H */
