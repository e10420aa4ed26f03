// SPDX-License-Identifier: MIT
/* Pools: entries that processes make and get by key. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../pools.h"

/* Entries */

TEST(an_entry_is_got_by_its_key)
{
	const char *name = unique("keys");
	struct tshare_pool *pool = new_pool(name, 8, PAGE), *other = open_pool(name);

	CHECK(byte_at(other, "a") == -ENOENT);
	CHECK(!put_entry(pool, "a", 100, 1));
	CHECK(!put_entry(other, "b", PAGE, 2));
	CHECK(!put_entry(pool, "a\001", 5, 3));
	CHECK(byte_at(other, "a") == 1);
	CHECK(byte_at(pool, "b") == 2);
	CHECK(byte_at(other, "a\001") == 3);
	CHECK(byte_at(pool, "c") == -ENOENT);
	tshare_pool_unref(other);
	tshare_pool_unref(pool);
}

static int get_in_child(void *name)
{
	struct tshare_pool *pool;
	struct tshare_ctx *own;
	int byte;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) || tshare_pool_open(own, name, NULL, &pool))
		return 255;
	byte = byte_at(pool, "key");
	return byte < 0 ? 254 : byte;
}

TEST(another_process_gets_an_entry)
{
	const char *name = unique("other");
	struct tshare_pool *pool = new_pool(name, 4, PAGE);

	CHECK(!put_entry(pool, "key", 3 * PAGE, 7));
	CHECK(in_child(get_in_child, (void *)name) == 7);
	tshare_pool_unref(pool);
}

TEST(an_entry_has_tensors_of_all_kinds)
{
	const int64_t image[] = { 3, 5 }, strides[] = { 1, 3 }, none[] = { 0 };
	const struct tshare_spec specs[] = {
		SPEC("image", TSHARE_FLOAT32, 2, image, strides),
		SPEC("none", TSHARE_INT64, 1, none),
		SPEC("scalar", TSHARE_BFLOAT16),
		SPEC(NULL, TSHARE_UINT8, 1, image),
	};
	struct tshare_pool *pool = new_pool(unique("kinds"), 4, PAGE);
	struct tshare_entry *entry;
	struct tshare_tensor *tensor;
	const char *tensor_name;

	CHECK(!tshare_pool_make(pool, "k", 1, specs, 4, 0, &entry));
	CHECK(!tshare_entry_find_tensor(entry, "scalar", &tensor));
	*(uint16_t *)tshare_tensor_get_data(tensor) = 0x3f80;
	tshare_tensor_unref(tensor);
	CHECK(!tshare_entry_finish(entry));
	tshare_entry_unref(entry);

	CHECK((entry = get_entry(pool, "k")));
	CHECK(tshare_entry_get_tensor_count(entry) == 4);
	CHECK(!tshare_entry_get_tensor_name(entry, 1, &tensor_name));
	CHECK(!strcmp(tensor_name, "none"));
	CHECK(tshare_entry_get_tensor_name(entry, 4, &tensor_name) == -ENOENT);
	CHECK(!tshare_entry_find_tensor(entry, "image", &tensor));
	CHECK(tshare_tensor_is_readonly(tensor));
	CHECK(tshare_tensor_get_ndim(tensor) == 2);
	CHECK(!memcmp(tshare_tensor_get_shape(tensor), image, sizeof(image)));
	CHECK(!memcmp(tshare_tensor_get_strides(tensor), strides, sizeof(strides)));
	CHECK((uintptr_t)tshare_tensor_get_data(tensor) % 64 == 0);
	tshare_tensor_unref(tensor);
	CHECK(!tshare_entry_find_tensor(entry, "scalar", &tensor));
	CHECK(*(uint16_t *)tshare_tensor_get_data(tensor) == 0x3f80);
	tshare_tensor_unref(tensor);
	CHECK(tshare_entry_find_tensor(entry, "others", &tensor) == -ENOENT);
	CHECK(tshare_entry_get_tensor(entry, 4, &tensor) == -ENOENT);
	tshare_entry_unref(entry);
	tshare_pool_unref(pool);
}

