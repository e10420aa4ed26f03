// SPDX-License-Identifier: MIT
/* CUDA streams that finish and release entries of pools, on a stub of CUDA's driver. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "leases.h"

#define PAGE 4096

static struct tshare_pool *pool, *other;

static void open_all(uint32_t slots)
{
	const struct tshare_pool_options options = { .size = sizeof(options), .slots = slots };

	open_cuda("entries");
	CHECK(!tshare_pool_create(ctx, name, (uint64_t)slots * PAGE, &options, &pool));
	CHECK(!tshare_pool_open(ctx, name, NULL, &other));
}

static void close_all(void)
{
	tshare_pool_unref(other);
	tshare_pool_unref(pool);
	close_cuda();
}

static int make(const char *key, struct tshare_entry **entry)
{
	const int64_t shape[] = { 100 };
	const struct tshare_spec spec = SPEC("x", TSHARE_UINT8, 1, shape);

	return tshare_pool_make(pool, key, strlen(key), &spec, 1, 0, entry);
}

static struct tshare_entry *made(const char *key)
{
	struct tshare_entry *entry;

	CHECK(!make(key, &entry));
	return entry;
}

/* Makes, finishes and drops an entry. */
static int make_room(const char *key)
{
	struct tshare_entry *entry;
	int err = make(key, &entry);

	if (err)
		return err;
	CHECK(!tshare_entry_finish(entry));
	tshare_entry_unref(entry);
	return 0;
}

static struct tshare_entry *get(struct tshare_pool *from, const char *key)
{
	struct tshare_entry *entry;

	return tshare_pool_get(from, key, strlen(key), &entry) ? NULL : entry;
}

static bool has(const char *key)
{
	struct tshare_entry *entry = get(other, key);

	tshare_entry_unref(entry);
	return entry;
}

/* An entry of a new pool, which the CUDA stream is to finish. */
static struct tshare_entry *queued(struct hold *hold)
{
	struct tshare_entry *entry;

	open_all(4);
	begin_hold(hold, cuda);
	entry = made("a");
	CHECK(!tshare_entry_finish_on(entry, NULL, cuda));
	return entry;
}

TEST(an_entry_is_finished_when_the_cuda_stream_comes_to_it)
{
	struct hold hold;
	struct tshare_entry *entry = queued(&hold);

	CHECK(!tshare_entry_is_finished(entry) && !has("a"));
	CHECK(tshare_entry_finish(entry) == -EACCES);
	CHECK(error_says("entry: a CUDA stream is to finish it already"));
	CHECK(tshare_entry_finish_on(entry, NULL, cuda) == -EACCES);
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(tshare_entry_is_finished(entry) && has("a"));
	CHECK(tshare_entry_finish_on(entry, NULL, cuda) == -EACCES);
	CHECK(error_says("entry: is finished already"));
	tshare_entry_unref(entry);
	close_all();
}

TEST(a_queued_entry_keeps_its_pool)
{
	struct hold hold;
	struct tshare_entry *entry = queued(&hold);

	tshare_entry_unref(entry);
	pool = tshare_pool_unref(pool);
	CHECK(has_name());
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(has("a"));
	CHECK(name_goes());
	close_all();
}

/* Of a pool of one slot. */
static void check_release(struct tshare_entry *entry)
{
	struct hold hold;

	begin_hold(&hold, cuda);
	CHECK(!tshare_entry_release_on(entry, NULL, cuda));
	CHECK(make_room("b") == -ETIMEDOUT);
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(!make_room("b"));
}

TEST(an_entry_is_released_when_the_cuda_stream_comes_to_it)
{
	open_all(1);
	CHECK(!make_room("a"));
	check_release(get(other, "a"));
	close_all();
}

TEST(an_unfinished_entry_is_given_up_when_the_cuda_stream_comes_to_it)
{
	open_all(1);
	check_release(made("a"));
	CHECK(!has("a"));
	close_all();
}

TEST(a_call_that_fails_changes_nothing)
{
	struct tshare_entry *entry;

	open_all(1);
	entry = made("a");
	stub_fail("cuLaunchHostFunc", 1, 2);
	CHECK(tshare_entry_finish_on(entry, NULL, cuda) == -ENOMEM);
	CHECK(tshare_entry_finish_on(entry, NULL, NULL) == -EINVAL);
	CHECK(!tshare_entry_finish(entry));
	stub_fail("cuLaunchHostFunc", 1, 2);
	CHECK(tshare_entry_release_on(entry, NULL, cuda) == -ENOMEM);
	CHECK(make_room("b") == -ETIMEDOUT);
	tshare_entry_unref(entry);
	CHECK(!make_room("b"));
	close_all();
}

TEST(a_context_that_ends_gives_entries_up)
{
	struct tshare_entry *kept, *entry;
	static struct hold hold; /* the old stream's thread may look at it later */

	open_all(3);
	begin_hold(&hold, cuda);
	kept = made("a");
	CHECK(!tshare_entry_finish_on(kept, NULL, cuda));
	entry = made("b");
	CHECK(!tshare_entry_finish_on(entry, NULL, cuda));
	tshare_entry_unref(entry);
	entry = made("c");
	CHECK(!tshare_entry_finish(entry));
	CHECK(!tshare_entry_release_on(entry, NULL, cuda));
	CHECK(make_room("d") == -ETIMEDOUT);
	replace_context();
	CHECK(!make_room("d") && !make_room("e"));
	end_hold(&hold);
	CHECK(!tshare_entry_finish(kept));
	tshare_entry_unref(kept);
	CHECK(has("a") && !has("b"));
	close_all();
}

static int use_in_child(void *data)
{
	struct tshare_entry *entry = data;

	alarm(HANG_SECONDS);
	if (tshare_entry_finish_on(entry, NULL, cuda) != -EOPNOTSUPP ||
	    !error_says("pool: belongs to the parent"))
		return 1;
	if (tshare_entry_release_on(entry, NULL, cuda) != -EOPNOTSUPP ||
	    !error_says("pool: belongs to the parent"))
		return 2;
	return 0;
}

TEST(a_child_can_not_use_its_parent_s_entries)
{
	struct tshare_entry *entry;

	open_all(1);
	entry = made("a");
	CHECK(!in_child(use_in_child, entry));
	tshare_entry_unref(entry);
	close_all();
}

int main(void)
{
	return tap_main(start, close_context);
}
