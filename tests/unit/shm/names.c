// SPDX-License-Identifier: MIT
/* Other things in place of a region: links, foreign files, mounts, nothing at all. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shm.h"

TEST(links_are_not_followed)
{
	struct tshare_region *region = new_victim("target"), *other;

	CHECK(!symlink("tshare.target", home_of("link")));
	CHECK(open_error("link") == -EPROTO);
	CHECK(tshare_region_create(ctx, "link", 1, NULL, 0, NULL, &other) == -EEXIST);
	CHECK(!tshare_ctx_unlink(ctx, "link"));
	CHECK(!has_home("link"));
	CHECK(!mkdir(home_of("link"), 0755));
	CHECK(!symlink("../tshare.target/region", path_of("link")));
	CHECK(open_error("link") == -EPROTO);
	CHECK(tshare_region_create(ctx, "link", 1, NULL, 0, NULL, &other) == -EEXIST);
	CHECK(!tshare_ctx_unlink(ctx, "link"));
	CHECK(has_file("target"));
	tshare_region_unref(region);
}

TEST(create_without_a_free_descriptor_does_not_take_the_name_for_taken)
{
	struct tshare_region *region;
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(!leave_descriptors(0) ||
		      tshare_region_create(ctx, "free", 1, NULL, 0, NULL, &region) != -EMFILE);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!status);
}

static int make_and_die(void *name)
{
	struct tshare_region *region;

	return tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region);
}

static int create_with_few_descriptors(void *left)
{
	struct tshare_region *region;
	int err;

	if (!leave_descriptors(*(unsigned int *)left))
		return -1;
	err = tshare_region_create(ctx, "was", 1, NULL, 0, NULL, &region);
	/* No path is short of anything. */
	return err && error_says("/") ? -1 : -err;
}

TEST(create_with_few_descriptors_does_not_take_a_dead_makers_name_for_taken)
{
	bool created = false;
	unsigned int left;
	char name[] = "was";
	int err;

	for (left = 0; !created; left++) {
		CHECK(left < 16);
		CHECK(!in_child(make_and_die, name));
		err = in_child(create_with_few_descriptors, &left);
		CHECK(!err || err == EMFILE);
		created = !err;
	}
	CHECK(open_error(name) == -ENOENT);
}

static int open_with_few_descriptors(void *left)
{
	struct tshare_region *region;

	return leave_descriptors(*(unsigned int *)left) ?
		       -tshare_region_open(ctx, "there", NULL, &region) :
		       -1;
}

TEST(open_with_few_descriptors_finds_the_name)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.lifetime = TSHARE_LIFETIME_USERS,
	};
	struct tshare_region *region;
	unsigned int left;
	int err = EMFILE;

	CHECK(!tshare_region_create(ctx, "there", 1, NULL, 0, &options, &region));
	for (left = 0; err; left++) {
		CHECK(left < 16);
		err = in_child(open_with_few_descriptors, &left);
		CHECK(!err || err == EMFILE);
	}
	tshare_region_unref(region);
}

static unsigned int count_entries(void)
{
	DIR *stream = opendir(directory);
	unsigned int count = 0;

	CHECK(stream);
	while (readdir(stream))
		count++;
	closedir(stream);
	return count;
}

static int draft_with_few_descriptors(void *left)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_DRAFT };
	struct tshare_region *region;
	int err;

	if (!leave_descriptors(*(unsigned int *)left))
		return -1;
	err = tshare_region_create(ctx, "few", 1, NULL, 0, &options, &region);
	return err && error_says("/") ? -1 : -err;
}

TEST(create_that_runs_out_of_descriptors_leaves_nothing)
{
	unsigned int left, before;
	int err = EMFILE;

	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	before = count_entries();
	for (left = 0; err; left++) {
		CHECK(left < 16);
		err = in_child(draft_with_few_descriptors, &left);
		CHECK(!err || (err == EMFILE && count_entries() == before));
	}
	/* The last child ended without its destructors. */
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

static int end_without_descriptors(void *unused)
{
	struct tshare_region *region;

	(void)unused;
	if (tshare_region_create(ctx, "ends", 1, NULL, 0, NULL, &region) || !leave_descriptors(0))
		return 2;
	tshare_region_unref(region);
	close_context();
	return exists_at(home_of("ends"));
}

TEST(a_context_that_ends_without_a_free_descriptor_leaves_no_memory)
{
	CHECK(!in_child(end_without_descriptors, NULL));
}

static int exit_without_descriptors(void *unused)
{
	struct tshare_region *region;

	(void)unused;
	if (tshare_region_create(ctx, "exits", 1, NULL, 0, NULL, &region) || !leave_descriptors(0))
		return 2;
	exit(0);
}

TEST(a_process_that_exits_without_a_free_descriptor_leaves_no_memory)
{
	CHECK(!in_child(exit_without_descriptors, NULL));
	CHECK(!has_home("exits"));
}

static int create_without_descriptors(int end)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, "held", 1, NULL, 0, NULL, &region) || !leave_descriptors(0) ||
	    tshare_region_create(own, "more", 1, NULL, 0, NULL, &region) != -EMFILE)
		return 1;
	return !send_byte(end) || !await_byte(end);
}