/* Their descriptors take a slot to its last byte. */
TEST(an_entry_of_empty_tensors_is_got)
{
	const int64_t none[] = { 0, 0, 0 };
	struct tshare_pool *pool = new_pool(unique("empty"), 4, PAGE);
	struct tshare_spec specs[64];
	struct tshare_entry *entry;
	char names[64][3];
	size_t i, count;

	for (i = 0; i < 64; i++) {
		snprintf(names[i], sizeof(names[i]), "%zu", i);
		specs[i] = (struct tshare_spec)SPEC(names[i], TSHARE_UINT8, 3, none);
	}
	for (count = 1; count <= 64; count++) {
		CHECK(!tshare_pool_make(pool, &count, sizeof(count), specs, count, 0, &entry));
		CHECK(!tshare_entry_finish(entry));
		tshare_entry_unref(entry);
		CHECK(!tshare_pool_get(pool, &count, sizeof(count), &entry));
		CHECK(tshare_entry_get_tensor_count(entry) == count);
		tshare_entry_unref(entry);
	}
	tshare_pool_unref(pool);
}

TEST(a_key_is_made_once)
{
	const char *name = unique("once");
	struct tshare_pool *pool = new_pool(name, 8, PAGE), *other = open_pool(name);
	struct tshare_entry *entry, *second;

	CHECK(!make_entry(pool, "k", 10, 0, &entry));
	CHECK(byte_at(other, "k") == -ENOENT);
	CHECK(make_entry(other, "k", 10, 0, &second) == -ETIMEDOUT);
	CHECK(error_says("hasn't finished its entry of that key"));
	CHECK(make_entry(pool, "k", 10, MS, &second) == -ETIMEDOUT);
	fill_entry(entry, 1);
	CHECK(!tshare_entry_is_finished(entry));
	CHECK(!tshare_entry_finish(entry));
	CHECK(tshare_entry_is_finished(entry));
	CHECK(tshare_entry_finish(entry) == -EACCES);
	CHECK(make_entry(other, "k", 10, 0, &second) == -EEXIST);
	CHECK(byte_at(other, "k") == 1);
	tshare_entry_unref(entry);
	CHECK(make_entry(other, "k", 10, 0, &second) == -EEXIST);
	tshare_pool_unref(other);
	tshare_pool_unref(pool);
}

TEST(an_entry_that_is_dropped_unfinished_was_never_there)
{
	struct tshare_pool *pool = new_pool(unique("dropped"), 4, PAGE);
	struct tshare_entry *entry;
	int i;

	for (i = 0; i < 20; i++) {
		CHECK(!make_entry(pool, "k", 3 * PAGE, 0, &entry));
		CHECK(info_of(pool).entries == 1);
		tshare_entry_unref(entry);
		CHECK(byte_at(pool, "k") == -ENOENT);
		CHECK(!info_of(pool).used_slots);
	}
	CHECK(!put_entry(pool, "k", 10, 5));
	CHECK(byte_at(pool, "k") == 5);
	tshare_pool_unref(pool);
}

/* Room */

TEST(what_was_used_longest_ago_goes_first)
{
	struct tshare_pool *pool = new_pool(unique("least"), 4, PAGE);
	struct tshare_pool_info info;

	CHECK(!put_entry(pool, "a", 100, 1));
	CHECK(!put_entry(pool, "b", 100, 2));
	CHECK(!put_entry(pool, "c", 100, 3));
	CHECK(!put_entry(pool, "d", 100, 4));
	CHECK(byte_at(pool, "a") == 1);
	CHECK(!put_entry(pool, "e", 100, 5));
	CHECK(byte_at(pool, "b") == -ENOENT);
	CHECK(!put_entry(pool, "f", 100, 6));
	CHECK(byte_at(pool, "c") == -ENOENT);
	CHECK(byte_at(pool, "d") == 4);
	CHECK(byte_at(pool, "a") == 1);
	CHECK(byte_at(pool, "e") == 5);
	CHECK(byte_at(pool, "f") == 6);
	info = info_of(pool);
	CHECK(info.slots == 4 && info.entries == 4 && info.used_slots == 4 && !info.held_slots);
	CHECK(info.slot_size == PAGE);
	tshare_pool_unref(pool);
}

TEST(an_entry_is_as_old_as_its_end)
{
	struct tshare_pool *pool = new_pool(unique("age"), 2, PAGE);
	struct tshare_entry *entry;

	CHECK(!make_entry(pool, "slow", 100, 0, &entry));
	CHECK(!put_entry(pool, "quick", 100, 1));
	fill_entry(entry, 2);
	CHECK(!tshare_entry_finish(entry));
	tshare_entry_unref(entry);
	CHECK(!put_entry(pool, "new", 100, 3));
	CHECK(byte_at(pool, "quick") == -ENOENT);
	CHECK(byte_at(pool, "slow") == 2);
	tshare_pool_unref(pool);
}

