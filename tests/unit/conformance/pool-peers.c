// SPDX-License-Identifier: MIT
/* Pools, whose other users die, or write what they shouldn't. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../pools.h"

/* Deaths */

struct dying {
	const char *name;
	bool makes;
	struct steps steps;
};

static int hold_until_killed(void *data)
{
	struct dying *dying = data;
	struct tshare_pool *pool;
	struct tshare_entry *entry;
	struct tshare_ctx *own;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) ||
	    tshare_pool_open(own, dying->name, NULL, &pool))
		return 1;
	if (dying->makes ? make_entry(pool, "k", PAGE, 0, &entry) : !get_entry(pool, "a"))
		return 2;
	send_byte(dying->steps.ends[1]);
	for (;;)
		pause();
}

static pid_t start_dying(struct dying *dying)
{
	pid_t pid;

	CHECK(steps_open(&dying->steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(hold_until_killed(dying));
	CHECK(await_byte(dying->steps.ends[0]));
	return pid;
}

TEST(what_a_killed_process_held_is_free)
{
	struct dying dying = { unique("killed") };
	struct tshare_pool *pool = new_pool(dying.name, 2, PAGE);
	struct tshare_entry *entry;
	char text[40];
	pid_t pid;

	CHECK(!put_entry(pool, "a", 100, 1));
	pid = start_dying(&dying);
	CHECK(make_entry(pool, "l", SLOTS(2), 0, &entry) == -ETIMEDOUT);
	snprintf(text, sizeof(text), "(pid %d, '", (int)pid);
	CHECK(error_says(text));
	kill_and_reap(pid);
	steps_close(&dying.steps);
	CHECK(!put_entry(pool, "l", SLOTS(2), 2));
	tshare_pool_unref(pool);
}

TEST(what_a_killed_maker_made_was_never_there)
{
	struct dying dying = { unique("maker"), true };
	struct tshare_pool *pool = new_pool(dying.name, 2, PAGE);
	struct making making = { pool, "k", 100 };
	pid_t pid;

	pid = start_dying(&dying);
	CHECK(byte_at(pool, "k") == -ENOENT);
	start_making(&making);
	kill_and_reap(pid);
	steps_close(&dying.steps);
	CHECK(!end_making(&making));
	CHECK(!put_entry(pool, "k", 100, 3));
	CHECK(byte_at(pool, "k") == 3);
	CHECK(info_of(pool).used_slots == 1);
	tshare_pool_unref(pool);
}

/* The next one in the seat may not write NAME: the entry must not become its. */
TEST(a_reader_does_not_inherit_a_dead_makers_seat)
{
	struct dying dying = { unique("inherit"), true };
	struct tshare_pool *pool = new_pool(dying.name, 2, PAGE), *reader;
	pid_t pid;

	pid = start_dying(&dying);
	kill_and_reap(pid);
	steps_close(&dying.steps);
	CHECK(!tshare_pool_open(ctx, dying.name, &readonly_options, &reader));
	CHECK(!put_entry(pool, "k", SLOTS(2), 3));
	CHECK(byte_at(reader, "k") == 3);
	tshare_pool_unref(reader);
	tshare_pool_unref(pool);
}

/* Uses keys at random, in a way that any other process can check: each byte is the key's. */
static int use_at_random(const char *name, unsigned int seed, int calls)
{
	struct tshare_entry *held[3] = { NULL }, *entry;
	struct tshare_pool *pool;
	struct tshare_ctx *own;
	char key[2] = { 0 };
	int byte, err;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) || tshare_pool_open(own, name, NULL, &pool))
		return 1;
	while (calls--) {
		byte = 1 + rand_r(&seed) % 20;
		key[0] = byte;
		err = rand_r(&seed) % 16 ? 0 : tshare_pool_remove(pool, key, 1);
		if (err && err != -ENOENT && err != -ETIMEDOUT)
			return 5;
		entry = get_entry(pool, key);
		if (!entry) {
			err = make_entry(pool, key, 1 + rand_r(&seed) % (3 * PAGE), 100 * MS,
					 &entry);
			if (err == -EEXIST || err == -ETIMEDOUT)
				continue;
			if (err)
				return 2;
			fill_entry(entry, byte);
			if (rand_r(&seed) % 8 && tshare_entry_finish(entry))
				return 3;
		} else if (byte_of(entry) != byte) {
			return 4;
		}
		tshare_entry_unref(held[calls % 3]);
		held[calls % 3] = entry;
	}
	for (byte = 0; byte < 3; byte++)
		tshare_entry_unref(held[byte]);
	tshare_pool_unref(pool);
	tshare_ctx_unref(own);
	return 0;
}

