/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shreds the machine's free memory: leaves a page that can't be moved in each 2 MiB of
 * it, and the rest free.
 */
#ifndef TSHARE_KSELFTEST_SHRED_H
#define TSHARE_KSELFTEST_SHRED_H

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>

#include "util.h"

/* Newer than Debian 12's C library. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define SHRED_PIPE_PAGES 16
#define SHRED_PFN_MASK	 ((1ULL << 55) - 1)

/* Pins @page in the last pipe, or a new one after each 16 pages; pipes end with the process. */
static inline bool shred_pin(void *page)
{
	static int pipes[2], pages;
	struct iovec iov = { .iov_base = page, .iov_len = PAGE };

	if (!(pages++ % SHRED_PIPE_PAGES) && pipe2(pipes, O_CLOEXEC))
		return false;
	return vmsplice(pipes[1], &iov, 1, SPLICE_F_NONBLOCK) == (ssize_t)PAGE;
}

/* Lasts as long as the process. The 2 MiB without a free page stay as they are. */
static inline bool shred_memory(void)
{
	const struct rlimit files = { .rlim_cur = 65536, .rlim_max = 65536 };
	const size_t batch = 512;
	struct sysinfo memory;
	__u64 entries[batch];
	size_t size, page, i;
	int pagemap;
	char *mem, *seen;

	/* What the kernel has cached would be free memory later on. */
	write_file("/proc/sys/vm/drop_caches", "3");
	if (setrlimit(RLIMIT_NOFILE, &files) || sysinfo(&memory))
		return false;
	size = memory.freeram * memory.mem_unit / 16 * 15 / (batch * PAGE) * (batch * PAGE);
	/* One byte for each 2 MiB that an address of 46 bits can have, of which few are used. */
	seen = mmap(NULL, 1UL << 25, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mem = mmap(NULL, size, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (seen == MAP_FAILED || mem == MAP_FAILED || pagemap < 0)
		return false;
	madvise(mem, size, MADV_NOHUGEPAGE);
	for (page = 0; page < size / PAGE; page += batch) {
		if (madvise(mem + page * PAGE, batch * PAGE, MADV_POPULATE_WRITE))
			return false;
		if (pread(pagemap, entries, sizeof(entries),
			  ((uintptr_t)mem / PAGE + page) * sizeof(entries[0])) !=
		    (ssize_t)sizeof(entries))
			return false;
		for (i = 0; i < batch; i++) {
			char *block = &seen[(entries[i] & SHRED_PFN_MASK) / (2 * MIB / PAGE)];

			if (!*block && !shred_pin(mem + (page + i) * PAGE))
				return false;
			*block = 1;
		}
	}
	close(pagemap);
	return !munmap(mem, size) && !munmap(seen, 1UL << 25);
}

#endif /* TSHARE_KSELFTEST_SHRED_H */
