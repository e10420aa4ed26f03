/* SPDX-License-Identifier: GPL-2.0-only */
/* Which code of the module a thread has run, by the kernel's kcov. */
#ifndef TSHARE_KSELFTEST_FUZZ_COVER_H
#define TSHARE_KSELFTEST_FUZZ_COVER_H

#include <linux/kcov.h>

#include "util.h"

#define COVER_AREA  (1 << 16)
#define COVER_BYTES (COVER_AREA * sizeof(unsigned long))
#define COVER_EDGES (1 << 18)
#define COVER_PCS   (1 << 14)

/* A thread's own. Word 0 of the area counts the words that follow. */
struct cover {
	int fd;
	unsigned long *area;
};

/* What all threads of all processes have run together, in memory that they share. */
struct covered {
	__u8 edges[COVER_EDGES];
	unsigned long pcs[COVER_PCS];
	__u32 pc_count;
};

/* To be opened before the process has descriptors of its own to close. */
static inline bool cover_open(struct cover *cover)
{
	void *area;

	cover->area = NULL;
	cover->fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	if (cover->fd < 0 || ioctl(cover->fd, KCOV_INIT_TRACE, COVER_AREA))
		return false;
	area = mmap(NULL, COVER_BYTES, RW, MAP_SHARED, cover->fd, 0);
	if (area == MAP_FAILED)
		return false;
	cover->area = area;
	return true;
}

/* For the calling thread, until it ends. */
static inline bool cover_enable(struct cover *cover)
{
	return cover->area && !ioctl(cover->fd, KCOV_ENABLE, KCOV_TRACE_PC);
}

static inline void cover_reset(struct cover *cover)
{
	if (cover->area)
		__atomic_store_n(&cover->area[0], 0, __ATOMIC_RELAXED);
}

static inline bool cover_add_pc(struct covered *covered, unsigned long pc)
{
	__u32 at = (pc * 0x9e3779b97f4a7c15ULL) >> 50, tries;

	for (tries = 0; tries < COVER_PCS; tries++, at = (at + 1) % COVER_PCS) {
		unsigned long there = 0;

		if (__atomic_compare_exchange_n(&covered->pcs[at], &there, pc, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_add_fetch(&covered->pc_count, 1, __ATOMIC_RELAXED);
			return true;
		}
		if (there == pc)
			return false;
	}
	return false;
}

/* Calls @fn for each edge, which is a pair of places run one after the other. */
static inline void cover_each_edge(const struct cover *cover,
				   void (*fn)(__u32 edge, unsigned long pc, void *arg), void *arg)
{
	unsigned long count, i, last = 0;

	if (!cover->area)
		return;
	count = __atomic_load_n(&cover->area[0], __ATOMIC_RELAXED);
	for (i = 1; i <= count && i < COVER_AREA; i++) {
		unsigned long pc = cover->area[i];

		fn(((pc ^ (last << 7)) * 0x9e3779b97f4a7c15ULL) >> 46, pc, arg);
		last = pc;
	}
}

#endif /* TSHARE_KSELFTEST_FUZZ_COVER_H */
