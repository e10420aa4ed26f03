// SPDX-License-Identifier: MIT
/*
 * A tensor whose memory is on a device, and that other processes open by name.
 *
 * The memory is the maker's. A small region on the host has the name, and describes the memory
 * (memory-record.h); whoever may write to the region may open it. See Documentation/design/cuda.rst
 * for why the driver's IPC handle is what passes.
 *
 * The driver opens such memory once in a process, and not in the maker's. So a process has one
 * object for each region.
 */
#include "cuda/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "cuda/driver.h"
#include "region/object.h"
#include "region/region.h"

static LIST_HEAD(memory_list, tshare_cuda_memory) here = LIST_HEAD_INITIALIZER(here);
/* The maker has dropped them, and others still use them. */
static struct memory_list kept = LIST_HEAD_INITIALIZER(kept);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void memory_lock(void)
{
	pthread_mutex_lock(&lock);
}

void memory_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void memory_add(struct tshare_cuda_memory *memory)
{
	LIST_INSERT_HEAD(&here, memory, entry);
}

void memory_remove(struct tshare_cuda_memory *memory)
{
	LIST_REMOVE(memory, entry);
}

/* Ends */

static bool is_valid(const struct tshare_cuda_memory *memory)
{
	return cuda_memory_is(memory->info.address, memory->id);
}

/* A reset of the device, or the end of the caller's context, has freed it already. */
void memory_undo(const struct tshare_cuda_memory *memory)
{
	struct cuda_scope scope;

	if (!memory->info.address || !is_valid(memory))
		return;
	if (!cuda_enter_memory(&scope, memory->info.address) ||
	    !cuda_enter_to_undo(&scope, memory->info.device)) {
		if (memory->info.maker)
			cuda_free(memory->info.address);
		else
			cuda_close_memory(memory->info.address);
		cuda_leave(&scope);
	}
	if (memory->retained)
		cuda_release(memory->info.device);
}

void memory_free(struct tshare_cuda_memory *memory)
{
	life_end(&memory->life);
	tshare_region_unref(memory->place);
	tshare_region_unref(memory->region);
	free(memory);
}

/* Without the lock, since a program's log function may be called. */
static void free_all(struct memory_list *gone)
{
	struct tshare_cuda_memory *memory;

	while ((memory = LIST_FIRST(gone))) {
		LIST_REMOVE(memory, entry);
		memory_free(memory);
	}
}

/* With the lock held: moves to @gone what nobody uses any more. */
static void sweep_kept(struct memory_list *gone)
{
	struct tshare_cuda_memory *memory, *next;

	for (memory = LIST_FIRST(&kept); memory; memory = next) {
		next = LIST_NEXT(memory, entry);
		if (life_is_there(&memory->life, LIFE_USERS))
			continue;
		LIST_REMOVE(memory, entry);
		memory_undo(memory);
		LIST_INSERT_HEAD(gone, memory, entry);
	}
}

/*
 * With the lock held. CUDA leaves it undefined what becomes of memory that its maker frees while
 * another process has it open. So the maker keeps it then, until a later call finds that nobody
 * uses it. The maker resigns before it looks for users, who look for the maker after they have
 * begun.
 */
static void drop_memory(struct tshare_cuda_memory *memory, struct memory_list *gone)
{
	LIST_REMOVE(memory, entry);
	if (memory->info.maker) {
		life_resign(&memory->life, LIFE_MAKER);
		LIST_INSERT_HEAD(&kept, memory, entry);
	} else {
		memory_undo(memory);
		LIST_INSERT_HEAD(gone, memory, entry);
	}
	sweep_kept(gone);
}

/*
 * Drops the last reference under the lock: who opens the memory again meanwhile finds the object,
 * or the handle closed.
 */
static void put_last(struct tshare_cuda_memory *memory)
{
	struct tshare_region *named = memory->info.maker ? tshare_region_ref(memory->region) : NULL;
	struct memory_list gone = LIST_HEAD_INITIALIZER(gone);
	bool last;

	pthread_mutex_lock(&lock);
	last = refcount_put(&memory->refs);
	if (last)
		drop_memory(memory, &gone);
	pthread_mutex_unlock(&lock);
	if (last && named)
		tshare_region_unlink(named);
	tshare_region_unref(named);
	free_all(&gone);
}

TSHARE_EXPORT
struct tshare_cuda_memory *tshare_cuda_memory_ref(struct tshare_cuda_memory *memory)
{
	refcount_get(&memory->refs);
	return memory;
}

TSHARE_EXPORT
struct tshare_cuda_memory *tshare_cuda_memory_unref(struct tshare_cuda_memory *memory)
{
	keep_errno();

