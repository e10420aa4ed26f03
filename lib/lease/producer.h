/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LEASE_PRODUCER_H
#define TSHARE_LEASE_PRODUCER_H

#include "lease/object.h"

/*
 * Makes a loaned frame one that a CUDA stream will publish: 0, or as tshare_frame_publish(). The
 * others are for such a frame. They call neither CUDA nor what waits for it.
 */
int producer_queue(struct tshare_frame *frame);
void producer_unqueue(struct tshare_frame *frame);

/* If the stream was closed meanwhile the frame is loaned again. */
void producer_publish_queued(struct tshare_frame *frame);

#endif /* TSHARE_LEASE_PRODUCER_H */
