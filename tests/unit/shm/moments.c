// SPDX-License-Identifier: MIT
/*
 * What happens between two steps of a call: this program has a renameat(), a renameat2(), an
 * unlinkat(), a statx(), a pread(), an ftruncate(), a posix_fallocate() and a clock_gettime() of its
 * own, which the library calls in place of the C library's.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../shm.h"

/* What happens before the next call of that kind. */
static void (*before_allocation)(void), (*before_truncation)(void), (*before_renaming)(void),
	(*before_exchange)(void), (*before_reading)(void), (*before_unlinking)(void);

/* The same before a look at the clock, at which threads of the library look, too. */
static _Thread_local void (*before_clock)(void);

/* What happens before or after one of the next looks at a directory's entry, or a renaming. */
static void (*after_look)(void);

static int looks; /* until that one */

static int allocation_error, exchange_error, unlinking_error; /* of the next one, or 0 */

/* Seconds that the library's clock is ahead of the kernel's in this thread. */
static _Thread_local int clock_ahead;

static int take_error(int *next)
{
	int err = *next;

	*next = 0;
	if (err)
		errno = err;
	return err;
}

static void happen(void (**event)(void))
{
	void (*now)(void) = *event;

	*event = NULL;
	if (now)
		now();
}

static void take_a_look(void)
{
	int err = errno;

	if (after_look && !--looks)
		happen(&after_look);
	errno = err;
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): theirs are reserved */
int posix_fallocate(int fd, off_t offset, off_t length)
{
	int err = allocation_error;

	happen(&before_allocation);
	allocation_error = 0;
	if (err)
		return err;
	return syscall(SYS_fallocate, fd, 0, offset, length) ? errno : 0;
}

int ftruncate(int fd, off_t size)
{
	happen(&before_truncation);
	return syscall(SYS_ftruncate, fd, size);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err;

	happen(&before_clock);
	err = syscall(SYS_clock_gettime, clock, now);
	now->tv_sec += clock_ahead;
	return err;
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	happen(&before_reading);
	return syscall(SYS_pread64, fd, buffer, size, offset);
}

int unlinkat(int dir, const char *entry, int flags)
{
	happen(&before_unlinking);
	return take_error(&unlinking_error) ? -1 : syscall(SYS_unlinkat, dir, entry, flags);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	int err;

	happen(&before_renaming);
	err = syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
	take_a_look();
	return err;
}

int statx(int dir, const char *entry, int flags, unsigned int mask, struct statx *st)
{
	int err;

	if (*entry)
		take_a_look();
	err = syscall(SYS_statx, dir, entry, flags, mask, st);
	if (*entry)
		take_a_look();
	return err;
}

static int looks_at_the_environment;

char *secure_getenv(const char *name)
{
	looks_at_the_environment++;
	return getenv(name);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
	happen(&before_exchange);
	return take_error(&exchange_error) ?
		       -1 :
		       syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

/* Forks, as another thread could do */

static struct tshare_ctx *maker;
static struct steps steps;
static pid_t child;

/* The child closes its context, and stays until it is told to end. */
static void fork_and_close(void)
{
	child = fork();
	if (child)
		return;
	close(steps.ends[1]);
	tshare_ctx_unref(maker);
	send_byte(steps.ends[0]);
	await_byte(steps.ends[0]);
	_exit(0);
}

static void check_the_name_goes_with_its_maker(void)
{
	struct tshare_region *region;
	int status;

	CHECK(steps_open(&steps));
	CHECK(!tshare_ctx_new(NULL, &maker));
	CHECK(!tshare_region_create(maker, "forked", 1, NULL, 0, NULL, &region));
	CHECK(await_byte(steps.ends[1]));
	tshare_region_unref(region);
	tshare_ctx_unref(maker);
	CHECK(open_error("forked") == -ENOENT);
	CHECK(!has_home("forked"));
	CHECK(send_byte(steps.ends[1]));
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	steps_close(&steps);
}

TEST(a_child_that_was_forked_while_a_region_was_filled_does_not_keep_its_name)
{
	before_allocation = fork_and_close;
	check_the_name_goes_with_its_maker();
}

TEST(a_child_that_was_forked_while_a_region_was_named_does_not_keep_its_name)
{
	before_renaming = fork_and_close;
	check_the_name_goes_with_its_maker();
}

/* While the context is being closed: the child has no more to do with it. */
static void fork_and_stay(void)
{
	child = fork();
	if (child)
		return;
	close(steps.ends[1]);
	send_byte(steps.ends[0]);
	await_byte(steps.ends[0]);
	_exit(0);
}

TEST(a_child_that_was_forked_while_a_context_was_closed_does_not_keep_its_names)
{
	struct tshare_region *regions[2];
	int status;

	CHECK(steps_open(&steps));
	CHECK(!tshare_ctx_new(NULL, &maker));
	CHECK(!tshare_region_create(maker, "first", 1, NULL, 0, NULL, &regions[0]));
	CHECK(!tshare_region_create(maker, "second", 1, NULL, 0, NULL, &regions[1]));
	tshare_region_unref(regions[0]);
	tshare_region_unref(regions[1]);
	before_unlinking = fork_and_stay;
	tshare_ctx_unref(maker);
	CHECK(await_byte(steps.ends[1]));
	CHECK(open_error("first") == -ENOENT);
	CHECK(open_error("second") == -ENOENT);
	CHECK(send_byte(steps.ends[1]));
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	steps_close(&steps);
}

/* The child stays, and its parent is killed, as if by another process. */
static void fork_and_die(void)
{
	if (fork())
		kill(getpid(), SIGKILL);
	close(steps.ends[1]);
	send_byte(steps.ends[0]);
	await_byte(steps.ends[0]);
	_exit(0);
}

/* Before the region has its name, or after that. */
static void die_at_the_first_renaming(void)
{
	before_renaming = fork_and_die;
}

static void die_at_the_second_renaming(void)
{
	before_renaming = die_at_the_first_renaming;
}

static void check_the_name_is_free_after_its_makers_death(const struct tshare_options *options,
							  void (*prepare)(void))
{
	struct tshare_region *region;
	int status;
	pid_t pid;

	CHECK(steps_open(&steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prepare();
		_exit(tshare_region_create(ctx, "killed", 1, NULL, 0, options, &region));
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
	CHECK(await_byte(steps.ends[1]));
	region = new_region("killed");
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
	CHECK(send_byte(steps.ends[1]));
	steps_close(&steps);
}

TEST(a_child_that_was_forked_while_a_region_was_named_does_not_block_its_name)
{
	check_the_name_is_free_after_its_makers_death(NULL, die_at_the_first_renaming);
	check_the_name_is_free_after_its_makers_death(NULL, die_at_the_second_renaming);
}

TEST(a_child_that_was_forked_while_a_region_that_persists_was_named_does_not_block_its_name)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.lifetime = TSHARE_LIFETIME_PERSIST,
	};

	check_the_name_is_free_after_its_makers_death(&options, die_at_the_first_renaming);
}

/* Of the first, the maker has a claim; of the second, the name leads to its region. */
static int replace_and_die(void (*prepare)(void), uint32_t flags)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_REPLACE | flags,
		.lifetime = TSHARE_LIFETIME_PERSIST,
	};
	struct tshare_region *region;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		prepare();
		if (!tshare_region_create(ctx, "old", 1, NULL, 0, &options, &region))
			tshare_region_finish(region, TSHARE_REPLACE);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? 0 : -1;
}

