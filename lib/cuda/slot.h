/* SPDX-License-Identifier: MIT */
/*
 * Slots: words of page-locked memory that a CUDA stream waits for. A word's value only
 * rises, and a stream waits until it is at least the slot's. So a slot that was released
 * can be taken again at once, though the stream may not have come to its wait yet.
 */
#ifndef TSHARE_CUDA_SLOT_H
#define TSHARE_CUDA_SLOT_H

#include <stdint.h>

struct slot_page;

struct slot {
	struct slot_page *page;
	unsigned int index;
	uint64_t address; /* the device's */
	uint64_t value;
};

/*
 * In a scope, without the process's lock: takes a slot that streams of the current context
 * can wait for. 0, the driver's result, or -ENOMEM.
 */
int slot_take(struct slot *slot);

/* With the process's lock held: releases the streams that wait for it. */
void slot_release(struct slot *slot);

#endif /* TSHARE_CUDA_SLOT_H */
