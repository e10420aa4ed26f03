// SPDX-License-Identifier: MIT
/*
 * Drafts and regions that replace others, among processes that are killed or hostile. The library's
 * clock is ahead of the kernel's here: to a sleep that ends by no event there is no end, neither by
 * a timeout nor for the look that is due after ten seconds.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../shm.h"

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += 2 * HANG_SECONDS;
	return err;
}

static const struct tshare_options draft_options = {
	.size = sizeof(draft_options),
	.flags = TSHARE_DRAFT,
	.mode = 0666,
};

/* Makers that are killed */

#define MAKERS 8
#define BYTES  (64 << 10)

/* Fills a draft and finishes it, or makes a region that is complete when it is made. */
static int make_one(struct tshare_ctx *own, const char *name, unsigned int *seed)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;
	int err;

	options.flags = TSHARE_DRAFT | (rand_r(seed) % 2 ? TSHARE_REPLACE : 0);
	options.lifetime = rand_r(seed) % (TSHARE_LIFETIME_PERSIST + 1);
	err = tshare_region_create(own, name, BYTES, NULL, 0, &options, &region);
	if (err)
		return err == -EEXIST ? 0 : err;
	memset(tshare_region_get_data(region), 1 + rand_r(seed) % 255, BYTES);
	err = tshare_region_finish(region, options.flags & TSHARE_REPLACE);
	if (!err && rand_r(seed) % 4 == 0)
		err = tshare_region_unlink(region);
	tshare_region_unref(region);
	return err == -EEXIST || err == -ENOENT ? 0 : err;
}

static int make_for_ever(const char *name, unsigned int seed)
{
	struct tshare_ctx *own;
	int err;

	alarm(HANG_SECONDS);
	for (;;) {
		if (tshare_ctx_new(NULL, &own))
			return 1;
		err = make_one(own, name, &seed);
		if (err) {
			printf("# %s: %s\n", name, tshare_error_get());
			return 2;
		}
		if (rand_r(&seed) % 2)
			tshare_ctx_unref(own);
	}
}

static pid_t start_maker(const char *name, unsigned int seed)
{
	pid_t pid = fork();

	if (!pid)
		_exit(make_for_ever(name, seed));
	return pid;
}

/* Whether the name leads to one complete region. */
static bool is_whole(const char *name)
{
	struct tshare_region *region;
	const unsigned char *data;
	bool whole;
	int err;

	err = tshare_region_open(ctx, name, NULL, &region);
	if (err)
		return err == -ENOENT || err == -EINPROGRESS;
	data = tshare_region_get_data(region);
	whole = data[0] && data[0] == data[BYTES - 1] && !memcmp(data, data + 1, BYTES - 1);
	tshare_region_unref(region);
	return whole;
}

TEST(no_killed_maker_leaves_half_a_region_or_blocks_its_name)
{
	static char name[] = "stress";
	struct tshare_region *region;
	pid_t pids[MAKERS];
	int i, times = rounds(4000), status, halves = 0, failed = 0;
	unsigned int seed = 1;

	for (i = 0; i < MAKERS; i++)
		pids[i] = start_maker(name, i);
	for (i = 0; i < times; i++) {
		halves += !is_whole(name);
		if (i % 8)
			continue;
		seed = seed * 1103515245 + 12345;
		pid_t *victim = &pids[seed / 65536 % MAKERS];

		failed += kill(*victim, SIGKILL) || waitpid(*victim, &status, 0) != *victim ||
			  !WIFSIGNALED(status);
		*victim = start_maker(name, i);
	}
	for (i = 0; i < MAKERS; i++)
		failed += kill(pids[i], SIGKILL) || waitpid(pids[i], &status, 0) != pids[i] ||
			  !WIFSIGNALED(status);
	CHECK(!halves);
	CHECK(!failed);
	/* Only persistent regions are left. */
	if (tshare_ctx_unlink(ctx, name))
		CHECK(open_error(name) == -ENOENT);
	CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region));
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
	/* The end of the program checks that the directory is empty. */
	close_context();
	open_context();
	tshare_region_unref(new_region(NULL));
}

