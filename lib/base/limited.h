/* SPDX-License-Identifier: MIT */
/*
 * Changes of files without SIGXFSZ. Beyond RLIMIT_FSIZE, which another process may lower at any
 * time, the kernel fails with EFBIG, and sends the thread this signal, which would end the
 * process. These functions only fail with -EFBIG.
 */
#ifndef TSHARE_BASE_LIMITED_H
#define TSHARE_BASE_LIMITED_H

#include <stdint.h>
#include <sys/types.h>

/* pwrite(): bytes written, or a negative errno. */
ssize_t limited_write(int fd, const void *buffer, size_t size, off_t offset);

/* Writes all: 0, or a negative errno, when a part may be written. */
int limited_write_all(int fd, const void *buffer, size_t size, off_t offset);

/* ftruncate() and posix_fallocate(): 0 or a negative errno. */
int limited_truncate(int fd, off_t size);
int limited_allocate(int fd, off_t offset, off_t size);

#endif /* TSHARE_BASE_LIMITED_H */
