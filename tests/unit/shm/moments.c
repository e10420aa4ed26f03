// SPDX-License-Identifier: MIT
/*
 * What happens between two steps of a call: this program has a renameat(), a
 * posix_fallocate() and a clock_gettime() of its own, which the library calls in place of
 * the C library's.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../shm.h"

/* What happens before the next allocation of a file, renaming, or look at the clock. */
static void (*before_allocation)(void), (*before_renaming)(void), (*before_clock)(void);

static int allocation_error; /* of the next one, or 0 */

static void happen(void (**event)(void))
{
	void (*now)(void) = *event;

	*event = NULL;
	if (now)
		now();
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

int clock_gettime(clockid_t clock, struct timespec *now)
{
	happen(&before_clock);
	return syscall(SYS_clock_gettime, clock, now);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	happen(&before_renaming);
	return syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
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

/* After the claim to the name. */
static void die_at_the_next_renaming(void)
{
	before_renaming = fork_and_die;
}

static void check_the_name_is_free_after_its_makers_death(uint32_t lifetime)
{
	const struct tshare_options options = { .size = sizeof(options), .lifetime = lifetime };
	struct tshare_region *region;
	int status;
	pid_t pid;

	CHECK(steps_open(&steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		before_renaming = die_at_the_next_renaming;
		_exit(tshare_region_create(ctx, "killed", 1, NULL, 0, &options, &region));
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
	CHECK(await_byte(steps.ends[1]));
	before_renaming = NULL;
	region = new_region("killed");
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
	CHECK(send_byte(steps.ends[1]));
	steps_close(&steps);
}

TEST(a_child_that_was_forked_while_a_region_was_named_does_not_block_its_name)
{
	check_the_name_is_free_after_its_makers_death(TSHARE_LIFETIME_MAKER);
}

TEST(a_child_that_was_forked_while_a_region_that_persists_was_named_does_not_block_its_name)
{
	check_the_name_is_free_after_its_makers_death(TSHARE_LIFETIME_PERSIST);
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

TEST(a_draft_that_was_seen_once_and_is_gone_is_not_waited_for)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_DRAFT };
	const struct tshare_open_options patient = {
		.size = sizeof(patient),
		.timeout_ns = INT64_C(20000000000),
	};
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, "seen", 1, NULL, 0, &options, &draft));
	before_clock = close_draft;
	CHECK(tshare_region_open(ctx, "seen", &patient, &region) == -ENOENT);
	CHECK(!before_clock);
}

int main(void)
{
	return shm_main();
}