/* Files of a killed maker */

struct made {
	const char *name;
	struct tshare_options options;
};

static int make_and_be_killed(void *data)
{
	const struct made *made = data;
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!tshare_ctx_new(NULL, &own) &&
	    !tshare_region_create(own, made->name, 1, NULL, 0, &made->options, &region))
		kill(getpid(), SIGKILL);
	return 1;
}

static void leave_made(const char *name, uint32_t flags, uint32_t lifetime)
{
	struct made made = {
		.name = name,
		.options = { .size = sizeof(made.options), .flags = flags, .lifetime = lifetime },
	};

	CHECK(in_child(make_and_be_killed, &made) == -1);
}

TEST(a_dead_makers_draft_is_removed_with_its_pipe)
{
	char name[] = "dead";

	leave_made(name, TSHARE_DRAFT, TSHARE_LIFETIME_MAKER);
	CHECK(exists_at(next_of(name)));
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!exists_at(next_of(name)));
}

TEST(an_open_removes_a_dead_makers_draft)
{
	char name[] = "looked-for";

	leave_made(name, TSHARE_DRAFT, TSHARE_LIFETIME_MAKER);
	CHECK(exists_at(next_of(name)));
	CHECK(open_error(name) == -ENOENT);
	CHECK(!exists_at(next_of(name)));
}

TEST(what_a_killed_maker_has_replaced_is_removed)
{
	struct tshare_region *old = new_victim("replaced"), *new;
	char name[] = "replaced", home[256];

	/* As after the exchange of the two homes. */
	snprintf(home, sizeof(home), "%s", home_of(name));
	CHECK(!rename(home, hidden_home()));
	new = new_region(name);
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!exists_at(hidden_home()));
	CHECK(!open_error(name));
	CHECK(tshare_region_unlink(old) == -ENOENT);
	CHECK(!tshare_region_unlink(new));
	tshare_region_unref(old);
	tshare_region_unref(new);
}

TEST(a_region_leads_to_its_name_before_its_file_is_renamed)
{
	struct tshare_region *region = new_victim("moved");
	char path[600];

	/* The state that a maker leaves which is killed between these steps. */
	snprintf(path, sizeof(path), "%s/new", home_of("moved"));
	CHECK(!rename(path_of("moved"), path));
	CHECK(!open_error("moved"));
	CHECK(!tshare_region_unlink(region));
	CHECK(!has_home("moved"));
	tshare_region_unref(region);
}

TEST(a_region_persists_where_its_name_leads_and_nowhere_else)
{
	char name[] = "placed", path[600], home[256];

	leave_made(name, 0, TSHARE_LIFETIME_PERSIST);
	snprintf(path, sizeof(path), "%s/new", home_of(name));
	CHECK(!rename(path_of(name), path));
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!open_error(name));
	snprintf(home, sizeof(home), "%s", home_of(name));
	CHECK(!rename(home, hidden_home()));
	CHECK(open_error(name) == -ENOENT);
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!exists_at(hidden_home()));
}

static int finish_and_exit(void *draft)
{
	_exit(tshare_region_finish(draft, 0) ? 1 : 0);
}

TEST(what_a_child_has_finished_outlives_the_context)
{
	struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_DRAFT,
		.lifetime = TSHARE_LIFETIME_PERSIST,
	};
	struct tshare_region *persistent, *used, *user;
	struct tshare_ctx *own;

	CHECK(!tshare_ctx_new(NULL, &own));
	CHECK(!tshare_region_create(own, "kept", 1, NULL, 0, &options, &persistent));
	options.lifetime = TSHARE_LIFETIME_USERS;
	CHECK(!tshare_region_create(own, "in-use", 1, NULL, 0, &options, &used));
	CHECK(!in_child(finish_and_exit, persistent));
	CHECK(!in_child(finish_and_exit, used));
	CHECK(!tshare_region_open(ctx, "in-use", NULL, &user));
	tshare_region_unref(persistent);
	tshare_region_unref(used);
	tshare_ctx_unref(own);
	CHECK(!open_error("kept"));
	CHECK(!open_error("in-use"));
	tshare_region_unref(user);
	CHECK(open_error("in-use") == -ENOENT);
	CHECK(!tshare_ctx_unlink(ctx, "kept"));
}

