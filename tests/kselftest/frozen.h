/* SPDX-License-Identifier: GPL-2.0-only */
/* A process that waits for a name while all processes are frozen. */
#ifndef TSHARE_KSELFTEST_FROZEN_H
#define TSHARE_KSELFTEST_FROZEN_H

#include "proc.h"

/* Opens the name "awaited" as soon as it is there. */
static inline int wait_for_name(void)
{
	struct tshare_open args = { .name = "awaited" };

	args.deadline_ns = deadline_in(120 * 1000000000LL);
	return xioctl(open_device(), TSHARE_IOCTL_OPEN, &args) ? 1 : 0;
}

/* Until the process sleeps in the kernel. */
static inline bool sleeps(pid_t pid)
{
	int tries;

	for (tries = 0; tries < 1000 && state_of(pid) != 'S'; tries++)
		usleep(10000);
	return state_of(pid) == 'S';
}

#endif /* TSHARE_KSELFTEST_FROZEN_H */
