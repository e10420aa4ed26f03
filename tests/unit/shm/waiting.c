// SPDX-License-Identifier: MIT
/*
 * What those that wait for a name share, and how they do without it. This program has a read() and
 * a close() of its own, which the library calls in place of the C library's.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shm.h"

/* Long enough that nothing ends for it. */
static const struct tshare_open_options patiently = {
	.size = sizeof(patiently),
	.timeout_ns = HANG_SECONDS * INT64_C(1000000000),
};

static const struct tshare_options draft_options = {
	.size = sizeof(draft_options),
	.flags = TSHARE_DRAFT,
};

struct opener {
	const char *name;
	int err;
	atomic_int id;
	pthread_t thread;
};

static void *run_opener(void *data)
{
	struct opener *opener = data;
	struct tshare_region *region;

	atomic_store(&opener->id, gettid());
	opener->err = tshare_region_open(ctx, opener->name, &patiently, &region);
	if (!opener->err)
		tshare_region_unref(region);
	return NULL;
}

/* Starts it, and returns when it sleeps. */
static void start_opener(struct opener *opener, const char *name)
{
	opener->name = name;
	atomic_init(&opener->id, 0);
	CHECK(!pthread_create(&opener->thread, NULL, run_opener, opener));
	while (!is_asleep(atomic_load(&opener->id)))
		usleep(1000);
}

static int error_of(struct opener *opener)
{
	CHECK(!pthread_join(opener->thread, NULL));
	return opener->err;
}

/* Number of the process's descriptors whose file is called so, or is at a path that ends so. */
static int count_descriptors(const char *file)
{
	DIR *stream = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[300];
	int count = 0;
	ssize_t size;

	while (stream && (entry = readdir(stream))) {
		size = readlinkat(dirfd(stream), entry->d_name, target, sizeof(target) - 1);
		if (size < (ssize_t)strlen(file))
			continue;
		target[size] = '\0';
		count += !strcmp(target + size - strlen(file), file);
	}
	if (stream)
		closedir(stream);
	return count;
}

static bool nothing_is_left(void)
{
	int tries;

	for (tries = 0; tries < HANG_SECONDS * 100; tries++) {
		if (!count_descriptors("inotify") && !count_descriptors("[eventpoll]"))
			return true;
		usleep(10000);
	}
	return false;
}

TEST(all_that_wait_share_one_inotify_instance)
{
	static const char *const names[] = { "one", "two", "draft" };
	struct opener openers[6];
	struct tshare_region *draft;
	int i;

	CHECK(!tshare_region_create(ctx, names[2], 1, NULL, 0, &draft_options, &draft));
	for (i = 0; i < 6; i++)
		start_opener(&openers[i], names[i % 3]);
	CHECK(count_descriptors("inotify") == 1);
	CHECK(!tshare_region_finish(draft, 0));
	tshare_region_unref(new_region(names[1]));
	tshare_region_unref(new_region(names[0]));
	for (i = 0; i < 6; i++)
		CHECK(!error_of(&openers[i]));
	CHECK(nothing_is_left());
	CHECK(!count_descriptors("/maker"));
	for (i = 0; i < 3; i++)
		CHECK(!tshare_ctx_unlink(ctx, names[i]));
	tshare_region_unref(draft);
}

static int open_in_two_directories(void *data)
{
	const char *elsewhere = data;
	struct tshare_region *region;
	struct opener opener;
	struct tshare_ctx *other;

	start_opener(&opener, "here");
	if (setenv("TSHARE_SHM_DIR", elsewhere, 1) || tshare_ctx_new(NULL, &other))
		return 1;
	if (tshare_region_open(other, "here",
			       &(struct tshare_open_options){ .size = sizeof(patiently),
							      .timeout_ns = 1000000 },
			       &region) != -ETIMEDOUT)
		return 2;
	tshare_region_unref(new_region("here"));
	return error_of(&opener) ? 3 : 0;
}

/* The end of a wait in one directory leaves the others theirs. */
TEST(waits_in_two_directories_share_it_too)
{
	char elsewhere[] = "/dev/shm/tshare-other-XXXXXX";

	CHECK(mkdtemp(elsewhere));
	CHECK(!in_child(open_in_two_directories, elsewhere));
	CHECK(!rmdir(elsewhere));
	tshare_ctx_list(ctx, ignore, NULL);
}

static int wait_in_child(void *name)
{
	struct tshare_region *region;

	/* The draft is the child's too, with the end of its pipe that is its maker's. */
	if (count_descriptors("inotify") || count_descriptors("[eventpoll]") ||
	    count_descriptors("/maker") != 1)
		return 1;
	return tshare_region_open(ctx, name, &patiently, &region) ? 2 : 0;
}

