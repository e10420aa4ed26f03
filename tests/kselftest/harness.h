/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's harness, for the one file of a program that has its tests. */
#ifndef TSHARE_KSELFTEST_HARNESS_H
#define TSHARE_KSELFTEST_HARNESS_H

#include <kselftest_harness.h>

#include "util.h"

/* Under emulation, with all sanitizers, a test may take long. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 180

/* Expects the counters to be those of @before. */
#define EXPECT_SAME_COUNTERS(before) do { \
	struct counters __before = (before), __now = count_all(); \
	EXPECT_EQ(__before.regions, __now.regions); \
	EXPECT_EQ(__before.exports, __now.exports); \
	EXPECT_EQ(__before.names, __now.names); \
	EXPECT_EQ(__before.bytes, __now.bytes); \
	EXPECT_EQ(__before.fds, __now.fds); \
} while (0)

#endif /* TSHARE_KSELFTEST_HARNESS_H */
