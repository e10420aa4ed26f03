/* SPDX-License-Identifier: MIT */
/* Regions and the streams of CUDA devices. */
#ifndef TSHARE_STREAM_H
#define TSHARE_STREAM_H

struct tshare_waiter;

/* Ends the waits of streams that are through @waiter, which is cancelled. */
void stream_waits_cancel(struct tshare_waiter *waiter);

/*
 * Has the exit of the process end all waits, and leave what the reaper still has to the driver.
 * With the driver started: its own handler then runs later.
 */
void stream_watch_exit(void);

#endif /* TSHARE_STREAM_H */