static int replace_without_address_space(void *name)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_REPLACE };
	FILE *statm = fopen("/proc/self/statm", "re");
	struct tshare_region *region;
	struct rlimit limit = {};
	unsigned long pages = 0;

	if (!statm || fscanf(statm, "%lu", &pages) != 1)
		return 1;
	/* There is room for small things, not for the region. */
	limit.rlim_cur = limit.rlim_max = pages * sysconf(_SC_PAGESIZE) + (16 << 20);
	if (fclose(statm) || setrlimit(RLIMIT_AS, &limit))
		return 1;
	return tshare_region_create(ctx, name, 64 << 20, NULL, 0, &options, &region) != -ENOMEM;
}

TEST(a_region_that_can_not_be_mapped_replaces_none)
{
	struct tshare_region *old = new_victim("unmapped");
	char name[] = "unmapped";

	CHECK(!in_child(replace_without_address_space, name));
	CHECK(!open_error(name));
	CHECK(!tshare_region_unlink(old));
	tshare_region_unref(old);
}

/* As a process leaves it that is killed while it unlinks a draft, or what was one. */
static void leave_pipe(const char *home)
{
	char path[600];

	CHECK(!mkdir(home, 0755));
	snprintf(path, sizeof(path), "%s/maker", home);
	CHECK(!mkfifo(path, 0622));
}

TEST(a_pipe_that_is_left_blocks_no_name)
{
	char name[] = "pipe";
	struct tshare_region *region;

	leave_pipe(home_of(name));
	leave_pipe(next_of(name));
	CHECK(open_error(name) == -ENOENT);
	CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &draft_options, &region));
	CHECK(!tshare_region_finish(region, 0));
	CHECK(!open_error(name));
	CHECK(!tshare_region_unlink(region));
	CHECK(!has_home(name) && !exists_at(next_of(name)));
	tshare_region_unref(region);
}

TEST(a_draft_that_is_closed_leaves_no_files)
{
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, "shut", 1, NULL, 0, &draft_options, &region));
	CHECK(exists_at(next_of("shut")));
	tshare_region_unref(region);
	CHECK(!exists_at(next_of("shut")));
}

/* Copies are finished drafts, and a process may have many. */
TEST(a_finished_draft_takes_no_more_descriptors)
{
	struct tshare_region *region, *draft;
	size_t before = open_descriptors(), taken;

	region = new_region("plain");
	taken = open_descriptors() - before;
	CHECK(!tshare_region_create(ctx, "drafted", 1, NULL, 0, &draft_options, &draft));
	CHECK(!tshare_region_finish(draft, 0));
	CHECK(open_descriptors() - before == 2 * taken);
	tshare_region_unref(region);
	tshare_region_unref(draft);
	CHECK(!tshare_ctx_unlink(ctx, "plain"));
	CHECK(!tshare_ctx_unlink(ctx, "drafted"));
}

TEST(a_finished_draft_that_persists_costs_its_maker_nothing)
{
	struct tshare_options options = draft_options;
	size_t before = open_descriptors();
	struct tshare_region *region;

	options.lifetime = TSHARE_LIFETIME_PERSIST;
	CHECK(!tshare_region_create(ctx, "lasting", 1, NULL, 0, &options, &region));
	CHECK(!tshare_region_finish(region, 0));
	tshare_region_unref(region);
	CHECK(open_descriptors() == before);
	CHECK(!tshare_ctx_unlink(ctx, "lasting"));
}

TEST(a_finished_draft_leaves_no_pipe)
{
	struct tshare_region *region;
	char path[600];

	CHECK(!tshare_region_create(ctx, "piped", 1, NULL, 0, &draft_options, &region));
	snprintf(path, sizeof(path), "%s/maker", next_of("piped"));
	CHECK(exists_at(path));
	CHECK(!tshare_region_finish(region, 0));
	snprintf(path, sizeof(path), "%s/maker", home_of("piped"));
	CHECK(!exists_at(path));
	CHECK(!exists_at(next_of("piped")));
	CHECK(has_file("piped"));
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, "piped"));
}

