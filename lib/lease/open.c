// SPDX-License-Identifier: MIT
/* Opening a stream: two regions, which must be of one stream. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "base/thread.h"
#include "format/region-name.h"
#include "lease/consumer.h"
#include "lease/frame.h"
#include "lease/regions.h"
#include "lease/seats-region.h"
#include "lease/stream.h"

/* How long a name and its seats may lead to different streams, while a producer replaces both. */
#define REPLACING_NS	  (NSEC_PER_SEC / 5)
#define REPLACING_LOOK_NS (NSEC_PER_SEC / 200)

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
