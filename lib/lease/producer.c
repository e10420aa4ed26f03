// SPDX-License-Identifier: MIT
/* A stream's producer: loans, publishing, and slots that others hold. */
#include "lease/producer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/export.h"
#include "base/thread.h"
#include "cuda/task.h"
#include "lease/frame.h"
#include "lease/role.h"
#include "lease/seats-region.h"

/* How soon a slot is free that a dead process has held. */
#define REAP_NS (NSEC_PER_SEC / 20)

static uint64_t newest(struct tshare_stream *stream)
{
	uint64_t generation = 0;

	/* The counter is mapped: it can't fail. */
	tshare_region_get_generation(stream->region, &generation);
	return generation;
}

/* The dead, and what they have held */

static void free_seat(struct tshare_stream *stream, int seat)
{
	lease_step("reap_keep");
	ring_clear_seat(&stream->ring, seat);
	atomic_fetch_and(&stream->ring.head->evicted, ~ring_bit(seat));
	seats_unlock(&stream->seats, seat);
}

/*
 * Frees the seats of the dead. A living consumer that was evicted may have set a lease since, if it
 * stood between look and lease.
 */
static void reap(struct tshare_stream *stream, uint64_t seats)
{
	int seat;

	for (seat = 0; seat < TSHARE_STREAM_CONSUMERS; seat++) {
		if (!(seats & ring_bit(seat)))
			continue;
		lease_step("reap");
		if (!seats_lock(&stream->seats, seat))
			free_seat(stream, seat);
		else if (ring_is_evicted(&stream->ring, seat))
			ring_clear_leases(&stream->ring, seat);
	}
}

/* Names the consumers that hold slots, as far as there is room. */
static void describe_holders(struct tshare_stream *stream, char *text, size_t size)
{
	const struct ring *ring = &stream->ring;
	const char *before;
	char command[16];
	size_t used = 0;
	uint32_t slot;
	int seat;

	*text = '\0';
	for (seat = 0; seat < TSHARE_STREAM_CONSUMERS; seat++) {
		before = "; seat ";
		for (slot = 0; slot < ring->slots && used < size; slot++) {
			if (!(atomic_load(&ring->words[slot].value) & ring_bit(seat)))
				continue;
			if (*before == ';') {
				seat_command(&stream->labels, seat, command);
				used += snprintf(text + used, size - used,
						 "; seat %d (pid %" PRId32 ", '%s') holds frames",
						 seat, atomic_load(&stream->labels.pids[seat]),
						 command);
				before = " ";
			}
			if (used < size)
				used += snprintf(text + used, size - used, "%s%" PRIu64, before,
						 ring_number(ring, slot));
			before = ", ";
		}
	}
}

static int fail_held(struct tshare_stream *stream, int err)
{
	char holders[512];

	describe_holders(stream, holders, sizeof(holders));
	return fail(err, "timeout: no slot of %" PRIu32 " became free%s", stream->ring.slots,
		    *holders ? holders : "; this process has claimed them, or they are history");
}

/*
 * With the lock held, 0 if it has succeeded, or an error: -EAGAIN to try again when slots have
 * become free.
 */
typedef int attempt_fn(struct tshare_stream *stream, struct tshare_frame *frame);

/*
 * Reads the seats' generation, says that it waits, and only then tries: a consumer clears its bit
 * first, and then looks whether the producer waits.
 */
static int attempt_and_sleep(struct tshare_stream *stream, attempt_fn *attempt,
			     struct tshare_frame *frame, int64_t until)
{
	struct ring *ring = &stream->ring;
	uint64_t seen = 0;
	int result, err = 0;

	lease_step("sleep_wakes");
	/* Where it fails the wait fails, too. */
	tshare_region_get_generation(stream->seats_region, &seen);
	pthread_mutex_lock(&stream->lock);
	lease_step("sleep_waiting");
	stream->sleepers++;
	atomic_store(&ring->waiting->value, 1);
	lease_step("sleep_look");
	result = attempt(stream, frame);
	pthread_mutex_unlock(&stream->lock);
	if (result == -EAGAIN)
		err = role_fail_wait(seats_region_sleep(stream->seats_region, seen, until));
	pthread_mutex_lock(&stream->lock);
	if (!--stream->sleepers)
		atomic_store(&ring->waiting->value, 0);
	pthread_mutex_unlock(&stream->lock);
	return err ? err : result;
}

