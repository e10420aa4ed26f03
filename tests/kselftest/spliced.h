/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that looks movable to the search and isn't: huge pages that are pinned. */
#ifndef TSHARE_KSELFTEST_SPLICED_H
#define TSHARE_KSELFTEST_SPLICED_H

#include <sys/prctl.h>
#include <sys/uio.h>

#include "proc.h"

#define HUGE (2 * MIB)
#define PIPE_PAGES 16

/* Anonymous memory of huge pages, which are written to. */
static inline char *huge_pages(size_t size)
{
	char *area = mmap(NULL, size + HUGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *start;

	if (area == MAP_FAILED)
		return area;
	start = (char *)(((uintptr_t)area + HUGE - 1) & ~(HUGE - 1));
	madvise(start, size, MADV_HUGEPAGE);
	for (size_t i = 0; i < size; i += HUGE)
		start[i] = 1;
	return start;
}

/* Pins a page of each of @count huge pages in pipes. */
static inline bool splice_each(char *mem, size_t count)
{
	int pipes[2];
	size_t i;

	for (i = 0; i < count; i++) {
		struct iovec iov = { .iov_base = mem + i * HUGE, .iov_len = PAGE };

		if (!(i % PIPE_PAGES) && pipe2(pipes, O_CLOEXEC))
			return false;
		if (vmsplice(pipes[1], &iov, 1, SPLICE_F_NONBLOCK) != (ssize_t)PAGE)
			return false;
	}
	return true;
}

static inline bool hold_spliced(size_t size)
{
	char *mem;

	/* A change of user clears the signal at the parent's death, so it is set again. */
	if (!become(USER_C) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		return false;
	mem = huge_pages(size);
	return mem != MAP_FAILED && splice_each(mem, size / HUGE);
}

/* Five eighths of the free memory, but at most @limit. */
static inline size_t most_of_memory(size_t limit)
{
	size_t size = free_memory() * 5 / 8 / HUGE * HUGE;

	return size < limit ? size : limit;
}

#endif /* TSHARE_KSELFTEST_SPLICED_H */
