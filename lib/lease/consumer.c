// SPDX-License-Identifier: MIT
/* A stream's consumers and observers: their seats, which frame is next, and its lease. */
#include "lease/consumer.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "cuda/task.h"
#include "lease/frame.h"
#include "lease/role.h"

/* Wakes the producer, if it waits for what was cleared just now. */
static void wake_producer(struct tshare_stream *stream)
{
	if (ring_is_waiting(&stream->ring))
		tshare_region_publish_once(stream->seats_region, NULL);
}

/* Seats */

int consumer_join(struct tshare_stream *stream, uint32_t history)
{
	uint64_t newest = 0, first;
	int seat = -1, err = 0;

	err = seats_open(&stream->seats, stream->seats_region);
	if (err)
		return err;
	if (stream->role == STREAM_CONSUMER) {
		seat = seats_take(&stream->seats, &stream->ring.head->evicted);
		if (seat == -EUSERS)
			return fail(seat, "stream: has %d consumers, the most that there can be",
				    TSHARE_STREAM_CONSUMERS);
		if (seat < 0)
			return seat;
		stream->seat = seat;
		ring_clear_seat(&stream->ring, seat);
		wake_producer(stream);
		if (stream->keeps_all)
			ring_keep(&stream->ring, seat);
	}
	err = tshare_region_get_generation(stream->region, &newest);
	if (err)
		return err;
	first = newest + 1;
	if (stream->keeps_all)
		first = ring_first_grant(&stream->ring, seat, first);
	stream->last = first - 1;
	if (history > newest - stream->last)
		stream->last = newest > history ? newest - history : 0;
	/* A producer that sees the label may publish: this consumer gets that frame. */
	if (seat >= 0)
		seat_label(&stream->labels, seat);
	return 0;
}

void consumer_finish(struct tshare_stream *stream)
{
	uint64_t newest = 0;

	pthread_mutex_lock(&stream->lock);
	tshare_region_get_generation(stream->region, &newest);
	atomic_store(&stream->end, newest + 1);
	pthread_mutex_unlock(&stream->lock);
}

void consumer_retire(struct tshare_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->last = LAST_OF_ALL;
	if (stream->seat >= 0) {
		ring_leave_frames(&stream->ring, stream->seat, stream->holds);
		wake_producer(stream);
	}
	pthread_mutex_unlock(&stream->lock);
}

void consumer_leave(struct tshare_stream *stream)
{
	seat_unlabel(&stream->labels, stream->seat);
	ring_clear_seat(&stream->ring, stream->seat);
	wake_producer(stream);
}

/* Frames */

static int fail_evicted(void)
{
	return fail(-ESTALE, "stream: the producer has evicted this consumer; open it anew");
}

static bool is_evicted(const struct tshare_stream *stream)
{
	return stream->seat >= 0 && ring_is_evicted(&stream->ring, stream->seat);
}

/* With the lock held, as all below. */
static void release(struct tshare_stream *stream, uint32_t slot, uint64_t number)
{
	if (--stream->holds[slot])
		return;
	atomic_fetch_sub(&stream->held->frames, 1);
	/* A grant stays until the frame was taken in order. */
	if (!stream->leased[slot] && number > stream->last)
		return;
	stream->leased[slot] = false;
	ring_release(&stream->ring, stream->seat, slot);
	wake_producer(stream);
}

static void drop(struct tshare_frame *frame)
{
	struct tshare_stream *stream = frame->stream;

	if (seats_is_child(&stream->seats))
		return;
	pthread_mutex_lock(&stream->lock);
	frame_remove(frame);
	if (stream->role == STREAM_CONSUMER)
		release(stream, frame->slot, frame->number);
	pthread_mutex_unlock(&stream->lock);
}

/* Reads the producer's description of the frame in the slot. */
static int read_header(struct tshare_frame *frame)
{
	const struct tshare_stream *stream = frame->stream;
	_Atomic(uint64_t) *header = stream->headers + (size_t)frame->slot * STREAM_HEADER;
	_Atomic(int64_t) *shapes = stream->shapes + frame->slot * stream->dims;
	size_t field, at = 0;
	int32_t dim, ndim;

	frame->captured_ns = atomic_load_explicit(&header[HEADER_CAPTURED], memory_order_relaxed);
	frame->published_ns = atomic_load_explicit(&header[HEADER_PUBLISHED], memory_order_relaxed);
	frame->sequence = atomic_load_explicit(&header[HEADER_SEQUENCE], memory_order_relaxed);
	frame->flags = atomic_load_explicit(&header[HEADER_FLAGS], memory_order_relaxed);
	for (field = 0; field < stream->field_count; field++) {
		ndim = tshare_tensor_get_ndim(stream->fields[field]) - 1;
		for (dim = 0; dim < ndim; dim++, at++) {
			frame->shapes[at] = atomic_load_explicit(&shapes[at], memory_order_relaxed);
			if (frame->shapes[at] < 0 ||
			    frame->shapes[at] >
				    tshare_tensor_get_shape(stream->fields[field])[dim + 1])
				return fail(-EPROTO,
					    "stream: frame %" PRIu64 " has a damaged shape",
					    frame->number);
		}
	}
	return 0;
}

