/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernels do differently, by their release. */
#ifndef TSHARE_KSELFTEST_RELEASE_H
#define TSHARE_KSELFTEST_RELEASE_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/utsname.h>

static inline bool kernel_is_before(int major, int minor)
{
	struct utsname name;
	char *end;
	long ours;

	uname(&name);
	ours = strtol(name.release, &end, 10);
	return ours < major || (ours == major && strtol(end + 1, NULL, 10) < minor);
}

#endif /* TSHARE_KSELFTEST_RELEASE_H */
