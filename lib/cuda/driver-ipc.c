// SPDX-License-Identifier: MIT
/* How the driver's functions for memory of other processes are called. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cuda/driver.h"
#include "cuda/functions.h"

_Static_assert(sizeof(CUuuid) == CUDA_UUID_BYTES, "the driver's");
_Static_assert(sizeof(CUipcMemHandle) == CUDA_HANDLE_BYTES, "the driver's");

bool cuda_shares_memory(void)
{
	return libcuda.cuDeviceGetUuid && libcuda.cuMemsetD8Async && libcuda.cuIpcGetMemHandle &&
	       libcuda.cuIpcOpenMemHandle && libcuda.cuIpcCloseMemHandle;
}

int cuda_device_uuid(int device, uint8_t uuid[CUDA_UUID_BYTES])
{
	return libcuda.cuDeviceGetUuid((CUuuid *)uuid, device);
}

int cuda_export_memory(uint64_t address, uint8_t handle[CUDA_HANDLE_BYTES])
{
	return libcuda.cuIpcGetMemHandle((CUipcMemHandle *)handle, address);
}

int cuda_open_memory(const uint8_t handle[CUDA_HANDLE_BYTES], uint64_t *address)
{
	CUipcMemHandle known;
	CUdeviceptr opened;
	CUresult result;

	memcpy(&known, handle, sizeof(known));
	result = libcuda.cuIpcOpenMemHandle(&opened, known, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	*address = result ? 0 : opened;
	return result;
}

void cuda_close_memory(uint64_t address)
{
	libcuda.cuIpcCloseMemHandle(address);
}

int cuda_memory_from(uint64_t address, uint64_t *bytes)
{
	CUdeviceptr start;
	CUresult result;
	size_t size;

	result = libcuda.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
					       address);
	if (!result)
		result = libcuda.cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
						       address);
	*bytes = result ? 0 : start + size - address;
	return result;
}

/* The legacy stream would wait for all others, which ends the capture of any of them. */
int cuda_clear(uint64_t address, uint64_t size)
{
	bool capturing;
	CUresult result = cuda_stream_is_capturing(CU_STREAM_PER_THREAD, &capturing);

	if (capturing)
		return -EOPNOTSUPP;
	if (!result)
		result = libcuda.cuMemsetD8Async(address, 0, size, CU_STREAM_PER_THREAD);
	return result ? result : libcuda.cuStreamSynchronize(CU_STREAM_PER_THREAD);
}
