// SPDX-License-Identifier: MIT
/*
 * NAME.seats has
 *
 *	.stream    uint64 (16)           version and id, as in NAME; a pool's is called .pool
 *	.word      uint64 (slots, 8)     struct ring_line
 *	.keep      uint64 (8)            seats that keep every frame
 *	.waiting   uint64 (8)            whether somebody sleeps until a slot is free
 *	.pid       int32 (62)            who sits there
 *	.command   uint8 (62, 16)
 *
 * It is other processes' memory: what is read from it here is read once, then checked.
 */
#define _GNU_SOURCE 1
#include "lease/seats-region.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "ctx.h"
#include "lease/part.h"

#define SEATS_SUFFIX ".seats"
#define LINE_WORDS   (sizeof(struct ring_line) / sizeof(uint64_t))

_Static_assert(sizeof(struct ring_head) <= RING_HEAD_WORDS * sizeof(uint64_t), "the head has room");

enum { SEATS_HEAD, SEATS_WORD, SEATS_KEEP, SEATS_WAITING, SEATS_PID, SEATS_COMMAND, SEATS_PARTS };

struct head_part {
	char name[16];
	struct part part;
};

static void head_part_of(const char *kind, struct head_part *head)
{
	snprintf(head->name, sizeof(head->name), ".%s", kind);
	head->part = (struct part){ head->name, TSHARE_UINT64, 1, { RING_HEAD_WORDS } };
}

static void parts_of(const struct head_part *head, int64_t slots, struct part *parts)
{
	const int64_t consumers = TSHARE_STREAM_CONSUMERS;

	parts[SEATS_HEAD] = head->part;
	parts[SEATS_WORD] = (struct part){ ".word", TSHARE_UINT64, 2, { slots, LINE_WORDS } };
	parts[SEATS_KEEP] = (struct part){ ".keep", TSHARE_UINT64, 1, { LINE_WORDS } };
	parts[SEATS_WAITING] = (struct part){ ".waiting", TSHARE_UINT64, 1, { LINE_WORDS } };
	parts[SEATS_PID] = (struct part){ ".pid", TSHARE_INT32, 1, { consumers } };
	parts[SEATS_COMMAND] =
		(struct part){ ".command", TSHARE_UINT8, 2, { consumers, SEAT_COMMAND_LEN } };
}

int seats_region_name(const char *name, char seats[TSHARE_NAME_LEN])
{
	if (!name)
		return fail(-EINVAL, "name: is NULL");
	if (strlen(name) > TSHARE_STREAM_NAME_MAX)
		return fail(-ENAMETOOLONG, "name: has more than %d bytes", TSHARE_STREAM_NAME_MAX);
	strcpy(stpcpy(seats, name), SEATS_SUFFIX);
	return 0;
}

int seats_region_create(struct tshare_ctx *ctx, const char *name, const char *kind, uint32_t slots,
			const struct tshare_options *region, struct tshare_region **made)
{
	struct tshare_options options = {
		.size = sizeof(options),
		.flags = region->flags & (TSHARE_DRAFT | TSHARE_REPLACE),
		.mode = region->mode,
		.lifetime = region->lifetime,
	};
	struct tshare_spec specs[SEATS_PARTS];
	struct part parts[SEATS_PARTS];
	struct head_part head;
	size_t i;

	/*
	 * A reader of NAME takes a seat, so it must write here. On shared memory a process that may
	 * write a file may truncate it, and so let its users crash: there others can only observe.
	 */
	if (options.mode != TSHARE_MODE_NONE && ctx->backend->has_dmabufs)
		options.mode |= (options.mode & 0444) >> 1;
	head_part_of(kind, &head);
	parts_of(&head, slots, parts);
	for (i = 0; i < SEATS_PARTS; i++)
		part_spec(&parts[i], &specs[i]);
	return tshare_region_create(ctx, name, 0, specs, SEATS_PARTS, &options, made);
}

static uint64_t random_id(void)
{
	uint64_t id;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		id = clock_ns();
	return id ? id : 1;
}

int seats_region_write_heads(struct tshare_region *region, struct tshare_region *seats,
			     const char *kind, const struct ring_head *head)
{
	uint64_t id = random_id();
	struct ring_head *heads[2];
	struct head_part part;
	size_t i;
	int err;

	head_part_of(kind, &part);
	err = part_find(region, kind, &part.part, &heads[0]);
	if (!err)
		err = part_find(seats, kind, &part.part, &heads[1]);
	for (i = 0; !err && i < 2; i++) {
		memcpy(heads[i], head, sizeof(*head));
		atomic_store(&heads[i]->id, id);
	}
	return err;
}

int seats_region_bind(struct tshare_region *seats, const char *kind, uint64_t version, uint64_t id,
		      struct ring *ring, struct seat_labels *labels)
{
	struct part parts[SEATS_PARTS];
	struct head_part head_part;
	struct ring_head *head;
	int err;

	head_part_of(kind, &head_part);
	parts_of(&head_part, ring->slots, parts);
	err = part_find(seats, kind, &parts[SEATS_HEAD], &head);
	if (err)
		return err;
	if (atomic_load(&head->version) != version || atomic_load(&head->id) != id)
		return fail(-ESTALE, "name: '%s' belongs to another %s",
			    tshare_region_get_name(seats), kind);
	err = part_find(seats, kind, &parts[SEATS_WORD], &ring->words);
	if (!err)
		err = part_find(seats, kind, &parts[SEATS_KEEP], &ring->keep);
	if (!err)
		err = part_find(seats, kind, &parts[SEATS_WAITING], &ring->waiting);
	if (!err)
		err = part_find(seats, kind, &parts[SEATS_PID], &labels->pids);
	if (!err)
		err = part_find(seats, kind, &parts[SEATS_COMMAND], &labels->commands);
	return err;
}

int seats_region_sleep(struct tshare_region *seats, uint64_t seen, int64_t until)
{
	int64_t left = until - clock_ns();
	struct timespec pause = { .tv_nsec = left };
	int err;

	if (left <= 0)
		return 0;
	lease_step("sleep");
	err = tshare_region_wait(seats, seen, left, 0, &seen);
	if (err == -EINTR || err == -ECANCELED)
		return err;
	/* A broken peer has damaged the counter, or published and died. */
	if (err && err != -ETIMEDOUT)
		nanosleep(&pause, NULL);
	return 0;
}
