// SPDX-License-Identifier: MIT
/*
 * Generations: a counter in shared memory that processes sleep on.
 *
 * The backend chooses the counter's place (see backend.h), in a file that futex()
 * works on. Only a process with write access can count. A reader can sleep on the
 * counter, but can't record that it does; therefore each publish wakes, whether
 * anybody sleeps or not.
 *
 * A publisher holds a read lock on a byte of that file, through an open file
 * description that nobody else has: the kernel releases it when the process ends,
 * in whatever way. Every 100 ms a waiter checks whether a write lock would be
 * refused. A waiter that is a publisher checks through its own description, whose
 * lock doesn't refuse its own request. The locks are read locks: were they write
 * locks, one reader's lock on the same byte would keep all publishers out.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ctx.h"
#include "error.h"
#include "export.h"
#include "lock.h"
#include "ofd-lock.h"
#include "region.h"

#define NSEC_PER_SEC INT64_C(1000000000)

/* How long to sleep before looking whether there is anybody left to wait for. */
#define SLICE_NS (NSEC_PER_SEC / 10)

/* Looks at the counter between two at the clock, when spinning. */
#define SPIN_LOOKS 64

struct counter {
	_Atomic(uint64_t) generation;
	_Atomic(uint64_t) publishers; /* that there have been */
};

_Static_assert(sizeof(struct counter) <= TSHARE_COUNTER_BYTES, "the counter has its place");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would not be shared between processes");

/* Those with a lock, under the process's lock, as is all that is set up. */
static LIST_HEAD(, generation) publishers = LIST_HEAD_INITIALIZER(publishers);

/*
 * A child with the parent's description would keep the parent's lock alive. It
 * has no other thread yet, and the list whole, as fork() took the process's lock.
 */
