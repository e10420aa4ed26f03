/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_BASE_MEMORY_LEFT_H
#define TSHARE_BASE_MEMORY_LEFT_H

#include <stdint.h>

/*
 * Stores the bytes that the process can still take before the OOM killer comes: the system's,
 * or fewer if a memory cgroup allows fewer; UINT64_MAX if unknown. @limit, a static string,
 * names what sets the bound. Returns 0, or -EMFILE, -ENFILE or -ENOMEM, without a text, if no
 * descriptor or memory was left to open the kernel's files: the number may be too large.
 */
int memory_available(uint64_t *available, const char **limit);

#endif /* TSHARE_BASE_MEMORY_LEFT_H */
