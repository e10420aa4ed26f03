/* SPDX-License-Identifier: MIT */
/* The publishers of a region, and whether any of them is left. */
#ifndef TSHARE_GENERATION_PUBLISHER_H
#define TSHARE_GENERATION_PUBLISHER_H

#include <stdbool.h>
#include <stdint.h>

struct counter;
struct tshare_region;

/* With the process's lock held: makes the object a publisher, unless it is one. */
int publisher_start(struct tshare_region *region);

/*
 * -EOWNERDEAD if other objects have become publishers of the region, and all of them
 * have ended; 0 if there has been none, or one is left. Checks every 100 ms, or if
 * @now_due; else the last answer counts. Stores in @due when to call it again:
 * INT64_MAX for not before the counter was woken.
 */
int publisher_check(struct tshare_region *region, struct counter *counter, int64_t now,
		    bool now_due, int64_t *due);

/* Whether publisher_check() has found another publisher at @since or later. */
bool publisher_was_seen(const struct tshare_region *region, int64_t since);

#endif /* TSHARE_GENERATION_PUBLISHER_H */