TEST(an_entry_of_a_slots_size_takes_one)
{
	const int64_t shape[] = { 16, 16, 2, 8 };
	const struct tshare_spec specs[] = {
		SPEC("a tensor", TSHARE_UINT8, 4, shape),
		SPEC("another one", TSHARE_UINT8),
	};
	struct tshare_pool *pool = new_pool(unique("exact"), 4, PAGE);
	struct tshare_entry *entry;
	int i;
	char key[] = "0";

	for (i = 0; i < 4; i++, key[0]++)
		CHECK(!put_entry(pool, key, PAGE, i));
	CHECK(info_of(pool).entries == 4);
	CHECK(byte_at(pool, "0") == 0 && byte_at(pool, "3") == 3);
	CHECK(!put_entry(pool, "all", 4 * PAGE, 9));
	CHECK(byte_at(pool, "all") == 9);
	/* Long descriptors need room there. */
	CHECK(!tshare_pool_make(pool, "two", 3, specs, 2, 0, &entry));
	CHECK(!tshare_entry_finish(entry));
	CHECK(info_of(pool).used_slots == 2);
	tshare_entry_unref(entry);
	tshare_pool_unref(pool);
}

TEST(a_removed_entry_that_was_held_goes_first)
{
	struct tshare_pool *pool = new_pool(unique("first"), 2, PAGE);
	struct tshare_entry *held;

	CHECK(!put_entry(pool, "old", 100, 1) && !put_entry(pool, "new", 100, 2));
	CHECK((held = get_entry(pool, "new")));
	CHECK(!tshare_pool_remove(pool, "new", 3));
	tshare_entry_unref(held);
	CHECK(!put_entry(pool, "next", 100, 3));
	CHECK(byte_at(pool, "old") == 1);
	tshare_pool_unref(pool);
}

TEST(an_entry_that_is_removed_is_only_its_holders)
{
	const char *name = unique("removed");
	struct tshare_pool *pool = new_pool(name, 3, PAGE), *other = open_pool(name), *reader;
	struct tshare_entry *held, *made;

	CHECK(tshare_pool_remove(pool, "k", 1) == -ENOENT && error_says("key: "));
	CHECK(!put_entry(pool, "k", 100, 1));
	CHECK(!tshare_pool_remove(other, "k", 1));
	CHECK(byte_at(pool, "k") == -ENOENT && !info_of(pool).used_slots);
	/* Made again, beside the one that is held. */
	CHECK(!put_entry(pool, "k", 100, 1));
	CHECK((held = get_entry(pool, "k")));
	CHECK(!tshare_pool_remove(other, "k", 1));
	CHECK(tshare_pool_remove(other, "k", 1) == -ENOENT);
	CHECK(byte_at(pool, "k") == -ENOENT);
	CHECK(!put_entry(other, "k", 100, 2));
	CHECK(byte_at(pool, "k") == 2 && byte_of(held) == 1);
	tshare_entry_unref(held);
	CHECK(!put_entry(pool, "l", 100, 3));
	CHECK(byte_at(pool, "k") == 2);
	/* An entry that is being made stays. */
	CHECK(!make_entry(pool, "m", 100, 0, &made));
	CHECK(tshare_pool_remove(pool, "m", 1) == -ENOENT);
	CHECK((held = get_entry(pool, "l")));
	CHECK(!tshare_pool_clear(pool));
	CHECK(byte_at(pool, "k") == -ENOENT && byte_at(pool, "l") == -ENOENT);
	CHECK(byte_of(held) == 3);
	CHECK(!tshare_entry_finish(made));
	tshare_entry_unref(made);
	tshare_entry_unref(held);
	CHECK(!put_entry(pool, "all", 3 * PAGE, 4));
	CHECK(!tshare_pool_open(ctx, name, &readonly_options, &reader));
	CHECK(tshare_pool_remove(reader, "all", 3) == -EACCES);
	CHECK(tshare_pool_clear(reader) == -EACCES);
	tshare_pool_unref(reader);
	tshare_pool_unref(other);
	tshare_pool_unref(pool);
}

