/* SPDX-License-Identifier: MIT */
/* Memory of the process's that is registered with the driver. */
#ifndef TSHARE_CUDA_REGISTERED_H
#define TSHARE_CUDA_REGISTERED_H

#include <stdbool.h>
#include <stdint.h>

struct cuda_scope;
struct registered;

/*
 * In a scope: registers memory that isn't registered. A registration ends with its context: the
 * caller's context has ended, or the device was reset. A reset also drops the reference to the
 * primary context. 0, or a result of the driver's.
 */
int registered_make(struct registered *memory, void *start, uint64_t size, bool readonly,
		    struct cuda_scope *scope);

/* Whether it is still registered: a reset of the device, or its context's end, ends that. */
bool registered_is_valid(const struct registered *memory, const void *start);

/* Unregisters it, if it is registered. */
void registered_drop(struct registered *memory, void *start, uint64_t size);

#endif /* TSHARE_CUDA_REGISTERED_H */