static void after_fork_in_child(void)
{
	struct generation *generation;

	for (generation = LIST_FIRST(&publishers); generation;
	     generation = LIST_NEXT(generation, publisher))
		close(atomic_exchange(&generation->lock_fd, -1));
	LIST_INIT(&publishers);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* Setting up, with the process's lock held */

static int find_counter(const struct tshare_region *region, bool own, struct backend_counter *found)
{
	void *session = ctx_session(region->ctx, region->backend);

	return region->backend->counter(session, region->handle.fd, own, found);
}

static int map_counter(struct tshare_region *region)
{
	struct generation *generation = &region->generation;
	uint64_t page_size = region->ctx->page_size, within;
	struct backend_counter at;
	char *page;
	int err;

	if (atomic_load(&generation->counter))
		return 0;
	err = find_counter(region, false, &at);
	if (err)
		return err;
	within = at.offset % page_size;
	page = mmap(NULL, page_size, region->readonly ? PROT_READ : PROT_READ | PROT_WRITE,
		    MAP_SHARED, at.fd, at.offset - within);
	err = errno;
	close(at.fd);
	if (page == MAP_FAILED)
		return tshare_fail(-err, "region: mmap of its counter: %s", strerror(err));
	generation->lock = at.lock;
	atomic_store(&generation->counter, (struct counter *)(page + within));
	return 0;
}

static int prepare_to_ask(struct tshare_region *region)
{
	struct generation *generation = &region->generation;
	struct backend_counter at;
	int err;

	if (atomic_load(&generation->ask_fd) >= 0)
		return 0;
	err = find_counter(region, false, &at);
	if (err)
		return err;
	atomic_store(&generation->ask_fd, at.fd);
	return 0;
}

/* Locks before it counts itself: a waiter that reads the number then finds the lock. */
static int become_publisher(struct tshare_region *region)
{
	struct generation *generation = &region->generation;
	struct backend_counter at;
	int err;

	if (atomic_load(&generation->lock_fd) >= 0)
		return 0;
	err = map_counter(region);
	if (!err)
		err = find_counter(region, true, &at);
	if (err == -EMFILE || err == -ENFILE)
		return tshare_fail(err, "region: publish needs a file descriptor of its own: %s",
				   strerror(-err));
	if (err)
		return err;
	err = ofd_lock_set(at.fd, F_RDLCK, at.lock);
	if (err) {
		close(at.fd);
		return tshare_fail(err, "region: lock: %s", strerror(-err));
	}
	atomic_fetch_add(&atomic_load(&generation->counter)->publishers, 1);
	atomic_store(&generation->lock_fd, at.fd);
	LIST_INSERT_HEAD(&publishers, generation, publisher);
	return 0;
}

static int set_up(struct tshare_region *region, int (*how)(struct tshare_region *region))
{
	int err;

	tshare_lock();
	err = how(region);
	tshare_unlock();
	return err;
}

void generation_init(struct generation *generation)
{
	atomic_init(&generation->counter, NULL);
	atomic_init(&generation->ask_fd, -1);
	atomic_init(&generation->lock_fd, -1);
}

void generation_release(struct tshare_region *region)
{
	struct generation *generation = &region->generation;
	uintptr_t counter = (uintptr_t)atomic_load(&generation->counter);
	size_t page_size = region->ctx->page_size;

	if (!counter)
		return;
	if (atomic_load(&generation->ask_fd) >= 0)
		close(atomic_load(&generation->ask_fd));
	tshare_lock();
	if (atomic_load(&generation->lock_fd) >= 0) {
		LIST_REMOVE(generation, publisher);
		close(atomic_load(&generation->lock_fd));
	}
	tshare_unlock();
	munmap((void *)(counter & ~(uintptr_t)(page_size - 1)), page_size);
}

/* The counter; NULL with @err stored if it is unavailable. */
static struct counter *counter_of(struct tshare_region *region, int *err)
{
	struct counter *counter;

	counter = atomic_load_explicit(&region->generation.counter, memory_order_acquire);
	if (counter)
		return counter;
	*err = set_up(region, map_counter);
	return *err ? NULL : atomic_load(&region->generation.counter);
}

/* Sleeping and waking */

/* The half of the counter that changes with each publish. */
static uint32_t *futex_word(struct counter *counter)
{
	uint32_t *halves = (uint32_t *)&counter->generation;

	return halves + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static void wake_all(struct counter *counter)
{
	syscall(SYS_futex, futex_word(counter), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/*
 * Sleeps while the generation is @known, for less than a second. -ETIMEDOUT;
 * -EINTR if a signal handler ran; else there may be something new.
 */
static int sleep_on(struct counter *counter, uint64_t known, int64_t timeout_ns)
{
	struct {
		long sec, nsec;
	} timeout = { 0, timeout_ns }; /* what this system call takes, whatever time_t is */

	if (!syscall(SYS_futex, futex_word(counter), FUTEX_WAIT, (uint32_t)known, &timeout, NULL,
		     0))
		return 0;
	return errno == EAGAIN ? 0 : -errno;
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static int64_t time_after(int64_t now, int64_t duration)
{
	int64_t then;

	return __builtin_add_overflow(now, duration, &then) ? INT64_MAX : then;
}

static uint64_t newest(struct counter *counter)
{
	return atomic_load_explicit(&counter->generation, memory_order_acquire);
}

static void spin(struct counter *counter, uint64_t seen, int64_t until)
{
	unsigned int looks = 0;

	while (newest(counter) <= seen) {
		if (++looks % SPIN_LOOKS == 0 && clock_ns() >= until)
			return;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ __volatile__("yield");
#endif
	}
}

/* Whether other objects have published to the region, and all of their publishers have exited. */
static int publishers_gone(struct tshare_region *region, struct counter *counter, bool *gone)
{
	struct generation *generation = &region->generation;
	int fd = atomic_load(&generation->lock_fd);
	bool locked;
	int err;

	*gone = false;
	if (atomic_load(&counter->publishers) <= (fd >= 0))
		return 0;
	if (fd < 0) {
		err = atomic_load(&generation->ask_fd) < 0 ? set_up(region, prepare_to_ask) : 0;
		if (err)
			return err;
		fd = atomic_load(&generation->ask_fd);
	}
	err = ofd_lock_test(fd, F_WRLCK, generation->lock, &locked);
	if (err)
		return tshare_fail(err, "region: lock: %s", strerror(-err));
	*gone = !locked;
	return 0;
}

/*
 * Waits until @deadline. What a publisher has done before its end counts, so
 * each reason to give up is looked at before the counter is.
 */
static int sleep_until(struct tshare_region *region, struct counter *counter, uint64_t seen,
		       int64_t deadline, uint64_t *generation)
{
	bool gone = false;
	int err = -ETIMEDOUT; /* ask before the first sleep, too */
	int64_t left;

	for (;;) {
		if (err == -ETIMEDOUT) {
			err = publishers_gone(region, counter, &gone);
			if (err)
				return err;
		}
		left = deadline - clock_ns();
		*generation = newest(counter);
		if (*generation > seen)
			return 0;
		if (gone)
			return tshare_fail(-EOWNERDEAD, "region: all publishers have exited");
		if (err)
			return tshare_fail(err, "region: waiting: %s", strerror(-err));
		if (left <= 0)
			return tshare_fail(-ETIMEDOUT, "timeout: nothing was published in time");
		err = sleep_on(counter, *generation, left < SLICE_NS ? left : SLICE_NS);
	}
}

/* The calls */

TSHARE_EXPORT
int tshare_region_get_generation(struct tshare_region *region, uint64_t *generation)
{
	struct counter *counter;
	int err;

	counter = counter_of(region, &err);
	if (!counter)
		return err;
	*generation = newest(counter);
	return 0;
}

TSHARE_EXPORT
int tshare_region_publish(struct tshare_region *region, uint64_t *generation)
{
	struct counter *counter;
	uint64_t before;
	int err;

	if (region->readonly)
		return tshare_fail(-EACCES, "region: is read-only");
	if (atomic_load_explicit(&region->generation.lock_fd, memory_order_acquire) < 0) {
		err = set_up(region, become_publisher);
		if (err)
			return err;
	}
	counter = atomic_load_explicit(&region->generation.counter, memory_order_relaxed);
	before = atomic_fetch_add_explicit(&counter->generation, 1, memory_order_release);
	wake_all(counter);
	if (generation)
		*generation = before + 1;
	return 0;
}

TSHARE_EXPORT
int tshare_region_wait(struct tshare_region *region, uint64_t seen, int64_t timeout_ns,
		       int64_t spin_ns, uint64_t *generation)
{
	int64_t now, deadline = INT64_MAX;
	struct counter *counter;
	uint64_t found;
	int err;

	counter = counter_of(region, &err);
	if (!counter)
		return err;
	found = newest(counter);
	if (found <= seen) {
		if (!timeout_ns)
			return tshare_fail(-ETIMEDOUT, "timeout: nothing new was published");
		now = clock_ns();
		if (timeout_ns > 0)
			deadline = time_after(now, timeout_ns);
		if (spin_ns > 0)
			spin(counter, seen,
			     spin_ns < deadline - now ? time_after(now, spin_ns) : deadline);
		err = sleep_until(region, counter, seen, deadline, &found);
		if (err)
			return err;
	}
	*generation = found;
	return 0;
}
