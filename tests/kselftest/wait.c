// SPDX-License-Identifier: GPL-2.0-only
/* OPEN that sleeps until a name leads to a region. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "harness.h"
#include "proc.h"

#define SECOND 1000000000LL

static struct tshare_open open_args(const char *name, __s64 deadline_ns, __u64 other_than)
{
	struct tshare_open args = { .deadline_ns = deadline_ns, .other_than = other_than };

	snprintf(args.name, sizeof(args.name), "%s", name);
	return args;
}

static int do_open(int dev, struct tshare_open *args)
{
	int err = xioctl(dev, TSHARE_IOCTL_OPEN, args);

	return err ? err : args->fd;
}

static int open_waiting(int dev, const char *name, __s64 deadline_ns, __u64 other_than)
{
	struct tshare_open args = open_args(name, deadline_ns, other_than);

	return do_open(dev, &args);
}

/* A process that waits for a name, in memory that it shares with the test. */
struct waiter {
	pid_t pid;
	int dev;
	int result;
	__u64 id;
	struct tshare_open args;
};

static struct waiter *new_waiter(int dev, const char *name, __s64 deadline_ns, __u64 other_than)
{
	struct waiter *waiter = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (waiter == MAP_FAILED)
		abort();
	waiter->dev = dev;
	waiter->args = open_args(name, deadline_ns, other_than);
	return waiter;
}

/* A test that fails ends its waiters, which would go on for ever. */
static void start(struct waiter *waiter)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		waiter->result = do_open(waiter->dev, &waiter->args);
		waiter->id = waiter->args.id;
		_exit(0);
	}
	waiter->pid = pid;
}

/* Whether the process sleeps in an ioctl(). */
static bool asleep(pid_t pid)
{
	char path[64], line[256] = "";
	FILE *file;
	int nr = -1;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file) || sscanf(line, "%d ", &nr) != 1)
		nr = -1;
	fclose(file);
	return nr == SYS_ioctl;
}

static bool wait_until_asleep(pid_t pid)
{
	int tries;

	for (tries = 0; tries < 10000; tries++) {
		if (asleep(pid))
			return true;
		usleep(1000);
	}
	return false;
}

/* The waiter, asleep. */
static struct waiter *start_waiter(int dev, const char *name, __s64 deadline_ns, __u64 other_than)
{
	struct waiter *waiter = new_waiter(dev, name, deadline_ns, other_than);

	start(waiter);
	return wait_until_asleep(waiter->pid) ? waiter : NULL;
}

/*
 * The result of the waiter's call. The test's own call that ends it wakes the waiter before it
 * returns, so a waiter that sleeps then sleeps for ever, which is -EDEADLK.
 */
static int result_of(struct waiter *waiter)
{
	int status;
	pid_t pid;

	while (!(pid = waitpid(waiter->pid, &status, WNOHANG))) {
		if (state_of(waiter->pid) == 'S' && asleep(waiter->pid))
			return -EDEADLK;
		usleep(1000);
	}
	return pid == waiter->pid && !status ? waiter->result : -ECHILD;
}

/* Whether it still waits a while later. */
static bool still_waits(const struct waiter *waiter)
{
	usleep(100000);
	return asleep(waiter->pid) && !waitpid(waiter->pid, NULL, WNOHANG);
}

/* How often it has gone to sleep; -1 if that is unknown. */
static long sleeps_of(const struct waiter *waiter)
{
	char path[64], line[256];
	long count = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", waiter->pid);
	file = fopen(path, "re");
	while (file && count < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "voluntary_ctxt_switches: %ld", &count);
	if (file)
		fclose(file);
	return count;
}

static bool kill_and_reap(pid_t pid)
{
	return !kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid;
}

FIXTURE(wait)
{
	int dev;
	int other;
	struct counters before;
};

FIXTURE_SETUP(wait)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->other = open_device();
	ASSERT_LE(0, self->other);
	self->before = count_all();
}

FIXTURE_TEARDOWN(wait)
{
	close(self->other);
	close(self->dev);
}

