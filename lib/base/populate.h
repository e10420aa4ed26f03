/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_BASE_POPULATE_H
#define TSHARE_BASE_POPULATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Maps all pages of a mapping, with several threads if it is large. An optimisation: it does
 * nothing before Linux 5.14, and ignores a lack of memory, which the next user of the pages
 * meets.
 */
void populate(void *start, uint64_t size, bool writable);

#endif /* TSHARE_BASE_POPULATE_H */