TEST(create_without_a_free_descriptor_keeps_the_names_that_there_are)
{
	struct steps steps;
	int status;
	pid_t pid;

	CHECK(steps_open(&steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(create_without_descriptors(steps.ends[0]));
	CHECK(await_byte(steps.ends[1]));
	CHECK(!open_error("held"));
	CHECK(send_byte(steps.ends[1]));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!status);
	steps_close(&steps);
	/* It ended without its destructors. */
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
}

static int use_a_draft_without_descriptors(void *name)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_DRAFT };
	struct tshare_region *region;
	int spare[4], i;

	if (tshare_region_create(ctx, name, 1, NULL, 0, &options, &region))
		return 1;
	for (i = 0; i < 4; i++)
		spare[i] = dup(0);
	if (!leave_descriptors(0))
		return 2;
	if (tshare_region_unlink(region) != -EMFILE)
		return 3;
	if (tshare_region_finish(region, 0) != -EMFILE)
		return 4;
	for (i = 0; i < 4; i++)
		close(spare[i]);
	return tshare_region_finish(region, 0) || tshare_region_unlink(region);
}

TEST(a_draft_stays_one_if_there_is_no_free_descriptor_to_finish_or_to_unlink_it)
{
	char name[] = "short";

	CHECK(!in_child(use_a_draft_without_descriptors, name));
}

static int wait_for_a_draft(void *name)
{
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.timeout_ns = 1000000000,
	};
	struct tshare_region *region;

	/* For the draft's directory and for its pipe, but none to look again. */
	if (!leave_descriptors(2))
		return 1;
	return tshare_region_open(ctx, name, &options, &region) == -EMFILE ? 0 : 2;
}

/* It would wait for ever if the maker were killed. */
TEST(open_without_a_descriptor_for_a_drafts_maker_does_not_wait)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_DRAFT,
	};
	struct tshare_region *region;
	char name[] = "unwatched";

	CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &options, &region));
	CHECK(!in_child(wait_for_a_draft, name));
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
}

TEST(open_does_not_wait_for_a_lease)
{
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.timeout_ns = 1000000000,
	};
	struct tshare_region *region;
	int fd;

	CHECK(!mkdir(home_of("lease"), 0755));
	fd = open(path_of("lease"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && signal(SIGIO, SIG_IGN) != SIG_ERR);
	CHECK(!fcntl(fd, F_SETLEASE, F_WRLCK));
	CHECK(tshare_region_open(ctx, "lease", &options, &region) == -EPROTO);
	CHECK(error_says("lease"));
	CHECK(!close(fd));
	CHECK(!unlink(path_of("lease")) && !rmdir(home_of("lease")));
}

/* Older sandboxes return EPERM for system calls that they don't have in their lists. */
static bool deny_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) &&
	       syscall(SYS_openat2, -1, NULL, NULL, 0) < 0 && errno == EPERM;
}

TEST(names_are_opened_where_openat2_is_filtered)
{
	struct tshare_region *region = new_victim("filtered"), *other;
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(!deny_openat2() || tshare_region_open(ctx, "filtered", NULL, &other) ||
		      open_error("absent") != -ENOENT);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!status);
	tshare_region_unref(region);
}

TEST(open_rejects_pipes_and_directories)
{
	CHECK(!mkfifo(home_of("pipe"), 0600));
	CHECK(open_error("pipe") == -EPROTO);
	CHECK(!unlink(home_of("pipe")));
	CHECK(!mkdir(home_of("folder"), 0700));
	CHECK(!mkfifo(path_of("folder"), 0600));
	CHECK(open_error("folder") == -EPROTO);
	CHECK(!unlink(path_of("folder")));
	CHECK(!mkdir(path_of("folder"), 0700));
	CHECK(open_error("folder") == -EPROTO);
	CHECK(!rmdir(path_of("folder")));
	CHECK(!rmdir(home_of("folder")));
}

