// SPDX-License-Identifier: MIT
/* Streams: what producers, consumers and observers have in common. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "base/thread.h"
#include "lease/consumer.h"
#include "lease/frame.h"
#include "lease/regions.h"
#include "lease/role.h"
#include "lease/seats-region.h"
#include "region/object.h"

/* How long a name and its seats may lead to different streams, while a producer replaces both. */
#define REPLACING_NS	  (NSEC_PER_SEC / 5)
#define REPLACING_LOOK_NS (NSEC_PER_SEC / 200)

static struct tshare_stream *stream_new(enum stream_role role)
{
	struct tshare_stream *stream;

	stream = calloc(1, sizeof(*stream));
	if (!stream) {
		error_store("stream: out of memory");
		return NULL;
	}
	atomic_init(&stream->refs, 1);
	stream->seats.fd = -1;
	pthread_mutex_init(&stream->lock, NULL);
	stream->role = role;
	stream->seat = -1;
	return stream;
}

static void stream_unbind(struct tshare_stream *stream)
{
	while (stream->field_count)
		tshare_tensor_unref(stream->fields[--stream->field_count]);
	stream->seats_region = tshare_region_unref(stream->seats_region);
	stream->region = tshare_region_unref(stream->region);
}

static void unlink_both(struct tshare_stream *stream)
{
	if (stream->region)
		tshare_region_unlink(stream->region);
	if (stream->seats_region)
		tshare_region_unlink(stream->seats_region);
}

static void stream_free(struct tshare_stream *stream)
{
	bool child = seats_is_child(&stream->seats);

	frames_end(stream);
	if (!child && stream->role == STREAM_PRODUCER)
		unlink_both(stream);
	if (!child && stream->seat >= 0)
		consumer_leave(stream);
	seats_close(&stream->seats);
	stream_unbind(stream);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
}

TSHARE_EXPORT
struct tshare_stream *tshare_stream_ref(struct tshare_stream *stream)
{
	refcount_get(&stream->refs);
	return stream;
}

TSHARE_EXPORT
struct tshare_stream *tshare_stream_unref(struct tshare_stream *stream)
{
	keep_errno();

	if (stream && refcount_put(&stream->refs))
		stream_free(stream);
	return NULL;
}

/* Creation */

#define REGION_FLAGS (TSHARE_REPLACE | TSHARE_DMA32 | TSHARE_CONTIGUOUS | TSHARE_NODE)

static int read_create_options(const struct tshare_stream_options *options,
			       struct tshare_stream *stream, struct tshare_options *region)
{
	struct tshare_stream_options known = { 0 };
	int err = 0;

	if (options)
		err = sized_read(options, "options.", sizeof(known), &known, sizeof(known));
	*region = (struct tshare_options){ .size = sizeof(*region) };
	if (!err && known.region)
		err = sized_read(known.region, "options.region.",
				 SIZED_UPTO(struct tshare_options, mode), region, sizeof(*region));
	if (err)
		return err;
	region->size = sizeof(*region);
	if (known.slots > TSHARE_STREAM_SLOTS)
		return fail(-EINVAL, "options.slots: %" PRIu32 " is more than %d", known.slots,
			    TSHARE_STREAM_SLOTS);
	stream->ring.slots = known.slots ? known.slots : 8;
	stream->ring.history = known.history ? known.history : 1;
	if (stream->ring.history >= stream->ring.slots)
		return fail(-EINVAL,
			    "options.history: %" PRIu32 " leaves none of %" PRIu32 " slots",
			    stream->ring.history, stream->ring.slots);
	if (known.flags & ~TSHARE_KEEP_ALL)
		return fail(-EINVAL, "options.flags: unknown flag in %#" PRIx32, known.flags);
	if (known.reserved)
		return fail(-EINVAL, "options.reserved: is not 0");
	stream->ring.may_keep = known.flags & TSHARE_KEEP_ALL;
	if (region->flags & ~REGION_FLAGS)
		return fail(-EINVAL, "options.region.flags: unknown flag in %#" PRIx32,
			    region->flags);
	if (region->lifetime != TSHARE_LIFETIME_MAKER)
		return fail(-EINVAL, "options.region.lifetime: a stream's names end with its "
				     "producer");
	region->flags |= TSHARE_DRAFT;
	return 0;
}

/* First the seats, so that nobody finds a stream without them. */
static int finish(struct tshare_stream *stream)
{
	int err;

	err = seats_open(&stream->seats, stream->seats_region);
	if (!err)
		err = tshare_region_announce(stream->region);
	if (!err)
		err = tshare_region_finish(stream->seats_region, 0);
	return err ? err : tshare_region_finish(stream->region, 0);
}

/*
 * Says what has the name, before a create would: a stream's name goes with its producer.
 * TSHARE_REPLACE takes streams' names over, and not those of other regions.
 */