TEST_F(wait, for_a_name_that_is_there_returns_at_once)
{
	__u64 id = id_of(self->dev, create(self->dev, PAGE, "name"));

	EXPECT_EQ(id, id_of(self->dev, open_waiting(self->other, "name", FOR_EVER, 0)));
	EXPECT_EQ(id, id_of(self->dev, open_waiting(self->other, "name", 1, 0)));
	EXPECT_EQ(id, id_of(self->dev, open_waiting(self->other, "name", FOR_EVER, id + 1)));
}

TEST_F(wait, ends_when_the_region_is_created)
{
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	__u64 id;

	ASSERT_NE(NULL, waiter);
	id = id_of(self->dev, create(self->dev, PAGE, "name"));
	EXPECT_LE(0, result_of(waiter));
	EXPECT_EQ(id, waiter->id);
}

TEST_F(wait, ends_when_the_draft_is_finished)
{
	int fd = create_draft(self->dev, "name");
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);

	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, finish(self->dev, fd));
	EXPECT_LE(0, result_of(waiter));
	EXPECT_EQ(id_of(self->dev, fd), waiter->id);
}

TEST_F(wait, goes_on_when_a_draft_is_created)
{
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	int fd;

	ASSERT_NE(NULL, waiter);
	fd = create_draft(self->dev, "name");
	EXPECT_TRUE(still_waits(waiter));
	ASSERT_EQ(0, finish(self->dev, fd));
	EXPECT_LE(0, result_of(waiter));
}

TEST_F(wait, for_a_draft_is_enoent_when_it_is_unlinked)
{
	struct waiter *waiter;

	ASSERT_LE(0, create_draft(self->dev, "name"));
	waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, unlink_name(self->other, "name"));
	EXPECT_EQ(-ENOENT, result_of(waiter));
}

/* A child that makes a draft when told so, and waits to be killed. */
static pid_t start_maker(int *go)
{
	int pipes[2];
	pid_t pid;
	char byte;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (!pid) {
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) == 1 && create_draft(open_device(), "name") >= 0)
			pause();
		_exit(1);
	}
	close(pipes[0]);
	*go = pipes[1];
	return pid;
}

static bool wait_for_draft(int dev)
{
	int tries;

	for (tries = 0; tries < 10000; tries++) {
		if (open_name(dev, "name", 0) == -EINPROGRESS)
			return true;
		usleep(1000);
	}
	return false;
}

TEST_F(wait, for_a_draft_is_enoent_when_its_maker_is_killed)
{
	struct waiter *waiter;
	pid_t maker;
	int go;

	maker = start_maker(&go);
	ASSERT_LT(0, maker);
	ASSERT_EQ(1, write(go, "", 1));
	ASSERT_TRUE(wait_for_draft(self->dev));
	waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	ASSERT_NE(NULL, waiter);
	ASSERT_TRUE(kill_and_reap(maker));
	EXPECT_EQ(-ENOENT, result_of(waiter));
}

TEST_F(wait, that_began_before_the_draft_is_enoent_when_its_maker_is_killed)
{
	struct waiter *waiter;
	pid_t maker;
	int go;

	maker = start_maker(&go);
	ASSERT_LT(0, maker);
	waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(1, write(go, "", 1));
	ASSERT_TRUE(wait_for_draft(self->dev));
	EXPECT_TRUE(still_waits(waiter));
	ASSERT_TRUE(kill_and_reap(maker));
	EXPECT_EQ(-ENOENT, result_of(waiter));
}

/* With one processor, on which the test goes first, the waiter looks when both are done. */
static bool outrun_others(void)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(sched_getcpu(), &first);
	return !sched_setaffinity(0, sizeof(first), &first) &&
	       !sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param);
}

TEST_F(wait, for_a_draft_goes_on_when_it_is_finished_and_unlinked)
{
	struct waiter *waiter;
	int draft;

	ASSERT_TRUE(outrun_others());
	draft = create_draft(self->dev, "name");
	waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, finish(self->dev, draft));
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_TRUE(still_waits(waiter));
	ASSERT_LE(0, create(self->dev, PAGE, "name"));
	EXPECT_LE(0, result_of(waiter));
}

