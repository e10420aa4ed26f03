/* SPDX-License-Identifier: MIT */
/*
 * Compiled with tshare-dlpack.h and a dlpack.h of another project, FIRST and SECOND, as C and
 * as C++: whatever a program may use of either is there, and means the same.
 */
#include FIRST
#include SECOND

#include <tshare.h>

#ifdef __cplusplus
#define CHECK(condition) static_assert(condition, #condition)
#else
#define CHECK(condition) _Static_assert(condition, #condition)
#endif

CHECK(DLPACK_MAJOR_VERSION == 1);
CHECK(kDLCPU == 1 && kDLCUDAHost == 3 && kDLROCM == 10 && kDLExtDev == 12 && kDLCUDAManaged == 13);
CHECK(kDLInt == 0 && kDLComplex == 5 && kDLBool == 6 && kDLFloat8_e3m4 == 7);
CHECK(kDLFloat4_e2m1fn == 17);
CHECK(DLPACK_FLAG_BITMASK_READ_ONLY == 1 && DLPACK_FLAG_BITMASK_IS_COPIED == 2);
CHECK(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED == 4);
CHECK(sizeof(DLTensor) == 48 && sizeof(DLDevice) == 8);
CHECK(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
CHECK(sizeof(DLManagedTensorVersioned) == 80);
CHECK(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
CHECK(sizeof(DLPackExchangeAPI) == 56);

/* What only a real dlpack.h has a use for. */
DLPACK_EXTERN_C DLPACK_DLL int main(void)
{
	struct tshare_dtype dtype = TSHARE_FLOAT32;
	DLDataType same = { (uint8_t)kDLFloat, 32, 1 };
	struct tshare_tensor *tensor = NULL;
	DLManagedTensorVersioned *managed;

	if (tensor && tshare_tensor_to_dlpack(tensor, &managed) == 0)
		managed->deleter(managed);
	return dtype.code != same.code;
}
