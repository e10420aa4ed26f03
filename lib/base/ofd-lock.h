/* SPDX-License-Identifier: MIT */
/*
 * Locks of one byte of a file that belong to an open file description (OFD): the
 * kernel releases them with the last process that has the description, however
 * that process ends.
 */
#ifndef TSHARE_BASE_OFD_LOCK_H
#define TSHARE_BASE_OFD_LOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static inline struct flock ofd_lock_of(short type, uint64_t byte)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = byte,
		.l_len = 1,
	};
}

/* Takes the lock (F_RDLCK, F_WRLCK) or releases it (F_UNLCK), without waiting; 0 or -errno. */
static inline int ofd_lock_set(int fd, short type, uint64_t byte)
{
	struct flock request = ofd_lock_of(type, byte);

	return fcntl(fd, F_OFD_SETLK, &request) ? -errno : 0;
}

/*
 * Stores whether a lock of another description would refuse one of @type, or true
 * if that can't be found out: 0 or -errno. Needs no write access, whatever the type.
 */
static inline int ofd_lock_test(int fd, short type, uint64_t byte, bool *refused)
{
	struct flock request = ofd_lock_of(type, byte);

	*refused = true;
	if (fcntl(fd, F_OFD_GETLK, &request))
		return -errno;
	*refused = request.l_type != F_UNLCK;
	return 0;
}

#endif /* TSHARE_BASE_OFD_LOCK_H */