/* Other processes look for the draft, to unlink or to list it, at any moment. */
TEST(a_finish_that_is_refused_leaves_the_draft_in_its_place)
{
	struct tshare_options options = draft_options;
	struct tshare_region *old = new_victim("kept"), *draft, *imported;
	char events[4096];
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	options.flags |= TSHARE_REPLACE;
	CHECK(!tshare_region_create(ctx, "kept", 1, NULL, 0, &options, &draft));
	CHECK(watch >= 0 && inotify_add_watch(watch, next_of("kept"), IN_MOVE) >= 0);
	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(draft), 0, &imported));
	CHECK(tshare_region_finish(imported, 0) == -EEXIST);
	CHECK(read(watch, events, sizeof(events)) < 0 && errno == EAGAIN);
	CHECK(!tshare_region_finish(draft, TSHARE_REPLACE));
	CHECK(read(watch, events, sizeof(events)) > 0);
	CHECK(!close(watch));
	tshare_region_unref(imported);
	tshare_region_unref(draft);
	tshare_region_unref(old);
	CHECK(!tshare_ctx_unlink(ctx, "kept"));
}

TEST(a_killed_users_name_is_removed)
{
	char name[] = "used";

	leave_made(name, 0, TSHARE_LIFETIME_USERS);
	CHECK(has_file(name));
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!has_home(name));
}

static int use_and_exit(void *name)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.lifetime = TSHARE_LIFETIME_USERS,
	};
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, name, 1, NULL, 0, &options, &region))
		return 1;
	exit(0);
}

TEST(the_last_user_removes_the_files)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.lifetime = TSHARE_LIFETIME_USERS,
	};
	struct tshare_region *region;
	char name[] = "last";

	CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &options, &region));
	CHECK(has_file(name));
	tshare_region_unref(region);
	CHECK(!has_home(name));
	CHECK(!in_child(use_and_exit, name));
	CHECK(!has_home(name));
}

/* Openers that wait for a draft */

struct opener {
	const char *name;
	int err;
	pthread_t thread;
	atomic_int id;
	struct tshare_region *other_than;
};

static void *run_opener(void *data)
{
	struct opener *opener = data;
	/* Long enough that nothing ends for it. */
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.timeout_ns = INT64_C(20000000000),
		.other_than = opener->other_than,
	};
	struct tshare_region *region;

	atomic_store(&opener->id, gettid());
	opener->err = tshare_region_open(ctx, opener->name, &options, &region);
	return NULL;
}

static void start_opener(struct opener *opener)
{
	CHECK(!pthread_create(&opener->thread, NULL, run_opener, opener));
}

static int error_of(struct opener *opener)
{
	CHECK(!pthread_join(opener->thread, NULL));
	return opener->err;
}

/*
 * Returns when the opener waits for the draft's maker, or after some seconds. It opens the
 * pipe before, too, but doesn't sleep with it.
 */
static void await_opener_of_pipe(struct opener *opener)
{
	char path[300], byte;
	int fd, tries;

	snprintf(path, sizeof(path), "%s/maker", next_of(opener->name));
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(fd >= 0);
	/* Without a writer the pipe is at its end, with one it is empty. */
	for (tries = 0; tries < 3000; tries++) {
		if (is_asleep(atomic_load(&opener->id)) && read(fd, &byte, 1))
			break;
		usleep(1000);
	}
	close(fd);
}

struct maker {
	const char *name;
	struct steps steps;
};

static int draft_and_die_when_told(void *data)
{
	const struct maker *maker = data;
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !await_byte(maker->steps.ends[0]) ||
	    tshare_region_create(own, maker->name, 1, NULL, 0, &draft_options, &region) ||
	    !send_byte(maker->steps.ends[0]) || !await_byte(maker->steps.ends[0]))
		return 1;
	kill(getpid(), SIGKILL);
	return 2;
}

