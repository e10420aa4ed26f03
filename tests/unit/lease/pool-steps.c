// SPDX-License-Identifier: MIT
/* Pools, with a process that is killed or stopped at each step of what it does. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../pools.h"
#include "players.h"

/* Slots of the pool, of which the test holds the first. */
#define COUNT 7

/* Each entry's bytes are the first of its key. Of all that are made in turn, the last six stay. */
static const char *const keys[] = { "p", "q", "x", "y", "z", "a", "b", "c", "d", "e", "f" };

#define KEYS (sizeof(keys) / sizeof(*keys))

static struct tshare_pool *join(const char *name, const struct tshare_open_options *options)
{
	struct tshare_pool *pool;
	struct tshare_ctx *own;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) ||
	    tshare_pool_open(own, name, options, &pool))
		return NULL;
	tshare_ctx_unref(own);
	return pool;
}

/* Two objects die with their process, each with an entry that it has got, and one that it makes. */
static void leave_remains(const char *name)
{
	struct tshare_pool *pools[2];
	struct tshare_entry *entry;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		pools[0] = join(name, NULL);
		pools[1] = join(name, NULL);
		if (!pools[0] || !get_entry(pools[0], "e") ||
		    make_entry(pools[0], "p", SLOTS(1), LONG, &entry))
			_exit(1);
		if (!pools[1] || !get_entry(pools[1], "f") ||
		    make_entry(pools[1], "q", SLOTS(1), LONG, &entry))
			_exit(2);
		_exit(0);
	}
	CHECK(!end_of(pid));
}

static bool are_all_whole(struct tshare_pool *pool)
{
	size_t i;
	int byte;

	for (i = 0; i < KEYS; i++) {
		byte = byte_at(pool, keys[i]);
		if (byte == -ENOENT || byte == *keys[i])
			continue;
		printf("# '%s' is %d\n", keys[i], byte);
		return false;
	}
	return true;
}

/* Makes an entry of each key, unless there is one. */
static bool make_all(struct tshare_pool *pool, int64_t timeout_ns)
{
	struct tshare_entry *entry;
	size_t i;
	int err;

	for (i = 0; i < KEYS; i++) {
		err = make_entry(pool, keys[i], SLOTS(1), timeout_ns, &entry);
		if (err == -EEXIST)
			continue;
		/* Somebody who was stopped has the key, or the lock. */
		if (err == -ETIMEDOUT && !timeout_ns && strstr(tshare_error_get(), "of that key"))
			continue;
		if (err == -ETIMEDOUT && !timeout_ns)
			return true;
		if (err) {
			printf("# '%s': %s\n", keys[i], tshare_error_get());
			return false;
		}
		fill_entry(entry, *keys[i]);
		CHECK(!tshare_entry_finish(entry));
		tshare_entry_unref(entry);
	}
	return true;
}

/* Whether everything is free but what the test holds. Leaves entries in all slots. */
static bool returns_all(struct tshare_pool *pool)
{
	struct tshare_entry *entry;

	if (!are_all_whole(pool) || !make_all(pool, LONG) || !are_all_whole(pool))
		return false;
	if (make_entry(pool, "all", SLOTS(COUNT - 1), LONG, &entry))
		return false;
	tshare_entry_unref(entry);
	if (info_of(pool).entries != 1 || info_of(pool).held_slots != 1)
		return false;
	return make_all(pool, LONG);
}

/* Makes, drops and gets entries; some need room that others have, or that the dead held. */
static int make_things(const struct player *player)
{
	struct tshare_pool *pool = join(player->name, NULL);
	struct tshare_entry *made, *large, *got;
	int err;

	if (!pool)
		return 1;
	err = make_entry(pool, "q", SLOTS(1), LONG, &made);
	if (err && err != -EEXIST)
		return 2;
	if (!err) {
		fill_entry(made, 'q');
		if (tshare_entry_finish(made) || byte_of(made) != 'q')
			return 3;
		tshare_entry_unref(made);
	}
	if (make_entry(pool, "large", SLOTS(3), LONG, &large))
		return 4;
	tshare_entry_unref(large);
	err = make_entry(pool, "x", SLOTS(2), LONG, &made);
	if (err && err != -EEXIST)
		return 5;
	if (!err)
		fill_entry(made, 'x');
	got = get_entry(pool, "f");
	if (!err && (tshare_entry_finish(made) || byte_of(made) != 'x'))
		return 6;
	if (got && byte_of(got) != 'f')
		return 7;
	if (!err)
		tshare_entry_unref(made);
	tshare_entry_unref(got);
	tshare_pool_unref(pool);
	return 0;
}

