// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "base/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef FUTEX_32
#define FUTEX_32 2
#endif

/* How long a sleep on one word of several may last. */
#define SLICE_NS (NSEC_PER_SEC / 10)

/* Longer than any machine runs, in seconds of 32 bits. */
#define LATEST_NS (INT32_MAX * NSEC_PER_SEC)

struct futex_word futex_shared(const void *word, uint32_t value)
{
	return (struct futex_word){ value, (uintptr_t)word, FUTEX_32, 0 };
}

struct futex_word futex_private(const void *word, uint32_t value)
{
	return (struct futex_word){ value, (uintptr_t)word, FUTEX_32 | FUTEX_PRIVATE_FLAG, 0 };
}

/* Set once futex_waitv(2) is missing, or a seccomp filter forbids it. */
static atomic_bool no_waitv;

static int call_waitv(struct futex_word *words, unsigned int count, int64_t deadline)
{
	struct {
		int64_t sec, nsec;
	} until = { deadline / NSEC_PER_SEC, deadline % NSEC_PER_SEC };
	long woken;

	woken = syscall(SYS_futex_waitv, words, count, 0, deadline == INT64_MAX ? NULL : &until,
			CLOCK_MONOTONIC);
	if (woken >= 0)
		return woken;
	if (errno == ENOSYS || errno == EPERM)
		atomic_store_explicit(&no_waitv, true, memory_order_relaxed);
	return -errno;
}

bool futex_sleeps_on_several(void)
{
	if (!atomic_load_explicit(&no_waitv, memory_order_relaxed))
		call_waitv(NULL, 0, INT64_MAX); /* -EINVAL where there is such a call */
	return !atomic_load_explicit(&no_waitv, memory_order_relaxed);
}

/* Sleeps until @deadline, or for as long as the system call's time can express. */
static int call_wait(const void *word, int private, uint32_t value, int64_t deadline)
{
	struct {
		long sec, nsec;
	} until; /* what this system call takes, whatever time_t is */

	if (deadline > LATEST_NS)
		deadline = LATEST_NS;
	until.sec = deadline / NSEC_PER_SEC;
	until.nsec = deadline % NSEC_PER_SEC;
	if (!syscall(SYS_futex, word, FUTEX_WAIT_BITSET | private, value, &until, NULL,
		     FUTEX_BITSET_MATCH_ANY))
		return 0;
	return -errno;
}

static int sleep_on_first(const struct futex_word *word, int64_t deadline)
{
	int64_t slice = clock_ns() + SLICE_NS;

	return call_wait((const void *)(uintptr_t)word->address, word->flags & FUTEX_PRIVATE_FLAG,
			 word->value, slice < deadline ? slice : deadline);
}

int futex_sleep_private(const void *word, uint32_t value, int64_t deadline)
{
	return call_wait(word, FUTEX_PRIVATE_FLAG, value, deadline);
}

int futex_sleep(struct futex_word *words, unsigned int count, int64_t deadline)
{
	int ret;

	if (!atomic_load_explicit(&no_waitv, memory_order_relaxed)) {
		ret = call_waitv(words, count, deadline);
		if (ret != -ENOSYS && ret != -EPERM)
			return ret;
	}
	return sleep_on_first(&words[0], deadline);
}

void futex_wake_shared(const void *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void futex_wake_private(const void *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
