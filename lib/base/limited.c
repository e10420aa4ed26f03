// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "base/limited.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

/* The thread's signals before. */
struct guard {
	sigset_t mask;
	bool pending; /* the caller's own signal, which stays */
};

static void begin(struct guard *guard)
{
	sigset_t raised, pending;

	sigemptyset(&raised);
	sigaddset(&raised, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &raised, &guard->mask);
	/* A signal that isn't blocked would have been delivered. */
	guard->pending = sigismember(&guard->mask, SIGXFSZ) && !sigpending(&pending) &&
			 sigismember(&pending, SIGXFSZ);
}

/* Takes the signal, and returns @err. */
static int end(const struct guard *guard, int err)
{
	static const struct timespec no_time;
	sigset_t raised;

	sigemptyset(&raised);
	sigaddset(&raised, SIGXFSZ);
	if (err == -EFBIG && !guard->pending)
		sigtimedwait(&raised, NULL, &no_time);
	pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
	return err;
}

ssize_t limited_write(int fd, const void *buffer, size_t size, off_t offset)
{
	struct guard guard;
	ssize_t count;
	int err;

	begin(&guard);
	count = pwrite(fd, buffer, size, offset);
	err = end(&guard, count < 0 ? -errno : 0);
	return err ? err : count;
}

int limited_write_all(int fd, const void *buffer, size_t size, off_t offset)
{
	ssize_t done;

	while (size) {
		done = limited_write(fd, buffer, size, offset);
		if (done < 0 && done != -EINTR)
			return done;
		if (done < 0)
			continue;
		buffer = (const char *)buffer + done;
		offset += done;
		size -= done;
	}
	return 0;
}

int limited_truncate(int fd, off_t size)
{
	struct guard guard;

	begin(&guard);
	return end(&guard, ftruncate(fd, size) ? -errno : 0);
}

int limited_allocate(int fd, off_t offset, off_t size)
{
	struct guard guard;

	begin(&guard);
	return end(&guard, -posix_fallocate(fd, offset, size));
}