static int get_things(const struct player *player)
{
	struct tshare_pool *pool =
		join(player->name, player->flags & TSHARE_READONLY ? &readonly_options : NULL);
	struct tshare_entry *held[KEYS];
	size_t i;

	if (!pool)
		return 1;
	for (i = 0; i < KEYS; i++)
		held[i] = i > KEYS - 4 ? get_entry(pool, keys[i]) : NULL;
	for (i = 0; i < KEYS; i++)
		if (held[i] && byte_of(held[i]) != *keys[i])
			return 2;
	for (i = 0; i < KEYS; i++)
		tshare_entry_unref(held[i]);
	tshare_pool_unref(pool);
	return 0;
}

static void is_caught_anywhere(struct player *player, int least)
{
	struct tshare_pool *pool = new_pool(player->name, COUNT, PAGE);
	struct tshare_entry *held;
	bool caught, good;

	CHECK(!put_entry(pool, "held", SLOTS(1), 'h') && (held = get_entry(pool, "held")));
	for (caught = true; caught; player->stop_at++) {
		CHECK(make_all(pool, LONG));
		/* The player takes the first one's seat. */
		leave_remains(player->name);
		start_player(player);
		caught = is_caught(player);
		good = are_all_whole(pool);
		if (player->signal == SIGSTOP && caught) {
			good = good && make_all(pool, 0) && are_all_whole(pool);
			CHECK(!kill(player->pid, SIGCONT));
			CHECK(!is_caught(player));
		}
		if (!good || !returns_all(pool)) {
			printf("# at step %d, %s\n", player->stop_at, player->label);
			CHECK(!"whole");
		}
		CHECK(byte_of(held) == 'h');
	}
	CHECK(player->stop_at > least);
	tshare_entry_unref(held);
	tshare_pool_unref(pool);
	end_player(player);
}

TEST(a_maker_may_be_killed_at_each_step)
{
	struct player player = new_player(unique("maker"), 0, make_things, SIGKILL);

	is_caught_anywhere(&player, 60);
}

TEST(a_maker_may_be_stopped_at_each_step)
{
	struct player player = new_player(unique("stopped"), 0, make_things, SIGSTOP);

	is_caught_anywhere(&player, 60);
}

TEST(a_getter_may_be_killed_at_each_step)
{
	struct player player = new_player(unique("getter"), 0, get_things, SIGKILL);

	is_caught_anywhere(&player, 25);
}

TEST(a_getter_may_be_stopped_at_each_step)
{
	struct player player = new_player(unique("still"), 0, get_things, SIGSTOP);

	is_caught_anywhere(&player, 25);
}

TEST(a_reader_may_be_killed_at_each_step)
{
	struct player player = new_player(unique("reader"), TSHARE_READONLY, get_things, SIGKILL);

	is_caught_anywhere(&player, 25);
}

TEST(a_reader_may_be_stopped_at_each_step)
{
	struct player player = new_player(unique("quiet"), TSHARE_READONLY, get_things, SIGSTOP);

	is_caught_anywhere(&player, 25);
}

static int sit_still(const struct player *player)
{
	struct tshare_pool *pool = join(player->name, &readonly_options);

	raise(SIGSTOP);
	return pool ? 0 : 1;
}

/* It finds no maker in any seat, and then is the next one in that of two who make and die. */
TEST(a_reader_that_opens_the_pool_inherits_no_entry_of_a_maker_that_dies)
{
	const char *name = unique("inherits");
	struct tshare_pool *pool = new_pool(name, COUNT, PAGE);
	struct player player = new_player(name, 0, sit_still, SIGSTOP);

	CHECK(make_all(pool, LONG));
	start_player(&player);
	CHECK(is_caught(&player) && !strcmp(player.label, "join"));
	leave_remains(name);
	CHECK(!kill(player.pid, SIGCONT));
	CHECK(is_caught(&player));
	CHECK(!put_entry(pool, "p", 10, 'p') && !put_entry(pool, "q", 10, 'q'));
	kill_and_reap(player.pid);
	end_player(&player);
	tshare_pool_unref(pool);
}

