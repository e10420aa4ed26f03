// SPDX-License-Identifier: MIT
/* Becoming a reader of the stream that a name leads to: two regions, which must be of one stream. */
#include "lease/join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/refcount.h"
#include "format/region-name.h"
#include "lease/consumer.h"
#include "lease/frame.h"
#include "lease/regions.h"
#include "lease/seats-region.h"
#include "lease/stream.h"
#include "region/region.h"

/* How long a name and its seats may lead to different streams, while a producer replaces both. */
#define REPLACING_NS	  (NSEC_PER_SEC / 5)
#define REPLACING_LOOK_NS (NSEC_PER_SEC / 200)
#define STOPPED_LOOK_NS	  NSEC_PER_SEC

/* -ESTALE if the two aren't of one stream. Stores the id of NAME's. */
static int open_regions(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
			const char *seats, const struct tshare_open_options *options,
			uint64_t other_than, uint64_t *id)
{
	int err;

	err = region_open(ctx, name, options, other_than, &stream->region);
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

/*
 * A producer that takes longer to replace both may have been stopped. A call that waits then sleeps
 * until NAME leads to another region, which is the last step, and looks at both again now and then:
 * the producer may have taken the first step back.
 */
static int open_both(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
		     const char *seats, const struct tshare_stream_open_options *how,
		     const struct tshare_stream *before)
{
	struct tshare_open_options options = {
		.size = sizeof(options),
		.flags = TSHARE_READONLY,
		.timeout_ns = how->timeout_ns,
		.other_than = before ? before->region : NULL,
		.check = how->check,
		.check_ns = how->check_ns,
		.data = how->data,
	};
	const struct timespec pause = { .tv_nsec = REPLACING_LOOK_NS };
	int64_t deadline = clock_deadline(how->timeout_ns, clock_ns()), give_up = 0;
	uint64_t id = 0, last = 0, stopped = 0;
	int err;

	for (;;) {
		err = open_regions(stream, ctx, name, seats, &options, stopped, &id);
		if (err == -ETIMEDOUT && stopped) {
			options.timeout_ns = clock_left(deadline);
			if (!options.timeout_ns)
				return fail(err,
					    "timeout: '%s' is not of the stream '%s': a producer "
					    "that replaces both doesn't go on; it may have been "
					    "stopped",
					    seats, name);
			stopped = 0;
			continue;
		}
		if (err != -ESTALE)
			return err;
		if (id != last)
			give_up = clock_ns() + REPLACING_NS;
		else if (clock_ns() > give_up && !how->timeout_ns)
			return fail(-EPROTO, "name: '%s' is not of the stream '%s'", seats, name);
		else if (clock_ns() > give_up)
			stopped = tshare_region_get_id(stream->region);
		last = id;
		stream_unbind(stream);
		stream->ring.slots = 0;
		nanosleep(&pause, NULL);
		options.timeout_ns = clock_left(deadline);
		/* Not as a call that doesn't wait: that has another error. */
		if (how->timeout_ns && !options.timeout_ns)
			options.timeout_ns = 1;
		if (stopped && (options.timeout_ns < 0 || options.timeout_ns > STOPPED_LOOK_NS))
			options.timeout_ns = STOPPED_LOOK_NS;
	}
}

/* Whether slots of both are of one type and shape. */
static bool is_same_field(const struct tshare_tensor *a, const struct tshare_tensor *b)
{
	struct tshare_dtype types[] = { tshare_tensor_get_dtype(a), tshare_tensor_get_dtype(b) };
	int32_t ndim = tshare_tensor_get_ndim(a);

	return !strcmp(tshare_tensor_get_name(a), tshare_tensor_get_name(b)) &&
	       !memcmp(&types[0], &types[1], sizeof(types[0])) &&
	       tshare_tensor_get_ndim(b) == ndim &&
	       !memcmp(tshare_tensor_get_shape(a) + 1, tshare_tensor_get_shape(b) + 1,
		       (ndim - 1) * sizeof(int64_t));
}

/* The program goes on with frames as it knows them. */
static int check_fields(const struct tshare_stream *stream, const struct tshare_stream *before)
{
	const char *name = tshare_region_get_name(stream->region);
	size_t i;

	if (!before)
		return 0;
	for (i = 0; i < before->field_count; i++)
		if (i >= stream->field_count ||
		    !is_same_field(before->fields[i], stream->fields[i]))
			return fail(-EPROTO,
				    "name: '%s' leads to another stream now, whose field '%s' is "
				    "missing, or not as it was; open it anew",
				    name, tshare_tensor_get_name(before->fields[i]));
	if (i < stream->field_count)
		return fail(
			-EPROTO,
			"name: '%s' leads to another stream now, with a new field '%s'; open it "
			"anew",
			name, tshare_tensor_get_name(stream->fields[i]));
	return 0;
}

static int count_held(struct tshare_stream *stream, const struct tshare_stream *before)
{
	if (before) {
		refcount_get(&before->held->refs);
		stream->held = before->held;
		stream->epoch = before->epoch + 1;
		return 0;
	}
	stream->held = calloc(1, sizeof(*stream->held));
	if (!stream->held)
		return fail(-ENOMEM, "stream: out of memory");
	atomic_init(&stream->held->refs, 1);
	return 0;
}

static int join(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
		const struct tshare_stream_open_options *options,
		const struct tshare_stream *before)
{
	char seats[TSHARE_NAME_LEN];
	int err;

	err = seats_region_name(name, seats);
	if (!err)
		err = open_both(stream, ctx, name, seats, options, before);
	if (!err)
		err = check_fields(stream, before);
	if (!err)
		err = count_held(stream, before);
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

int join_stream(struct tshare_ctx *ctx, const char *name,
		const struct tshare_stream_open_options *options,
		const struct tshare_stream *before, struct tshare_stream **stream)
{
	struct tshare_stream *new;
	int err;

	new = stream_new(options->flags & TSHARE_OBSERVE ? STREAM_OBSERVER : STREAM_CONSUMER);
	if (!new)
		return -ENOMEM;
	err = join(new, ctx, name, options, before);
	if (err)
		stream_free(new);
	else
		*stream = new;
	return err;
}
