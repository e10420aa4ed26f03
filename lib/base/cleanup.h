/* SPDX-License-Identifier: MIT */
/*
 * Guards: a variable declared with one is released when its scope is left, on each
 * path. It has to be initialised, or assigned before the first return.
 */
#ifndef TSHARE_BASE_CLEANUP_H
#define TSHARE_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *at)
{
	free(*(void **)at);
}

/* Keeps errno, and ignores what isn't open: -1 or -errno. */
static inline void cleanup_close(const int *fd)
{
	int err = errno;

	if (*fd >= 0)
		close(*fd);
	errno = err;
}

static inline void cleanup_errno(const int *kept)
{
	errno = *kept;
}

static inline void cleanup_closedir(DIR *const *stream)
{
	if (*stream)
		closedir(*stream);
}

static inline void cleanup_fclose(FILE *const *file)
{
	if (*file)
		fclose(*file);
}

/* Restores errno when the scope is left. */
#define keep_errno() __attribute__((cleanup(cleanup_errno), unused)) const int kept_errno_ = errno

#define _cleanup_free_	   __attribute__((cleanup(cleanup_free)))
#define _cleanup_close_	   __attribute__((cleanup(cleanup_close)))
#define _cleanup_closedir_ __attribute__((cleanup(cleanup_closedir)))
#define _cleanup_fclose_   __attribute__((cleanup(cleanup_fclose)))

/* Takes the value from a guarded pointer or descriptor: the guard then releases nothing. */
#define no_cleanup(guarded)                                                \
	({                                                                 \
		__typeof__(guarded) kept_ = (guarded);                     \
		(guarded) = _Generic((guarded), int : -1, default : NULL); \
		kept_;                                                     \
	})

#endif /* TSHARE_BASE_CLEANUP_H */
