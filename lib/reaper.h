/* SPDX-License-Identifier: MIT */
/*
 * The reaper: a thread that drops references for those who may not. A region's last unref
 * calls CUDA's driver, which must not be called in a host function of a stream, and which
 * may wait for streams that somebody else has to release meanwhile. A copy in a device's
 * memory that nobody has any more goes when its stream has made it.
 */
#ifndef TSHARE_REAPER_H
#define TSHARE_REAPER_H

#include <sys/queue.h>

struct reaped {
	STAILQ_ENTRY(reaped) entry;
	void (*drop)(struct reaped *reaped); /* without any lock */
};

/* With the process's lock held: starts the thread, unless it runs. 0, or a negative errno. */
int reaper_start(void);

/* With the process's lock held, and the thread started. */
void reaper_add(struct reaped *reaped);

/*
 * With the process's lock held, at exit: what is added from now on keeps its references, since
 * the driver, which they are dropped with, ends meanwhile.
 */
void reaper_stop(void);

#endif /* TSHARE_REAPER_H */