static void die(void)
{
	kill(getpid(), SIGKILL);
}

static void first(void)
{
	before_renaming = die;
}

static void second(void)
{
	before_renaming = first;
}

static void third(void)
{
	before_renaming = second;
}

static void fourth(void)
{
	before_renaming = third;
}

static bool is_empty(void)
{
	struct stat st;

	/* Each directory in it has a link to it. */
	return !stat(directory, &st) && st.st_nlink == 2;
}

TEST(a_maker_that_is_killed_while_it_replaces_a_region_leaves_one)
{
	static void (*const moments[])(void) = { first, second, third, fourth };
	static const uint32_t flags[] = { 0, TSHARE_DRAFT };
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_REPLACE };
	struct tshare_region *old, *new;
	size_t i;

	for (i = 0; i < 2 * sizeof(moments) / sizeof(moments[0]); i++) {
		old = new_region("old");
		/* Without a draft there are two. */
		if (i != 4 && i != 6)
			CHECK(!replace_and_die(moments[i / 2], flags[i % 2]));
		CHECK(!open_error("old"));
		CHECK(!tshare_region_create(ctx, "old", 1, NULL, 0, &options, &new));
		tshare_region_unref(old);
		CHECK(!tshare_region_unlink(new));
		tshare_region_unref(new);
		CHECK(!tshare_ctx_list(ctx, ignore, NULL));
		CHECK(!has_home("old"));
		CHECK(is_empty());
	}
}

/* As only the owner of a home can: root's claim does not keep the owner from it. */
static struct tshare_region *newcomer;

static void move_the_home_and_take_the_name(void)
{
	char home[256];

	snprintf(home, sizeof(home), "%s", home_of("claimed"));
	CHECK(!rename(home, hidden_home()));
	newcomer = new_region("claimed");
}

static const struct tshare_options replacing = {
	.size = sizeof(replacing),
	.flags = TSHARE_REPLACE,
};

TEST(a_claim_to_a_home_that_has_lost_the_name_is_none)
{
	struct tshare_region *old = new_region("claimed"), *new;

	before_renaming = move_the_home_and_take_the_name;
	CHECK(!tshare_region_create(ctx, "claimed", 1, NULL, 0, &replacing, &new));
	CHECK(tshare_region_unlink(newcomer) == -ENOENT);
	CHECK(!tshare_region_unlink(new));
	tshare_region_unref(old);
	tshare_region_unref(newcomer);
	tshare_region_unref(new);
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

TEST(a_home_that_has_taken_the_place_of_a_claimed_one_stays)
{
	struct tshare_region *old = new_region("claimed"), *new;

	before_exchange = move_the_home_and_take_the_name;
	CHECK(tshare_region_create(ctx, "claimed", 1, NULL, 0, &replacing, &new) == -ENOENT);
	CHECK(!tshare_region_unlink(newcomer));
	tshare_region_unref(old);
	tshare_region_unref(newcomer);
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

/* Peers that come between two looks of a maker that is to replace a region */

static void await_the_other(void)
{
	send_byte(steps.ends[0]);
	await_byte(steps.ends[0]);
}

/* A process that replaces the region, and stops before it takes the claim, or with that. */
static void start_a_peer(bool before_the_claim)
{
	struct tshare_region *region;

	CHECK(steps_open(&steps));
	child = fork();
	if (!child) {
		close(steps.ends[1]);
		before_renaming = before_the_claim ? await_the_other : NULL;
		before_exchange = await_the_other;
		_exit(!!tshare_region_create(ctx, "contested", 1, NULL, 0, &replacing, &region));
	}
	close(steps.ends[0]);
	steps.ends[0] = -1;
	CHECK(await_byte(steps.ends[1]));
}

/* To where it stops next, or to its end. */
static void let_the_peer_go_on(void)
{
	send_byte(steps.ends[1]);
	await_byte(steps.ends[1]);
}

static void end_the_peer(void)
{
	int status;

	let_the_peer_go_on();
	let_the_peer_go_on();
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	close(steps.ends[1]);
}

/* Returns whether there were so many looks. */
static bool replace_with_a_peer(uint32_t flags, int look, void (*peer)(void))
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_REPLACE | flags,
	};
	struct tshare_region *new;
	bool came;

	looks = look;
	after_look = peer;
	CHECK(!tshare_region_create(ctx, "contested", 1, NULL, 0, &options, &new));
	came = !after_look;
	after_look = NULL;
	tshare_region_unref(new);
	return came;
}