/* An observer's header may be torn: its frame counts if the number is still there. */
static int observe(struct tshare_frame *frame)
{
	int err;

	err = read_header(frame);
	atomic_thread_fence(memory_order_acquire);
	if (ring_number(&frame->stream->ring, frame->slot) != frame->number)
		return -EAGAIN;
	if (err)
		return err;
	atomic_store(&frame->state, FRAME_OBSERVED);
	frame->drop = drop;
	frame_add(frame);
	return 0;
}

/*
 * Takes the frame of @number in @slot: 0; -EAGAIN if it isn't there any more; -ENOENT if the
 * producer fills the slot.
 */
static int take_slot(struct tshare_frame *frame, uint32_t slot, uint64_t number)
{
	struct tshare_stream *stream = frame->stream;
	enum ring_lease lease = RING_LEASED;
	bool undone = false;
	uint32_t held;
	int err;

	frame->slot = slot;
	frame->number = number;
	if (stream->role == STREAM_OBSERVER)
		return observe(frame);
	if (!stream->holds[slot]) {
		held = atomic_load(&stream->held->frames);
		if (held >= stream->hold)
			return fail(-ENOBUFS,
				    "stream: this consumer holds %" PRIu32
				    " frames, as many as it may; drop one, or open the stream for "
				    "more (options.hold)",
				    held);
		lease = ring_lease(&stream->ring, stream->seat, slot, number, &undone);
		if (undone)
			wake_producer(stream);
		if (lease == RING_WRITTEN || lease == RING_CHANGED)
			return lease == RING_WRITTEN ? -ENOENT : -EAGAIN;
		stream->leased[slot] = lease == RING_LEASED || !stream->keeps_all;
		atomic_fetch_add(&stream->held->frames, 1);
	}
	stream->holds[slot]++;
	lease_step("take_evicted");
	err = is_evicted(stream) ? fail_evicted() : read_header(frame);
	if (err) {
		release(stream, slot, number);
		return err;
	}
	atomic_store(&frame->state, FRAME_LEASED);
	frame->drop = drop;
	frame_add(frame);
	return 0;
}

/* Which frame of those in ]@above, @below[ is next: the first or the last; -1 for none. */
static int find(const struct tshare_stream *stream, bool latest, uint64_t above, uint64_t below,
		uint64_t *number)
{
	uint64_t found = 0, there;
	int slot = -1;
	uint32_t i;

	for (i = 0; i < stream->ring.slots; i++) {
		there = ring_number(&stream->ring, i);
		if (there <= above || there >= below)
			continue;
		if (slot >= 0 && (latest ? there < found : there > found))
			continue;
		slot = i;
		found = there;
	}
	*number = found;
	return slot;
}

/* -EAGAIN if there is none up to @newest. */
static int take_any(struct tshare_frame *frame, bool latest, uint64_t newest)
{
	const struct tshare_stream *stream = frame->stream;
	uint64_t above = stream->last, below = newest + 1, number;
	uint32_t tries = 2 * stream->ring.slots; /* a producer that is faster ends this call, too */
	int slot, err;

	while (tries-- && (slot = find(stream, latest, above, below, &number)) >= 0) {
		err = take_slot(frame, slot, number);
		if (err != -EAGAIN && err != -ENOENT)
			return err;
		if (err == -ENOENT && latest)
			below = number;
		else if (err == -ENOENT)
			above = number;
	}
	return -EAGAIN;
}

static int find_number(const struct tshare_stream *stream, uint64_t number)
{
	uint32_t slot;

	for (slot = 0; slot < stream->ring.slots; slot++)
		if (ring_number(&stream->ring, slot) == number)
			return slot;
	return -1;
}

/* The next frame of a consumer that keeps all. Until it finds a grant it is as any other. */
static int take_kept(struct tshare_frame *frame, uint64_t newest)
{
	struct tshare_stream *stream = frame->stream;
	uint64_t number = stream->last + 1;
	int slot, err;

	if (number > newest)
		return -EAGAIN;
	slot = find_number(stream, number);
	if (slot >= 0 && !stream->leased[slot] &&
	    ring_is_granted(&stream->ring, stream->seat, slot, number)) {
		err = take_slot(frame, slot, number);
		if (!err)
			stream->granted = true;
		return err;
	}
	if (is_evicted(stream))
		return fail_evicted();
	if (stream->granted)
		return fail(-EPROTO,
			    "stream: frame %" PRIu64 " is missing, which was kept for this "
			    "consumer",
			    number);
	err = take_any(frame, false, newest);
	if (err == -EAGAIN)
		stream->last = newest;
	return err;
}

static int fail_ended(void)
{
	return fail(-ENODATA, "stream: the producer has closed it");
}

/* 0 if a frame is there that wasn't taken yet; else -EAGAIN. */
static int look(const struct tshare_stream *stream, uint64_t newest)
{
	return newest > stream->last ? 0 : -EAGAIN;
}

/*
 * With the lock held: the next frame; -EAGAIN if there is none yet, and @seen to wait for more.
 * Without a @frame it only looks.
 */