/* Entries of bytes that aren't the key's, or that are missing in the end, say that something broke. */
TEST(entries_are_whole_and_none_is_lost_though_processes_are_killed)
{
	const char *name = unique("random");
	struct tshare_pool *pool = new_pool(name, 24, PAGE);
	unsigned int seed = 1;
	int i, kills = rounds(200), status;
	pid_t pids[3] = { 0 };

	for (i = 0; i < kills + 3; i++) {
		pid_t *pid = &pids[i % 3];

		if (*pid) {
			sleep_ns(rand_r(&seed) % 3 * MS / 2);
			CHECK(!kill(*pid, SIGKILL) && waitpid(*pid, &status, 0) == *pid);
			CHECK(WIFSIGNALED(status));
			*pid = 0;
		}
		if (i >= kills)
			continue;
		*pid = fork();
		CHECK(*pid >= 0);
		if (!*pid)
			_exit(use_at_random(name, i + 1, 1 << 30));
	}
	CHECK(!use_at_random(name, 9999, 2000));
	/* Everything can go. */
	CHECK(!put_entry(pool, "all", SLOTS(24), 77));
	CHECK(byte_at(pool, "all") == 77);
	CHECK(info_of(pool).entries == 1 && !info_of(pool).held_slots);
	tshare_pool_unref(pool);
}

struct user {
	const char *name;
	unsigned int seed;
	int result;
	pthread_t thread;
};

static void *run_user(void *data)
{
	struct user *user = data;

	user->result = use_at_random(user->name, user->seed, rounds(2000));
	return NULL;
}

TEST(threads_use_a_pool_at_once)
{
	const char *name = unique("threads");
	struct tshare_pool *pool = new_pool(name, 24, PAGE);
	struct user users[4];
	int i;

	for (i = 0; i < 4; i++) {
		users[i] = (struct user){ .name = name, .seed = i };
		CHECK(!pthread_create(&users[i].thread, NULL, run_user, &users[i]));
	}
	for (i = 0; i < 4; i++) {
		CHECK(!pthread_join(users[i].thread, NULL));
		CHECK(!users[i].result);
	}
	CHECK(!put_entry(pool, "all", SLOTS(24), 77));
	tshare_pool_unref(pool);
}

/* A process that may write both regions writes nonsense into all of them but the slots. */
static int use_damaged(void *data)
{
	const char *const *name = data;
	char seats[TSHARE_NAME_MAX + 1];
	struct tshare_region *regions[2];
	struct tshare_pool *pool;
	struct tshare_entry *entry;
	struct tshare_tensor *tensor;
	unsigned int seed = atoi(name[1]);
	char key[2] = { 0 };
	int i, part;

	strcpy(stpcpy(seats, name[0]), ".seats");
	if (tshare_region_open(ctx, name[0], NULL, &regions[0]) ||
	    tshare_region_open(ctx, seats, NULL, &regions[1]) ||
	    tshare_pool_open(ctx, name[0], NULL, &pool))
		return 1;
	for (i = 0; i < 3000; i++) {
		part = rand_r(&seed) % 10;
		/* In the first slots, too: descriptors of entries are there. */
		if (part < 5)
			((unsigned char *)tshare_region_get_data(
				regions[part % 2]))[rand_r(&seed) %
						    tshare_region_get_size(regions[part % 2])] =
				rand_r(&seed) % 3 ? rand_r(&seed) : 255;
		key[0] = 'a' + rand_r(&seed) % 10;
		entry = NULL;
		if (part % 2 && make_entry(pool, key, 1 + rand_r(&seed) % PAGE, 0, &entry))
			continue;
		if (entry && part % 4 == 1)
			tshare_entry_finish(entry);
		if (!entry)
			entry = get_entry(pool, key);
		if (entry && !tshare_entry_get_tensor(entry, 0, &tensor)) {
			memset(tshare_tensor_is_readonly(tensor) ? key :
								   tshare_tensor_get_data(tensor),
			       key[0], 1);
			tshare_tensor_unref(tensor);
		}
		tshare_entry_unref(entry);
	}
	return 0;
}

/* The first line of a slot's word, in a region that any user of the pool may write. */
static _Atomic(uint64_t) *word_of(const char *name, uint32_t slot, struct tshare_region **seats)
{
	char seats_name[TSHARE_NAME_MAX + 1];
	struct tshare_tensor *tensor;
	_Atomic(uint64_t) *words;

	strcpy(stpcpy(seats_name, name), ".seats");
	CHECK(!tshare_region_open(ctx, seats_name, NULL, seats));
	CHECK(!tshare_region_find_tensor(*seats, ".word", &tensor));
	words = tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	return words + 8 * slot;
}