TEST(a_child_has_nothing_of_its_parents_waits)
{
	struct tshare_region *draft, *region;
	struct opener openers[2];
	char name[] = "child";
	int status;
	pid_t pid;

	CHECK(!tshare_region_create(ctx, "parent", 1, NULL, 0, &draft_options, &draft));
	start_opener(&openers[0], "parent");
	start_opener(&openers[1], name);
	pid = fork();
	if (!pid) {
		alarm(HANG_SECONDS);
		_exit(wait_in_child(name));
	}
	while (!is_asleep(pid))
		usleep(1000);
	region = new_region(name);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!error_of(&openers[1]));
	CHECK(!tshare_region_finish(draft, 0));
	CHECK(!error_of(&openers[0]));
	CHECK(!tshare_ctx_unlink(ctx, name) && !tshare_ctx_unlink(ctx, "parent"));
	tshare_region_unref(region);
	tshare_region_unref(draft);
}

/* The watcher */

/* Where the watcher stops for a while, if it is to: with an instance of inotify. */
static atomic_bool stops_to_read, stops_to_close, stopped, may_go_on;

static bool is_inotify(int fd)
{
	char path[32], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       !strcmp(target, "anon_inode:inotify");
}

/* Returns whether it was told to go on; else it has waited in vain. */
static bool stop(atomic_bool *stops, int fd, int centiseconds)
{
	if (!atomic_load(stops) || !is_inotify(fd))
		return false;
	atomic_store(stops, false);
	for (atomic_store(&stopped, true); centiseconds && !atomic_load(&may_go_on); centiseconds--)
		usleep(10000);
	return centiseconds;
}

static atomic_bool went_on;

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): theirs are reserved */
ssize_t read(int fd, void *buffer, size_t size)
{
	if (stop(&stops_to_read, fd, 1000))
		atomic_store(&went_on, true);
	return syscall(SYS_read, fd, buffer, size);
}

