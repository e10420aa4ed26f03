/* SPDX-License-Identifier: MIT */
/* Helpers for tests of streams: frames of one field, whose elements all are the frame's number. */
#ifndef TSHARE_TESTS_FRAMES_H
#define TSHARE_TESTS_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "util.h"

/* More than a page, so that a slot's pages are filled one after the other. */
#define FRAME_ELEMENTS 1500

/* Creates a stream in the test's context. */
struct tshare_stream *new_stream(const char *name, uint32_t slots, uint32_t history,
				 uint32_t flags);

/* Opens it, as another process would. */
struct tshare_stream *open_stream(const char *name, uint32_t flags);

/* Publishes frames until @last; false if a loan fails. */
bool publish_until(struct tshare_stream *stream, uint64_t last);

/* Fills a frame that is to be published as @number. */
void fill_frame(struct tshare_frame *frame, uint64_t number);

/* The frame's number, if all elements have it; 0 if they haven't. */
uint64_t whole_number(struct tshare_frame *frame);

/* Takes the next frame without waiting, checks and drops it: its number, or the error. */
int64_t take_number(struct tshare_stream *stream);

/* Takes it, and keeps it. */
struct tshare_frame *take_frame(struct tshare_stream *stream);

#endif /* TSHARE_TESTS_FRAMES_H */
