/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of the library's own, none of which is 0, 1 or 2. In a process that has closed
 * those, the next file would become one of them, and the first message that any part of the
 * process prints would overwrite a region's header. So the library opens files and duplicates
 * descriptors here alone, or passes the result to fd_move_up(): see tests/lint/descriptors.
 */
#ifndef TSHARE_BASE_FD_H
#define TSHARE_BASE_FD_H

#include <stdio.h>

/*
 * Returns @fd, or a duplicate in place of 0, 1 or 2. -1 with errno set if no descriptor is left,
 * when @fd is closed, or if @fd is negative.
 */
int fd_move_up(int fd);

/* open() with O_CLOEXEC, of a file that exists. */
int fd_open(const char *path, int flags);

/* The same in a directory, or of a new file there. */
int fd_open_at(int dir, const char *path, int flags, unsigned int mode);

/* fopen() for reading, with O_CLOEXEC. */
FILE *fd_fopen(const char *path);

/* A duplicate, O_CLOEXEC. */
int fd_duplicate(int fd);

#endif /* TSHARE_BASE_FD_H */