static void check_that_nothing_is_left(struct tshare_region *old)
{
	tshare_region_unref(old);
	tshare_ctx_unlink(ctx, "contested");
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!has_home("contested"));
}

/* More than a maker takes that finds the name taken twice. */
#define LOOKS 60

TEST(a_maker_replaces_a_region_while_others_replace_it)
{
	struct tshare_region *old;
	int look;

	for (look = 1; look <= 2 * LOOKS; look++) {
		old = new_region("contested");
		start_a_peer(false);
		replace_with_a_peer(look % 2 ? 0 : TSHARE_DRAFT, (look + 1) / 2,
				    let_the_peer_go_on);
		end_the_peer();
		check_that_nothing_is_left(old);
	}
}

TEST(create_reports_a_maker_that_is_stopped_while_it_replaces_the_region)
{
	struct tshare_region *old = new_region("contested"), *new;

	start_a_peer(false);
	CHECK(tshare_region_create(ctx, "contested", 1, NULL, 0, &replacing, &new) == -EEXIST);
	CHECK(error_says("'contested' is just being given to another region"));
	end_the_peer();
	check_that_nothing_is_left(old);
}

/* As another process does: this one may have its lock. */
static void unlink_the_name(void)
{
	unlink(path_of("contested"));
	rmdir(home_of("contested"));
}

TEST(a_maker_replaces_a_region_while_others_unlink_it)
{
	struct tshare_region *old;
	int look = 0;
	bool came;

	do {
		old = new_region("contested");
		came = replace_with_a_peer(look % 2 ? 0 : TSHARE_DRAFT, 1 + look / 2,
					   unlink_the_name);
		check_that_nothing_is_left(old);
		look++;
	} while (came || look % 2);
	CHECK(look > 2);
}

/* As if another thread had opened as many files meanwhile as there may be. */
static void use_all_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = STDERR_FILENO + 1;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void free_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int replace_without_descriptors(void *unused)
{
	struct tshare_region *new;
	int err;

	(void)unused;
	before_reading = use_all_descriptors;
	err = tshare_region_create(ctx, "few", 1, NULL, 0, &replacing, &new);
	return before_reading ? 2 : -err;
}

TEST(a_maker_that_runs_out_of_descriptors_while_it_replaces_a_region_reports_that)
{
	struct tshare_region *old = new_region("few");

	CHECK(in_child(replace_without_descriptors, NULL) == EMFILE);
	tshare_region_unref(old);
	CHECK(!tshare_ctx_unlink(ctx, "few"));
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

static int replace_an_unlinked_region(void *left)
{
	struct tshare_region *new;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !leave_descriptors(*(unsigned int *)left))
		return -1;
	looks = 1;
	after_look = unlink_the_name;
	return -tshare_region_create(own, "contested", 1, NULL, 0, &replacing, &new);
}

/* Of the numbers of descriptors, one is enough to open the home, but not what is in it. */
TEST(a_maker_with_few_descriptors_reports_that_though_others_unlink_the_region)
{
	struct tshare_region *old;
	unsigned int left;
	int err = EMFILE;

	for (left = 0; err; left++) {
		CHECK(left < 16);
		old = new_region("contested");
		err = in_child(replace_an_unlinked_region, &left);
		CHECK(!err || err == EMFILE);
		check_that_nothing_is_left(old);
	}
}

/* Addresses */

static const void *sought;
static int wrap_err;

static void wrap_what_is_there(void)
{
	const struct tshare_spec byte = SPEC(.dtype = TSHARE_UINT8);
	struct tshare_tensor *tensor;

	wrap_err = tshare_tensor_wrap(sought, &byte, 0, &tensor);
	if (!wrap_err)
		tshare_tensor_unref(tensor);
}

/* The kernel maps it where a region of that size was before. */
TEST(an_address_leads_to_no_region_that_is_being_created)
{
	struct tshare_region *region = new_region(NULL);

	sought = tshare_region_get_data(region);
	tshare_region_unref(region);
	before_truncation = wrap_what_is_there;
	region = new_region(NULL);
	CHECK(!before_truncation);
	CHECK(tshare_region_get_data(region) == sought);
	CHECK(wrap_err == -ENOENT);
	wrap_what_is_there();
	CHECK(!wrap_err);
	tshare_region_unref(region);
}

/* Streams and pools, which have two regions each */

static int create_stream(uint32_t flags, struct tshare_stream **stream)
{
	const struct tshare_options region = { .size = sizeof(region), .flags = flags };
	const struct tshare_stream_options options = { .size = sizeof(options), .region = &region };
	const struct tshare_spec field = SPEC("data", TSHARE_INT8);

	return tshare_stream_create(ctx, "both", &field, 1, &options, stream);
}

