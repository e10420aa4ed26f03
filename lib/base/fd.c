// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "base/fd.h"

#include <fcntl.h>

#include "base/cleanup.h"

#define FIRST_FREE (STDERR_FILENO + 1)

int fd_duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
}

int fd_move_up(int fd)
{
	_cleanup_close_ int low = -1;

	if (fd < 0 || fd >= FIRST_FREE)
		return fd;
	low = fd;
	return fd_duplicate(low);
}

int fd_open(const char *path, int flags)
{
	return fd_move_up(open(path, flags | O_CLOEXEC));
}

int fd_open_at(int dir, const char *path, int flags, unsigned int mode)
{
	return fd_move_up(openat(dir, path, flags | O_CLOEXEC, mode));
}

FILE *fd_fopen(const char *path)
{
	_cleanup_close_ int fd = fd_open(path, O_RDONLY);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (file)
		(void)no_cleanup(fd); /* now the stream's */
	return file;
}