TEST(an_open_that_began_before_the_draft_ends_when_its_maker_is_killed)
{
	struct opener opener = { .name = "begun" };
	struct maker maker = { .name = opener.name };
	int status;
	pid_t pid;

	CHECK(steps_open(&maker.steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(draft_and_die_when_told(&maker));
	start_opener(&opener);
	usleep(50000);
	CHECK(send_byte(maker.steps.ends[1]));
	CHECK(await_byte(maker.steps.ends[1]));
	await_opener_of_pipe(&opener);
	CHECK(send_byte(maker.steps.ends[1]));
	CHECK(error_of(&opener) == -ENOENT);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	/* The pipe may have been closed before the lock was released. */
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	steps_close(&maker.steps);
}

TEST(an_open_ends_when_another_context_unlinks_the_draft)
{
	struct opener opener = { .name = "unlinked" };
	struct tshare_region *region;
	struct tshare_ctx *other;

	CHECK(!tshare_ctx_new(NULL, &other));
	CHECK(!tshare_region_create(ctx, opener.name, 1, NULL, 0, &draft_options, &region));
	start_opener(&opener);
	await_opener_of_pipe(&opener);
	usleep(50000);
	CHECK(!tshare_ctx_unlink(other, opener.name));
	CHECK(error_of(&opener) == -ENOENT);
	tshare_ctx_unref(other);
	tshare_region_unref(region);
}

TEST(an_open_ends_when_the_draft_is_closed)
{
	struct opener opener = { .name = "shut" };
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, opener.name, 1, NULL, 0, &draft_options, &region));
	start_opener(&opener);
	await_opener_of_pipe(&opener);
	tshare_region_unref(region);
	CHECK(error_of(&opener) == -ENOENT);
	CHECK(!exists_at(next_of(opener.name)));
}

TEST(an_open_ends_when_the_child_is_killed_that_a_draft_was_left_to)
{
	struct opener opener = { .name = "inherited" };
	struct tshare_region *region;
	struct steps steps;
	int status;
	pid_t pid;

	CHECK(steps_open(&steps));
	CHECK(!tshare_region_create(ctx, opener.name, 1, NULL, 0, &draft_options, &region));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(steps.ends[1]);
		_exit(await_byte(steps.ends[0]));
	}
	tshare_region_unref(region);
	start_opener(&opener);
	await_opener_of_pipe(&opener);
	CHECK(!kill(pid, SIGKILL));
	CHECK(error_of(&opener) == -ENOENT);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!exists_at(next_of(opener.name)));
	steps_close(&steps);
}

static int make_and_wait(int end)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, "old", 1, NULL, 0, NULL, &region))
		return 1;
	send_byte(end);
	return !await_byte(end);
}

/* The home of the name stays where it is, since the draft has its claim there. */
static void check_an_open_of_another_region(bool (*unlink_old)(pid_t maker))
{
	struct opener opener = { .name = "old" };
	struct tshare_options options = draft_options;
	struct tshare_region *draft;
	struct steps steps;
	pid_t pid;

	CHECK(steps_open(&steps));
	pid = fork();
	if (!pid)
		_exit(make_and_wait(steps.ends[0]));
	CHECK(await_byte(steps.ends[1]));
	CHECK(!tshare_region_open(ctx, opener.name, NULL, &opener.other_than));
	options.flags |= TSHARE_REPLACE;
	CHECK(!tshare_region_create(ctx, opener.name, 1, NULL, 0, &options, &draft));
	start_opener(&opener);
	while (!is_asleep(atomic_load(&opener.id)))
		usleep(1000);
	CHECK(unlink_old(pid));
	await_opener_of_pipe(&opener);
	tshare_region_unref(draft);
	CHECK(error_of(&opener) == -ENOENT);
	tshare_region_unref(opener.other_than);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	steps_close(&steps);
}

static bool unlink_by_name(pid_t unused)
{
	(void)unused;
	return !tshare_ctx_unlink(ctx, "old");
}

static bool kill_and_look(pid_t maker)
{
	return !kill(maker, SIGKILL) && waitpid(maker, NULL, 0) == maker &&
	       !tshare_ctx_list(ctx, ignore, NULL);
}

