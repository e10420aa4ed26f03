// SPDX-License-Identifier: MIT
/* Memory of a device that another process has made. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "cuda/driver.h"
#include "cuda/memory.h"
#include "cuda/options.h"
#include "region/object.h"

TSHARE_EXPORT
bool tshare_cuda_memory_is(struct tshare_region *region)
{
	return memory_record_is_in(region);
}

/* The process's number of the maker's device. */
static int find_device(const struct memory_record *record, const struct tshare_cuda_options *wanted,
		       int *device)
{
	uint8_t uuid[CUDA_UUID_BYTES];
	char text[UUID_TEXT];
	int count, result;

	result = cuda_count_devices(&count);
	if (result)
		return cuda_fail(result, "CUDA: devices");
	for (*device = 0; *device < count; ++*device)
		if (!cuda_device_uuid(*device, uuid) && !memcmp(uuid, record->uuid, sizeof(uuid)))
			break;
	uuid_print(record->uuid, text);
	if (*device == count)
		return fail(-EOPNOTSUPP,
			    "region: its memory is on %s, which this process doesn't see; look at "
			    "CUDA_VISIBLE_DEVICES",
			    text);
	if (!(wanted->flags & TSHARE_CUDA_DEVICE) || wanted->device == *device)
		return 0;
	return fail(-EINVAL, "options.device: the memory is on device %d (%s), not %" PRId32,
		    *device, text, wanted->device);
}

static int open_handle(struct tshare_cuda_memory *memory, int device)
{
	struct cuda_scope scope;
	int result, err = cuda_enter(&scope, device);

	if (err)
		return cuda_fail(err, "CUDA: the device's context");
	result = cuda_open_memory(memory->record.handle, &memory->info.address);
	if (!result)
		memory_set(memory, &scope, false);
	cuda_leave(&scope);
	if (result && !life_is_there(&memory->life, LIFE_MAKER))
		return memory_fail_dead();
	return result ? cuda_fail(result, "region: its memory on the device") : 0;
}

/* The handle may have led anywhere: a peer that may write to the region may change it. */
static int check_size(const struct tshare_cuda_memory *memory)
{
	uint64_t bytes;
	int result = cuda_memory_from(memory->info.address, &bytes);

	if (result)
		return cuda_fail(result, "region: the size of its memory on the device");
	if (bytes < memory->record.bytes)
		return fail(-EPROTO, "region: its memory on the device is smaller than it says");
	return 0;
}

/*
 * With the lock held. The maker is asked once before, as a handle of the dead may lead anywhere,
 * and once behind: the memory is the maker's if the maker is there still.
 */
static int open_memory(struct tshare_cuda_memory *memory, int device)
{
	int err = life_begin(&memory->life, memory->region, LIFE_USERS);

	if (err)
		return err;
	if (!life_is_there(&memory->life, LIFE_MAKER))
		return memory_fail_dead();
	err = open_handle(memory, device);
	if (err)
		return err;
	err = check_size(memory);
	if (!err && !life_is_there(&memory->life, LIFE_MAKER))
		err = memory_fail_dead();
	if (err)
		memory_undo(memory);
	return err;
}

/* With the lock held: stores this process's object, which is @new if there is none yet. */
static int find_or_open(struct tshare_cuda_memory *new, int device,
			struct tshare_cuda_memory **memory)
{
	struct tshare_cuda_memory *found = memory_find(new);
	int err;

	if (found) {
		err = memory_check_context(found);
		*memory = err ? NULL : tshare_cuda_memory_ref(found);
		return err;
	}
	err = open_memory(new, device);
	if (!err)
		memory_add(new);
	*memory = err ? NULL : new;
	return err;
}

TSHARE_EXPORT
int tshare_cuda_memory_open(struct tshare_region *region, const struct tshare_cuda_options *options,
			    struct tshare_cuda_memory **memory)
{
	struct tshare_cuda_memory *new, *found;
	struct tshare_cuda_options known;
	struct memory_record record;
	int device, err;

	err = cuda_options_read_device(options, &known);
	if (!err)
		err = memory_record_read(region, &record);
	if (err)
		return err;
	if (region->readonly)
		return fail(-EOPNOTSUPP, "region: is read-only, and CUDA maps another process's "
					 "memory for writing, too");
	err = cuda_options_choose_device(&known, &device);
	if (!err)
		err = memory_check_driver();
	if (!err)
		err = find_device(&record, &known, &device);
	if (err)
		return err;
	new = memory_new(region, &record);
	if (!new)
		return -ENOMEM;
	memory_lock();
	err = find_or_open(new, device, &found);
	memory_unlock();
	/* Without the lock, since a program's log function may be called. */
	if (found != new)
		memory_free(new);
	if (!err)
		*memory = found;
	return err;
}