TEST_F(wait, for_the_next_draft_is_enoent_when_that_is_unlinked)
{
	struct waiter *waiter;
	int draft;

	ASSERT_TRUE(outrun_others());
	draft = create_draft(self->dev, "name");
	waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, finish(self->dev, draft));
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	ASSERT_LE(0, create_draft(self->dev, "name"));
	EXPECT_TRUE(still_waits(waiter));
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_EQ(-ENOENT, result_of(waiter));
}

/* Else many waiters and a draft, which anybody may make, would keep others from the module. */
TEST_F(wait, is_not_woken_by_the_draft_that_it_waits_for_then)
{
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	long sleeps;

	ASSERT_NE(NULL, waiter);
	ASSERT_TRUE(still_waits(waiter));
	sleeps = sleeps_of(waiter);
	ASSERT_LT(0, sleeps);
	ASSERT_LE(0, create_draft(self->dev, "name"));
	EXPECT_TRUE(still_waits(waiter));
	EXPECT_EQ(sleeps, sleeps_of(waiter));
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_EQ(-ENOENT, result_of(waiter));
}

TEST_F(wait, for_a_name_without_a_draft_goes_on)
{
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);

	ASSERT_NE(NULL, waiter);
	EXPECT_TRUE(still_waits(waiter));
	EXPECT_TRUE(kill_and_reap(waiter->pid));
}

TEST_F(wait, is_etimedout_when_the_time_is_up)
{
	__u64 id = id_of(self->dev, create(self->dev, PAGE, "finished"));

	ASSERT_LE(0, create_draft(self->dev, "draft"));
	EXPECT_EQ(-ETIMEDOUT, open_waiting(self->other, "name", 1, 0));
	EXPECT_EQ(-ETIMEDOUT, open_waiting(self->other, "name", deadline_in(SECOND / 100), 0));
	EXPECT_EQ(-ETIMEDOUT, open_waiting(self->other, "draft", deadline_in(SECOND / 100), 0));
	EXPECT_EQ(-ETIMEDOUT, open_waiting(self->other, "finished", deadline_in(SECOND / 100), id));
	/* It looks once. */
	EXPECT_LE(0, open_waiting(self->other, "finished", 1, 0));
}

TEST_F(wait, without_a_timeout_returns_the_reason)
{
	__u64 id = id_of(self->dev, create(self->dev, PAGE, "finished"));

	ASSERT_LE(0, create_draft(self->dev, "draft"));
	EXPECT_EQ(-ENOENT, open_waiting(self->other, "name", 0, id));
	EXPECT_EQ(-EINPROGRESS, open_waiting(self->other, "draft", 0, id));
	EXPECT_EQ(-EAGAIN, open_waiting(self->other, "finished", 0, id));
	EXPECT_LE(0, open_waiting(self->other, "finished", 0, id + 1));
}

TEST_F(wait, until_a_negative_time_is_einval)
{
	ASSERT_LE(0, create(self->dev, PAGE, "name"));
	EXPECT_EQ(-EINVAL, open_waiting(self->other, "name", -1, 0));
	EXPECT_EQ(-EINVAL, open_waiting(self->other, "name", INT64_MIN, 0));
}

#define TIME_OFFSETS "/proc/self/timens_offsets"

static int wait_for_10_ms(void *arg)
{
	/* To the kernel's own clock that is in a million seconds, or has been. */
	alarm(60);
	return open_waiting(*(int *)arg, "name", deadline_in(SECOND / 100), 0) != -ETIMEDOUT;
}

static int wait_in_a_later_time(void *arg)
{
	if (unshare(CLONE_NEWTIME) || !write_file(TIME_OFFSETS, "monotonic 1000000 0"))
		return 2;
	return in_child(wait_for_10_ms, arg);
}

TEST_F(wait, until_a_time_of_the_callers_time_namespace)
{
	if (access(TIME_OFFSETS, F_OK))
		SKIP(return, "no time namespaces");
	EXPECT_EQ(0, in_child(wait_in_a_later_time, &self->other));
}