TEST(an_open_of_another_region_ends_with_the_draft_when_the_old_one_was_unlinked)
{
	check_an_open_of_another_region(unlink_by_name);
	check_an_open_of_another_region(kill_and_look);
}

/* More events than the kernel keeps for a process that doesn't read them. */
static bool overflow_inotify(void)
{
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	char paths[2][300];
	int i, limit = 0;

	if (file && fscanf(file, "%d", &limit) != 1)
		limit = 0;
	if (file)
		fclose(file);
	if (limit < 1 || limit > 1 << 17)
		return false;
	for (i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/events-%d", directory, i);
	/* Each change is two events, and differs from the one before. */
	for (i = 0; i <= limit; i++)
		if (mknod(paths[i % 2], S_IFREG | 0600, 0) || unlink(paths[i % 2]))
			return false;
	return true;
}

static int open_patiently(void *name)
{
	static const struct tshare_open_options options = {
		.size = sizeof(options),
		.timeout_ns = INT64_C(20000000000),
	};
	struct tshare_region *region;
	struct tshare_ctx *own;

	return tshare_ctx_new(NULL, &own) || tshare_region_open(own, name, &options, &region);
}

TEST(an_open_that_has_lost_events_looks_again)
{
	char name[] = "overflow";
	struct tshare_region *region = NULL;
	bool overflown;
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(open_patiently(name));
	usleep(100000);
	CHECK(!kill(pid, SIGSTOP));
	overflown = overflow_inotify();
	region = new_region(name);
	CHECK(!kill(pid, SIGCONT));
	CHECK(waitpid(pid, &status, 0) == pid);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
	if (!overflown)
		SKIP("inotify has no limit that can be reached");
	CHECK(!status);
}

/* Other users */

static int look_at_a_draft(void *data)
{
	const char *name = data;
	struct tshare_region *region;
	struct tshare_ctx *own;
	char path[600];

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 1;
	if (tshare_region_open(own, name, NULL, &region) != -EINPROGRESS)
		return 2;
	snprintf(path, sizeof(path), "%s/maker", next_of(name));
	if (open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0)
		return 3;
	return tshare_ctx_unlink(own, name) == -EPERM ? 0 : 4;
}

TEST(another_user_learns_of_a_draft_and_can_not_pose_as_its_maker)
{
	char name[] = "users";
	struct tshare_region *region;

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 01777));
	CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &draft_options, &region));
	CHECK(!in_child(look_at_a_draft, name));
	CHECK(!tshare_region_finish(region, 0));
	CHECK(!chmod(directory, 0700));
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
}

static int create_in_place_of_a_draft(const char *name, const char *expected)
{
	static const uint32_t flags[] = { 0, TSHARE_DRAFT, TSHARE_DRAFT | TSHARE_REPLACE };
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;
	struct tshare_ctx *own;
	size_t i;

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 1;
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		options.flags = flags[i];
		if (tshare_region_create(own, name, 1, NULL, 0, &options, &region) != -EEXIST ||
		    !error_says(expected))
			return 2;
	}
	return 0;
}

static int find_a_draft(void *name)
{
	return create_in_place_of_a_draft(name, "draft");
}

static int find_what_is_stuck(void *name)
{
	return create_in_place_of_a_draft(name, "only its user can remove it");
}

TEST(another_user_learns_that_a_draft_it_may_not_read_is_a_dead_makers)
{
	struct tshare_options options = draft_options;
	struct tshare_region *region;
	char name[] = "secret";

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 01777));
	options.mode = 0600;
	CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &options, &region));
	CHECK(!in_child(find_a_draft, name));
	tshare_region_unref(region);
	leave_made(name, TSHARE_DRAFT, TSHARE_LIFETIME_MAKER);
	CHECK(!in_child(find_what_is_stuck, name));
	CHECK(!chmod(directory, 0700));
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!exists_at(next_of(name)));
}

