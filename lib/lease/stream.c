// SPDX-License-Identifier: MIT
/* The object of a stream, and its creation by a producer. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "base/thread.h"
#include "lease/consumer.h"
#include "lease/frame.h"
#include "lease/news.h"
#include "lease/regions.h"
#include "lease/seats-region.h"
#include "lease/stream.h"
#include "region/region.h"

struct tshare_stream *stream_new(enum stream_role role)
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

void stream_unbind(struct tshare_stream *stream)
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

void stream_free(struct tshare_stream *stream)
{
	bool child = seats_is_child(&stream->seats);

	if (stream->follow)
		stream->end_follow(stream);
	owners_end(stream->region);
	if (!child && stream->role == STREAM_PRODUCER)
		unlink_both(stream);
	if (!child && stream->seat >= 0)
		consumer_leave(stream);
	seats_close(&stream->seats);
	news_end(stream);
	stream_unbind(stream);
	if (stream->held && refcount_put(&stream->held->refs))
		free(stream->held);
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
	return err ? err : region_finish_both(stream->seats_region, stream->region);
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
			    "name: '%s' is a stream whose producer lives, or a child that it has "
			    "forked; end that, or take the name over (TSHARE_REPLACE)",
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
