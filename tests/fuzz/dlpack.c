// SPDX-License-Identifier: MIT
/*
 * Foreign DLPack structures: what is accepted is what the reference accepts, and a copy of it
 * has its elements.
 */
#include <errno.h>
#include <stdbool.h>

#include "input.h"
#include "reference.h"
#include "tshare-dlpack.h"
#include "tshare.h"

#define MAX_NDIM 5
#define MEMORY	 4096
#define MAX_COPY 8192

/* Each byte tells where it is, as far as a byte can. */
static uint8_t memory[MEMORY];
static struct tshare_ctx *ctx;

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct tshare_ctx_options options = {
		.size = sizeof(options),
		.backend = "shm",
	};
	size_t i;

	(void)argc;
	(void)argv;
	for (i = 0; i < MEMORY; i++)
		memory[i] = (uint8_t)(i * 31 + i / 256);
	REQUIRE(!tshare_ctx_new(&options, &ctx));
	return 0;
}

static bool is_on_cpu(DLDevice device)
{
	return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
	       device.device_type == kDLCUDAManaged;
}

static bool is_tensor(const DLTensor *dl, struct reach *reach)
{
	const uint32_t bits = (uint32_t)dl->dtype.bits * dl->dtype.lanes;
	const wide data = (wide)(uintptr_t)dl->data + (dl->data ? dl->byte_offset : 0);
	int32_t i;

	*reach = (struct reach){ .empty = true };
	if (!is_on_cpu(dl->device) || dl->ndim < 0 || dl->ndim > 32 || !bits ||
	    (dl->ndim && !dl->shape) || data > UINTPTR_MAX)
		return false;
	for (i = 0; i < dl->ndim; i++)
		if (dl->shape[i] < 0)
			return false;
	*reach = reach_of(bits, dl->ndim, dl->shape, dl->strides);
	if (!reach->countable)
		return false;
	if (reach->empty)
		return true;
	/* The library counts bits in 64 bits: as far as that no memory reaches. */
	if (reach->low < -(wide)UINT64_MAX || reach->high > (wide)UINT64_MAX)
		return false;
	return dl->data && data * 8 + reach->low >= 0 &&
	       data * 8 + reach->high <= (wide)UINTPTR_MAX * 8;
}

/* Strides of zero make much of little memory. */
static bool is_small_and_in_memory(const void *data, const struct reach *reach)
{
	const wide start = ((wide)(uintptr_t)data - (wide)(uintptr_t)memory) * 8;

	if (reach->bits > MAX_COPY * 8)
		return false;
	return reach->empty || (start + reach->low >= 0 && start + reach->high <= MEMORY * 8);
}

/* The elements, one after another in C order, which is how a copy has them. */
static void check_copy(const struct tshare_spec *spec, const uint8_t *data, const uint8_t *copy)
{
	const size_t bytes = (size_t)spec->dtype.bits * spec->dtype.lanes / 8;
	int64_t index[MAX_NDIM] = { 0 };
	int64_t offset;
	int32_t i;

	do {
		for (i = 0, offset = 0; i < spec->ndim; i++)
			offset += index[i] * spec->strides[i];
		REQUIRE(!memcmp(copy, data + offset * (int64_t)bytes, bytes));
		copy += bytes;
		for (i = spec->ndim; i-- > 0 && ++index[i] == spec->shape[i];)
			index[i] = 0;
	} while (i >= 0);
}

/* Of a tensor in @memory whose copy is small. */
static void copy_it(const struct tshare_spec *spec, const void *data)
{
	struct tshare_tensor *tensor;
	int err;

	err = tshare_tensor_copy(ctx, NULL, data, spec, NULL, &tensor);
	if (err) {
		REQUIRE(err == -EINVAL && spec->dtype.bits * spec->dtype.lanes % 8);
		return;
	}
	REQUIRE(tshare_tensor_is_contiguous(tensor));
	if (spec->strides && tshare_tensor_get_nbytes(tensor) &&
	    spec->dtype.bits * spec->dtype.lanes % 8 == 0)
		check_copy(spec, data, tshare_tensor_get_data(tensor));
	tshare_tensor_unref(tensor);
}

static void take_dims(struct input *input, int64_t *dims)
{
	int i;

	for (i = 0; i < MAX_NDIM; i++)
		dims[i] = take_number(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct tshare_spec spec = { .size = sizeof(spec) };
	int64_t shape[MAX_NDIM], strides[MAX_NDIM];
	uint8_t choice = take_byte(&input), head[8];
	DLManagedTensorVersioned managed = { 0 };
	DLTensor *dl = &managed.dl_tensor;
	const void *address = NULL;
	struct reach reach;
	uint32_t flags;
	bool fine;
	int err;

	take_bytes(&input, head, sizeof(head));
	take_dims(&input, shape);
	take_dims(&input, strides);
	managed.version = (DLPackVersion){ 1 + head[0] / 250, head[1] };
	managed.flags = head[2] % 8;
	*dl = (DLTensor){
		.data = choice & 1 ? memory + head[3] * 16 : (void *)(uintptr_t)take_number(&input),
		.device = { head[4] < 240 ? kDLCPU : head[4] - 239, 0 },
		.ndim = head[5] < 250 ? head[5] % (MAX_NDIM + 1) : take_number(&input),
		.dtype = { head[6] % 18, choice & 2 ? head[7] : 8,
			   (uint16_t)(choice & 4 ? take_number(&input) : 1) },
		.shape = choice & 8 ? NULL : shape,
		.strides = choice & 16 ? strides : NULL,
		.byte_offset = choice & 32 ? (uint64_t)take_number(&input) : 0,
	};
	/* The arrays have as many; larger numbers must be refused before they are read. */
	if (dl->ndim > MAX_NDIM && dl->ndim <= 32)
		dl->ndim = 33;
	fine = is_tensor(dl, &reach);
	err = tshare_spec_from_dlpack_legacy(&(DLManagedTensor){ .dl_tensor = *dl }, &spec,
					     &address);
	REQUIRE(!err == fine);
	fine &= managed.version.major == 1 && !(managed.flags & 4);
	spec = (struct tshare_spec){ .size = sizeof(spec) };
	err = tshare_spec_from_dlpack(&managed, &spec, &address, &flags);
	REQUIRE(!err == fine);
	if (err) {
		REQUIRE(*tshare_error_get());
		return 0;
	}
	REQUIRE((flags == TSHARE_READONLY) == (managed.flags & 1));
	REQUIRE(address == (dl->data ? (char *)dl->data + dl->byte_offset : NULL));
	if (is_small_and_in_memory(address, &reach))
		copy_it(&spec, address);
	return 0;
}