static int try_to_replace(void *data)
{
	const char *name = data;
	struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_REPLACE };
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 1;
	if (tshare_region_create(own, name, 1, NULL, 0, &options, &region) != -EPERM)
		return 2;
	options.flags |= TSHARE_DRAFT;
	return tshare_region_create(own, name, 1, NULL, 0, &options, &region) == -EPERM ? 0 : 3;
}

TEST(another_user_can_not_replace_a_region_where_the_directory_would_let_it)
{
	char name[] = "others";
	struct tshare_region *region;

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 0777));
	region = new_region(name);
	CHECK(!in_child(try_to_replace, name));
	CHECK(!chmod(directory, 0700));
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
}

TEST(a_directory_that_is_no_regions_is_not_replaced)
{
	struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_REPLACE };
	struct tshare_region *region;
	char path[600];

	CHECK(!mkdir(home_of("not-ours"), 0755));
	snprintf(path, sizeof(path), "%s/else", home_of("not-ours"));
	CHECK(!mkdir(path, 0755));
	CHECK(tshare_region_create(ctx, "not-ours", 1, NULL, 0, &options, &region) == -EEXIST);
	CHECK(!rmdir(path));
	CHECK(!rmdir(home_of("not-ours")));
}

TEST(a_draft_that_was_half_removed_is_not_waited_for)
{
	struct opener opener = { .name = "half" };
	struct tshare_region *region;
	char path[600];

	CHECK(!tshare_region_create(ctx, opener.name, 1, NULL, 0, &draft_options, &region));
	start_opener(&opener);
	await_opener_of_pipe(&opener);
	/* A process that unlinks the name is killed after this step. */
	snprintf(path, sizeof(path), "%s/draft", next_of(opener.name));
	CHECK(!unlink(path));
	CHECK(open_error(opener.name) == -ENOENT);
	CHECK(error_of(&opener) == -ENOENT);
	CHECK(!exists_at(next_of(opener.name)));
	tshare_region_unref(region);
}

TEST(another_file_in_place_of_the_pipe_is_no_maker)
{
	char name[] = "posed", path[600];
	struct tshare_region *region;

	CHECK(!mkdir(home_of(name), 0755) && !mkdir(next_of(name), 0755));
	snprintf(path, sizeof(path), "%s/maker", next_of(name));
	CHECK(!symlink("/dev/null", path));
	CHECK(open_error(name) == -ENOENT);
	CHECK(!unlink(path));
	CHECK(!mkdir(path, 0755));
	CHECK(open_error(name) == -ENOENT);
	CHECK(tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region) == -EEXIST);
	CHECK(!rmdir(path));
	tshare_region_unref(new_region(name));
	CHECK(!tshare_ctx_unlink(ctx, name));
}

static void check_blocked(const char *name, const char *path)
{
	struct tshare_options replacing = { .size = sizeof(replacing), .flags = TSHARE_REPLACE };
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region) == -EEXIST);
	CHECK(error_says(path) && error_says("which is no region's; remove that"));
	CHECK(tshare_region_create(ctx, name, 1, NULL, 0, &replacing, &region) == -EEXIST);
	CHECK(error_says(path) && error_says("which is no region's; remove that"));
	CHECK(tshare_region_create(ctx, name, 1, NULL, 0, &draft_options, &region) == -EEXIST);
	CHECK(error_says(path) && error_says("which is no region's; remove that"));
}

TEST(an_error_names_what_is_no_regions_and_blocks_a_name)
{
	char path[600];

	CHECK(!mkdir(home_of("blocked"), 0755) && !mkdir(next_of("blocked"), 0755));
	snprintf(path, sizeof(path), "%s/else", next_of("blocked"));
	CHECK(!mkdir(path, 0755));
	check_blocked("blocked", home_of("blocked"));
	CHECK(!rmdir(path) && !rmdir(next_of("blocked")));

	CHECK(!mknod(next_of("blocked"), S_IFREG | 0600, 0));
	check_blocked("blocked", home_of("blocked"));
	CHECK(!unlink(next_of("blocked")) && !rmdir(home_of("blocked")));

	CHECK(!mknod(home_of("blocked"), S_IFREG | 0600, 0));
	check_blocked("blocked", home_of("blocked"));
	CHECK(!unlink(home_of("blocked")));
}