static int create_pool(struct tshare_pool **pool)
{
	const struct tshare_options region = {
		.size = sizeof(region),
		.lifetime = TSHARE_LIFETIME_PERSIST,
	};
	const struct tshare_pool_options options = { .size = sizeof(options), .region = &region };

	return tshare_pool_create(ctx, "both", 4096, &options, pool);
}

static int unlink_pool(struct tshare_pool *pool)
{
	int err = tshare_pool_unlink(pool);

	tshare_pool_unref(pool);
	return err;
}

/* Whether a consumer finds both regions of the stream. */
static bool can_be_consumed(void)
{
	struct tshare_stream *consumer;

	if (tshare_stream_open(ctx, "both", NULL, &consumer))
		return !error_says("");
	tshare_stream_unref(consumer);
	return true;
}

TEST(a_stream_that_lacks_descriptors_at_any_moment_leaves_its_name_free)
{
	struct tshare_stream *stream;
	int look = 0, err;
	bool came;

	do {
		looks = ++look;
		after_look = use_all_descriptors;
		err = create_stream(0, &stream);
		came = !after_look;
		after_look = NULL;
		free_descriptors();
		CHECK(!err || err == -EMFILE);
		CHECK(!err || !create_stream(0, &stream));
		tshare_stream_unref(stream);
	} while (came);
	CHECK(look > 2);
}

TEST(a_producer_that_lacks_descriptors_at_any_moment_takes_no_living_ones_consumers)
{
	struct tshare_stream *old, *new;
	int look = 0, err;
	bool came;

	CHECK(!create_stream(0, &old));
	do {
		looks = ++look;
		after_look = use_all_descriptors;
		err = create_stream(TSHARE_REPLACE, &new);
		came = !after_look;
		after_look = NULL;
		free_descriptors();
		CHECK(!err || err == -EMFILE);
		CHECK(can_be_consumed());
		if (err)
			continue;
		tshare_stream_unref(old);
		old = new;
	} while (came);
	CHECK(look > 2);
	tshare_stream_unref(old);
}

static void fail_the_exchange(void)
{
	exchange_error = ENOMEM;
}

static void fail_the_second_exchange(void)
{
	before_exchange = fail_the_exchange;
}

TEST(two_names_that_are_not_both_given_are_given_back)
{
	struct tshare_stream *old, *new;
	struct tshare_pool *pool;

	before_exchange = fail_the_second_exchange;
	CHECK(create_stream(0, &old) == -ENOMEM);
	before_exchange = fail_the_second_exchange;
	CHECK(create_pool(&pool) == -ENOMEM);
	CHECK(!has_home("both") && !has_home("both.seats"));
	CHECK(!create_pool(&pool));
	CHECK(!unlink_pool(pool));
	CHECK(!create_stream(0, &old));
	before_exchange = fail_the_second_exchange;
	CHECK(create_stream(TSHARE_REPLACE, &new) == -ENOMEM);
	CHECK(can_be_consumed());
	CHECK(!create_stream(TSHARE_REPLACE, &new));
	CHECK(can_be_consumed());
	tshare_stream_unref(new);
	tshare_stream_unref(old);
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

static struct steps taking_back;

static void fail_the_exchange_late(void)
{
	CHECK(send_byte(taking_back.ends[0]) && await_byte(taking_back.ends[0]));
	/* By then the other process sleeps. */
	usleep(500000);
	exchange_error = ENOMEM;
}

static void fail_the_second_exchange_late(void)
{
	before_exchange = fail_the_exchange_late;
}

static int open_what_is_being_replaced(void)
{
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.timeout_ns = 60 * INT64_C(1000000000),
	};
	struct tshare_stream *stream;
	struct tshare_ctx *own;

	return tshare_ctx_new(NULL, &own) || !await_byte(taking_back.ends[1]) ||
	       tshare_stream_open(own, "both", NULL, &stream) != -EPROTO ||
	       !send_byte(taking_back.ends[1]) ||
	       tshare_stream_open(own, "both", &options, &stream);
}

TEST(open_joins_a_stream_whose_replacement_is_taken_back)
{
	struct tshare_stream *old, *new;
	int status;
	pid_t pid;

	CHECK(steps_open(&taking_back));
	CHECK(!create_stream(0, &old));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(open_what_is_being_replaced());
	before_exchange = fail_the_second_exchange_late;
	CHECK(create_stream(TSHARE_REPLACE, &new) == -ENOMEM);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	tshare_stream_unref(old);
	steps_close(&taking_back);
}

TEST(a_pool_that_can_not_be_unlinked_stays_whole)
{
	struct tshare_pool *pool, *other;

	CHECK(!create_pool(&pool));
	unlinking_error = ENOMEM;
	CHECK(tshare_pool_unlink(pool) == -ENOMEM);
	CHECK(!tshare_pool_open(ctx, "both", NULL, &other));
	tshare_pool_unref(other);
	CHECK(!tshare_pool_unlink(pool));
	CHECK(!has_home("both") && !has_home("both.seats"));
	CHECK(tshare_pool_unlink(pool) == -ENOENT);
	CHECK(error_says("pool: has lost its name 'both'"));
	tshare_pool_unref(pool);
}

TEST(a_pool_is_unlinked_though_no_descriptors_are_left_for_its_seats)
{
	struct tshare_pool *pool;
	int err;

	CHECK(!create_pool(&pool));
	before_unlinking = use_all_descriptors;
	err = tshare_pool_unlink(pool);
	free_descriptors();
	CHECK(!err);
	CHECK(!has_home("both") && has_home("both.seats"));
	tshare_pool_unref(pool);
	CHECK(!has_home("both.seats"));
}

