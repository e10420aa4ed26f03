/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_POPULATE_H
#define TSHARE_POPULATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Takes the pages of a mapping into the page table, by several threads where it is large.
 * Nothing depends on it: a kernel before Linux 5.14 can't, and memory that is unavailable is
 * for the next one to find out.
 */
void tshare_populate(void *start, uint64_t size, bool writable);

#endif /* TSHARE_POPULATE_H */