/* A maker that was stopped at a step. */
static struct player stop_maker_at(struct tshare_pool *pool, const char *name, const char *label)
{
	struct player player = new_player(name, 0, make_things, SIGSTOP);
	struct tshare_entry *all;

	for (;; player.stop_at++) {
		start_player(&player);
		CHECK(is_caught(&player));
		if (!strcmp(player.label, label))
			return player;
		CHECK(!kill(player.pid, SIGCONT));
		CHECK(!is_caught(&player));
		/* It makes the same keys again, in a pool that is full of others. */
		CHECK(!make_entry(pool, "all", SLOTS(COUNT), LONG, &all));
		tshare_entry_unref(all);
		CHECK(make_all(pool, LONG));
	}
}

static void end_stopped(struct player *player)
{
	kill_and_reap(player->pid);
	end_player(player);
}

TEST(an_entry_that_is_got_before_it_is_taken_out_stays)
{
	const char *name = unique("evict");
	struct tshare_pool *pool = new_pool(name, COUNT, PAGE);
	struct tshare_entry *oldest;
	struct player player;

	CHECK(make_all(pool, LONG));
	player = stop_maker_at(pool, name, "make_evict");
	CHECK((oldest = get_entry(pool, "z")));
	CHECK(!kill(player.pid, SIGCONT));
	CHECK(!is_caught(&player));
	CHECK(make_all(pool, LONG));
	CHECK(byte_of(oldest) == 'z' && byte_at(pool, "z") == 'z');
	tshare_entry_unref(oldest);
	end_player(&player);
	tshare_pool_unref(pool);
}

/* Others can get it already. */
TEST(a_key_is_taken_from_the_step_on_that_finishes_its_entry)
{
	const char *name = unique("finished");
	struct tshare_pool *pool = new_pool(name, COUNT, PAGE);
	struct player player = stop_maker_at(pool, name, "finish_maker");
	struct tshare_entry *entry;

	CHECK(byte_at(pool, "q") == 'q');
	CHECK(make_entry(pool, "q", 10, 0, &entry) == -EEXIST);
	end_stopped(&player);
	tshare_pool_unref(pool);
}

TEST(a_stopped_maker_keeps_nobody_who_does_not_wait)
{
	const char *name = unique("lock");
	struct tshare_pool *pool = new_pool(name, COUNT, PAGE);
	struct player player = stop_maker_at(pool, name, "make_record");
	struct tshare_entry *entry;

	CHECK(make_entry(pool, "p", 10, 0, &entry) == -ETIMEDOUT);
	CHECK(error_says("may have been stopped"));
	CHECK(make_entry(pool, "p", 10, 1, &entry) == -ETIMEDOUT);
	end_stopped(&player);
	CHECK(!put_entry(pool, "p", 10, 1));
	tshare_pool_unref(pool);
}

TEST(a_cancel_ends_the_wait_for_a_stopped_maker)
{
	const char *name = unique("cancel");
	struct tshare_pool *pool = new_pool(name, COUNT, PAGE);
	struct player player = stop_maker_at(pool, name, "make_record");
	struct making making = { pool, "a", 10 };

	start_making(&making);
	tshare_pool_cancel(pool);
	CHECK(end_making(&making) == -ECANCELED);
	end_stopped(&player);
	tshare_pool_unref(pool);
}

static void ignore(int signal)
{
	(void)signal;
}

TEST(a_signal_ends_the_wait_for_a_stopped_maker)
{
	const struct sigaction action = { .sa_handler = ignore };
	const char *name = unique("signal");
	struct tshare_pool *pool = new_pool(name, COUNT, PAGE);
	struct player player = stop_maker_at(pool, name, "make_record");
	struct making making = { pool, "a", 10 };

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	start_making(&making);
	do
		CHECK(!pthread_kill(making.thread, SIGUSR1));
	while (pthread_tryjoin_np(making.thread, NULL) && !usleep(10000));
	CHECK(making.result == -EINTR);
	end_stopped(&player);
	tshare_pool_unref(pool);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