static struct tshare_pool *next_pool;

static void make_the_next_pool(void)
{
	if (has_home("both"))
		before_unlinking = make_the_next_pool;
	else
		CHECK(!create_pool(&next_pool));
}

TEST(a_pool_is_unlinked_though_the_next_one_takes_its_seats_name)
{
	struct tshare_pool *pool, *other;

	CHECK(!create_pool(&pool));
	before_unlinking = make_the_next_pool;
	CHECK(!unlink_pool(pool));
	CHECK(!tshare_pool_open(ctx, "both", NULL, &other));
	tshare_pool_unref(other);
	CHECK(!unlink_pool(next_pool));
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

TEST(create_takes_no_region_that_is_unlinked_meanwhile_for_a_strangers_file)
{
	struct tshare_region *old, *new;
	int look = 0, err;
	bool came;

	do {
		old = new_region("contested");
		looks = ++look;
		after_look = unlink_the_name;
		new = NULL;
		err = tshare_region_create(ctx, "contested", 1, NULL, 0, NULL, &new);
		came = !after_look;
		after_look = NULL;
		CHECK(!err || err == -EEXIST);
		CHECK(!err || error_says("finished region"));
		tshare_region_unref(new);
		check_that_nothing_is_left(old);
	} while (came);
	CHECK(look > 2);
}

/* Somebody who replaces the region each time that it is about to be unlinked. */
static struct tshare_region *replaced_by[10];

static unsigned int replacements;

static void replace_again(void)
{
	CHECK(!tshare_region_create(ctx, "contested", 1, NULL, 0, &replacing,
				    &replaced_by[replacements]));
	if (++replacements < 10)
		before_unlinking = replace_again;
}

TEST(a_name_is_unlinked_though_others_replace_it)
{
	struct tshare_region *old = new_region("contested");
	int i;

	before_unlinking = replace_again;
	CHECK(!tshare_ctx_unlink(ctx, "contested"));
	CHECK(replacements == 10);
	CHECK(open_error("contested") == -ENOENT);
	for (i = 0; i < 10; i++)
		tshare_region_unref(replaced_by[i]);
	check_that_nothing_is_left(old);
}

/* Another process has unlinked the region, and is about to remove its home. */
static int looks_until_the_claim;

static void let_the_peer_take_the_claim(void)
{
	/* The maker's own: the peer would wait for that. */
	if (exists_at(next_of("contested")))
		return;
	let_the_peer_go_on();
	looks = LOOKS;
	after_look = let_the_peer_go_on;
}

static void unlink_the_region(void)
{
	unlink(path_of("contested"));
	looks = looks_until_the_claim;
	after_look = let_the_peer_take_the_claim;
}

TEST(a_maker_replaces_a_region_that_another_claims_while_it_is_unlinked)
{
	struct tshare_region *old;
	int look;

	for (look = 0; look < 128; look++) {
		old = new_region("contested");
		start_a_peer(true);
		looks_until_the_claim = 1 + look % 16;
		replace_with_a_peer(0, 1 + look / 16, unlink_the_region);
		end_the_peer();
		check_that_nothing_is_left(old);
	}
}

static void unlink_the_draft_and_replace_the_region(void)
{
	char draft[512];

	snprintf(draft, sizeof(draft), "%s/draft", next_of("contested"));
	if (unlink(draft))
		return;
	snprintf(draft, sizeof(draft), "%s/maker", next_of("contested"));
	unlink(draft);
	rmdir(next_of("contested"));
	CHECK(!tshare_region_create(ctx, "contested", 1, NULL, 0, &replacing, &newcomer));
}

TEST(a_draft_that_is_unlinked_while_it_takes_its_name_is_only_lost)
{
	struct tshare_region *old;
	int look = 0;
	bool came;

	do {
		newcomer = NULL;
		old = new_region("contested");
		came = replace_with_a_peer(TSHARE_DRAFT, ++look,
					   unlink_the_draft_and_replace_the_region);
		tshare_region_unref(newcomer);
		check_that_nothing_is_left(old);
	} while (came);
	CHECK(look > 2);
}

/* Drafts, which have the claim to their names before their memory */

static const struct tshare_options draft_options = {
	.size = sizeof(draft_options),
	.flags = TSHARE_DRAFT,
};

static int create_draft(const char *name, uint64_t size, struct tshare_region **region)
{
	return tshare_region_create(ctx, name, size, NULL, 0, &draft_options, region);
}

static int drafts;

static int count_drafts(const struct tshare_region_info *info, void *name)
{
	drafts += !strcmp(info->name, name) && info->flags & TSHARE_DRAFT;
	return 0;
}

static void look_for_the_draft(void)
{
	struct tshare_region *region;
	char name[] = "claimed";

	drafts = 0;
	CHECK(open_error(name) == -EINPROGRESS);
	CHECK(create_draft(name, 1, &region) == -EEXIST);
	CHECK(error_says("draft"));
	CHECK(!tshare_ctx_list(ctx, count_drafts, name) && drafts == 1);
}

TEST(a_draft_has_the_claim_to_its_name_before_its_memory)
{
	struct tshare_region *region;

	before_allocation = look_for_the_draft;
	CHECK(!create_draft("claimed", 1, &region));
	CHECK(!before_allocation);
	CHECK(!tshare_region_finish(region, 0));
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, "claimed"));
}

static int draft_more_than_there_is(void)
{
	struct tshare_region *region;

	return create_draft("room", 4 * limits_of(ctx).region_bytes_max + (4 << 20), &region);
}

