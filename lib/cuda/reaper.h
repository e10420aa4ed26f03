/* SPDX-License-Identifier: MIT */
/*
 * The reaper: a thread that drops references for callers who must not. A region's last unref
 * calls CUDA's driver. A host function of a stream must not call the driver, which may wait
 * for streams that another thread has to release. The reaper also frees unreferenced copies
 * in a device's memory, once their streams have made them.
 */
#ifndef TSHARE_CUDA_REAPER_H
#define TSHARE_CUDA_REAPER_H

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
 * With the process's lock held, at exit: the reaper drops nothing from now on, since the
 * driver ends meanwhile.
 */
void reaper_stop(void);

#endif /* TSHARE_CUDA_REAPER_H */
