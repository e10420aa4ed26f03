/* SPDX-License-Identifier: MIT */
/* Regions and the streams of CUDA devices. */
#ifndef TSHARE_CUDA_WAIT_H
#define TSHARE_CUDA_WAIT_H

/*
 * Installs the exit handler, which ends all waits and stops the reaper. Called after
 * cuda_start(), so that the driver's own handler runs later.
 */
void stream_watch_exit(void);

#endif /* TSHARE_CUDA_WAIT_H */
