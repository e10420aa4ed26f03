// SPDX-License-Identifier: MIT
/* The memory of files: allocated at once, limited, counted, freed. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../shm.h"

TEST(a_file_has_the_regions_mode_with_any_umask)
{
	mode_t before = umask(0777);
	struct tshare_region *region = new_region_mode("mode", 0644);
	struct stat st;

	umask(before);
	CHECK(!stat(path_of("mode"), &st));
	CHECK((st.st_mode & 07777) == 0644);
	tshare_region_unref(region);
}

static int create_under_umasks(void *unused)
{
	const struct tshare_options draft = { .size = sizeof(draft), .flags = TSHARE_DRAFT };
	const struct tshare_options replacing = {
		.size = sizeof(replacing),
		.flags = TSHARE_REPLACE,
	};
	const mode_t masks[] = { 0277, 0477, 0777 };
	struct tshare_region *region, *new;
	struct tshare_ctx *own;
	size_t i;

	(void)unused;
	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 1;
	for (i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		umask(masks[i]);
		if (tshare_region_create(own, "masked", 1, NULL, 0, &draft, &region) ||
		    tshare_region_finish(region, 0) ||
		    tshare_region_create(own, "masked", 1, NULL, 0, &replacing, &new) ||
		    tshare_region_unlink(new))
			return 2;
		tshare_region_unref(region);
		tshare_region_unref(new);
	}
	return 0;
}

TEST(any_umask_lets_its_user_create_regions)
{
	int status;

	if (geteuid())
		SKIP("needs root, to be another user in the directory");
	CHECK(!chmod(directory, 0777));
	status = in_child(create_under_umasks, NULL);
	CHECK(!chmod(directory, 0700));
	CHECK(!status);
}

TEST(unnamed_regions_cannot_be_resized)
{
	struct tshare_region *region = new_region(NULL);

	CHECK(ftruncate(tshare_region_get_fd(region), 0) < 0 && errno == EPERM);
	CHECK(ftruncate(tshare_region_get_fd(region), 1 << 20) < 0 && errno == EPERM);
	tshare_region_unref(region);
}

TEST(memory_is_allocated_at_once)
{
	struct tshare_region *region;
	struct stat st;

	CHECK(!tshare_region_create(ctx, "full", 1 << 20, NULL, 0, NULL, &region));
	CHECK(!fstat(tshare_region_get_fd(region), &st));
	CHECK(st.st_blocks * 512 >= 1 << 20);
	tshare_region_unref(region);
}

static void do_nothing(int unused)
{
	(void)unused;
}

/* Not setitimer(), whose timers are alarm()'s own, or expire only between system calls. */
static int create_under_a_timer(void *unused)
{
	const struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct tshare_region *region;
	timer_t timer;

	(void)unused;
	alarm(HANG_SECONDS);
	signal(SIGUSR1, do_nothing);
	return timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	       timer_settime(timer, 0, &often, NULL) ||
	       tshare_region_create(ctx, NULL, 256 << 20, NULL, 0, NULL, &region);
}

TEST(create_ends_under_a_periodic_signal)
{
	CHECK(!in_child(create_under_a_timer, NULL));
}

static int create_beyond_the_file_size(void *name)
{
	const struct rlimit limit = { 1 << 20, 1 << 20 };
	struct tshare_region *region;
	int i;

	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	for (i = 0; i < 2; i++)
		if (tshare_region_create(ctx, i ? name : NULL, 1 << 20, NULL, 0, NULL, &region) !=
			    -EFBIG ||
		    !error_says("RLIMIT_FSIZE"))
			return 2;
	return tshare_region_create(ctx, NULL, 4096, NULL, 0, NULL, &region);
}

TEST(files_beyond_the_limit_are_an_error_and_no_signal)
{
	char name[] = "too-big";

	CHECK(!in_child(create_beyond_the_file_size, name));
}

static int finish_without_the_right_to_write(void *name)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_DRAFT };
	struct rlimit limit = { 0, RLIM_INFINITY };
	struct tshare_region *draft;

	if (tshare_region_create(ctx, name, 1, NULL, 0, &options, &draft) ||
	    setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	if (tshare_region_finish(draft, 0) != -EFBIG || !error_says("RLIMIT_FSIZE"))
		return 2;
	limit.rlim_cur = RLIM_INFINITY;
	if (open_error(name) != -EINPROGRESS || setrlimit(RLIMIT_FSIZE, &limit))
		return 3;
	return tshare_region_finish(draft, 0) || tshare_region_unlink(draft);
}

TEST(no_draft_is_finished_beyond_the_limit_of_files)
{
	char name[] = "limited";

	CHECK(!in_child(finish_without_the_right_to_write, name));
}

/* Root's capability would exceed the limit. */
static bool drop_ipc_lock(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &header, sets))
		return false;
	sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	return !syscall(SYS_capset, &header, sets);
}

/* With more locked memory than the region takes, and less than two of it would. */
static int replace_in_locked_memory(void *name)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_REPLACE };
	const struct rlimit limit = { 7 << 20, 7 << 20 };
	struct tshare_region *region;

	if (!drop_ipc_lock() || setrlimit(RLIMIT_MEMLOCK, &limit) || mlockall(MCL_FUTURE))
		return 1;
	if (tshare_region_create(ctx, name, 4 << 20, NULL, 0, &options, &region))
		return 2;
	*(char *)tshare_region_get_data(region) = 1;
	return 0;
}

