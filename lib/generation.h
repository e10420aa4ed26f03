/* SPDX-License-Identifier: MIT */
/* What a region's object holds to publish and to wait. */
#ifndef TSHARE_GENERATION_H
#define TSHARE_GENERATION_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

struct counter;
struct tshare_region;

/* All is made when first needed: a region that nobody waits for costs nothing more. */
struct generation {
	_Atomic(struct counter *) counter; /* mapped */
	atomic_int ask_fd;		   /* any description, to ask for locks; -1 if none */
	atomic_int lock_fd;		   /* one of its own, which makes it a publisher; or -1 */
	uint64_t lock;			   /* which byte; known with @counter */
	LIST_ENTRY(generation) publisher;  /* while there is @lock_fd */
};

void generation_init(struct generation *generation);
void generation_release(struct tshare_region *region);

#endif /* TSHARE_GENERATION_H */