/* Tries until @timeout_ns are over. A text then names who holds slots. */
static int attempt_within(struct tshare_stream *stream, attempt_fn *attempt,
			  struct tshare_frame *frame, int64_t timeout_ns)
{
	int64_t now = clock_ns(), deadline = clock_deadline(timeout_ns, now), reap_at;
	int result;

	for (;;) {
		tasks_end_lost(stream);
		pthread_mutex_lock(&stream->lock);
		ring_clear_strays(&stream->ring, stream->claimed);
		reap(stream, ring_occupied(&stream->ring));
		result = attempt(stream, frame);
		pthread_mutex_unlock(&stream->lock);
		now = clock_ns();
		reap_at = now + REAP_NS;
		while (result == -EAGAIN && now < deadline && now < reap_at) {
			result = attempt_and_sleep(stream, attempt, frame,
						   reap_at < deadline ? reap_at : deadline);
			now = clock_ns();
		}
		if (result != -EAGAIN)
			return result;
		if (now >= deadline)
			return fail_held(stream, -ETIMEDOUT);
	}
}

/* With the lock held: for other threads that wait for a slot. */
static void wake_sleepers(struct tshare_stream *stream)
{
	if (stream->sleepers)
		tshare_region_publish_once(stream->seats_region, NULL);
}

/* Loans */

static int fail_closed(void)
{
	return fail(-ENODATA, "stream: is closed");
}

static void producer_drop(struct tshare_frame *frame)
{
	struct tshare_stream *stream = frame->stream;

	if (seats_is_child(&stream->seats))
		return;
	pthread_mutex_lock(&stream->lock);
	frame_remove(frame);
	ring_abandon(&stream->ring, frame->slot);
	stream->claimed[frame->slot] = false;
	wake_sleepers(stream);
	pthread_mutex_unlock(&stream->lock);
}

/* Gives the frame a slot. */
static int claim(struct tshare_stream *stream, struct tshare_frame *frame)
{
	uint64_t evicted = atomic_load(&stream->ring.head->evicted);
	int slot;

	if (stream->closed)
		return fail_closed();
	if (evicted)
		reap(stream, evicted);
	slot = ring_claim(&stream->ring, newest(stream), stream->claimed);
	if (slot < 0)
		return -EAGAIN;
	stream->claimed[slot] = true;
	atomic_store(&frame->state, FRAME_LOANED);
	frame->drop = producer_drop;
	frame->slot = slot;
	frame_add(frame);
	return 0;
}

static void fill_shapes(struct tshare_frame *frame)
{
	const struct tshare_stream *stream = frame->stream;
	int64_t *shape = frame->shapes;
	int32_t ndim;
	size_t i;

	for (i = 0; i < stream->field_count; i++) {
		ndim = tshare_tensor_get_ndim(stream->fields[i]) - 1;
		memcpy(shape, tshare_tensor_get_shape(stream->fields[i]) + 1,
		       ndim * sizeof(*shape));
		shape += ndim;
	}
}

TSHARE_EXPORT
int tshare_stream_loan(struct tshare_stream *stream, int64_t timeout_ns,
		       struct tshare_frame **frame)
{
	struct tshare_frame *new;
	int err;

	err = role_check_producer(stream);
	if (err)
		return err;
	new = frame_new(stream);
	if (!new)
		return -ENOMEM;
	no_cancellation();
	pthread_mutex_lock(&stream->lock);
	err = claim(stream, new);
	pthread_mutex_unlock(&stream->lock);
	if (err == -EAGAIN)
		err = attempt_within(stream, claim, new, timeout_ns);
	if (err) {
		tshare_frame_unref(new);
		return err;
	}
	fill_shapes(new);
	*frame = new;
	return 0;
}

static void write_header(const struct tshare_frame *frame)
{
	const struct tshare_stream *stream = frame->stream;
	_Atomic(uint64_t) *header = stream->headers + (size_t)frame->slot * STREAM_HEADER;
	_Atomic(int64_t) *shapes = stream->shapes + frame->slot * stream->dims;
	size_t i;

	atomic_store_explicit(&header[HEADER_CAPTURED], frame->captured_ns, memory_order_relaxed);
	atomic_store_explicit(&header[HEADER_PUBLISHED], frame->published_ns, memory_order_relaxed);
	atomic_store_explicit(&header[HEADER_SEQUENCE], frame->sequence, memory_order_relaxed);
	atomic_store_explicit(&header[HEADER_FLAGS], frame->flags, memory_order_relaxed);
	for (i = 0; i < stream->dims; i++)
		atomic_store_explicit(&shapes[i], frame->shapes[i], memory_order_relaxed);
}

