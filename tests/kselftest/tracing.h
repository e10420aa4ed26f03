/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's trace. */
#ifndef TSHARE_KSELFTEST_TRACING_H
#define TSHARE_KSELFTEST_TRACING_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

#define TRACING "/sys/kernel/tracing/"

/* Shows the trace where TRACING is, if the kernel has one. */
static inline void trace_mount(void)
{
	mount("tracefs", TRACING, "tracefs", 0, NULL);
}

/* Empties it. The kernel does so when the file is truncated, and ignores what is written. */
static inline bool trace_clear(void)
{
	int fd = open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

	close(fd);
	return fd >= 0;
}

#endif /* TSHARE_KSELFTEST_TRACING_H */
