// SPDX-License-Identifier: MIT
/*
 * A producer and the readers in READERS: K keeps every frame, L may lose some, O observes. BEFORE
 * frames are published before they start; with JOINED they have joined by then, too.
 */
#include "process.h"

#define seats_open(seats, region)   0
#define seats_is_taken(seats, seat) (locks[seat] != 0)
#define seat_label(labels, seat)    ((void)0)
#define seat_unlabel(labels, seat)  ((void)0)
#define role_check_producer(stream) 0
#define role_fail_wait(err)	    (err)
#define frame_add(frame)	    ((void)(frame))
#define frame_remove(frame)	    ((void)(frame))
#define frame_check_loaned(frame)   0

#include "lease/ring.c"

#define newest newest_of_producer
#include "lease/producer.c"
#undef newest
#include "lease/consumer.c"

static struct ring_head head;
static _Atomic(uint64_t) numbers[SLOTS], headers[SLOTS * STREAM_HEADER];
static struct ring_line words[SLOTS], keep, waiting;
static struct held held[4];
static uint64_t seen[4];
static struct tshare_frame frames[4]; /* a process has one at a time */
static struct tshare_stream streams[4] = {
	[0 ... 3] = {
		.region = REGION,
		.seats_region = SEATS_REGION,
		.ring = { SLOTS, SLOTS - 1, true, &head, numbers, words, &keep, &waiting },
		.headers = headers,
		.seat = -1,
		.hold = SLOTS,
	},
};
static struct tshare_stream *const producer = &streams[3];

/* The data of the slots. Where no reader may be too late for its frame, GenMC reports each race. */
#if LATE
static _Atomic(uint64_t) data[SLOTS];
#define read_data(slot)		atomic_load_explicit(&data[slot], memory_order_relaxed)
#define write_data(slot, value) atomic_store_explicit(&data[slot], value, memory_order_relaxed)
#else
static uint64_t data[SLOTS];
#define read_data(slot)		data[slot]
#define write_data(slot, value) (data[slot] = (value))
#endif

int seats_take(const struct seats *seats, const _Atomic(uint64_t) *evicted)
{
	int seat;

	for (seat = 0; seat < SEATS; seat++) {
		if (seats_lock(seats, seat))
			continue;
		if (!(atomic_load(evicted) & ring_bit(seat)))
			return seat;
		seats_unlock(seats, seat);
	}
	return -EUSERS;
}

static struct tshare_frame *frame_begin(struct tshare_stream *stream)
{
	struct tshare_frame *frame = &frames[stream - streams];

	frame->stream = stream;
	return frame;
}

/* As tshare_frame_check(). */
static bool is_late(const struct tshare_frame *frame)
{
	const struct tshare_stream *stream = frame->stream;

	atomic_thread_fence(memory_order_acquire);
	return ring_number(&stream->ring, frame->slot) != frame->number || is_evicted(stream);
}

static void publish_frames(int count)
{
	struct tshare_frame *frame = frame_begin(producer);
	int err;

	while (count--) {
		err = claim(producer, frame);
		while (err == -EAGAIN)
			err = attempt_and_sleep(producer, claim, frame, INT64_MAX);
		write_data(frame->slot, newest_of_producer(producer) + 1);
		publish(frame);
	}
}

static void *run_producer(void *arg)
{
	if (EVICT)
		tshare_stream_evict(producer, 0, 0);
	publish_frames(FRAMES);
	return NULL;
}

static void *run_reader(void *arg)
{
	struct tshare_stream *stream = arg;
	struct tshare_frame *frame = frame_begin(stream);
	uint64_t found, last = 0;
	int takes = TAKES;

	if (!JOINED && consumer_join(stream, 1))
		return NULL;
	while (takes-- && !take_next(stream, frame, false, &seen[stream - streams])) {
		found = read_data(frame->slot);
		if (is_late(frame))
			assert(LATE);
		else
			assert(found == frame->number);
		assert(frame->number > last && (!stream->granted || !last || !frame->lost));
		last = frame->number;
		drop(frame);
	}
	if (!JOINED && stream->seat >= 0) {
		consumer_leave(stream);
		seats_unlock(&stream->seats, stream->seat);
	}
	return NULL;
}

int main(void)
{
	static const char kinds[] = READERS;
	pthread_t threads[4];
	int i, slot;

	publish_frames(BEFORE);
	for (i = 0; kinds[i]; i++) {
		streams[i].role = kinds[i] == 'O' ? STREAM_OBSERVER : STREAM_CONSUMER;
		streams[i].keeps_all = kinds[i] == 'K';
		streams[i].held = &held[i];
		if (JOINED)
			consumer_join(&streams[i], 1);
	}
	pthread_create(&threads[3], NULL, run_producer, NULL);
	for (i = 0; kinds[i]; i++)
		pthread_create(&threads[i], NULL, run_reader, &streams[i]);
	pthread_join(threads[3], NULL);
	for (i = 0; kinds[i]; i++)
		pthread_join(threads[i], NULL);

	/* The producer doesn't sleep beside a free slot, and no bit is left. */
	assert(!was_left_asleep() ||
	       find_oldest(&producer->ring, published, producer->claimed) < 0);
	for (i = 0; JOINED && kinds[i]; i++)
		consumer_leave(&streams[i]);
	for (slot = 0; slot < SLOTS; slot++)
		assert(!keep.value && !words[slot].value);
	return 0;
}
