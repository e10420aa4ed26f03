/* SPDX-License-Identifier: GPL-2.0-only */
/* What /proc reports of the process and the machine. */
#ifndef TSHARE_KSELFTEST_PROC_H
#define TSHARE_KSELFTEST_PROC_H

#include <sys/sysinfo.h>

#include "util.h"

/* Value of a line in smaps, in bytes, for the area that begins at @mem; -1 if there is none. */
static inline long smaps(const void *mem, const char *field)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool here = false;
	long kib = -1;
	char line[512];

	while (file && kib < 0 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start == (unsigned long)mem;
		else if (here && !strncmp(line, field, strlen(field)))
			sscanf(line + strlen(field), ": %ld", &kib);
	}
	if (file)
		fclose(file);
	return kib < 0 ? -1 : kib * 1024;
}

/* What a process does, as a letter: R it runs, S it sleeps until it is woken; 0 if it is gone. */
static inline char state_of(pid_t pid)
{
	char path[64], line[512] = "", state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	/* Behind the name, which may have any character. */
	if (file && fgets(line, sizeof(line), file) && strrchr(line, ')'))
		sscanf(strrchr(line, ')') + 1, " %c", &state);
	if (file)
		fclose(file);
	return state;
}

/* Waits until the process sleeps in a system call, or has ended. */
static inline void wait_for_sleep(pid_t pid)
{
	int tries, asleep = 0;

	for (tries = 0; tries < 1000 && asleep < 10; tries++) {
		char state = state_of(pid);

		if (!state || state == 'Z')
			return;
		asleep = state == 'S' || state == 'D' ? asleep + 1 : 0;
		usleep(5000);
	}
}

static inline bool booted_with(const char *option)
{
	char line[4096] = "";
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, line, sizeof(line) - 1);

	close(fd);
	return len > 0 && strstr(line, option);
}

/* Bytes of shared memory on the whole machine, which the kernel counts to some hundred KiB. */
static inline long shared_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "Shmem: %ld", &kib);
	if (file)
		fclose(file);
	return kib < 0 ? -1 : kib * (long)KIB;
}

static inline __u64 free_memory(void)
{
	struct sysinfo memory;

	return sysinfo(&memory) ? 0 : (__u64)memory.freeram * memory.mem_unit;
}

#endif /* TSHARE_KSELFTEST_PROC_H */
