/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_MEMORY_H
#define TSHARE_MEMORY_H

#include <stdint.h>

/*
 * Bytes that the process can still take before the OOM killer comes: what the
 * system has, or less where a memory cgroup allows less. @limit is what sets the
 * bound, a static string; UINT64_MAX if nothing is known.
 */
uint64_t tshare_memory_available(const char **limit);

#endif /* TSHARE_MEMORY_H */