TEST(a_process_with_locked_memory_needs_no_more_of_it_than_the_region_has)
{
	struct tshare_region *old = new_victim("locked");
	char name[] = "locked";

	CHECK(!in_child(replace_in_locked_memory, name));
	tshare_region_unref(old);
	/* The child ended without its destructors. */
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

/* A seal against writing would let a process stop the region's publishers. */
TEST(unnamed_regions_take_no_more_seals)
{
	struct tshare_region *region = new_region(NULL);

	CHECK(fcntl(tshare_region_get_fd(region), F_ADD_SEALS, F_SEAL_WRITE) < 0);
	CHECK(errno == EPERM);
	tshare_region_unref(region);
}

/* Makes each request for a file's memory fail with EIO in this process. */
static bool forbid_fallocate(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int create_too_much_with_few_descriptors(void *left)
{
	struct tshare_region *region;

	return forbid_fallocate() && leave_descriptors(*(unsigned int *)left) ?
		       -tshare_region_create(ctx, NULL, 1ULL << 44, NULL, 0, NULL, &region) :
		       -1;
}

TEST(a_region_for_which_there_is_no_memory_asks_for_none_with_few_descriptors)
{
	unsigned int left;
	int err = EMFILE;

	for (left = 0; err == EMFILE; left++) {
		CHECK(left < 16);
		err = in_child(create_too_much_with_few_descriptors, &left);
	}
	CHECK(err == ENOMEM);
}

static int read_limits_with_few_descriptors(void *left)
{
	struct tshare_limits few = { .size = sizeof(few) }, all = limits_of(ctx);
	int err;

	if (!leave_descriptors(*(unsigned int *)left))
		return -1;
	err = tshare_ctx_get_limits(ctx, &few);
	if (!err && few.bytes_used != all.bytes_used)
		err = -EBADMSG;
	return -err;
}

TEST(limits_with_few_descriptors_leave_no_region_out)
{
	struct tshare_region *region = new_region("counted");
	unsigned int left;
	int err = EMFILE;

	for (left = 0; err; left++) {
		CHECK(left < 16);
		err = in_child(read_limits_with_few_descriptors, &left);
		CHECK(!err || err == EMFILE);
	}
	tshare_region_unref(region);
}

TEST(regions_beyond_the_limits_have_no_memory)
{
	struct tshare_limits limits = { .size = sizeof(limits) };
	struct tshare_region *region;

	CHECK(!tshare_ctx_get_limits(ctx, &limits));
	CHECK(tshare_region_create(ctx, "huge", limits.bytes_limit + 4096, NULL, 0, NULL,
				   &region) == -ENOMEM);
	CHECK(tshare_region_create(ctx, NULL, 1ULL << 44, NULL, 0, NULL, &region) == -ENOMEM);
	CHECK(!has_file("huge"));
}

TEST(a_sweep_leaves_the_error_alone)
{
	struct tshare_region *region;
	int fd = open(home_of("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	close(fd);
	CHECK(tshare_region_create(ctx, NULL, 1ULL << 44, NULL, 0, NULL, &region) == -ENOMEM);
	CHECK(error_says("size"));
	CHECK(!unlink(home_of("file")));
}

TEST(the_bytes_used_are_those_of_regions)
{
	struct tshare_region *region = new_region("counted");
	struct tshare_limits before = { .size = sizeof(before) }, after = before;
	char path[sizeof(directory) + 16];
	int fd;

	CHECK(!tshare_ctx_get_limits(ctx, &before));
	CHECK(before.bytes_used == 8192);
	snprintf(path, sizeof(path), "%s/others", directory);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !posix_fallocate(fd, 0, 1 << 20));
	close(fd);
	CHECK(!tshare_ctx_get_limits(ctx, &after));
	CHECK(after.bytes_used == before.bytes_used);
	CHECK(!unlink(path));
	tshare_region_unref(region);
}

TEST(memory_of_names_that_others_unlinked_is_freed)
{
	char name[32];
	struct stat st;
	int i, fd, found = 0;

	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "swept-%d", i);
		tshare_region_unref(new_region(name));
		CHECK(!unlink(path_of(name)));
		CHECK(!rmdir(home_of(name)));
	}
	/* Only the last one's lock may still be held. */
	for (fd = 0; fd < 1024; fd++)
		found += !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_nlink &&
			 st.st_size == 8192;
	CHECK(found <= 1);
}

/* Descriptors of a process for the file behind that one. */
static int descriptors_of(const struct stat *file)
{
	struct stat st;
	int fd, found = 0;

	for (fd = 0; fd < 1024; fd++)
		found += !fstat(fd, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	return found;
}

TEST(an_unlinked_name_costs_no_descriptor_whatever_links_its_file_has)
{
	struct tshare_region *region = new_region("linked");
	char path[sizeof(directory) + 32];
	struct stat file;

	snprintf(path, sizeof(path), "%s/kept", directory);
	CHECK(!link(path_of("linked"), path));
	CHECK(!stat(path, &file));
	CHECK(!tshare_ctx_unlink(ctx, "linked"));
	tshare_region_unref(region);
	CHECK(!unlink(path));
	CHECK(!descriptors_of(&file));
}

TEST(a_name_that_others_unlinked_costs_no_descriptor_whatever_links_its_file_has)
{
	char path[sizeof(directory) + 32];
	struct stat file;

	tshare_region_unref(new_region("taken-away"));
	snprintf(path, sizeof(path), "%s/kept", directory);
	CHECK(!link(path_of("taken-away"), path));
	CHECK(!stat(path, &file));
	CHECK(descriptors_of(&file) == 1);
	CHECK(!unlink(path_of("taken-away")));
	CHECK(!rmdir(home_of("taken-away")));
	tshare_region_unref(new_region("another"));
	CHECK(!tshare_ctx_unlink(ctx, "another"));
	CHECK(!unlink(path));
	CHECK(!descriptors_of(&file));
}

int main(void)
{
	return shm_main();
}
