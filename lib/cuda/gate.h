/* SPDX-License-Identifier: MIT */
/*
 * Gates: words of page-locked memory that a CUDA stream waits for. A word's value only
 * rises, and a stream waits until it is at least the gate's. So a gate that was released
 * can be taken again at once, though the stream may not have come to its wait yet.
 */
#ifndef TSHARE_CUDA_GATE_H
#define TSHARE_CUDA_GATE_H

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

/* A context, by memory that is registered as long as it lasts. */
struct context_mark {
	uint64_t address; /* 0 for none */
	uint64_t id;
};

/* In a scope, without the process's lock: of the current context. */
struct context_mark gate_mark_context(void);

#endif /* TSHARE_CUDA_GATE_H */
