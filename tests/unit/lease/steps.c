// SPDX-License-Identifier: MIT
/*
 * Leases of streams, with a process that is killed or stopped at each step of its protocol.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../frames.h"
#include "generation/counter.h"
#include "players.h"

#define MS   INT64_C(1000000)
#define SOON (HANG_SECONDS * 1000 * MS)

/* A consumer joins, takes, gets and drops frames, and leaves. */
static int consume(const struct player *player)
{
	struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = player->flags,
		.history = 3,
		.hold = 2,
	};
	struct tshare_stream *stream;
	struct tshare_frame *frame, *other;
	struct tshare_ctx *own;
	int err;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own))
		return 1;
	if (tshare_stream_open(own, player->name, &options, &stream))
		return 2;
	err = tshare_stream_take(stream, 0, &frame);
	if (!err) {
		/* An evicted consumer may read a torn frame. */
		if (!whole_number(frame) && !tshare_frame_check(frame))
			return 3;
		err = tshare_stream_take(stream, 0, &other);
		if (!err)
			tshare_frame_unref(other);
		tshare_frame_unref(frame);
	}
	if (err && err != -ESTALE && err != -ETIMEDOUT)
		return 4;
	tshare_stream_unref(stream);
	tshare_ctx_unref(own);
	return 0;
}

/* The producer fills all slots again, one after the other, whoever held them. */
static void fills_all_slots(struct tshare_stream *producer, const char *label)
{
	struct tshare_stream_info info = { .size = sizeof(info) };
	struct tshare_frame *frame;
	int i;

	for (i = 0; i < 8; i++) {
		if (tshare_stream_loan(producer, SOON, &frame)) {
			printf("# at %s: %s\n", label, tshare_error_get());
			CHECK(!"a slot");
		}
		tshare_stream_get_info(producer, &info);
		fill_frame(frame, info.newest + 1);
		CHECK(!tshare_frame_publish(frame));
		tshare_frame_unref(frame);
	}
}

static void consumer_is_killed_anywhere(uint32_t flags)
{
	const char *name = unique("consumer");
	struct tshare_stream *producer = new_stream(name, 4, 3, TSHARE_KEEP_ALL);
	struct player player = new_player(name, flags, consume, SIGKILL);
	struct tshare_stream *other = open_stream(name, 0);

	CHECK(publish_until(producer, 4));
	for (player.stop_at = 0;; player.stop_at++) {
		start_player(&player);
		if (!is_caught(&player))
			break;
		fills_all_slots(producer, player.label);
		CHECK(take_number(other) > 0);
	}
	CHECK(player.stop_at > 20);
	tshare_stream_unref(other);
	end_player(&player);
	tshare_stream_unref(producer);
}

TEST(a_consumer_may_be_killed_at_each_step)
{
	consumer_is_killed_anywhere(0);
}

TEST(a_consumer_that_keeps_all_may_be_killed_at_each_step)
{
	consumer_is_killed_anywhere(TSHARE_KEEP_ALL);
}

static int find_evictable(const struct tshare_stream_seat *seat, void *data)
{
	*(int *)data = seat->seat;
	return 0;
}

static void evict_all(struct tshare_stream *producer)
{
	int seat = -1;

	CHECK(!tshare_stream_list_seats(producer, find_evictable, &seat));
	if (seat >= 0)
		CHECK(!tshare_stream_evict(producer, seat, 0));
}

static void consumer_is_stopped_anywhere(uint32_t flags)
{
	const char *name = unique("stopped");
	struct tshare_stream *producer = new_stream(name, 4, 3, TSHARE_KEEP_ALL);
	struct player player = new_player(name, flags, consume, SIGSTOP);

	CHECK(publish_until(producer, 4));
	for (player.stop_at = 0;; player.stop_at++) {
		start_player(&player);
		if (!is_caught(&player))
			break;
		evict_all(producer);
		fills_all_slots(producer, player.label);
		CHECK(!kill(player.pid, SIGCONT));
		CHECK(!is_caught(&player));
		fills_all_slots(producer, player.label);
	}
	CHECK(player.stop_at > 20);
	end_player(&player);
	tshare_stream_unref(producer);
}

TEST(a_consumer_may_be_stopped_and_evicted_at_each_step)
{
	consumer_is_stopped_anywhere(0);
}

TEST(a_consumer_that_keeps_all_may_be_stopped_and_evicted_at_each_step)
{
	consumer_is_stopped_anywhere(TSHARE_KEEP_ALL);
}

/* A producer publishes, abandons, waits for a slot and evicts. */
static int produce(const struct player *player)
{
	struct tshare_stream *stream;
	struct tshare_frame *frame;

	open_context();
	count_steps(player, false);
	stream = new_stream(player->name, 4, 1, TSHARE_KEEP_ALL);
	kill(getpid(), SIGSTOP); /* until its consumers are there */
	count_steps(player, true);
	if (!publish_until(stream, 3) || tshare_stream_loan(stream, 0, &frame))
		return 1;
	tshare_frame_unref(frame);
	if (!publish_until(stream, 4) || tshare_stream_loan(stream, MS, &frame) != -ETIMEDOUT)
		return 2;
	if (tshare_stream_evict(stream, 0, 0) || !publish_until(stream, 6))
		return 3;
	return 0;
}