TEST_F(wait, by_id_is_einval)
{
	struct tshare_open args = { .id = id_of(self->dev, create(self->dev, PAGE, NULL)) };

	args.deadline_ns = 1;
	EXPECT_EQ(-EINVAL, do_open(self->dev, &args));
	args.deadline_ns = FOR_EVER;
	EXPECT_EQ(-EINVAL, do_open(self->dev, &args));
	args.deadline_ns = 0;
	args.other_than = 1;
	EXPECT_EQ(-EINVAL, do_open(self->dev, &args));
	args.other_than = 0;
	args.draft = 1;
	EXPECT_EQ(-EINVAL, do_open(self->dev, &args));
	args.draft = 0;
	EXPECT_LE(0, do_open(self->dev, &args));
}

TEST_F(wait, that_goes_on_without_time_is_einval)
{
	struct tshare_open args = open_args("name", 0, 0);

	ASSERT_LE(0, create(self->dev, PAGE, "name"));
	args.draft = 1;
	EXPECT_EQ(-EINVAL, do_open(self->dev, &args));
}

TEST_F(wait, for_a_region_that_may_not_be_opened_is_eacces)
{
	struct waiter *waiter = new_waiter(self->other, "name", FOR_EVER, 0);

	ASSERT_TRUE(act_as_user(USER_A));
	start(waiter);
	ASSERT_TRUE(act_as_root());
	ASSERT_TRUE(wait_until_asleep(waiter->pid));
	ASSERT_LE(0, create(self->dev, PAGE, "name"));
	EXPECT_EQ(-EACCES, result_of(waiter));
}

TEST_F(wait, for_a_name_in_another_namespace_goes_on)
{
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);

	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	ASSERT_LE(0, create(open_device(), PAGE, "name"));
	EXPECT_TRUE(still_waits(waiter));
	EXPECT_TRUE(kill_and_reap(waiter->pid));
}

static long switches(pid_t pid)
{
	char path[64], line[128];
	long count = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1)
			break;
	if (file)
		fclose(file);
	return count;
}

TEST_F(wait, is_not_woken_by_other_names)
{
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	const int times = rounds(1000);
	char name[16];
	long before;
	int i;

	ASSERT_NE(NULL, waiter);
	usleep(100000);
	before = switches(waiter->pid);
	ASSERT_LE(0, before);
	for (i = 0; i < times; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		ASSERT_EQ(0, close(create(self->dev, PAGE, name)));
		ASSERT_EQ(0, unlink_name(self->dev, name));
	}
	EXPECT_EQ(before, switches(waiter->pid));
	EXPECT_TRUE(kill_and_reap(waiter->pid));
}

TEST_F(wait, that_is_killed_leaves_nothing_behind)
{
	struct waiter *waiter;
	int i;

	for (i = 0; i < 20; i++) {
		waiter = start_waiter(self->other, "name", FOR_EVER, 0);
		ASSERT_NE(NULL, waiter);
		ASSERT_TRUE(kill_and_reap(waiter->pid));
		ASSERT_EQ(0, close(create(self->dev, PAGE, "name")));
		ASSERT_EQ(0, unlink_name(self->dev, "name"));
		EXPECT_SAME_COUNTERS(self->before);
	}
}

/* Waiting for another region than the one that has the name. */
FIXTURE(other_than)
{
	int dev;
	int other;
	int old;
	__u64 old_id;
	struct waiter *waiter;
};

FIXTURE_SETUP(other_than)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->other = open_device();
	ASSERT_LE(0, self->other);
	self->old = create(self->dev, PAGE, "name");
	self->old_id = id_of(self->dev, self->old);
	ASSERT_NE(0, self->old_id);
	self->waiter = start_waiter(self->other, "name", FOR_EVER, self->old_id);
	ASSERT_NE(NULL, self->waiter);
}

FIXTURE_TEARDOWN(other_than)
{
	/* It has the files, too, and with them the name. */
	kill_and_reap(self->waiter->pid);
	close(self->old);
	close(self->other);
	close(self->dev);
}

