/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of the library's own, none of which is 0, 1 or 2. In a process that has closed
 * those, the next file would become one of them, and the first message that any part of the
 * process prints would overwrite a region's header. So whatever opens a file or duplicates a
 * descriptor is called here, or its result is passed to fd_move_up(); tests/lint/descriptors
 * checks that.
 */
#ifndef TSHARE_FD_H
#define TSHARE_FD_H

#include <stdio.h>

/*
 * Returns a new descriptor, or a duplicate in its place if it is one of the first three: -1 with
 * errno set if there is none, when @fd is closed, or if @fd is negative.
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

#endif /* TSHARE_FD_H */