TEST(a_large_entry_takes_the_place_of_several)
{
	struct tshare_pool *pool = new_pool(unique("large"), 8, PAGE);
	char key[2] = "a";
	int i;

	for (i = 0; i < 8; i++, key[0]++)
		CHECK(!put_entry(pool, key, 100, i + 1));
	CHECK(byte_at(pool, "a") == 1);
	CHECK(!put_entry(pool, "large", SLOTS(4), 99));
	/* All but a, which was got, and the newest ones. */
	CHECK(byte_at(pool, "large") == 99);
	CHECK(byte_at(pool, "a") == 1);
	CHECK(byte_at(pool, "b") == -ENOENT && byte_at(pool, "e") == -ENOENT);
	CHECK(byte_at(pool, "f") == 6 && byte_at(pool, "h") == 8);
	/* And a small one that of a large one, which then is gone whole. */
	CHECK(byte_at(pool, "a") == 1 && byte_at(pool, "f") == 6);
	CHECK(byte_at(pool, "g") == 7 && byte_at(pool, "h") == 8);
	CHECK(!put_entry(pool, "small", 100, 50));
	CHECK(byte_at(pool, "large") == -ENOENT);
	CHECK(info_of(pool).used_slots == 5);
	CHECK(!put_entry(pool, "three", SLOTS(3), 51));
	CHECK(info_of(pool).used_slots == 8);
	CHECK(byte_at(pool, "small") == 50);
	tshare_pool_unref(pool);
}

TEST(what_is_held_stays)
{
	struct tshare_pool *pool = new_pool(unique("held"), 3, PAGE);
	struct tshare_entry *a, *again, *entry;
	struct tshare_tensor *tensor;
	char text[40];

	CHECK(!put_entry(pool, "a", 100, 1));
	CHECK((a = get_entry(pool, "a")) && (again = get_entry(pool, "a")));
	tshare_entry_unref(again);
	CHECK(!put_entry(pool, "b", 100, 2) && !put_entry(pool, "c", 100, 3) &&
	      !put_entry(pool, "d", 100, 4));
	CHECK(byte_of(a) == 1);
	CHECK(info_of(pool).held_slots == 1);
	CHECK(make_entry(pool, "large", SLOTS(3), 0, &entry) == -ETIMEDOUT);
	snprintf(text, sizeof(text), "(pid %d, '", (int)getpid());
	CHECK(error_says(text) && error_says("holds 1 entries of 4 KiB"));
	/* The tensor holds the entry, too. */
	CHECK(!tshare_entry_get_tensor(a, 0, &tensor));
	tshare_entry_unref(a);
	CHECK(make_entry(pool, "large", SLOTS(3), 0, &entry) == -ETIMEDOUT);
	CHECK(tshare_tensor_get_entry(tensor) == a);
	tshare_tensor_unref(tensor);
	CHECK(!put_entry(pool, "large", SLOTS(3), 5));
	CHECK(byte_at(pool, "a") == -ENOENT);
	tshare_pool_unref(pool);
}

TEST(a_tensor_over_memory_of_an_entry_holds_the_entry)
{
	const int64_t shape[] = { 50 };
	const struct tshare_spec spec = SPEC(NULL, TSHARE_UINT8, 1, shape);
	struct tshare_pool *pool = new_pool(unique("memory"), 2, PAGE);
	struct tshare_tensor *tensor, *wrapped;
	struct tshare_entry *entry;
	void *data;

	CHECK(!put_entry(pool, "a", 100, 1));
	CHECK((entry = get_entry(pool, "a")));
	CHECK(!tshare_entry_get_tensor(entry, 0, &tensor));
	data = tshare_tensor_get_data(tensor);
	CHECK(!tshare_tensor_wrap((char *)data + 9, &spec, 0, &wrapped));
	CHECK(tshare_tensor_get_entry(wrapped) == entry);
	CHECK(!tshare_tensor_get_frame(wrapped));
	tshare_tensor_unref(tensor);
	tshare_entry_unref(entry);
	CHECK(info_of(pool).held_slots == 1);
	tshare_tensor_unref(wrapped);
	CHECK(!info_of(pool).held_slots);
	CHECK(tshare_tensor_wrap(data, &spec, 0, &wrapped) == -ENOENT);
	tshare_pool_unref(pool);
}

/* Waiting */