static int check_taken(struct tshare_ctx *ctx, const char *name, bool replaces)
{
	const struct tshare_open_options readonly = {
		.size = sizeof(readonly),
		.flags = TSHARE_READONLY,
	};
	struct tshare_tensor *head;
	struct tshare_region *region;
	int err;

	err = tshare_region_open(ctx, name, &readonly, &region);
	if (err == -EACCES && !replaces)
		return fail(-EEXIST, "name: '%s' is a region that this user may not read", name);
	/* Without one that can be opened, create decides. */
	if (err) {
		error_clear();
		return 0;
	}
	err = tshare_region_find_tensor(region, ".stream", &head);
	if (!err)
		tshare_tensor_unref(head);
	tshare_region_unref(region);
	if (err == -ENOENT)
		return fail(-EEXIST, "name: '%s' is a region, and no stream's; unlink it", name);
	if (!err && !replaces)
		return fail(-EEXIST,
			    "name: '%s' is a stream whose producer lives; end that, or take the "
			    "name over (TSHARE_REPLACE)",
			    name);
	return err;
}

TSHARE_EXPORT
int tshare_stream_create(struct tshare_ctx *ctx, const char *name, const struct tshare_spec *fields,
			 size_t count, const struct tshare_stream_options *options,
			 struct tshare_stream **stream)
{
	struct tshare_stream *new;
	struct tshare_options region;
	char seats[TSHARE_NAME_LEN];
	int err;

	no_cancellation();
	err = seats_region_name(name, seats);
	if (err)
		return err;
	new = stream_new(STREAM_PRODUCER);
	if (!new)
		return -ENOMEM;
	err = read_create_options(options, new, &region);
	if (!err)
		err = check_taken(ctx, name, region.flags & TSHARE_REPLACE);
	if (!err)
		err = check_taken(ctx, seats, region.flags & TSHARE_REPLACE);
	if (!err)
		err = regions_create(new, ctx, name, seats, fields, count, &region);
	if (!err)
		err = finish(new);
	if (err) {
		stream_free(new);
		return err;
	}
	frames_begin(new);
	*stream = new;
	return 0;
}

/* Opening */

/* -ESTALE if the two aren't of one stream. Stores the id of NAME's. */
static int open_regions(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
			const char *seats, int64_t timeout_ns, uint64_t *id)
{
	struct tshare_open_options options = {
		.size = sizeof(options),
		.flags = TSHARE_READONLY,
		.timeout_ns = timeout_ns,
	};
	int err;

	err = tshare_region_open(ctx, name, &options, &stream->region);
	if (!err)
		err = regions_bind(stream, id);
	if (err || stream->role == STREAM_OBSERVER)
		return err;
	err = tshare_region_open(ctx, seats, NULL, &stream->seats_region);
	/* A producer that replaces both begins with the seats; one that ends removes them last. */
	if (err == -ENOENT || err == -EINPROGRESS)
		return fail(-ESTALE, "name: '%s' is missing", seats);
	if (err == -EACCES)
		return fail(err,
			    "name: the mode of '%s' lets this user only observe it "
			    "(TSHARE_OBSERVE)",
			    name);
	return err ? err : regions_bind_seats(stream, *id);
}

static int open_both(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
		     const char *seats, int64_t timeout_ns)
{
	const struct timespec pause = { .tv_nsec = REPLACING_LOOK_NS };
	int64_t deadline = clock_deadline(timeout_ns, clock_ns()), give_up = 0;
	uint64_t id = 0, before = 0;
	int err;

	for (;;) {
		err = open_regions(stream, ctx, name, seats, clock_left(deadline), &id);
		if (err != -ESTALE)
			return err;
		if (id != before)
			give_up = clock_ns() + REPLACING_NS;
		else if (clock_ns() > give_up)
			return fail(-EPROTO, "name: '%s' is not of the stream '%s'", seats, name);
		before = id;
		stream_unbind(stream);
		stream->ring.slots = 0;
		nanosleep(&pause, NULL);
	}
}

static int read_open_options(const struct tshare_stream_open_options *options,
			     struct tshare_stream_open_options *known)
{
	int err = 0;

	*known = (struct tshare_stream_open_options){ 0 };
	if (options)
		err = sized_read(options, "options.",
				 SIZED_UPTO(struct tshare_stream_open_options, timeout_ns), known,
				 sizeof(*known));
	if (err)
		return err;
	if (known->flags & ~(TSHARE_KEEP_ALL | TSHARE_OBSERVE))
		return fail(-EINVAL, "options.flags: unknown flag in %#" PRIx32, known->flags);
	if (known->flags == (TSHARE_KEEP_ALL | TSHARE_OBSERVE))
		return fail(-EINVAL, "options.flags: an observer can't keep frames");
	if (known->reserved)
		return fail(-EINVAL, "options.reserved: is not 0");
	return 0;
}