static void draft_more_of_that_name(void)
{
	CHECK(draft_more_than_there_is() == -EEXIST);
}

TEST(only_a_maker_with_the_claim_to_its_name_needs_room)
{
	struct tshare_region *region;

	before_allocation = draft_more_of_that_name;
	CHECK(!create_draft("room", 1, &region));
	CHECK(!before_allocation);
	tshare_region_unref(region);
	CHECK(draft_more_than_there_is() == -ENOMEM);
	CHECK(!exists_at(next_of("room")));
}

static void fork_and_wait(void)
{
	child = fork();
	if (child)
		return;
	close(steps.ends[1]);
	send_byte(steps.ends[0]);
	await_byte(steps.ends[0]);
	_exit(0);
}

TEST(a_draft_without_room_leaves_nothing_whatever_child_was_forked)
{
	struct tshare_region *region;
	int status;

	CHECK(steps_open(&steps));
	before_allocation = fork_and_wait;
	allocation_error = ENOSPC;
	CHECK(create_draft("roomless", 1, &region) == -ENOMEM);
	CHECK(await_byte(steps.ends[1]));
	CHECK(!exists_at(next_of("roomless")));
	CHECK(open_error("roomless") == -ENOENT);
	CHECK(!create_draft("roomless", 1, &region));
	tshare_region_unref(region);
	CHECK(send_byte(steps.ends[1]));
	CHECK(waitpid(child, &status, 0) == child);
	steps_close(&steps);
}

static void die_in_the_next_allocation(void)
{
	before_allocation = fork_and_die;
}

TEST(a_child_that_was_forked_while_a_draft_was_allocated_does_not_block_its_name)
{
	check_the_name_is_free_after_its_makers_death(&draft_options, die_in_the_next_allocation);
}

static size_t descriptors;

static void fork_and_count_descriptors(void)
{
	child = fork();
	if (!child)
		_exit(open_descriptors() != descriptors);
}

static void check_that_a_child_has_nothing(uint32_t flags, uint32_t lifetime)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = flags,
		.lifetime = lifetime,
	};
	struct tshare_region *region;
	int status;

	/* A context that has no names which it could drop. */
	CHECK(!tshare_ctx_new(NULL, &maker));
	descriptors = open_descriptors();
	before_allocation = fork_and_count_descriptors;
	CHECK(!tshare_region_create(maker, "counted", 1, NULL, 0, &options, &region));
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
	tshare_ctx_unref(maker);
}

TEST(a_child_has_no_descriptor_of_what_was_being_made)
{
	check_that_a_child_has_nothing(TSHARE_DRAFT, TSHARE_LIFETIME_MAKER);
	check_that_a_child_has_nothing(TSHARE_DRAFT, TSHARE_LIFETIME_USERS);
	check_that_a_child_has_nothing(0, TSHARE_LIFETIME_MAKER);
	check_that_a_child_has_nothing(0, TSHARE_LIFETIME_USERS);
}

static void exit_at_once(void)
{
	exit(0);
}

static int exit_while_a_draft_is_made(void *name)
{
	struct tshare_region *region;

	before_allocation = exit_at_once;
	return create_draft(name, 1, &region) || true;
}

TEST(a_draft_that_is_being_made_when_its_process_exits_leaves_nothing)
{
	char name[] = "exited";

	CHECK(!in_child(exit_while_a_draft_is_made, name));
	CHECK(!exists_at(next_of(name)));
}

static ssize_t stay(void *cookie, const char *bytes, size_t count)
{
	(void)cookie;
	(void)bytes;
	(void)count;
	pause();
	return 0;
}

static void *exit_and_stay(void *unused)
{
	(void)unused;
	exit(0);
}

static struct tshare_region *unnamed;

/* exit() stays in what comes after the library's destructor, the end of a stream. */
static void exit_in_another_thread(void)
{
	FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = stay });
	pthread_t thread;

	if (!stream || fputc('x', stream) == EOF ||
	    pthread_create(&thread, NULL, exit_and_stay, NULL))
		_exit(1);
	while (exists_at(next_of("exited")))
		usleep(1000);
	/* The destructor has the lock until it ends. */
	tshare_region_finish(unnamed, 0);
}

static int close_after_exit(void *name)
{
	struct tshare_region *region;

	unnamed = new_region(NULL);
	before_allocation = exit_in_another_thread;
	if (create_draft(name, 1, &region))
		return 1;
	tshare_region_unref(region);
	return 0;
}

TEST(a_draft_that_is_being_made_when_its_process_exits_can_be_closed)
{
	char name[] = "exited";

	CHECK(!in_child(close_after_exit, name));
}

/* The first region of the session that has lost its name is dropped when the next is made. */
static void unlink_the_draft(void)
{
	struct tshare_region *other;

	CHECK(!tshare_ctx_unlink(ctx, "lost"));
	other = new_region("other");
	CHECK(!tshare_region_unlink(other));
	tshare_region_unref(other);
}

TEST(a_draft_can_lose_its_name_while_it_is_being_made)
{
	struct tshare_region *region;

	before_allocation = unlink_the_draft;
	CHECK(!create_draft("lost", 1, &region));
	CHECK(!before_allocation);
	CHECK(tshare_region_finish(region, 0) == -ENOENT);
	tshare_region_unref(region);
	CHECK(!exists_at(next_of("lost")));
}

/* The environment, which another thread may change at the same time */

