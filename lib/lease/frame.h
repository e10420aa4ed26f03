/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LEASE_FRAME_H
#define TSHARE_LEASE_FRAME_H

#include "lease/object.h"

/* A frame of no slot yet; NULL, with a text, without memory. */
struct tshare_frame *frame_new(struct tshare_stream *stream);

/* With the stream's lock held: the frame gets a slot, or has it no more. */
void frame_add(struct tshare_frame *frame);
void frame_remove(struct tshare_frame *frame);

/* Lets tensors be made of memory of the stream's frames, which keep their frame: see owners.h. */
void frames_begin(struct tshare_stream *stream);

/* 0, or -EACCES for a frame that is a consumer's, published, or queued to be. */
int frame_check_loaned(const struct tshare_frame *frame);

#endif /* TSHARE_LEASE_FRAME_H */