TEST(a_second_maker_waits_for_the_first)
{
	const char *name = unique("second");
	struct tshare_pool *pool = new_pool(name, 4, PAGE), *other = open_pool(name);
	struct making making = { other, "k", 100 };
	struct tshare_entry *entry;

	CHECK(!make_entry(pool, "k", 100, 0, &entry));
	start_making(&making);
	fill_entry(entry, 1);
	CHECK(!tshare_entry_finish(entry));
	CHECK(end_making(&making) == -EEXIST);
	tshare_entry_unref(entry);

	making.key = "l";
	CHECK(!make_entry(pool, "l", 100, 0, &entry));
	start_making(&making);
	tshare_entry_unref(entry);
	CHECK(!end_making(&making));
	tshare_pool_unref(other);
	tshare_pool_unref(pool);
}

TEST(a_drop_wakes_who_waits_for_room)
{
	const char *name = unique("room");
	struct tshare_pool *pool = new_pool(name, 2, PAGE), *other = open_pool(name);
	struct making making = { other, "l", SLOTS(2) }, more = { pool, "m", 100 };
	struct tshare_entry *a, *b;

	CHECK(!put_entry(pool, "a", 100, 1) && !put_entry(pool, "b", 100, 2));
	CHECK((a = get_entry(pool, "a")) && (b = get_entry(pool, "b")));
	start_making(&making);
	start_making(&more);
	tshare_entry_unref(a);
	tshare_entry_unref(b);
	CHECK(!end_making(&making) && !end_making(&more));
	tshare_pool_unref(other);
	tshare_pool_unref(pool);
}

TEST(a_cancel_ends_the_waits)
{
	struct tshare_pool *pool = new_pool(unique("cancel"), 2, PAGE);
	struct making making = { pool, "l", SLOTS(2) };
	struct tshare_entry *a;

	CHECK(!put_entry(pool, "a", 100, 1));
	CHECK((a = get_entry(pool, "a")));
	start_making(&making);
	tshare_pool_cancel(pool);
	CHECK(end_making(&making) == -ECANCELED);
	CHECK(byte_of(a) == 1);
	tshare_entry_unref(a);
	tshare_pool_unref(pool);
}

/* A pool of one process against what it should do: a list of keys by their last use. */
TEST(a_pool_of_equal_entries_keeps_the_last_used_ones)
{
	struct tshare_pool *pool = new_pool(unique("model"), 16, PAGE);
	int order[16], used = 0, i, at, key;
	unsigned int seed = 5;
	char text[8];

	for (i = 0; i < rounds(20000); i++) {
		key = rand_r(&seed) % 40;
		snprintf(text, sizeof(text), "%d", key);
		for (at = 0; at < used && order[at] != key; at++)
			;
		if (at < used) {
			CHECK(byte_at(pool, text) == key);
		} else {
			CHECK(byte_at(pool, text) == -ENOENT);
			CHECK(!put_entry(pool, text, 100, key));
			if (used < 16)
				used++;
			else
				at = 15;
		}
		memmove(order + 1, order, at * sizeof(*order));
		order[0] = key;
	}
	tshare_pool_unref(pool);
}

/* Access */

TEST(a_reader_gets_entries_and_makes_none)
{
	const char *name = unique("reader");
	struct tshare_pool *pool = new_pool(name, 4, PAGE), *reader;
	struct tshare_entry *entry, *other;

	CHECK(!put_entry(pool, "a", 100, 1));
	CHECK(!tshare_pool_open(ctx, name, &readonly_options, &reader));
	CHECK((entry = get_entry(reader, "a")) && byte_of(entry) == 1);
	CHECK(make_entry(reader, "b", 100, 0, &other) == -EACCES);
	CHECK(tshare_region_is_readonly(tshare_pool_get_region(reader)));
	CHECK(make_entry(pool, "l", SLOTS(4), 0, &other) == -ETIMEDOUT);
	tshare_entry_unref(entry);
	CHECK(!put_entry(pool, "l", SLOTS(4), 2));
	tshare_pool_unref(reader);
	tshare_pool_unref(pool);
}

struct inherited {
	struct tshare_pool *pool;
	struct tshare_entry *entry;
	struct tshare_entry *made;
};

static int use_inherited(void *data)
{
	struct inherited *inherited = data;
	struct tshare_entry *entry;

	if (tshare_pool_get(inherited->pool, "a", 1, &entry) != -EOPNOTSUPP)
		return 1;
	if (make_entry(inherited->pool, "b", 10, 0, &entry) != -EOPNOTSUPP)
		return 2;
	if (tshare_entry_finish(inherited->made) != -EOPNOTSUPP)
		return 3;
	tshare_entry_unref(inherited->entry);
	tshare_entry_unref(inherited->made);
	tshare_pool_unref(inherited->pool);
	return 0;
}