static int take_next(struct tshare_stream *stream, struct tshare_frame *frame, bool latest,
		     uint64_t *seen)
{
	uint64_t own = atomic_load(&stream->end), newest, end;
	int err;

	if (stream->last == LAST_OF_ALL)
		return fail_ended();
	err = tshare_region_get_generation(stream->region, &newest);
	if (err)
		return err;
	*seen = newest;
	end = atomic_load(&stream->ring.head->end);
	if (own && (!end || own < end))
		end = own;
	if (end && newest >= end)
		newest = end - 1;
	if (is_evicted(stream))
		return fail_evicted();
	if (!frame)
		err = look(stream, newest);
	else
		err = stream->keeps_all ? take_kept(frame, newest) :
					  take_any(frame, latest, newest);
	if (!err && frame) {
		frame->lost = frame->number - stream->last - 1;
		stream->last = frame->number;
	}
	if (err == -EAGAIN && (own || (end && *seen >= end)))
		return fail_ended();
	return err;
}

/* How soon a consumer that waits sees that the CUDA streams that should release its frames are lost. */
#define LOST_NS (NSEC_PER_SEC / 10)

static void end_lost(struct held *held)
{
	int64_t now = clock_ns(), last = atomic_load(&held->looked_at);

	if (now - last >= LOST_NS && atomic_compare_exchange_strong(&held->looked_at, &last, now))
		tasks_end_lost(held);
}

/*
 * Waits for more than @seen. While the consumer's frames may be CUDA streams' it looks for lost
 * contexts from time to time: the producer may wait for the slots of these frames. Returns 0 then,
 * too. Without a @frame it never calls CUDA.
 */
static int wait_for_news(struct tshare_stream *stream, const struct tshare_frame *frame,
			 uint64_t *seen, int64_t left)
{
	bool looks = frame && tasks_were_put() && atomic_load(&stream->held->frames);
	bool slices = looks && (left < 0 || left > LOST_NS);
	int err;

	if (looks)
		end_lost(stream->held);
	err = tshare_region_wait(stream->region, *seen, slices ? LOST_NS : left, 0, seen);
	return slices && err == -ETIMEDOUT ? 0 : err;
}

/* Looks, and sleeps until there is news, until @timeout_ns are over. */
static int take_within(struct tshare_stream *stream, struct tshare_frame *frame, bool latest,
		       int64_t timeout_ns)
{
	int64_t deadline = 0, left = timeout_ns;
	uint64_t seen = 0;
	int err;

	for (;;) {
		pthread_mutex_lock(&stream->lock);
		err = take_next(stream, frame, latest, &seen);
		pthread_mutex_unlock(&stream->lock);
		if (err != -EAGAIN)
			return err;
		/* The producer may be faster than each look. */
		if (deadline && !left)
			return fail(-ETIMEDOUT, "timeout: no frame could be taken in time");
		if (!deadline)
			deadline = clock_deadline(timeout_ns, clock_ns());
		left = clock_left(deadline);
		err = wait_for_news(stream, frame, &seen, left);
		if (err)
			return role_fail_wait(err);
	}
}

int consumer_take(struct tshare_stream *stream, bool latest, int64_t timeout_ns,
		  struct tshare_frame **frame)
{
	struct tshare_frame *new;
	int err;

	new = frame_new(stream);
	if (!new)
		return -ENOMEM;
	err = take_within(stream, new, latest, timeout_ns);
	if (err == -ENOBUFS && tasks_end_lost(stream->held))
		err = take_within(stream, new, latest, timeout_ns);
	if (err)
		tshare_frame_unref(new);
	else
		*frame = new;
	return err;
}

int consumer_look(struct tshare_stream *stream)
{
	return take_within(stream, NULL, false, 0);
}

static int get_number(struct tshare_frame *frame, uint64_t number)
{
	uint64_t newest;
	int slot, err;

	err = tshare_region_get_generation(frame->stream->region, &newest);
	if (err)
		return err;
	if (is_evicted(frame->stream))
		return fail_evicted();
	slot = number && number <= newest ? find_number(frame->stream, number) : -1;
	err = slot < 0 ? -EAGAIN : take_slot(frame, slot, number);
	if (err == -EAGAIN || err == -ENOENT)
		return fail(-ENOENT, "number: frame %" PRIu64 " isn't there %s", number,
			    number <= newest ? "any more" : "yet");
	return err;
}

static int get_locked(struct tshare_frame *frame, uint64_t number)
{
	int err;

	pthread_mutex_lock(&frame->stream->lock);
	err = get_number(frame, number);
	pthread_mutex_unlock(&frame->stream->lock);
	return err;
}

int consumer_get(struct tshare_stream *stream, uint64_t number, struct tshare_frame **frame)
{
	struct tshare_frame *new;
	int err;

	new = frame_new(stream);
	if (!new)
		return -ENOMEM;
	err = get_locked(new, number);
	if (err == -ENOBUFS && tasks_end_lost(stream->held))
		err = get_locked(new, number);
	if (err)
		tshare_frame_unref(new);
	else
		*frame = new;
	return err;
}