/* Takes all that is there: the last number. */
static int64_t drain(struct tshare_stream *consumer, bool all)
{
	int64_t last = 0, number;

	while ((number = take_number(consumer)) > 0) {
		CHECK(all ? number == last + 1 : number > last);
		last = number;
	}
	CHECK(number == -EOWNERDEAD || number == -ESTALE);
	return last;
}

TEST(a_producer_may_be_killed_at_each_step)
{
	struct player player = new_player(unique("producer"), 0, produce, SIGKILL);
	struct tshare_stream *keeps[2], *loses;
	int64_t last;
	bool caught;

	for (player.stop_at = 0, caught = true; caught; player.stop_at++) {
		start_player(&player);
		CHECK(is_caught(&player));
		keeps[0] = open_stream(player.name, TSHARE_KEEP_ALL); /* is evicted */
		keeps[1] = open_stream(player.name, 0);
		loses = open_stream(player.name, 0);
		CHECK(!kill(player.pid, SIGCONT));
		caught = is_caught(&player);
		drain(keeps[0], true);
		last = drain(keeps[1], false);
		CHECK(drain(loses, false) == last);
		tshare_stream_unref(keeps[0]);
		tshare_stream_unref(keeps[1]);
		tshare_stream_unref(loses);
	}
	CHECK(player.stop_at > 40);
	end_player(&player);
}

/* Any moment */

static int consume_for_ever(const struct player *player)
{
	struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = player->flags,
		.hold = 2,
	};
	struct tshare_stream *stream;
	struct tshare_frame *frame;
	struct tshare_ctx *own;
	uint64_t number, last = 0;

	count_steps(player, false);
	if (ctx_new(tshare_ctx_get_backend(ctx), &own) ||
	    tshare_stream_open(own, player->name, &options, &stream))
		return 1;
	while (!tshare_stream_take(stream, SOON, &frame)) {
		number = whole_number(frame);
		if (!number || number <= last ||
		    (last && number != last + 1 && player->flags & TSHARE_KEEP_ALL))
			return 2;
		last = number;
		(*player->count)++;
		tshare_frame_unref(frame);
	}
	return 3;
}

/* As many as TSHARE_TEST_KILLS names. */
static int kills(void)
{
	const char *wanted = getenv("TSHARE_TEST_KILLS");

	return wanted ? atoi(wanted) : rounds(200);
}

TEST(consumers_may_be_killed_at_any_moment)
{
	const char *name = unique("moment");
	struct tshare_stream *producer = new_stream(name, 6, 1, TSHARE_KEEP_ALL);
	struct player players[3];
	unsigned int seed = 1;
	uint64_t number = 0;
	int i, round, status, wait;

	for (i = 0; i < 3; i++) {
		players[i] = new_player(name, i ? TSHARE_KEEP_ALL : 0, consume_for_ever, 0);
		start_player(&players[i]);
	}
	for (round = kills(); round; round--) {
		i = rand_r(&seed) % 3;
		for (wait = rand_r(&seed) % 20; wait >= 0 || !*players[i].count; wait--) {
			struct tshare_frame *frame;

			CHECK(!tshare_stream_loan(producer, SOON, &frame));
			fill_frame(frame, ++number);
			CHECK(!tshare_frame_publish(frame));
			tshare_frame_unref(frame);
			usleep(wait < 0 ? 1000 : rand_r(&seed) % 50);
			CHECK(!waitpid(players[i].pid, &status, WNOHANG));
		}
		CHECK(!kill(players[i].pid, SIGKILL));
		CHECK(waitpid(players[i].pid, &status, 0) == players[i].pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		start_player(&players[i]);
	}
	for (i = 0; i < 3; i++) {
		CHECK(!kill(players[i].pid, SIGKILL));
		CHECK(waitpid(players[i].pid, &status, 0) == players[i].pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		end_player(&players[i]);
	}
	fills_all_slots(producer, "any");
	tshare_stream_unref(producer);
}

/* A consumer may write what the producer sleeps on. */
TEST(a_damaged_counter_of_the_seats_ends_no_wait_for_a_slot)
{
	const char *name = unique("counter");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_region *seats;
	struct tshare_frame *held, *frame;
	struct counter *counter;
	char seats_name[TSHARE_NAME_MAX + 1];
	int err;

	strcpy(stpcpy(seats_name, name), ".seats");
	CHECK(!tshare_region_open(ctx, seats_name, NULL, &seats));
	counter = counter_get(seats, &err);
	CHECK(counter);
	CHECK(publish_until(producer, 1));
	held = take_frame(consumer);
	CHECK(publish_until(producer, 2));
	CHECK(tshare_stream_loan(producer, MS, &frame) == -ETIMEDOUT);
	counter->publishers = 2;
	CHECK(tshare_stream_loan(producer, 60 * MS, &frame) == -ETIMEDOUT);
	counter->version = COUNTER_VERSION + 1;
	CHECK(tshare_stream_loan(producer, 60 * MS, &frame) == -ETIMEDOUT);
	tshare_frame_unref(held);
	CHECK(!tshare_stream_loan(producer, SOON, &frame));
	tshare_frame_unref(frame);
	tshare_region_unref(seats);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