TEST(a_child_has_none_of_its_parents_entries)
{
	const char *name = unique("fork");
	struct inherited inherited = { .pool = new_pool(name, 4, PAGE) };
	struct tshare_pool *other;

	CHECK(!put_entry(inherited.pool, "a", 100, 1));
	CHECK((inherited.entry = get_entry(inherited.pool, "a")));
	CHECK(!make_entry(inherited.pool, "made", 100, 0, &inherited.made));
	CHECK(!in_child(use_inherited, &inherited));
	CHECK(info_of(inherited.pool).held_slots == 2);
	other = open_pool(name);
	CHECK(byte_at(other, "a") == 1);
	fill_entry(inherited.made, 2);
	CHECK(!tshare_entry_finish(inherited.made));
	CHECK(byte_at(other, "made") == 2);
	tshare_pool_unref(other);
	tshare_entry_unref(inherited.made);
	tshare_entry_unref(inherited.entry);
	tshare_pool_unref(inherited.pool);
}

TEST(a_pool_lives_as_long_as_it_says)
{
	const struct tshare_options users = {
		.size = sizeof(users),
		.lifetime = TSHARE_LIFETIME_USERS,
	};
	struct tshare_pool_options options = { .size = sizeof(options), .region = &users };
	const char *name = unique("life");
	struct tshare_pool *pool, *other;
	char seats[TSHARE_NAME_MAX + 1];

	strcpy(stpcpy(seats, name), ".seats");
	pool = new_pool(name, 2, PAGE);
	other = open_pool(name);
	tshare_pool_unref(pool);
	CHECK(!exists(name) && !exists(seats));
	CHECK(!put_entry(other, "a", 10, 1) && byte_at(other, "a") == 1);
	tshare_pool_unref(other);

	CHECK(!tshare_pool_create(ctx, name, PAGE, &options, &pool));
	CHECK(tshare_pool_create(ctx, name, PAGE, NULL, &other) == -EEXIST);
	other = open_pool(name);
	tshare_pool_unref(pool);
	CHECK(exists(name) && exists(seats));
	CHECK(!tshare_pool_unlink(other));
	CHECK(!exists(name) && !exists(seats));
	tshare_pool_unref(other);
}

/* As a process leaves it that is killed between the two. */
TEST(names_that_are_half_removed_can_be_removed_and_taken)
{
	const struct tshare_options persist = {
		.size = sizeof(persist),
		.lifetime = TSHARE_LIFETIME_PERSIST,
	};
	struct tshare_pool_options options = { .size = sizeof(options), .region = &persist };
	const char *name = unique("half");
	char seats[TSHARE_NAME_MAX + 1];
	struct tshare_pool *pool, *next;

	strcpy(stpcpy(seats, name), ".seats");
	CHECK(!tshare_pool_create(ctx, name, PAGE, &options, &pool));
	CHECK(!tshare_region_unlink(tshare_pool_get_region(pool)));
	CHECK(tshare_pool_unlink(pool) == -ENOENT);
	CHECK(!exists(seats));
	tshare_pool_unref(pool);

	CHECK(!tshare_pool_create(ctx, name, PAGE, &options, &pool));
	CHECK(!put_entry(pool, "a", 10, 1));
	CHECK(!tshare_region_unlink(tshare_pool_get_region(pool)));
	CHECK(!tshare_pool_create(ctx, name, PAGE, NULL, &next));
	CHECK(byte_at(next, "a") == -ENOENT);
	/* Its users keep the old one, whose names are the new one's. */
	CHECK(byte_at(pool, "a") == 1);
	CHECK(tshare_pool_unlink(pool) == -ENOENT);
	tshare_pool_unref(pool);
	CHECK(exists(name) && exists(seats));
	tshare_pool_unref(next);
	CHECK(!exists(name) && !exists(seats));
}

static void *open_patiently(void *data)
{
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.timeout_ns = LONG,
	};
	const char *name = data;
	struct tshare_pool *pool;

	return tshare_pool_open(ctx, name, &options, &pool) ? NULL : pool;
}