/* Bits that are no seat's, and so end with no process. */
static void forge_word(uint64_t forged)
{
	const char *name = unique("forged");
	struct tshare_pool *pool = new_pool(name, 2, PAGE);
	struct tshare_region *seats;
	_Atomic(uint64_t) *word = word_of(name, 0, &seats);

	CHECK(!put_entry(pool, "a", 10, 1) && !put_entry(pool, "b", 10, 2));
	*word = forged;
	CHECK(!put_entry(pool, "c", SLOTS(2), 3));
	CHECK(byte_at(pool, "c") == 3);
	CHECK(!put_entry(pool, "d", 10, 4) && !put_entry(pool, "e", 10, 5));
	*word = forged;
	/* It can be got or made: not neither of both. */
	CHECK(byte_at(pool, "d") == 4 || !put_entry(pool, "d", 10, 6));
	tshare_region_unref(seats);
	tshare_pool_unref(pool);
}

TEST(a_forged_lease_of_nobody_blocks_no_room)
{
	forge_word(UINT64_C(1) << 62);
}

TEST(a_forged_claim_blocks_no_room)
{
	forge_word(UINT64_C(3) << 62);
}

/* Of a seat that there isn't: nobody would see it die. */
TEST(a_forged_maker_blocks_no_room)
{
	struct tshare_pool *pool = new_pool(unique("makers"), 2, PAGE);
	struct tshare_tensor *makers;

	CHECK(!tshare_region_find_tensor(tshare_pool_get_region(pool), ".maker", &makers));
	CHECK(!put_entry(pool, "a", 10, 1) && !put_entry(pool, "b", 10, 2));
	((uint32_t *)tshare_tensor_get_data(makers))[0] = TSHARE_STREAM_CONSUMERS + 1;
	((uint32_t *)tshare_tensor_get_data(makers))[1] = UINT32_C(1) << 31;
	CHECK(!put_entry(pool, "c", SLOTS(2), 3));
	CHECK(byte_at(pool, "c") == 3);
	tshare_tensor_unref(makers);
	tshare_pool_unref(pool);
}

/* A region that has all that a pool has, but slots at an odd address. */
TEST(open_refuses_slots_at_an_odd_address)
{
	static const char *const names[] = { ".pool",	".number", ".count", ".maker",
					     ".record", ".index",  "data" };
	const char *name = unique("odd");
	struct tshare_pool *pool = new_pool(name, 2, PAGE), *opened;
	struct tshare_region *region = tshare_pool_get_region(pool), *odd;
	struct tshare_tensor *tensors[7];
	struct tshare_spec specs[7];
	char odd_name[TSHARE_NAME_MAX + 1];
	size_t i;

	strcpy(stpcpy(odd_name, name), "-odd");
	for (i = 0; i < 7; i++) {
		CHECK(!tshare_region_find_tensor(region, names[i], &tensors[i]));
		specs[i] = (struct tshare_spec)SPEC(names[i], tshare_tensor_get_dtype(tensors[i]),
						    tshare_tensor_get_ndim(tensors[i]),
						    tshare_tensor_get_shape(tensors[i]), NULL,
						    tshare_tensor_get_byte_offset(tensors[i]));
	}
	specs[0].byte_offset = TSHARE_OFFSET_START;
	specs[6].byte_offset += 1;
	CHECK(!tshare_region_create(ctx, odd_name, 0, specs, 7, NULL, &odd));
	memcpy(tshare_region_get_data(odd), tshare_region_get_data(region), 128);
	CHECK(tshare_pool_open(ctx, odd_name, NULL, &opened) == -EPROTO);
	CHECK(error_says("offset of the slots"));
	for (i = 0; i < 7; i++)
		tshare_tensor_unref(tensors[i]);
	tshare_region_unref(odd);
	tshare_pool_unref(pool);
}

TEST(a_damaged_pool_harms_nobody)
{
	const char *name = unique("damaged");
	const char *arguments[2] = { name };
	struct tshare_pool *pool;
	char seed[12];
	int i;

	arguments[1] = seed;
	for (i = 0; i < rounds(40); i++) {
		snprintf(seed, sizeof(seed), "%d", i);
		pool = new_pool(name, 6, PAGE);
		CHECK(!put_entry(pool, "a", 100, 1) && !put_entry(pool, "b", 2 * PAGE, 2));
		CHECK(!in_child(use_damaged, arguments));
		tshare_pool_unref(pool);
	}
}

int main(void)
{
	return tap_main(open_context, close_context);
}
