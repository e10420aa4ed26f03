// SPDX-License-Identifier: MIT
/*
 * Publishing, and the end of publishers.
 *
 * Only a process with write access can publish. A reader can sleep on the counter,
 * but can't record that it does. Therefore each publish wakes, whether anybody
 * sleeps or not.
 *
 * A publisher holds a read lock on a byte of the counter's file, through an open
 * file description that nobody else has: the kernel releases it when the process
 * ends, in whatever way. A waiter checks whether a write lock would be refused. A
 * waiter that is a publisher checks through its own description, whose lock doesn't
 * refuse its own request. The locks are read locks: were they write locks, one
 * reader's lock on the same byte would keep all publishers out.
 *
 * The kernel wakes nobody when it releases a lock. A publisher that ends in order,
 * at its last unref or at exit(), wakes the sleepers itself. As others may be killed,
 * each sleeper checks every 100 ms, but only if there is another publisher. So the
 * first publisher wakes the sleepers, which have no such limit, before it publishes.
 */
#define _GNU_SOURCE 1
#include "generation/publisher.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/export.h"
#include "base/futex.h"
#include "base/ofd-lock.h"
#include "base/process.h"
#include "generation/counter.h"
#include "region/object.h"

/* How long a publisher that was seen counts as alive. */
#define ALIVE_NS (NSEC_PER_SEC / 10)

/* Publishers of this process, under its lock. */
static LIST_HEAD(, generation) publishers = LIST_HEAD_INITIALIZER(publishers);

/*
 * A child with the parent's description would keep the parent's lock alive. The
 * list is complete, as fork() took the process's lock.
 */
static void after_fork_in_child(void)
{
	struct generation *generation;

	for (generation = LIST_FIRST(&publishers); generation;
	     generation = LIST_NEXT(generation, publisher))
		close(atomic_exchange(&generation->lock_fd, -1));
	LIST_INIT(&publishers);
}

/* With the process's lock held. */
static void end_publisher(struct generation *generation)
{
	LIST_REMOVE(generation, publisher);
	close(atomic_exchange(&generation->lock_fd, -1));
	futex_wake_shared(futex_half(atomic_load(&generation->counter)));
}

static void publisher_release(struct tshare_region *region)
{
	process_lock();
	if (atomic_load(&region->generation.lock_fd) >= 0)
		end_publisher(&region->generation);
	process_unlock();
}

/* At exit() a process that still holds regions wakes the waiters, which see its end at once. */
static void end_publishers(void)
{
	while (!LIST_EMPTY(&publishers))
		end_publisher(LIST_FIRST(&publishers));
}

static const struct process_hooks hooks = { after_fork_in_child, end_publishers };

/* Locks before it counts itself, so a waiter that reads the count finds the lock. */
int publisher_start(struct tshare_region *region)
{
	struct generation *generation = &region->generation;
	struct backend_counter own;
	struct counter *counter;
	int err;

	if (atomic_load(&generation->lock_fd) >= 0)
		return 0;
	err = counter_map(region);
	if (!err)
		err = counter_find(region, COUNTER_TO_READ_LOCK, &own);
	if (err == -EMFILE || err == -ENFILE)
		return fail(err, "region: publish needs a file descriptor of its own: %s",
			    strerror(-err));
	if (err)
		return err;
	err = ofd_lock_set(own.fd, F_RDLCK, generation->lock);
	if (err) {
		close(own.fd);
		return fail(err, "region: lock: %s", strerror(-err));
	}
	counter = atomic_load(&generation->counter);
	atomic_fetch_add(&counter->publishers, 1);
	futex_wake_shared(futex_half(counter));
	atomic_store(&generation->lock_fd, own.fd);
	process_join(PROCESS_PUBLISHERS, &hooks);
	region->release[REGION_PUBLISHER] = publisher_release;
	LIST_INSERT_HEAD(&publishers, generation, publisher);
	return 0;
}

/* Whether a publisher other than @region's own object holds its lock. */
static int ask_for_others(struct tshare_region *region, bool *others)
{
	struct generation *generation = &region->generation;
	int fd = atomic_load(&generation->lock_fd), err = 0;

	if (fd < 0 && atomic_load(&generation->ask_fd) < 0) {
		process_lock();
		err = counter_prepare_to_ask(region);
		process_unlock();
	}
	if (err)
		return err;
	if (fd < 0)
		fd = atomic_load(&generation->ask_fd);
	err = ofd_lock_test(fd, F_WRLCK, generation->lock, others);
	return err ? fail(err, "region: lock: %s", strerror(-err)) : 0;
}

int publisher_check(struct tshare_region *region, struct counter *counter, int64_t now,
		    bool now_due, int64_t *due)
{
	struct generation *generation = &region->generation;
	int64_t alive_at = atomic_load_explicit(&generation->alive_at, memory_order_relaxed);
	bool is_publisher = atomic_load(&generation->lock_fd) >= 0, others;
	int err;

	*due = INT64_MAX;
	err = counter_check_version(counter);
	if (err)
		return err;
	if (atomic_load(&counter->publishers) <= is_publisher)
		return 0;
	if (now_due || now - alive_at >= ALIVE_NS) {
		err = ask_for_others(region, &others);
		if (err)
			return err;
		alive_at = others ? now : NEVER_NS;
		atomic_store_explicit(&generation->alive_at, alive_at, memory_order_relaxed);
		if (!others)
			return fail(-EOWNERDEAD, "region: all publishers have exited");
	}
	*due = alive_at + ALIVE_NS;
	return 0;
}

bool publisher_was_seen(const struct tshare_region *region, int64_t since)
{
	return atomic_load_explicit(&region->generation.alive_at, memory_order_relaxed) >= since;
}

static int fail_readonly(void)
{
	return fail(-EACCES, "region: is read-only");
}

TSHARE_EXPORT
int tshare_region_has_publishers(struct tshare_region *region, bool *has)
{
	struct counter *counter;
	int64_t due;
	int err;

	counter = counter_get(region, &err);
	if (!counter)
		return err;
	err = publisher_check(region, counter, clock_ns(), true, &due);
	if (!err)
		*has = due != INT64_MAX;
	return err;
}

static void add_one(struct counter *counter, uint64_t *generation)
{
	uint64_t before;

	before = atomic_fetch_add_explicit(&counter->generation, 1, memory_order_release);
	futex_wake_shared(futex_half(counter));
	if (generation)
		*generation = before + 1;
}

TSHARE_EXPORT
int tshare_region_publish_once(struct tshare_region *region, uint64_t *generation)
{
	struct counter *counter;
	int err;

	if (region->readonly)
		return fail_readonly();
	counter = counter_get(region, &err);
	if (!counter)
		return err;
	add_one(counter, generation);
	return 0;
}

TSHARE_EXPORT
int tshare_region_announce(struct tshare_region *region)
{
	int err;

	if (region->readonly)
		return fail_readonly();
	if (atomic_load_explicit(&region->generation.lock_fd, memory_order_acquire) >= 0)
		return 0;
	process_lock();
	err = publisher_start(region);
	process_unlock();
	return err;
}

TSHARE_EXPORT
int tshare_region_publish(struct tshare_region *region, uint64_t *generation)
{
	int err;

	err = tshare_region_announce(region);
	if (err)
		return err;
	add_one(atomic_load_explicit(&region->generation.counter, memory_order_relaxed),
		generation);
	return 0;
}