/* A pool that is being unlinked has no NAME.seats, or those of the next pool. */
TEST(open_waits_for_the_next_pool_of_a_name)
{
	/* Over by the time that the call has found NAME. */
	const struct tshare_open_options brief = { .size = sizeof(brief), .timeout_ns = 1 };
	const struct tshare_options draft = { .size = sizeof(draft), .flags = TSHARE_DRAFT };
	const char *name = unique("turn");
	struct tshare_pool *pool = new_pool(name, 2, PAGE), *next;
	char seats[TSHARE_NAME_MAX + 1];
	struct tshare_region *region;
	pthread_t thread;
	void *opened;

	strcpy(stpcpy(seats, name), ".seats");
	CHECK(!tshare_region_open(ctx, seats, NULL, &region));
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
	CHECK(tshare_pool_open(ctx, name, NULL, &next) == -ENOENT);
	CHECK(error_says("is being unlinked"));
	CHECK(tshare_pool_open(ctx, name, &brief, &next) == -ETIMEDOUT);
	/* The next one's, which isn't finished. */
	CHECK(!tshare_region_create(ctx, seats, 1, NULL, 0, &draft, &region));
	CHECK(tshare_pool_open(ctx, name, NULL, &next) == -ENOENT);
	CHECK(error_says("is being unlinked"));
	tshare_region_unref(region);
	CHECK(!pthread_create(&thread, NULL, open_patiently, (void *)name));
	sleep_ns(20 * MS);
	tshare_pool_unref(pool);
	next = new_pool(name, 2, PAGE);
	CHECK(!put_entry(next, "a", 10, 1));
	CHECK(!pthread_join(thread, &opened) && opened);
	CHECK(byte_at(opened, "a") == 1);
	tshare_pool_unref(opened);
	tshare_pool_unref(next);
}

/* A user of a name with that lifetime keeps the name, which would lead nobody elsewhere then. */
TEST(an_opener_that_waits_for_the_next_pool_does_not_keep_the_last_one)
{
	const struct tshare_options users = {
		.size = sizeof(users),
		.lifetime = TSHARE_LIFETIME_USERS,
	};
	struct tshare_pool_options options = { .size = sizeof(options), .region = &users };
	const char *name = unique("users");
	char seats[TSHARE_NAME_MAX + 1];
	struct tshare_region *region;
	struct tshare_pool *pool;
	pthread_t thread;
	void *opened;

	strcpy(stpcpy(seats, name), ".seats");
	CHECK(!tshare_pool_create(ctx, name, PAGE, &options, &pool));
	CHECK(!tshare_region_open(ctx, seats, NULL, &region));
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
	CHECK(!pthread_create(&thread, NULL, open_patiently, (void *)name));
	sleep_ns(20 * MS);
	tshare_pool_unref(pool);
	CHECK(!exists(name));
	CHECK(!tshare_pool_create(ctx, name, PAGE, &options, &pool));
	CHECK(!pthread_join(thread, &opened) && opened);
	tshare_pool_unref(opened);
	tshare_pool_unref(pool);
	CHECK(!exists(name));
}

TEST(create_takes_no_other_regions_name)
{
	const char *name = unique("other");
	char seats[TSHARE_NAME_MAX + 1];
	struct tshare_region *region;
	struct tshare_pool *pool;

	strcpy(stpcpy(seats, name), ".seats");
	region = new_region(seats);
	CHECK(tshare_pool_create(ctx, name, PAGE, NULL, &pool) == -EEXIST);
	CHECK(exists(seats) && !exists(name));
	tshare_region_unref(region);
}

/* Bad input */

TEST(create_names_the_malformed_argument)
{
	struct tshare_pool_options options = { .size = sizeof(options) };
	const struct tshare_options replace = { .size = sizeof(replace), .flags = TSHARE_REPLACE };
	const char *name = unique("bad");
	char longest[TSHARE_STREAM_NAME_MAX + 2];
	struct tshare_pool *pool;

	CHECK(tshare_pool_create(ctx, NULL, 1, NULL, &pool) == -EINVAL && error_says("name: "));
	CHECK(tshare_pool_create(ctx, name, 0, NULL, &pool) == -EINVAL && error_says("size: "));
	CHECK(tshare_pool_create(ctx, name, UINT64_MAX, NULL, &pool) == -EINVAL);
	CHECK(error_says("size: "));
	CHECK(tshare_pool_create(ctx, name, INT64_MAX / 4, NULL, &pool) == -EINVAL);
	CHECK(error_says("size: "));
	options.slots = TSHARE_POOL_SLOTS + 1;
	CHECK(tshare_pool_create(ctx, name, 1 << 20, &options, &pool) == -EINVAL);
	CHECK(error_says("options.slots: "));
	options.slots = 3;
	CHECK(tshare_pool_create(ctx, name, 2 * PAGE, &options, &pool) == -EINVAL);
	CHECK(error_says("size: "));
	options.slots = 0;
	options.reserved = 1;
	CHECK(tshare_pool_create(ctx, name, PAGE, &options, &pool) == -EINVAL);
	CHECK(error_says("options.reserved: "));
	options.reserved = 0;
	options.region = &replace;
	CHECK(tshare_pool_create(ctx, name, PAGE, &options, &pool) == -EINVAL);
	CHECK(error_says("options.region.flags: "));
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CHECK(tshare_pool_create(ctx, longest, PAGE, NULL, &pool) == -ENAMETOOLONG);
	CHECK(!exists(name));
}