TEST(a_context_reads_the_environment_once)
{
	static const uint32_t flags[] = { 0, TSHARE_REPLACE, TSHARE_DRAFT };
	struct tshare_options options = {
		.size = sizeof(options),
		.lifetime = TSHARE_LIFETIME_USERS,
	};
	struct tshare_region *region, *opened;
	struct tshare_ctx *own;
	int before;
	size_t i;

	CHECK(!tshare_ctx_new(NULL, &own));
	before = looks_at_the_environment;
	CHECK(before);
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		options.flags = flags[i];
		CHECK(!tshare_region_create(own, "read", 1, NULL, 0, &options, &region));
		if (flags[i] & TSHARE_DRAFT)
			CHECK(!tshare_region_finish(region, 0));
		CHECK(!tshare_region_open(own, "read", NULL, &opened));
		tshare_region_unref(region);
		tshare_region_unref(opened);
		CHECK(!has_home("read"));
	}
	tshare_ctx_unref(own);
	CHECK(looks_at_the_environment == before);
}

/* The address space, which other threads use up */

static void use_up_the_address_space(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	struct rlimit limit = {};
	unsigned long pages = 0;

	if (statm && fscanf(statm, "%lu", &pages) == 1)
		limit.rlim_cur = limit.rlim_max = pages * sysconf(_SC_PAGESIZE) + (1 << 20);
	if (statm)
		fclose(statm);
	setrlimit(RLIMIT_AS, &limit);
}

static int replace_without_address_space(void *name)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_REPLACE };
	struct tshare_region *region;

	before_renaming = use_up_the_address_space;
	if (tshare_region_create(ctx, name, 16 << 20, NULL, 0, &options, &region))
		return 1;
	*(char *)tshare_region_get_data(region) = 1;
	return mmap(NULL, 16 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

TEST(a_region_with_a_name_has_room_in_the_address_space)
{
	struct tshare_region *old = new_victim("roomy");
	char name[] = "roomy";

	CHECK(!in_child(replace_without_address_space, name));
	tshare_region_unref(old);
	/* The child ended without its destructors. */
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

/* The limit of files, which another process lowers */

static void lower_the_limit_of_files(void)
{
	const struct rlimit limit = { 0, 0 };

	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
}

static int create_while_the_limit_is_lowered(void *name)
{
	struct tshare_region *region;

	before_truncation = lower_the_limit_of_files;
	return tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region) != -EFBIG ||
	       !error_says("RLIMIT_FSIZE");
}

TEST(create_under_a_limit_of_files_that_is_lowered_is_an_error)
{
	char name[] = "lowered";

	CHECK(!in_child(create_while_the_limit_is_lowered, NULL));
	CHECK(!in_child(create_while_the_limit_is_lowered, name));
	CHECK(!has_home(name));
}

/* Memory, which a dead process has */

static int create_and_be_killed(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	allocation_error = 0;
	if (!tshare_ctx_new(NULL, &own) &&
	    !tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
		kill(getpid(), SIGKILL);
	close(steps.ends[1]);
	return 1;
}

static void leave_a_dead_region(void)
{
	char name[] = "swept";

	CHECK(in_child(create_and_be_killed, name) == -1);
}

TEST(a_create_without_room_removes_the_dead_and_tries_again)
{
	struct tshare_region *region;

	before_allocation = leave_a_dead_region;
	allocation_error = ENOSPC;
	CHECK(!tshare_region_create(ctx, "tried", 1, NULL, 0, NULL, &region));
	CHECK(!has_home("swept"));
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, "tried"));
}

static struct stat claims[2];

static void look_at_the_second_claim(void)
{
	CHECK(!stat(next_of("keeping"), &claims[1]));
}

static void look_at_the_claim_and_leave_a_dead_region(void)
{
	CHECK(!stat(next_of("keeping"), &claims[0]));
	leave_a_dead_region();
	before_allocation = look_at_the_second_claim;
}

TEST(a_draft_without_room_keeps_its_claim_while_it_removes_the_dead)
{
	struct tshare_region *region;

	before_allocation = look_at_the_claim_and_leave_a_dead_region;
	allocation_error = ENOSPC;
	CHECK(!create_draft("keeping", 1, &region));
	CHECK(!before_allocation);
	CHECK(claims[0].st_ino == claims[1].st_ino);
	tshare_region_unref(region);
}

/* The library waits for up to 1,000 times as long as its last sweep took, which may be long, too. */
#define LATE_SECONDS 1000000

/* What the library looks for once in ten seconds. */
static struct tshare_region *be_ten_seconds_late(struct tshare_ctx **own)
{
	struct tshare_region *region;

	CHECK(!tshare_ctx_new(NULL, own));
	CHECK(!tshare_region_import(*own, tshare_region_get_fd(unnamed), 0, &region));
	leave_a_dead_region();
	CHECK(has_home("swept"));
	return region;
}

TEST(a_process_that_waits_opens_or_closes_removes_the_dead_now_and_then)
{
	struct tshare_region *region, *other;
	struct tshare_ctx *own;
	uint64_t seen;

	unnamed = new_region(NULL);
	region = be_ten_seconds_late(&own);
	CHECK(tshare_region_wait(region, 0, 1, 0, &seen) == -ETIMEDOUT);
	CHECK(has_home("swept"));
	/* The kernel's sleep until then is over at once. */
	clock_ahead = 9;
	CHECK(tshare_region_wait(region, 0, 2000000000, 0, &seen) == -ETIMEDOUT);
	CHECK(!has_home("swept"));
	leave_a_dead_region();
	CHECK(tshare_region_open(own, "absent", NULL, &other) == -ENOENT);
	CHECK(has_home("swept"));
	clock_ahead = LATE_SECONDS;
	CHECK(tshare_region_open(own, "absent", NULL, &other) == -ENOENT);
	CHECK(!has_home("swept"));
	leave_a_dead_region();
	clock_ahead = 2 * LATE_SECONDS;
	tshare_region_unref(region);
	CHECK(!has_home("swept"));
	clock_ahead = 0;
	tshare_ctx_unref(own);
	tshare_region_unref(unnamed);
}