TEST_F(other_than, ends_when_the_region_is_replaced)
{
	int fd = create_flags(self->dev, PAGE, "name", TSHARE_CREATE_REPLACE);

	ASSERT_LE(0, fd);
	EXPECT_LE(0, result_of(self->waiter));
	EXPECT_EQ(id_of(self->dev, fd), self->waiter->id);
}

TEST_F(other_than, ends_when_the_successor_is_finished)
{
	int fd = create_flags(self->dev, PAGE, "name",
			      TSHARE_CREATE_REPLACE | TSHARE_CREATE_DRAFT);

	ASSERT_LE(0, fd);
	EXPECT_TRUE(still_waits(self->waiter));
	ASSERT_EQ(0, finish_replacing(self->dev, fd));
	EXPECT_LE(0, result_of(self->waiter));
	EXPECT_EQ(id_of(self->dev, fd), self->waiter->id);
}

TEST_F(other_than, goes_on_when_the_successor_ends)
{
	int fd = create_flags(self->dev, PAGE, "name",
			      TSHARE_CREATE_REPLACE | TSHARE_CREATE_DRAFT);

	ASSERT_EQ(0, unlink_id(self->dev, id_of(self->dev, fd)));
	EXPECT_TRUE(still_waits(self->waiter));
	ASSERT_LE(0, create_flags(self->dev, PAGE, "name", TSHARE_CREATE_REPLACE));
	EXPECT_LE(0, result_of(self->waiter));
}

TEST_F(other_than, is_not_woken_by_successors_that_end)
{
	long sleeps;
	int fd, i;

	ASSERT_TRUE(still_waits(self->waiter));
	sleeps = sleeps_of(self->waiter);
	ASSERT_LT(0, sleeps);
	for (i = 0; i < 100; i++) {
		fd = create_flags(self->dev, PAGE, "name",
				  TSHARE_CREATE_REPLACE | TSHARE_CREATE_DRAFT);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, close(fd));
	}
	EXPECT_TRUE(still_waits(self->waiter));
	EXPECT_EQ(sleeps, sleeps_of(self->waiter));
}

TEST_F(other_than, goes_on_when_the_name_goes)
{
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_TRUE(still_waits(self->waiter));
	ASSERT_LE(0, create(self->dev, PAGE, "name"));
	EXPECT_LE(0, result_of(self->waiter));
}

TEST_F(other_than, is_enoent_when_the_draft_ends_that_is_left_of_the_name)
{
	int fd = create_flags(self->dev, PAGE, "name",
			      TSHARE_CREATE_REPLACE | TSHARE_CREATE_DRAFT);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_TRUE(still_waits(self->waiter));
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_EQ(-ENOENT, result_of(self->waiter));
}

TEST_F(other_than, holds_no_region)
{
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	close(self->old);
	/* The waiter's copy of the descriptor. */
	EXPECT_EQ(-ENOENT, unlink_id(self->dev, self->old_id));
	EXPECT_TRUE(still_waits(self->waiter));
	EXPECT_TRUE(kill_and_reap(self->waiter->pid));
	EXPECT_EQ(0, listed(self->dev, 0, self->old_id));
}

/* What a signal does to a call that waits. */

static void do_nothing(int signal)
{
	(void)signal;
}

static struct waiter *start_handling_waiter(int dev, __s64 deadline_ns)
{
	struct sigaction action = { .sa_handler = do_nothing };
	struct waiter *waiter;

	sigaction(SIGUSR1, &action, NULL);
	waiter = start_waiter(dev, "name", deadline_ns, 0);
	return waiter;
}

TEST_F(wait, is_eintr_when_a_handler_has_run)
{
	const __s64 deadline = deadline_in(100 * SECOND);
	struct waiter *waiter = start_handling_waiter(self->other, deadline);

	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, kill(waiter->pid, SIGUSR1));
	EXPECT_EQ(-EINTR, result_of(waiter));
	EXPECT_EQ(deadline, waiter->args.deadline_ns);
	EXPECT_EQ(0, waiter->args.draft);
}