TEST(make_names_the_malformed_argument)
{
	const int64_t shape[] = { 10 }, negative[] = { -1 };
	const struct tshare_spec spec = SPEC("x", TSHARE_UINT8, 1, shape);
	const struct tshare_spec bad = SPEC("x", TSHARE_UINT8, 1, negative);
	const struct tshare_spec twice[] = { spec, spec };
	struct tshare_pool *pool = new_pool(unique("arguments"), 2, PAGE);
	char key[TSHARE_POOL_KEY_MAX + 1] = "";
	struct tshare_entry *entry;

	CHECK(tshare_pool_get(pool, NULL, 1, &entry) == -EINVAL && error_says("key: "));
	CHECK(tshare_pool_get(pool, "", 0, &entry) == -EINVAL && error_says("key_size: 0"));
	CHECK(tshare_pool_get(pool, key, sizeof(key), &entry) == -EINVAL);
	CHECK(tshare_pool_get(pool, "k", 1, &entry) == -ENOENT && error_says("key: "));
	CHECK(tshare_pool_make(pool, "k", 1, NULL, 1, 0, &entry) == -EINVAL && error_says("specs"));
	CHECK(tshare_pool_make(pool, "k", 1, &spec, 0, 0, &entry) == -EINVAL);
	CHECK(error_says("count: "));
	CHECK(tshare_pool_make(pool, "k", 1, &bad, 1, 0, &entry) == -EINVAL);
	CHECK(error_says("specs[0].shape"));
	CHECK(tshare_pool_make(pool, "k", 1, twice, 2, 0, &entry) == -EINVAL);
	CHECK(make_entry(pool, "k", 3 * PAGE, 0, &entry) == -EFBIG);
	CHECK(error_says("specs: "));
	CHECK(!info_of(pool).used_slots);
	/* The longest key, of any bytes. */
	CHECK(!tshare_pool_make(pool, key, TSHARE_POOL_KEY_MAX, &spec, 1, 0, &entry));
	CHECK(!tshare_entry_finish(entry));
	tshare_entry_unref(entry);
	CHECK(!tshare_pool_get(pool, key, TSHARE_POOL_KEY_MAX, &entry));
	tshare_entry_unref(entry);
	CHECK(tshare_pool_get(pool, key, TSHARE_POOL_KEY_MAX - 1, &entry) == -ENOENT);
	tshare_pool_unref(pool);
}

TEST(open_names_what_is_no_pool)
{
	const struct tshare_spec field = SPEC("x", TSHARE_UINT8);
	const char *name = unique("none"), *plain = unique("plain");
	struct tshare_region *region = new_region(plain);
	char seats[TSHARE_NAME_MAX + 1];
	struct tshare_stream *stream;
	struct tshare_pool *pool;

	CHECK(tshare_pool_open(ctx, name, NULL, &pool) == -ENOENT);
	CHECK(tshare_pool_open(ctx, plain, NULL, &pool) == -EPROTO && error_says("is no pool"));
	CHECK(!tshare_stream_create(ctx, name, &field, 1, NULL, &stream));
	CHECK(tshare_pool_open(ctx, name, &readonly_options, &pool) == -EPROTO);
	tshare_stream_unref(stream);
	strcpy(stpcpy(seats, name), ".seats");
	pool = new_pool(name, 2, PAGE);
	CHECK(tshare_stream_open(ctx, name, NULL, &stream) == -EPROTO);
	CHECK(error_says("is no stream"));
	tshare_pool_unref(pool);
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