static int stream_open(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
		       const struct tshare_stream_open_options *options)
{
	char seats[TSHARE_NAME_LEN];
	int err;

	err = seats_region_name(name, seats);
	if (!err)
		err = open_both(stream, ctx, name, seats, options->timeout_ns);
	if (err)
		return err;
	stream->keeps_all = options->flags & TSHARE_KEEP_ALL;
	if (stream->keeps_all && !stream->ring.may_keep)
		return fail(-EPERM,
			    "options.flags: the producer of '%s' doesn't allow "
			    "TSHARE_KEEP_ALL",
			    name);
	stream->hold = options->hold;
	if (!stream->hold)
		stream->hold = stream->ring.slots > 8 ? stream->ring.slots / 4 : 2;
	err = consumer_join(stream, options->history);
	if (!err)
		frames_begin(stream);
	return err;
}

TSHARE_EXPORT
int tshare_stream_open(struct tshare_ctx *ctx, const char *name,
		       const struct tshare_stream_open_options *options,
		       struct tshare_stream **stream)
{
	struct tshare_stream_open_options known;
	struct tshare_stream *new;
	int err;

	no_cancellation();
	err = read_open_options(options, &known);
	if (err)
		return err;
	new = stream_new(known.flags & TSHARE_OBSERVE ? STREAM_OBSERVER : STREAM_CONSUMER);
	if (!new)
		return -ENOMEM;
	err = stream_open(new, ctx, name, &known);
	if (err) {
		stream_free(new);
		return err;
	}
	*stream = new;
	return 0;
}

/* Description */

TSHARE_EXPORT
struct tshare_region *tshare_stream_get_region(const struct tshare_stream *stream)
{
	return stream->region;
}

TSHARE_EXPORT
int tshare_stream_get_info(struct tshare_stream *stream, struct tshare_stream_info *info)
{
	struct tshare_stream_info known = {
		.slots = stream->ring.slots,
		.history = stream->ring.history,
		.flags = stream->ring.may_keep ? TSHARE_KEEP_ALL : 0,
		.field_count = stream->field_count,
		.seat = stream->seat,
	};
	uint64_t end;
	int err;

	err = sized_check(info, "info.", SIZED_UPTO(struct tshare_stream_info, ended));
	if (!err)
		err = tshare_region_get_generation(stream->region, &known.newest);
	if (err)
		return err;
	end = atomic_load(&stream->ring.head->end);
	known.ended = end;
	if (end && known.newest >= end)
		known.newest = end - 1;
	sized_fill(info, &known, sizeof(known));
	return 0;
}

/* An observer opens the seats when it is asked for them, since it may not be allowed to. */
static int open_seats_to_look(struct tshare_stream *stream)
{
	const struct tshare_open_options readonly = {
		.size = sizeof(readonly),
		.flags = TSHARE_READONLY,
	};
	char name[TSHARE_NAME_LEN];
	int err;

	err = seats_region_name(tshare_region_get_name(stream->region), name);
	if (!err)
		err = tshare_region_open(stream->region->ctx, name, &readonly,
					 &stream->seats_region);
	if (err)
		return err;
	err = regions_bind_seats(stream, atomic_load(&stream->ring.head->id));
	if (!err)
		err = seats_see(&stream->seats, stream->seats_region);
	if (err)
		stream->seats_region = tshare_region_unref(stream->seats_region);
	return err;
}

static int see_seats(struct tshare_stream *stream)
{
	int err = 0;

	pthread_mutex_lock(&stream->lock);
	if (!stream->seats_region)
		err = open_seats_to_look(stream);
	pthread_mutex_unlock(&stream->lock);
	return err;
}

static void describe_seat(struct tshare_stream *stream, int seat, struct tshare_stream_seat *known)
{
	const struct ring *ring = &stream->ring;
	uint32_t slot;

	*known = (struct tshare_stream_seat){
		.size = sizeof(*known),
		.seat = seat,
		.pid = atomic_load(&stream->labels.pids[seat]),
		.keeps_all = atomic_load(&ring->keep->value) & ring_bit(seat),
		.evicted = ring_is_evicted(ring, seat),
	};
	for (slot = 0; slot < ring->slots; slot++)
		known->held += !!(atomic_load(&ring->words[slot].value) & ring_bit(seat));
	seat_command(&stream->labels, seat, known->command);
}

TSHARE_EXPORT
int tshare_stream_list_seats(struct tshare_stream *stream,
			     int (*fn)(const struct tshare_stream_seat *seat, void *data),
			     void *data)
{
	struct tshare_stream_seat known;
	int seat, err;

	if (seats_is_child(&stream->seats))
		return role_fail_child();
	err = see_seats(stream);
	if (err)
		return err;
	for (seat = 0; seat < TSHARE_STREAM_CONSUMERS; seat++) {
		if (seat != stream->seat && !seats_is_taken(&stream->seats, seat))
			continue;
		describe_seat(stream, seat, &known);
		err = fn(&known, data);
		if (err)
			return err;
	}
	return 0;
}

TSHARE_EXPORT
void tshare_stream_cancel(struct tshare_stream *stream)
{
	tshare_region_cancel(stream->role == STREAM_PRODUCER ? stream->seats_region :
							       stream->region);
}