TEST_F(wait, that_was_interrupted_goes_on_for_its_draft)
{
	int fd = create_draft(self->dev, "name");
	struct waiter *waiter = start_handling_waiter(self->other, FOR_EVER);

	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, kill(waiter->pid, SIGUSR1));
	EXPECT_EQ(-EINTR, result_of(waiter));
	ASSERT_EQ(id_of(self->dev, fd), waiter->args.draft);
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	ASSERT_LE(0, create_draft(self->dev, "name"));
	EXPECT_EQ(-ENOENT, do_open(self->dev, &waiter->args));
}

TEST_F(wait, that_was_interrupted_goes_on_for_a_draft_that_came_while_it_slept)
{
	struct waiter *waiter = start_handling_waiter(self->other, FOR_EVER);
	int fd;

	ASSERT_NE(NULL, waiter);
	fd = create_draft(self->dev, "name");
	ASSERT_EQ(0, kill(waiter->pid, SIGUSR1));
	EXPECT_EQ(-EINTR, result_of(waiter));
	EXPECT_EQ(id_of(self->dev, fd), waiter->args.draft);
}

TEST_F(wait, for_a_draft_does_not_show_whether_another_namespace_has_it)
{
	struct tshare_open args = open_args("name", deadline_in(100 * SECOND), 0);

	args.draft = id_of(self->dev, create(self->dev, PAGE, "other"));
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	EXPECT_EQ(-ENOENT, do_open(open_device(), &args));
}

TEST_F(wait, whose_deadline_has_passed_goes_on_for_its_draft)
{
	struct tshare_open args = open_args("name", deadline_in(SECOND / 100), 0);
	int fd = create_draft(self->dev, "name");

	ASSERT_EQ(-ETIMEDOUT, do_open(self->other, &args));
	ASSERT_EQ(id_of(self->dev, fd), args.draft);
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	ASSERT_LE(0, create_draft(self->dev, "name"));
	args.deadline_ns = deadline_in(100 * SECOND);
	EXPECT_EQ(-ENOENT, do_open(self->other, &args));
}

TEST_F(wait, goes_on_after_a_stop)
{
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);

	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, kill(waiter->pid, SIGSTOP));
	ASSERT_EQ(waiter->pid, waitpid(waiter->pid, NULL, WUNTRACED));
	ASSERT_EQ(0, kill(waiter->pid, SIGCONT));
	EXPECT_TRUE(still_waits(waiter));
	ASSERT_LE(0, create(self->dev, PAGE, "name"));
	EXPECT_LE(0, result_of(waiter));
}

TEST_F(wait, that_is_stopped_learns_that_its_draft_has_ended)
{
	struct waiter *waiter;

	ASSERT_LE(0, create_draft(self->dev, "name"));
	waiter = start_waiter(self->other, "name", FOR_EVER, 0);
	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, kill(waiter->pid, SIGSTOP));
	ASSERT_EQ(waiter->pid, waitpid(waiter->pid, NULL, WUNTRACED));
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	ASSERT_EQ(0, kill(waiter->pid, SIGCONT));
	EXPECT_EQ(-ENOENT, result_of(waiter));
}

TEST_F(wait, that_is_stopped_goes_on_when_its_draft_was_finished)
{
	int draft = create_draft(self->dev, "name");
	struct waiter *waiter = start_waiter(self->other, "name", FOR_EVER, 0);

	ASSERT_NE(NULL, waiter);
	ASSERT_EQ(0, kill(waiter->pid, SIGSTOP));
	ASSERT_EQ(waiter->pid, waitpid(waiter->pid, NULL, WUNTRACED));
	ASSERT_EQ(0, finish(self->dev, draft));
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	ASSERT_EQ(0, kill(waiter->pid, SIGCONT));
	EXPECT_TRUE(still_waits(waiter));
	ASSERT_LE(0, create(self->dev, PAGE, "name"));
	EXPECT_LE(0, result_of(waiter));
}

