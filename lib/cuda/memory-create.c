// SPDX-License-Identifier: MIT
/* New memory of a device, and the region that names it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "cuda/driver.h"
#include "cuda/memory.h"
#include "cuda/options.h"
#include "region/create.h"

/* Another process opens the whole block in which the driver has placed the memory. */
#define BLOCK (2ULL << 20)

/*
 * A process that can read the handle can open the memory, and then write to it. So nothing would
 * enforce a permission to read without one to write.
 */
static int check_mode(uint32_t mode)
{
	if ((mode & 0444) >> 1 == (mode & 0222))
		return 0;
	return fail(-EOPNOTSUPP,
		    "options.mode: %#" PRIo32 " lets some only read or only write, and CUDA maps "
		    "another process's memory for both",
		    mode);
}

/* tshare_region_create() checks the rest. */
static int check_options(const struct tshare_options *options, struct tshare_options *known)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} for_host[] = {
		{ TSHARE_DMA32, "TSHARE_DMA32" },
		{ TSHARE_CONTIGUOUS, "TSHARE_CONTIGUOUS" },
		{ TSHARE_NODE, "TSHARE_NODE" },
	};
	int err = options_read(options, known);
	size_t i;

	if (err)
		return err;
	for (i = 0; i < sizeof(for_host) / sizeof(for_host[0]); i++)
		if (known->flags & for_host[i].flag)
			return fail(-EINVAL, "options.flags: %s is for the host's memory",
				    for_host[i].name);
	if (known->lifetime != TSHARE_LIFETIME_MAKER)
		return fail(-EINVAL, "options.lifetime: a device's memory goes with its maker; set "
				     "TSHARE_LIFETIME_MAKER");
	return check_mode(known->mode);
}

static int describe(struct tshare_dtype dtype, int32_t ndim, const int64_t *shape,
		    struct memory_record *record)
{
	struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = dtype,
		.ndim = ndim,
		.shape = shape,
	};
	uint64_t offset, bytes;
	int err = tshare_region_compute_layout(&spec, 1, &offset, &bytes);

	if (err)
		return fail_without(err, "specs[0].");
	*record = (struct memory_record){ .dtype = dtype, .ndim = ndim };
	/* Can't overflow: a tensor's bits were counted. */
	record->bytes = ((bytes ? bytes : 1) + BLOCK - 1) & ~(BLOCK - 1);
	if (ndim)
		memcpy(record->shape, shape, ndim * sizeof(*shape));
	return 0;
}

static int fail_clear(int result)
{
	if (result == -EOPNOTSUPP)
		return fail(result, "memory: the thread's default stream, which clears it, is "
				    "being captured into a graph");
	return cuda_fail(result, "memory: its zeros");
}

/* In a scope: memory of zeros, with what opens it in the record. */
static int allocate(struct tshare_cuda_memory *memory, int device)
{
	struct memory_record *record = &memory->record;
	uint64_t address;
	int result, err = 0;

	result = cuda_device_uuid(device, record->uuid);
	if (result)
		return cuda_fail(result, "memory: the device's number");
	result = cuda_allocate(record->bytes, &address);
	if (cuda_errno(result) == -ENOMEM)
		return fail(-ENOMEM,
			    "shape: CUDA device %d has no %" PRIu64 " bytes of memory left", device,
			    record->bytes);
	if (result)
		return cuda_fail(result, "memory");
	result = cuda_clear(address, record->bytes);
	if (result)
		err = fail_clear(result);
	else if ((result = cuda_export_memory(address, record->handle)))
		err = cuda_fail(result, "memory: for other processes");
	if (err)
		cuda_free(address);
	else
		memory->info.address = address;
	return err;
}

static int make_memory(struct tshare_cuda_memory *memory, int device)
{
	struct cuda_scope scope;
	int err = cuda_enter(&scope, device);

	if (err)
		return cuda_fail(err, "CUDA: the device's context");
	err = allocate(memory, device);
	if (!err)
		memory_set(memory, &scope, true);
	cuda_leave(&scope);
	return err;
}

/* Makes the memory of a draft, and finishes it unless the caller wants it as a draft. */
static int fill_draft(struct tshare_cuda_memory *memory, int device, bool finish)
{
	int err = make_memory(memory, device);

	if (err)
		return err;
	err = life_begin(&memory->life, memory->region, LIFE_MAKER);
	if (!err) {
		memory_record_write(memory->region, &memory->record);
		memory_lock();
		memory_add(memory);
		memory_unlock();
		if (finish)
			err = tshare_region_finish(memory->region, 0);
		if (!err)
			return 0;
		memory_lock();
		memory_remove(memory);
		memory_unlock();
	}
	memory_undo(memory);
	return err;
}

TSHARE_EXPORT
int tshare_cuda_memory_create(struct tshare_ctx *ctx, const char *name, struct tshare_dtype dtype,
			      int32_t ndim, const int64_t *shape,
			      const struct tshare_options *options,
			      const struct tshare_cuda_options *cuda,
			      struct tshare_cuda_memory **memory)
{
	struct tshare_cuda_memory *new = NULL;
	struct tshare_cuda_options known_cuda;
	struct tshare_options known;
	struct tshare_region *region;
	struct memory_record record;
	int device, err;
	bool finish;

	if (!name)
		return fail(-EINVAL, "name: is NULL; a device's memory is opened by its name");
	err = check_options(options, &known);
	if (!err)
		err = describe(dtype, ndim, shape, &record);
	if (!err)
		err = cuda_options_read_device(cuda, &known_cuda);
	if (!err)
		err = cuda_options_choose_device(&known_cuda, &device);
	if (!err)
		err = memory_check_driver();
	if (err)
		return err;
	memory_sweep();
	finish = !(known.flags & TSHARE_DRAFT);
	known.flags |= TSHARE_DRAFT;
	err = tshare_region_create(ctx, name, 0, &memory_record_spec, 1, &known, &region);
	if (err)
		return err;
	new = memory_new(region, &record);
	err = new ? fill_draft(new, device, finish) : -ENOMEM;
	if (!err)
		*memory = new;
	else if (new)
		memory_free(new);
	/* After a failure nobody has the draft any more, and so it goes. */
	tshare_region_unref(region);
	return err;
}
