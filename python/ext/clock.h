/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_EXT_CLOCK_H
#define TSHARE_EXT_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, in nanoseconds. */
int64_t ts_clock_ns(void);

#endif /* TSHARE_EXT_CLOCK_H */