static int wait_with_read_only_args(void *arg)
{
	struct tshare_open *args = guarded(PAGE);

	*args = open_args("name", FOR_EVER, 0);
	if (mprotect(args, PAGE, PROT_READ))
		return 1;
	return do_open(*(int *)arg, args) == -EFAULT ? 0 : 2;
}

TEST_F(wait, that_cannot_store_the_rest_is_efault)
{
	struct sigaction action = { .sa_handler = do_nothing };
	int status;
	pid_t pid;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	pid = fork();
	if (!pid)
		_exit(wait_with_read_only_args(&self->other));
	ASSERT_TRUE(wait_until_asleep(pid));
	ASSERT_EQ(0, kill(pid, SIGUSR1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(wait, that_cannot_store_its_draft_when_its_deadline_has_passed_is_efault)
{
	struct tshare_open *args = guarded(PAGE);

	*args = open_args("name", 1, 0);
	ASSERT_EQ(0, mprotect(args, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, do_open(self->dev, args));
}

TEST_F(wait, without_a_timeout_stores_nothing_if_it_fails)
{
	struct tshare_open *args = guarded(PAGE);

	*args = open_args("name", 0, 0);
	ASSERT_EQ(0, mprotect(args, PAGE, PROT_READ));
	EXPECT_EQ(-ENOENT, do_open(self->dev, args));
}

/*
 * Many wait while a maker is killed wherever it is. None may miss what happens to
 * the name: then it would sleep for ever.
 */
#define WAITERS 16

static int wait_on_and_on(int go, int results)
{
	int dev = open_device(), fd;
	char byte;

	while (read(go, &byte, 1) == 1) {
		fd = open_waiting(dev, "name", FOR_EVER, 0);
		if (write(results, &fd, sizeof(fd)) != sizeof(fd))
			return 1;
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

/* Makes drafts, and finishes them, until it is killed. */
static int make_on_and_on(void)
{
	int dev = open_device(), fd;

	for (;;) {
		fd = create_draft(dev, "name");
		if (fd < 0 || finish(dev, fd) || unlink_name(dev, "name"))
			return 1;
		close(fd);
	}
}

static bool readable_soon(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };

	return poll(&polled, 1, 60000) == 1;
}

TEST_F(wait, misses_nothing_when_makers_are_killed)
{
	const int times = rounds(150);
	int go[2], results[2], round, i, found = 0, missing = 0;
	unsigned int seed = 1;
	pid_t pids[WAITERS];
	char bytes[WAITERS] = {};

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(results));
	for (i = 0; i < WAITERS; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(go[1]);
			_exit(wait_on_and_on(go[0], results[1]));
		}
	}
	for (round = 0; round < times; round++) {
		int left = WAITERS, result, fd;
		pid_t maker = fork();

		if (!maker)
			_exit(make_on_and_on());
		ASSERT_EQ(WAITERS, write(go[1], bytes, WAITERS));
		usleep(rand_r(&seed) % 20000);
		ASSERT_TRUE(kill_and_reap(maker));
		/* Waiters that have seen nothing yet, or have just begun to wait, see this. */
		fd = create(self->dev, PAGE, "name");
		ASSERT_LE(0, fd);
		while (left--) {
			ASSERT_TRUE(readable_soon(results[0])) {
				TH_LOG("round %d: %d still wait", round, left + 1);
			}
			ASSERT_EQ(sizeof(result), read(results[0], &result, sizeof(result)));
			if (result < 0)
				EXPECT_EQ(-ENOENT, result);
			found += result >= 0;
			missing += result == -ENOENT;
		}
		close(fd);
		ASSERT_EQ(0, unlink_name(self->dev, "name"));
	}
	close(go[1]);
	for (i = 0; i < WAITERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	TH_LOG("%d found it, %d had waited for a draft that ended", found, missing);
	EXPECT_LT(0, found);
	EXPECT_LT(0, missing);
	close(go[0]);
	close(results[0]);
	close(results[1]);
	EXPECT_TRUE(counters_return_to(self->before));
}

TEST_HARNESS_MAIN
