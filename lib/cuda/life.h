/* SPDX-License-Identifier: MIT */
/*
 * The lives of those that use a device's memory: locked bytes of the counter's file of the region
 * that names it. The kernel drops a lock when its process ends, in whatever way.
 */
#ifndef TSHARE_CUDA_LIFE_H
#define TSHARE_CUDA_LIFE_H

#include <stdbool.h>
#include <sys/queue.h>

struct tshare_region;

/* In the region's file, whose seats nobody else uses, as the region is no stream's. */
enum life_role { LIFE_MAKER, LIFE_USERS };

struct life {
	int fd; /* a description of the process's own; -1 for none */
	LIST_ENTRY(life) entry;
};

/*
 * Begins a life, until life_end() or the end of the process. A child of fork() has none: it can't
 * use the memory.
 */
int life_begin(struct life *life, struct tshare_region *region, enum life_role role);
void life_end(struct life *life);

/* Ends the life in the role alone: life_is_there() may still be asked. */
void life_resign(const struct life *life, enum life_role role);

/* Whether others, of this process or any, live in the role. @life has begun, and not ended. */
bool life_is_there(const struct life *life, enum life_role role);

#endif /* TSHARE_CUDA_LIFE_H */