int close(int fd)
{
	stop(&stops_to_close, fd, 20);
	return syscall(SYS_close, fd);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

static void await_stop(void)
{
	while (!atomic_load(&stopped))
		usleep(1000);
	atomic_store(&stopped, false);
}

/* Others may make files as fast as the watcher reads what is reported of them. */
TEST(a_process_goes_on_while_it_reads_what_a_directory_reports)
{
	struct tshare_region *region;
	struct opener opener;

	start_opener(&opener, "read");
	atomic_store(&may_go_on, false);
	atomic_store(&went_on, false);
	atomic_store(&stops_to_read, true);
	region = new_region("other");
	await_stop();
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
	region = new_region("read");
	atomic_store(&may_go_on, true);
	CHECK(!error_of(&opener));
	CHECK(atomic_load(&went_on));
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
}

static int count_what_is_the_watchers(void *unused)
{
	(void)unused;
	return count_descriptors("inotify") + count_descriptors("[eventpoll]");
}

TEST(a_child_that_was_forked_while_the_watcher_ends_has_nothing_of_it)
{
	const struct tshare_open_options briefly = { .size = sizeof(briefly), .timeout_ns = 1 };
	struct tshare_region *region;

	atomic_store(&may_go_on, false);
	atomic_store(&stops_to_close, true);
	CHECK(tshare_region_open(ctx, "none", &briefly, &region) == -ETIMEDOUT);
	await_stop();
	CHECK(!in_child(count_what_is_the_watchers, NULL));
}

static pid_t forked;

static void fork_in_handler(int signal)
{
	(void)signal;
	forked = fork();
}

static void *fork_while_waiting(void *data)
{
	const struct tshare_open_options briefly = { .size = sizeof(briefly), .timeout_ns = 1 };
	struct tshare_region *region;

	run_opener(data);
	if (forked)
		return NULL;
	alarm(HANG_SECONDS);
	_exit(((struct opener *)data)->err != -EINTR ||
	      tshare_region_open(ctx, "none", &briefly, &region) != -ETIMEDOUT ||
	      !nothing_is_left());
}

static bool others_sleep(void)
{
	DIR *stream = opendir("/proc/self/task");
	const struct dirent *entry;
	bool all = stream;
	int thread;

	while (all && (entry = readdir(stream))) {
		thread = atoi(entry->d_name);
		all = !thread || thread == gettid() || is_asleep(thread);
	}
	if (stream)
		closedir(stream);
	return all;
}

/* A thread that sleeps may wait for the library's lock, which fork() takes: not if all sleep. */
static void await_waits(void)
{
	int seen = 0;

	while (seen < 3) {
		usleep(1000);
		seen = others_sleep() ? seen + 1 : 0;
	}
}

TEST(a_child_that_a_signal_handler_forks_ends_the_wait_alone)
{
	struct opener others[2], opener = { .name = "forked" };
	struct sigaction action = { .sa_handler = fork_in_handler }, before;
	int status;

	start_opener(&others[0], "forked");
	CHECK(!pthread_create(&opener.thread, NULL, fork_while_waiting, &opener));
	while (!is_asleep(atomic_load(&opener.id)))
		usleep(1000);
	start_opener(&others[1], "forked");
	await_waits();
	CHECK(!sigaction(SIGUSR1, &action, &before));
	CHECK(!pthread_kill(opener.thread, SIGUSR1));
	CHECK(error_of(&opener) == -EINTR);
	CHECK(waitpid(forked, &status, 0) == forked);
	CHECK(!status);
	CHECK(!sigaction(SIGUSR1, &before, NULL));
	tshare_region_unref(new_region("forked"));
	CHECK(!error_of(&others[0]) && !error_of(&others[1]));
	CHECK(!tshare_ctx_unlink(ctx, "forked"));
}

/* Has a system call fail with that error in this process from now on. */
static bool deny(long call, int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int wait_without_a_watch(void *unused)
{
	const struct tshare_open_options briefly = { .size = sizeof(briefly), .timeout_ns = 1 };
	struct tshare_region *region;

	(void)unused;
	if (!deny(SYS_inotify_add_watch, ENOSPC) ||
	    tshare_region_open(ctx, "none", &briefly, &region) != -ETIMEDOUT)
		return 1;
	return nothing_is_left() ? 0 : 2;
}

/* A user may have few instances. */
TEST(nothing_is_left_of_waits_without_a_watch_of_inotify)
{
	CHECK(!in_child(wait_without_a_watch, NULL));
}

/* Limits */

/* Returns when a process sleeps, or has ended. */
static void await_sleep(pid_t pid)
{
	int tries;

	for (tries = 0; tries < 5000 && !is_asleep(pid); tries++)
		usleep(1000);
}

static pid_t start_process(const char *name)
{
	struct tshare_region *region;
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(HANG_SECONDS);
	_exit(tshare_region_open(ctx, name, &patiently, &region) ? 1 : 0);
}

static int read_limit(void)
{
	FILE *file = fopen("/proc/sys/fs/inotify/max_user_instances", "re");
	int limit = 0;

	if (file && fscanf(file, "%d", &limit) != 1)
		limit = 0;
	if (file)
		fclose(file);
	return limit;
}

TEST(more_processes_of_a_user_wait_than_may_have_an_inotify_instance)
{
	int limit = read_limit(), count = limit + 20, status, failed = 0, i;
	struct tshare_region *region;
	pid_t *pids;

	if (limit < 1 || limit > 1000)
		SKIP("fs.inotify.max_user_instances is beyond 1000");
	pids = calloc(count, sizeof(*pids));
	CHECK(pids);
	for (i = 0; i < count; i++) {
		pids[i] = start_process("many");
		CHECK(pids[i] > 0);
	}
	for (i = 0; i < count; i++)
		await_sleep(pids[i]);
	region = new_region("many");
	for (i = 0; i < count; i++)
		failed += waitpid(pids[i], &status, 0) != pids[i] || status;
	free(pids);
	CHECK(!failed);
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
}

struct denied {
	const char *name;
	long call;
	int err, expected;
	struct steps steps;
};

static int open_while_denied(void *data)
{
	const struct denied *denied = data;
	struct tshare_region *region;

	alarm(HANG_SECONDS);
	if (!await_byte(denied->steps.ends[0]) || !deny(denied->call, denied->err))
		return 1;
	return tshare_region_open(ctx, denied->name, &patiently, &region) == denied->expected ? 0 :
												2;
}

static pid_t start_denied(struct denied *denied)
{
	pid_t pid;

	CHECK(steps_open(&denied->steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(open_while_denied(denied));
	return pid;
}

/* Lets the process go on, and returns when it sleeps. */
static void let_wait(struct denied *denied, pid_t pid)
{
	CHECK(send_byte(denied->steps.ends[1]));
	usleep(50000);
	await_sleep(pid);
}

static void check_a_name_is_found(long call, int err)
{
	struct denied denied = { "denied", call, err, 0, { { 0 } } };
	pid_t pid = start_denied(&denied);
	struct tshare_region *region;
	int status;

	let_wait(&denied, pid);
	region = new_region(denied.name);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!status);
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
	steps_close(&denied.steps);
}

/* A child that was forked later would have the draft, too. */
static void check_a_makers_end_is_noticed(long call, int err)
{
	struct denied denied = { "denied", call, err, -ENOENT, { { 0 } } };
	pid_t pid = start_denied(&denied);
	struct tshare_region *region;
	int status;

	CHECK(!tshare_region_create(ctx, denied.name, 1, NULL, 0, &draft_options, &region));
	let_wait(&denied, pid);
	tshare_region_unref(region);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!status);
	steps_close(&denied.steps);
}

TEST(open_waits_also_without_an_inotify_instance)
{
	check_a_name_is_found(SYS_inotify_init1, EMFILE);
	check_a_makers_end_is_noticed(SYS_inotify_init1, EMFILE);
}

TEST(open_waits_also_without_a_watch_of_inotify)
{
	check_a_name_is_found(SYS_inotify_add_watch, ENOSPC);
	check_a_makers_end_is_noticed(SYS_inotify_add_watch, ENOSPC);
}

TEST(open_waits_also_without_a_watch_of_epoll)
{
	check_a_name_is_found(SYS_epoll_ctl, ENOSPC);
	check_a_makers_end_is_noticed(SYS_epoll_ctl, ENOSPC);
}

TEST(open_waits_also_without_a_thread_of_the_library)
{
	check_a_name_is_found(SYS_clone3, EAGAIN);
	check_a_makers_end_is_noticed(SYS_clone3, EAGAIN);
}

int main(void)
{
	return shm_main();
}