/* Makes the region that is waited for once the dead one is gone. */
static void *make_after_the_dead(void *made)
{
	struct tshare_region **region = made;

	while (has_home("swept"))
		usleep(10000);
	*region = new_region("absent");
	return NULL;
}

TEST(a_process_that_waits_for_a_name_removes_the_dead_now_and_then)
{
	const struct tshare_open_options patient = {
		.size = sizeof(patient),
		.timeout_ns = HANG_SECONDS * INT64_C(1000000000),
	};
	struct tshare_region *made, *region;
	struct tshare_ctx *own;
	pthread_t thread;

	CHECK(!tshare_ctx_new(NULL, &own));
	leave_a_dead_region();
	CHECK(!pthread_create(&thread, NULL, make_after_the_dead, &made));
	clock_ahead = 9;
	CHECK(!tshare_region_open(own, "absent", &patient, &region));
	clock_ahead = 0;
	CHECK(!pthread_join(thread, NULL));
	CHECK(!tshare_region_unlink(made));
	tshare_region_unref(made);
	tshare_region_unref(region);
	tshare_ctx_unref(own);
}

static int publish_and_be_killed(void *region)
{
	struct tshare_region *left;
	struct tshare_ctx *own;

	if (!tshare_region_publish(region, NULL) && !tshare_ctx_new(NULL, &own) &&
	    !tshare_region_create(own, "swept", 1, NULL, 0, NULL, &left))
		kill(getpid(), SIGKILL);
	return 1;
}

TEST(a_wait_that_notices_a_dead_publisher_removes_what_that_has_left)
{
	struct tshare_region *region;
	struct tshare_ctx *own;
	uint64_t seen;

	CHECK(!tshare_ctx_new(NULL, &own));
	unnamed = new_region(NULL);
	CHECK(!tshare_region_import(own, tshare_region_get_fd(unnamed), 0, &region));
	CHECK(in_child(publish_and_be_killed, region) == -1);
	CHECK(tshare_region_wait(region, 1, -1, 0, &seen) == -EOWNERDEAD);
	CHECK(!has_home("swept"));
	tshare_region_unref(region);
	tshare_region_unref(unnamed);
	tshare_ctx_unref(own);
}

static int sweep_in_a_child(void *region)
{
	leave_a_dead_region();
	clock_ahead = LATE_SECONDS;
	tshare_region_unref(region);
	return has_home("swept");
}

static int forked;

static void fork_and_sweep(void)
{
	forked = in_child(sweep_in_a_child, unnamed);
}

/* The second look at the clock is in the sweep. */
static void fork_at_the_second_look(void)
{
	before_clock = fork_and_sweep;
}

TEST(a_child_that_was_forked_during_a_sweep_sweeps)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	CHECK(!tshare_ctx_new(NULL, &own));
	CHECK(!tshare_region_create(own, NULL, 1, NULL, 0, NULL, &unnamed));
	clock_ahead = LATE_SECONDS;
	before_clock = fork_at_the_second_look;
	CHECK(!tshare_region_create(own, NULL, 1, NULL, 0, NULL, &region));
	CHECK(!before_clock);
	CHECK(!forked);
	clock_ahead = 0;
	tshare_region_unref(region);
	tshare_region_unref(unnamed);
	tshare_ctx_unref(own);
}

TEST(a_create_without_room_fails_where_nobody_is_dead)
{
	struct tshare_region *region;

	allocation_error = ENOSPC;
	CHECK(tshare_region_create(ctx, "failed", 1, NULL, 0, NULL, &region) == -ENOMEM);
	CHECK(!has_home("failed"));
}

/* A generation, which is published when the time is up */

static struct tshare_region *published;

static void publish_before_the_clock(void)
{
	CHECK(!tshare_region_publish(published, NULL));
}

/* The first look at the clock is for the deadline. */
static void publish_before_the_second_look(void)
{
	before_clock = publish_before_the_clock;
}

TEST(a_generation_wins_over_the_timeout)
{
	uint64_t generation;

	published = new_region(NULL);
	CHECK(!tshare_region_get_generation(published, &generation) && !generation);
	before_clock = publish_before_the_second_look;
	CHECK(!tshare_region_wait(published, 0, 1, 0, &generation));
	CHECK(generation == 1);
	tshare_region_unref(published);
}

/* Another process's draft that goes between the first look and the watch. */
static struct tshare_region *draft;

static void close_draft(void)
{
	tshare_region_unref(draft);
}

/* The first look at the clock is before the name is looked for. */
static void close_draft_at_the_next_look(void)
{
	before_clock = close_draft;
}

TEST(a_draft_that_was_seen_once_and_is_gone_is_not_waited_for)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_DRAFT };
	const struct tshare_open_options patient = {
		.size = sizeof(patient),
		.timeout_ns = INT64_C(20000000000),
	};
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, "seen", 1, NULL, 0, &options, &draft));
	before_clock = close_draft_at_the_next_look;
	CHECK(tshare_region_open(ctx, "seen", &patient, &region) == -ENOENT);
	CHECK(!before_clock);
}

int main(void)
{
	return shm_main();
}