/* With the lock held. */
static int publish(struct tshare_frame *frame)
{
	struct tshare_stream *stream = frame->stream;
	int err;

	frame->published_ns = clock_ns();
	write_header(frame);
	frame->number = newest(stream) + 1;
	ring_publish(&stream->ring, frame->slot, frame->number);
	stream->claimed[frame->slot] = false;
	frame_remove(frame);
	frame->drop = NULL;
	atomic_store(&frame->state, FRAME_PUBLISHED);
	err = tshare_region_publish(stream->region, NULL);
	wake_sleepers(stream);
	return err;
}

/* 0 with the lock held, if the frame can be published now or queued. */
static int lock_loaned(struct tshare_frame *frame)
{
	struct tshare_stream *stream = frame->stream;
	int err;

	err = frame_check_loaned(frame);
	if (!err)
		err = role_check_producer(stream);
	if (err)
		return err;
	pthread_mutex_lock(&stream->lock);
	err = stream->closed ? fail_closed() : frame_check_loaned(frame);
	if (err)
		pthread_mutex_unlock(&stream->lock);
	return err;
}

TSHARE_EXPORT
int tshare_frame_publish(struct tshare_frame *frame)
{
	int err;

	no_cancellation();
	err = lock_loaned(frame);
	if (err)
		return err;
	err = publish(frame);
	pthread_mutex_unlock(&frame->stream->lock);
	return err;
}

int producer_queue(struct tshare_frame *frame)
{
	int err;

	err = lock_loaned(frame);
	if (err)
		return err;
	atomic_store(&frame->state, FRAME_QUEUED);
	pthread_mutex_unlock(&frame->stream->lock);
	return 0;
}

void producer_unqueue(struct tshare_frame *frame)
{
	atomic_store(&frame->state, FRAME_LOANED);
}

void producer_publish_queued(struct tshare_frame *frame)
{
	struct tshare_stream *stream = frame->stream;

	pthread_mutex_lock(&stream->lock);
	if (stream->closed)
		producer_unqueue(frame);
	else
		publish(frame);
	pthread_mutex_unlock(&stream->lock);
}

/* The end */

static int check_drained(struct tshare_stream *stream, struct tshare_frame *none)
{
	const struct ring *ring = &stream->ring;
	uint32_t slot;

	(void)none;
	for (slot = 0; slot < ring->slots; slot++)
		if (atomic_load(&ring->words[slot].value) & RING_SEATS)
			return -EAGAIN;
	return 0;
}

TSHARE_EXPORT
int tshare_stream_close(struct tshare_stream *stream, int64_t drain_ns)
{
	int err;

	err = role_check_producer(stream);
	if (err)
		return err;
	no_cancellation();
	pthread_mutex_lock(&stream->lock);
	if (!stream->closed) {
		stream->closed = true;
		atomic_store(&stream->ring.head->end, newest(stream) + 1);
		err = tshare_region_publish(stream->region, NULL);
		wake_sleepers(stream);
	}
	pthread_mutex_unlock(&stream->lock);
	if (!err && drain_ns)
		err = attempt_within(stream, check_drained, NULL, drain_ns);
	return err;
}

TSHARE_EXPORT
int tshare_stream_evict(struct tshare_stream *stream, int32_t seat, int32_t pid)
{
	int err;

	err = role_check_producer(stream);
	if (err)
		return err;
	if (seat < 0 || seat >= TSHARE_STREAM_CONSUMERS)
		return fail(-EINVAL, "seat: %" PRId32 " is not 0 to %d", seat,
			    TSHARE_STREAM_CONSUMERS - 1);
	pthread_mutex_lock(&stream->lock);
	if (!seats_is_taken(&stream->seats, seat) ||
	    (pid && atomic_load(&stream->labels.pids[seat]) != pid)) {
		err = fail(-ENOENT, "seat: nobody has seat %" PRId32 "%s", seat,
			   pid ? " in that process" : "");
	} else {
		atomic_fetch_or(&stream->ring.head->evicted, ring_bit(seat));
		ring_clear_seat(&stream->ring, seat);
		wake_sleepers(stream);
	}
	pthread_mutex_unlock(&stream->lock);
	return err;
}