	if (!memory || refcount_put_unless_last(&memory->refs))
		return NULL;
	/* In a child of fork() it is the parent's, and so is the name. */
	if (!cuda_is_forked())
		put_last(memory);
	else if (refcount_put(&memory->refs))
		memory_free(memory);
	return NULL;
}

static struct tshare_cuda_memory *memory_of(struct tensor_owner *owner)
{
	return container_of(owner, struct tshare_cuda_memory, owner);
}

static void ref_of_tensor(struct tensor_owner *owner)
{
	tshare_cuda_memory_ref(memory_of(owner));
}

static void unref_of_tensor(struct tensor_owner *owner)
{
	tshare_cuda_memory_unref(memory_of(owner));
}

void memory_sweep(void)
{
	struct memory_list gone = LIST_HEAD_INITIALIZER(gone);

	pthread_mutex_lock(&lock);
	sweep_kept(&gone);
	pthread_mutex_unlock(&lock);
	free_all(&gone);
}

/* Begins */

struct tshare_cuda_memory *memory_new(struct tshare_region *region,
				      const struct memory_record *record)
{
	struct tshare_cuda_memory *memory = malloc(sizeof(*memory));

	if (!memory) {
		fail(-ENOMEM, "memory: out of memory");
		return NULL;
	}
	*memory = (struct tshare_cuda_memory){
		.owner = { ref_of_tensor, unref_of_tensor },
		.record = *record,
		.life.fd = -1,
	};
	atomic_init(&memory->refs, 1);
	memory->place = region_new(region->ctx);
	if (!memory->place) {
		free(memory);
		return NULL;
	}
	memory->place->handle.size = record->bytes;
	memory->region = tshare_region_ref(region);
	return memory;
}

void memory_set(struct tshare_cuda_memory *memory, struct cuda_scope *scope, bool maker)
{
	memory->id = cuda_memory_id(memory->info.address);
	memory->retained = cuda_keep_context(scope);
	memory->info.memory_bytes = memory->record.bytes;
	memory->info.device = scope->device;
	memory->info.driver_version = cuda_driver_version();
	memory->info.context_created = scope->created;
	memory->info.maker = maker;
	memory->place->on_device.device = memory->info.device;
	memory->place->on_device.address = memory->info.address;
}

int memory_check_driver(void)
{
	if (cuda_shares_memory())
		return 0;
	return fail(-EOPNOTSUPP, "CUDA: the driver can't share a device's memory between "
				 "processes; it takes CUDA 11.4 or later");
}

int memory_fail_dead(void)
{
	return fail(-EOWNERDEAD, "region: the maker of its memory on a device has ended");
}

int memory_check_context(const struct tshare_cuda_memory *memory)
{
	if (is_valid(memory))
		return 0;
	return fail(-EIO, "memory: has gone with the context that it was opened in");
}

/* The id alone is not enough: a region's maker may write any id to it. */
static bool is_same(const struct tshare_cuda_memory *a, const struct tshare_cuda_memory *b)
{
	return a->region->handle.id == b->region->handle.id &&
	       !memcmp(&a->record, &b->record, sizeof(a->record));
}

struct tshare_cuda_memory *memory_find(const struct tshare_cuda_memory *same)
{
	struct tshare_cuda_memory *memory;

	for (memory = LIST_FIRST(&here); memory; memory = LIST_NEXT(memory, entry))
		if (is_same(memory, same) &&
		    (memory->info.maker || !tshare_cuda_memory_check(memory)))
			return memory;
	return NULL;
}

/* Using one */

TSHARE_EXPORT
int tshare_cuda_memory_check(const struct tshare_cuda_memory *memory)
{
	if (cuda_is_forked())
		return fail(-EOPNOTSUPP, "memory: is the parent's, whose CUDA a child can't use");
	if (!memory->info.maker && !life_is_there(&memory->life, LIFE_MAKER))
		return memory_fail_dead();
	return memory_check_context(memory);
}

TSHARE_EXPORT
struct tshare_region *tshare_cuda_memory_get_region(const struct tshare_cuda_memory *memory)
{
	return memory->region;
}

TSHARE_EXPORT
int tshare_cuda_memory_get_tensor(struct tshare_cuda_memory *memory, struct tshare_tensor **tensor)
{
	const struct tshare_spec spec = memory_record_tensor(&memory->record);
	int err = tshare_region_view(memory->place, &spec, 0, tensor);

	if (!err)
		tensor_set_owner(*tensor, &memory->owner);
	return err;
}

TSHARE_EXPORT
int tshare_cuda_memory_get_info(const struct tshare_cuda_memory *memory,
				struct tshare_cuda_memory_info *info)
{
	int err = sized_check(info, "info.", SIZED_UPTO(struct tshare_cuda_memory_info, maker));

	if (!err)
		sized_fill(info, &memory->info, sizeof(memory->info));
	return err;
}
