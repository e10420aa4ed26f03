// SPDX-License-Identifier: MIT
/*
 * Populating a mapping. This program has a madvise(), a sched_getaffinity() and a
 * pthread_create() of its own, which the library's function calls in place of the C
 * library's.
 */
#define _GNU_SOURCE 1
#include "base/populate.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../tap.h"

#define MIB (1 << 20)

static int cpus;	  /* that the process may run on */
static int possible_cpus; /* that the kernel counts with */
static _Atomic(uint64_t) advised;
static atomic_int calls;
static int failure;		   /* of each call, or 0 */
static pthread_barrier_t *meeting; /* that the first two calls wait at */
static pthread_t caller;
static atomic_bool signals_reach_others;
static int started, max_started; /* threads */

static bool takes_signals(void)
{
	sigset_t blocked;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	return !sigismember(&blocked, SIGALRM) || !sigismember(&blocked, SIGPROF);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): theirs are reserved */
int madvise(void *start, size_t size, int advice)
{
	if (atomic_fetch_add(&calls, 1) < 2 && meeting)
		pthread_barrier_wait(meeting);
	if (!pthread_equal(pthread_self(), caller) && takes_signals())
		atomic_store(&signals_reach_others, true);
	atomic_fetch_add(&advised, size);
	errno = failure;
	return failure ? -1 : (int)syscall(SYS_madvise, start, size, advice);
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	int i;

	(void)pid;
	if (size * 8 < (size_t)possible_cpus) {
		errno = EINVAL;
		return -1;
	}
	CPU_ZERO_S(size, set);
	for (i = 0; i < cpus; i++)
		CPU_SET_S(i, size, set);
	return 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
		   void *data)
{
	typeof(pthread_create) *next;

	if (started == max_started)
		return EAGAIN;
	started++;
	*(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
	return next(thread, attributes, start, data);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

static void begin(void)
{
	cpus = 4;
	possible_cpus = 64;
	failure = 0;
	meeting = NULL;
	caller = pthread_self();
	atomic_store(&signals_reach_others, false);
	started = 0;
	max_started = 100;
	atomic_store(&advised, 0);
	atomic_store(&calls, 0);
}

static void nothing(void)
{
}

static char *mapped(size_t size)
{
	char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(start != MAP_FAILED);
	return start;
}

static bool is_populated(char *start, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE), i;
	unsigned char there;

	for (i = 0; i < size; i += page)
		if (mincore(start + i, page, &there) || !there)
			return false;
	return true;
}

TEST(every_page_is_populated)
{
	const size_t size = 40 * MIB + 4096;
	char *start = mapped(size);

	populate(start, size, true);
	CHECK(is_populated(start, size));
	CHECK(atomic_load(&advised) == size);
	munmap(start, size);
}

/* Each of two threads is in madvise() until the other is, too. */
TEST(a_large_mapping_is_populated_by_several_threads)
{
	char *start = mapped(64 * MIB);
	pthread_barrier_t barrier;

	CHECK(!pthread_barrier_init(&barrier, NULL, 2));
	meeting = &barrier;
	populate(start, 64 * MIB, true);
	CHECK(is_populated(start, 64 * MIB));
	pthread_barrier_destroy(&barrier);
	munmap(start, 64 * MIB);
}

TEST(the_programs_signals_are_for_its_own_threads)
{
	char *start = mapped(64 * MIB);
	pthread_barrier_t barrier;

	CHECK(!pthread_barrier_init(&barrier, NULL, 2));
	meeting = &barrier;
	populate(start, 64 * MIB, true);
	CHECK(!atomic_load(&signals_reach_others));
	CHECK(takes_signals());
	pthread_barrier_destroy(&barrier);
	munmap(start, 64 * MIB);
}

/* As where RLIMIT_NPROC or a cgroup's pids.max is reached. */
TEST(fewer_threads_than_wanted_populate_all_of_it)
{
	char *start = mapped(64 * MIB);

	for (max_started = 0; max_started < 3; max_started++) {
		started = 0;
		atomic_store(&advised, 0);
		populate(start, 64 * MIB, true);
		CHECK(started == max_started);
		CHECK(atomic_load(&advised) == 64 * MIB);
	}
	munmap(start, 64 * MIB);
}

TEST(no_more_than_16_threads_populate_a_mapping)
{
	char *start = mapped(512 * MIB);

	cpus = 64;
	failure = EINVAL;
	populate(start, 512 * MIB, true);
	CHECK(started == 15);
	munmap(start, 512 * MIB);
}

/* The kernel refuses a set that is too small for them. */
TEST(a_kernel_for_8192_cpus_says_how_many_are_usable)
{
	char *start = mapped(64 * MIB);

	possible_cpus = 8192;
	populate(start, 64 * MIB, true);
	CHECK(started == 3);
	munmap(start, 64 * MIB);
}

TEST(one_cpu_populates_all_of_it)
{
	char *start = mapped(64 * MIB);

	cpus = 1;
	populate(start, 64 * MIB, false);
	CHECK(atomic_load(&advised) == 64 * MIB);
	munmap(start, 64 * MIB);
}

TEST(a_kernel_that_can_not_is_not_asked_for_each_part)
{
	char *start = mapped(256 * MIB);

	cpus = 1;
	failure = EINVAL;
	populate(start, 256 * MIB, true);
	CHECK(atomic_load(&calls) == 1);
	munmap(start, 256 * MIB);
}

int main(void)
{
	return tap_main(begin, nothing);
}
