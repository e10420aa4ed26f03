/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_MEMORY_H
#define TSHARE_MEMORY_H

#include <stdint.h>

/*
 * Stores the bytes that the process can still take before the OOM killer comes: what the
 * system has, or less where a memory cgroup allows less. @limit is what sets the
 * bound, a static string; UINT64_MAX if nothing is known. Returns 0, or -EMFILE, -ENFILE or
 * -ENOMEM, without a text, if there was nothing left to open the kernel's files with: then
 * what is stored may be too much.
 */
int tshare_memory_available(uint64_t *available, const char **limit);

#endif /* TSHARE_MEMORY_H */
