/* SPDX-License-Identifier: MIT */
/*
 * The object of a device's memory that has a name: see memory.c. memory-create.c makes new memory,
 * and memory-open.c opens that of other processes.
 */
#ifndef TSHARE_CUDA_MEMORY_H
#define TSHARE_CUDA_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cuda/life.h"
#include "cuda/memory-record.h"
#include "tensor/tensor.h"

struct cuda_scope;

struct tshare_cuda_memory {
	struct tensor_owner owner; /* of its tensors */
	atomic_uint refs;
	LIST_ENTRY(tshare_cuda_memory) entry; /* under @lock */
	struct tshare_region *region;	      /* which has the name */
	struct tshare_region *place;	      /* without memory on the host: what tensors lie in */
	struct memory_record record;
	struct tshare_cuda_memory_info info;
	uint64_t id;   /* see cuda_memory_id() */
	bool retained; /* it holds a reference to the primary context */
	struct life life;
};

/* An object that has no memory yet; NULL, with a text, without memory of the host's. */
struct tshare_cuda_memory *memory_new(struct tshare_region *region,
				      const struct memory_record *record);
void memory_free(struct tshare_cuda_memory *memory);

/* In the scope in which the memory at its address was made or opened. */
void memory_set(struct tshare_cuda_memory *memory, struct cuda_scope *scope, bool maker);
/* Frees or closes the device's memory, if there is any. */
void memory_undo(const struct tshare_cuda_memory *memory);

int memory_check_driver(void);
int memory_fail_dead(void);
/* -EIO if the memory has gone with its context. */
int memory_check_context(const struct tshare_cuda_memory *memory);

/*
 * Held while memory is opened and closed. A child of fork() may find it locked for ever, and never
 * comes to it: cuda_start() fails there, and cuda_is_forked() is true.
 */
void memory_lock(void);
void memory_unlock(void);

/* With the lock held: adds and removes an object that this process opens by its region. */
void memory_add(struct tshare_cuda_memory *memory);
void memory_remove(struct tshare_cuda_memory *memory);
/*
 * With the lock held: this process's object of the same region and record, without a reference, or
 * NULL. The maker's may have gone with its context; another one can be used.
 */
struct tshare_cuda_memory *memory_find(const struct tshare_cuda_memory *same);

/* Without the lock: frees what this process has made and dropped, and nobody uses any more. */
void memory_sweep(void);

#endif /* TSHARE_CUDA_MEMORY_H */
