// SPDX-License-Identifier: MIT
/*
 * A region's counter, in shared memory that processes sleep on.
 *
 * The backend chooses the counter's place (see backend.h), in a file that futex()
 * works on. This file maps it. publisher.c adds to it, waiter.c sleeps on it, and
 * event.c makes descriptors readable when it changes.
 */
#define _GNU_SOURCE 1
#include "generation/counter.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/export.h"
#include "base/process.h"
#include "ctx.h"
#include "region/object.h"
#include "region/region.h"

_Static_assert(sizeof(struct counter) <= TSHARE_COUNTER_BYTES, "the counter has its place");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would not be shared between processes");

int counter_find(const struct tshare_region *region, enum counter_use use,
		 struct backend_counter *found)
{
	void *session = ctx_session(region->ctx, region->backend);
	int err = region_check_on_host(region);

	if (err)
		return err;
	return region->backend->counter(session, &region->handle, use, found);
}

/* Setting up, with the process's lock held */

int counter_check_version(struct counter *counter)
{
	uint32_t version = atomic_load_explicit(&counter->version, memory_order_relaxed);

	if (!version || version == COUNTER_VERSION)
		return 0;
	return fail(-EPROTO,
		    "region: its counter is of version %" PRIu32 ", and this library knows "
		    "%d; use the same version of tshare in all its processes",
		    version, COUNTER_VERSION);
}

/* Sets the version of a new counter. */
static int begin_to_use(struct counter *counter, bool readonly)
{
	uint32_t none = 0;

	if (!readonly)
		atomic_compare_exchange_strong(&counter->version, &none, COUNTER_VERSION);
	return counter_check_version(counter);
}

static void counter_release(struct tshare_region *region)
{
	struct generation *generation = &region->generation;
	uintptr_t counter = (uintptr_t)atomic_load(&generation->counter);
	size_t page_size = region->ctx->page_size;

	if (atomic_load(&generation->ask_fd) >= 0)
		close(atomic_load(&generation->ask_fd));
	munmap((void *)(counter & ~(uintptr_t)(page_size - 1)), page_size);
}

int counter_map(struct tshare_region *region)
{
	struct generation *generation = &region->generation;
	uint64_t page_size = region->ctx->page_size, within;
	struct backend_counter at;
	char *page;
	int err;

	if (atomic_load(&generation->counter))
		return 0;
	err = counter_find(region, COUNTER_TO_MAP, &at);
	if (err)
		return err;
	within = at.offset % page_size;
	page = mmap(NULL, page_size, region->readonly ? PROT_READ : PROT_READ | PROT_WRITE,
		    MAP_SHARED, at.fd, at.offset - within);
	err = errno;
	close(at.fd);
	if (page == MAP_FAILED)
		return fail(-err, "region: mmap of its counter: %s", strerror(err));
	err = begin_to_use((struct counter *)(page + within), region->readonly);
	if (err) {
		munmap(page, page_size);
		return err;
	}
	generation->lock = at.lock;
	region->release[REGION_COUNTER] = counter_release;
	atomic_store(&generation->counter, (struct counter *)(page + within));
	return 0;
}

int counter_prepare_to_ask(struct tshare_region *region)
{
	struct generation *generation = &region->generation;
	struct backend_counter at;
	int err;

	if (atomic_load(&generation->ask_fd) >= 0)
		return 0;
	err = counter_find(region, COUNTER_TO_MAP, &at);
	if (err)
		return err;
	atomic_store(&generation->ask_fd, at.fd);
	return 0;
}

struct counter *counter_get(struct tshare_region *region, int *err)
{
	struct counter *counter;

	counter = atomic_load_explicit(&region->generation.counter, memory_order_acquire);
	if (counter)
		return counter;
	process_lock();
	*err = counter_map(region);
	process_unlock();
	return *err ? NULL : atomic_load(&region->generation.counter);
}

TSHARE_EXPORT
int tshare_region_get_generation(struct tshare_region *region, uint64_t *generation)
{
	struct counter *counter;
	int err;

	counter = counter_get(region, &err);
	if (!counter)
		return err;
	err = counter_check_version(counter);
	if (err)
		return err;
	*generation = newest(counter);
	return 0;
}
