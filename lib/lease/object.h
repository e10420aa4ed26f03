/* SPDX-License-Identifier: MIT */
/* The objects of a stream and of a frame. */
#ifndef TSHARE_LEASE_OBJECT_H
#define TSHARE_LEASE_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lease/owners.h"
#include "lease/ring.h"
#include "lease/seat-label.h"
#include "lease/seat.h"
#include "tensor/tensor.h"
#include "tshare.h"

enum stream_role { STREAM_PRODUCER, STREAM_CONSUMER, STREAM_OBSERVER };

/* How many frames a consumer holds, of all streams that it has followed. */
struct held {
	atomic_uint refs;
	atomic_uint frames;
	_Atomic(int64_t) looked_at; /* when a call that waits looked for lost contexts */
};

/* A stream's descriptor for poll(), and the events that make it readable; see news.h. */
struct news {
	int epoll;			/* that descriptor: readable if one of those below is */
	int renewed;			/* written by threads that leave something to the others */
	int published;			/* @waiter's */
	struct tshare_waiter *waiter;	/* of the region */
	struct tshare_watcher *watcher; /* of the name, if the stream follows it; or NULL */
};

struct follow;

struct tshare_stream {
	atomic_uint refs;
	enum stream_role role;

	/*
	 * An object that follows a name: see follow.h. It has no regions and frames of its own, but
	 * those of another object, one for each stream that the name leads to.
	 */
	struct follow *follow;
	void (*end_follow)(struct tshare_stream *stream);

	struct tshare_region *region;
	struct tshare_region *seats_region; /* NULL for an observer that hasn't looked at them */
	struct seats seats;
	struct seat_labels labels;
	struct ring ring;
	_Atomic(uint64_t) *headers; /* of the slots, STREAM_HEADER numbers each */
	_Atomic(int64_t) *shapes; /* of the slots, @dims numbers each: the fields' shapes in use */
	size_t field_count;
	struct tshare_tensor *fields[TSHARE_STREAM_FIELDS];
	size_t dims;

	/* A child of fork() doesn't take it: see role.h. */
	pthread_mutex_t lock;

	_Atomic(struct news *) news; /* made under @lock when first asked for, or NULL */
	struct owners owners;
	LIST_HEAD(, tshare_frame) frames; /* that have a slot, under @lock */

	/* A producer's, under @lock. */
	bool closed;
	bool claimed[TSHARE_STREAM_SLOTS];
	unsigned int sleepers;

	/* A consumer's and an observer's, under @lock. */
	bool keeps_all;
	bool granted;	       /* has taken a granted frame: from there on it misses none */
	int seat;	       /* -1 for none */
	uint32_t epoch;	       /* streams that its object has followed before */
	_Atomic(uint64_t) end; /* the number that this consumer doesn't take any more, or 0 */
	uint32_t hold;
	struct held *held;
	uint32_t holds[TSHARE_STREAM_SLOTS]; /* frames' objects of each slot */
	bool leased[TSHARE_STREAM_SLOTS];    /* by this consumer, and not granted by the producer */
	uint64_t last; /* number of the last frame that was taken in order, or LAST_OF_ALL */
};

/* The consumer has moved over to another stream. */
#define LAST_OF_ALL UINT64_MAX

/* In a slot's header. */
enum { HEADER_CAPTURED, HEADER_PUBLISHED, HEADER_SEQUENCE, HEADER_FLAGS, STREAM_HEADER = 8 };

enum frame_state {
	FRAME_LOANED,
	FRAME_QUEUED, /* a CUDA stream will publish it */
	FRAME_PUBLISHED,
	FRAME_LEASED,
	FRAME_OBSERVED,
};

struct tshare_frame {
	struct tensor_owner owner; /* for its tensors */
	atomic_uint refs;
	LIST_ENTRY(tshare_frame) entry; /* in the stream's list, while it has a slot */
	struct tshare_stream *stream;
	atomic_int state;			  /* enum frame_state */
	void (*drop)(struct tshare_frame *frame); /* gives the slot back; NULL for nothing */
	uint32_t slot;
	uint64_t number;
	uint64_t lost;
	int64_t captured_ns;
	int64_t published_ns;
	uint64_t sequence;
	uint64_t flags;
	int64_t shapes[]; /* in use, of all fields */
};

#endif /* TSHARE_LEASE_OBJECT_H */
