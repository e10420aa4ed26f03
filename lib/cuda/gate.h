/* SPDX-License-Identifier: MIT */
/*
 * Gates: words of page-locked memory that a CUDA stream waits for. A word's value only
 * rises, and a stream waits until it is at least the gate's. So a gate that was released
 * can be taken again at once, though the stream may not have come to its wait yet.
 */
#ifndef TSHARE_CUDA_GATE_H
#define TSHARE_CUDA_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct gate_page;

struct gate {
	struct gate_page *page;
	unsigned int index;
	uint64_t address; /* the device's */
	uint64_t value;
};

/*
 * In a scope, without the process's lock: takes a gate that streams of the current context
 * can wait for. 0, the driver's result, or -ENOMEM.
 */
int gate_take(struct gate *gate);

/* With the process's lock held: releases the streams that wait for it. */
void gate_release(struct gate *gate);

/*
 * A mark stands for a context, by a page of memory that is registered as long as the context lasts.
 * A reference keeps the page, so its address is not used again for another context's.
 */

/* In a scope, without the process's lock: a reference to a mark of the current context, or NULL. */
struct gate_page *context_mark(void);

/* With the process's lock held. */
void context_mark_ref(struct gate_page *mark);
void context_mark_unref(struct gate_page *mark); /* or NULL */

/* Without locks, with a reference: whether the context has ended, or runs nothing after an error. */
bool context_mark_is_lost(const struct gate_page *mark);

#endif /* TSHARE_CUDA_GATE_H */