TEST(an_error_names_what_is_no_regions_and_keeps_a_region_from_being_replaced)
{
	struct tshare_options replacing = { .size = sizeof(replacing), .flags = TSHARE_REPLACE };
	struct tshare_region *old = new_victim("kept"), *region;

	CHECK(!mknod(next_of("kept"), S_IFREG | 0600, 0));
	CHECK(tshare_region_create(ctx, "kept", 1, NULL, 0, &replacing, &region) == -EEXIST);
	CHECK(error_says(next_of("kept")) && error_says("which is no region's; remove that"));
	CHECK(!open_error("kept"));
	CHECK(!unlink(next_of("kept")));
	CHECK(!tshare_region_unlink(old));
	tshare_region_unref(old);
}

TEST(a_link_in_the_place_of_a_draft_is_not_followed)
{
	struct tshare_region *target = new_victim("target"), *region;

	CHECK(!mkdir(home_of("link"), 0755) && !symlink("../tshare.target", next_of("link")));
	CHECK(open_error("link") == -ENOENT);
	CHECK(tshare_region_create(ctx, "link", 1, NULL, 0, NULL, &region) == -EEXIST);
	CHECK(has_file("target"));
	CHECK(!unlink(next_of("link")) && !rmdir(home_of("link")));
	tshare_region_unref(target);
	CHECK(!tshare_ctx_unlink(ctx, "target"));
}

/* Strangers, where the directory is everybody's */

struct step {
	const char *name;
	uint32_t flags;
};

static int replace_as_the_owner(void *data)
{
	const struct step *step = data;
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = step->flags,
		.lifetime = TSHARE_LIFETIME_PERSIST,
	};
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!become(USER_ONE) || tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, step->name, 1, NULL, 0, &options, &region))
		return 1;
	return step->flags & TSHARE_DRAFT ? tshare_region_finish(region, TSHARE_REPLACE) : 0;
}

static bool is_denied(const char *path)
{
	return mkdir(path, 0777) && errno == EACCES && mknod(path, S_IFREG | 0666, 0) &&
	       errno == EACCES && symlink("/", path) && errno == EACCES;
}

/* All that the protocol has names for, and what an earlier one had. */
static int block_as_a_stranger(void *data)
{
	static const char *const entries[] = { "next", "next/draft", "new", "region", "maker" };
	const char *name = data;
	char path[600];
	size_t i;

	if (!become(USER_TWO))
		return 1;
	for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", home_of(name), entries[i]);
		if (strcmp(entries[i], "region") && strcmp(entries[i], "next/draft") &&
		    !is_denied(path))
			return 2;
		if (!unlink(path))
			return 3;
	}
	snprintf(path, sizeof(path), "%s/.tshare.%s.next", directory, name);
	if (mkdir(path, 0755) || strlen(path) + 2 > sizeof(path))
		return 4;
	strcat(path, "/x");
	if (mkdir(path, 0755) || !rename(home_of(name), hidden_home()) || !rmdir(home_of(name)))
		return 5;
	return 0;
}

static int remove_the_block(void *data)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/.tshare.%s.next/x", directory, (const char *)data);
	if (rmdir(path))
		return 1;
	path[strlen(path) - 2] = '\0';
	return rmdir(path) ? 2 : 0;
}

TEST(a_stranger_can_not_keep_an_owner_from_replacing_its_region)
{
	char name[] = "owned";
	struct step steps[] = {
		{ name, 0 },
		{ name, TSHARE_REPLACE },
		{ name, TSHARE_REPLACE | TSHARE_DRAFT },
	};

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 01777));
	CHECK(!in_child(replace_as_the_owner, &steps[0]));
	CHECK(!in_child(block_as_a_stranger, name));
	CHECK(!in_child(replace_as_the_owner, &steps[1]));
	CHECK(!in_child(replace_as_the_owner, &steps[2]));
	CHECK(!in_child(remove_the_block, name));
	CHECK(!chmod(directory, 0700));
	CHECK(!tshare_ctx_unlink(ctx, name));
}

int main(void)
{
	return shm_main();
}
