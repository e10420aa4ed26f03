// SPDX-License-Identifier: MIT
/* A stream's description and its consumers; and the end of its waits. */
#include <errno.h>

#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "lease/follow.h"
#include "lease/news.h"
#include "lease/regions.h"
#include "lease/role.h"
#include "lease/seats-region.h"
#include "region/object.h"

TSHARE_EXPORT
struct tshare_region *tshare_stream_get_region(const struct tshare_stream *stream)
{
	struct tshare_stream *current;
	struct tshare_region *region;

	/* Only a reader's object follows, and only it changes. */
	current = follow_current((struct tshare_stream *)stream);
	region = current->region;
	tshare_stream_unref(current);
	return region;
}

TSHARE_EXPORT
struct tshare_region *tshare_stream_ref_region(struct tshare_stream *stream)
{
	struct tshare_stream *current = follow_current(stream);
	struct tshare_region *region = tshare_region_ref(current->region);

	tshare_stream_unref(current);
	return region;
}

static int get_info(struct tshare_stream *stream, struct tshare_stream_info *info)
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

TSHARE_EXPORT
int tshare_stream_get_info(struct tshare_stream *stream, struct tshare_stream_info *info)
{
	struct tshare_stream *current = follow_current(stream);
	int err = get_info(current, info);

	tshare_stream_unref(current);
	return err;
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

static int list_seats(struct tshare_stream *stream,
		      int (*fn)(const struct tshare_stream_seat *seat, void *data), void *data)
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
int tshare_stream_list_seats(struct tshare_stream *stream,
			     int (*fn)(const struct tshare_stream_seat *seat, void *data),
			     void *data)
{
	struct tshare_stream *current = follow_current(stream);
	int err = list_seats(current, fn, data);

	tshare_stream_unref(current);
	return err;
}

TSHARE_EXPORT
void tshare_stream_cancel(struct tshare_stream *stream)
{
	bool child = seats_is_child(&stream->seats);

	if (!stream->follow)
		tshare_region_cancel(stream->role == STREAM_PRODUCER ? stream->seats_region :
								       stream->region);
	else if (!child)
		follow_cancel(stream);
	if (!stream->news || child)
		return;
	pthread_mutex_lock(&stream->lock);
	news_renew(stream);
	pthread_mutex_unlock(&stream->lock);
}
