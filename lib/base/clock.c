// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <time.h>

int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

int64_t clock_deadline(int64_t timeout_ns, int64_t now)
{
	int64_t deadline;

	if (timeout_ns <= 0)
		return timeout_ns ? INT64_MAX : INT64_MIN;
	return __builtin_add_overflow(now, timeout_ns, &deadline) ? INT64_MAX : deadline;
}

int64_t clock_left(int64_t deadline)
{
	int64_t now;

	if (deadline == INT64_MAX)
		return -1;
	now = clock_ns();
	return deadline > now ? deadline - now : 0;
}