TEST(create_keeps_foreign_files)
{
	struct tshare_region *region;
	int fd = open(home_of("foreign"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(write(fd, "not a region", 12) == 12);
	close(fd);
	CHECK(tshare_region_create(ctx, "foreign", 1, NULL, 0, NULL, &region) == -EEXIST);
	CHECK(has_home("foreign"));
	CHECK(!unlink(home_of("foreign")));
	CHECK(!mkdir(home_of("foreign"), 0700));
	fd = open(path_of("foreign"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(write(fd, "not a region", 12) == 12);
	close(fd);
	CHECK(tshare_region_create(ctx, "foreign", 1, NULL, 0, NULL, &region) == -EEXIST);
	CHECK(has_file("foreign"));
	CHECK(!tshare_ctx_unlink(ctx, "foreign"));
}

static int unlink_as_another(void *name)
{
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 1;
	return tshare_ctx_unlink(own, name) == -EPERM ? 0 : 2;
}

TEST(another_user_can_not_unlink_a_file_where_the_directory_would_let_it)
{
	char name[] = "not-theirs";

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 0777));
	CHECK(!mknod(home_of(name), S_IFREG | 0666, 0));
	CHECK(!in_child(unlink_as_another, name));
	CHECK(!chmod(directory, 0700));
	CHECK(!unlink(home_of(name)));
}

static int use_names_beside_silent_fuse(void *name)
{
	struct tshare_region *region;

	if (mount_silent_fuse(home_of(name)) < 0)
		return NO_FUSE;
	alarm(HANG_SECONDS);
	close_context();
	open_context();
	if (tshare_region_create(ctx, "beside", 1, NULL, 0, NULL, &region) || open_error("beside"))
		return 1;
	return tshare_ctx_list(ctx, ignore, NULL) || open_error(name) != -EPROTO ||
	       !tshare_ctx_unlink(ctx, name) || tshare_ctx_unlink(ctx, "beside");
}

TEST(open_does_not_wait_for_a_mount_on_a_home)
{
	char name[] = "silent";
	int status;

	CHECK(!mkdir(home_of(name), 0755));
	status = in_child(use_names_beside_silent_fuse, name);
	CHECK(!rmdir(home_of(name)));
	if (status == NO_FUSE)
		SKIP("needs FUSE, and to be allowed to mount it");
	CHECK(!status);
}

TEST(a_home_with_something_else_is_taken)
{
	char path[512];
	struct tshare_region *region;
	int fd;

	CHECK(!mkdir(home_of("else"), 0755));
	snprintf(path, sizeof(path), "%s/else", home_of("else"));
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	close(fd);
	CHECK(tshare_region_create(ctx, "else", 1, NULL, 0, NULL, &region) == -EEXIST);
	CHECK(open_error("else") == -ENOENT);
	CHECK(!unlink(path));
	CHECK(!rmdir(home_of("else")));
}

TEST(an_empty_home_is_not_opened)
{
	CHECK(!mkdir(home_of("empty"), 0755));
	CHECK(open_error("empty") == -ENOENT);
	tshare_region_unref(new_region("empty"));
	CHECK(has_file("empty"));
	CHECK(!tshare_ctx_unlink(ctx, "empty"));
	CHECK(!has_home("empty"));
}

/* Stores the host id of a context in another directory. */
static void host_id_in(const char *path, char *id)
{
	struct tshare_ctx *other;

	CHECK(!setenv("TSHARE_SHM_DIR", path, 1));
	CHECK(!tshare_ctx_new(NULL, &other));
	CHECK(!setenv("TSHARE_SHM_DIR", directory, 1));
	CHECK(!tshare_ctx_get_host_id(other, id));
	tshare_ctx_unref(other);
}

TEST(a_directory_has_its_host_id_by_any_path)
{
	char id[TSHARE_HOST_ID_MAX + 1], same[sizeof(id)], other[sizeof(id)];
	char path[64], elsewhere[] = "/dev/shm/tshare-other-XXXXXX";

	CHECK(mkdtemp(elsewhere));
	snprintf(path, sizeof(path), "%s/../%s", elsewhere, strrchr(directory, '/') + 1);
	CHECK(!tshare_ctx_get_host_id(ctx, id));
	host_id_in(path, same);
	host_id_in(elsewhere, other);
	CHECK(!rmdir(elsewhere));
	CHECK(!strcmp(id, same));
	CHECK(strcmp(id, other) != 0);
}

/* In the directory itself, which has no /proc. */
static int create_without_proc(void *unused)
{
	char id[TSHARE_HOST_ID_MAX + 1];
	struct tshare_region *region;
	struct tshare_ctx *own;

	(void)unused;
	if (chroot(directory) || chdir("/") || setenv("TSHARE_SHM_DIR", "/", 1) ||
	    tshare_ctx_new(NULL, &own))
		return 1;
	if (tshare_region_create(own, NULL, 1, NULL, 0, NULL, &region))
		return 2;
	if (tshare_region_create(own, "no-proc", 1, NULL, 0, NULL, &region) != -ENODEV)
		return 3;
	if (!error_says("/proc: is not mounted"))
		return 4;
	if (tshare_ctx_get_host_id(own, id) != -ENOENT || !error_says("/proc/sys/"))
		return 5;
	return 0;
}

TEST(names_without_proc_are_an_error_that_names_proc)
{
	if (geteuid())
		SKIP("needs root, to change the root");
	CHECK(!in_child(create_without_proc, NULL));
	CHECK(!has_home("no-proc"));
}

TEST(a_relative_directory_is_refused)
{
	struct tshare_ctx *other;

	CHECK(!setenv("TSHARE_SHM_DIR", "relative", 1));
	CHECK(ctx_new("shm", &other) == -EINVAL);
	CHECK(!setenv("TSHARE_SHM_DIR", directory, 1));
	CHECK(error_says("TSHARE_SHM_DIR"));
}

TEST(without_the_directory_there_is_no_backend)
{
	struct tshare_ctx *other;

	CHECK(!setenv("TSHARE_SHM_DIR", "/nonexistent", 1));
	CHECK(ctx_new("shm", &other) == -ENODEV);
	CHECK(!setenv("TSHARE_SHM_DIR", directory, 1));
}

int main(void)
{
	return shm_main();
}
