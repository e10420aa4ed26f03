// SPDX-License-Identifier: MIT
/* Which file descriptors can be imported: those whose memory no process can truncate. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shm.h"

/* A descriptor with a region's bytes in a memfd that has those seals. */
static int copy_of(struct tshare_region *region, int seals)
{
	int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;

	CHECK(!fstat(tshare_region_get_fd(region), &st));
	CHECK(sendfile(fd, tshare_region_get_fd(region), &(off_t){ 0 }, st.st_size) == st.st_size);
	CHECK(!fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static int import_error(int fd)
{
	struct tshare_region *imported;
	int err;

	err = tshare_region_import(ctx, fd, 0, &imported);
	if (!err)
		tshare_region_unref(imported);
	return err;
}

TEST(import_refuses_a_memfd_that_can_be_truncated)
{
	struct tshare_region *region = new_region(NULL);
	int fd = copy_of(region, F_SEAL_GROW), sealed = copy_of(region, F_SEAL_SHRINK);

	CHECK(import_error(fd) == -EPROTO);
	CHECK(error_says("truncate"));
	CHECK(!import_error(sealed));
	close(sealed);
	close(fd);
	tshare_region_unref(region);
}

/* What a dma-buf without a name is called in /proc, too. */
static int import_a_file_called_like_a_dmabuf(void *proc)
{
	int fd, err;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("/proc", proc, NULL, MS_BIND | MS_REC, NULL) || chroot(directory) || chdir("/"))
		return NO_FUSE;
	fd = open("/dmabuf:", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	err = import_error(fd);
	return unlink("/dmabuf:") || err != -EINVAL || error_says("is a dma-buf");
}

TEST(import_takes_no_file_of_the_root_folder_for_a_dma_buf)
{
	char proc[sizeof(directory) + sizeof("/proc")];
	int status;

	snprintf(proc, sizeof(proc), "%s/proc", directory);
	CHECK(!mkdir(proc, 0755));
	status = in_child(import_a_file_called_like_a_dmabuf, proc);
	CHECK(!rmdir(proc));
	if (status == NO_FUSE)
		SKIP("may not make namespaces");
	CHECK(!status);
}

/* Its pages would be allocated by who reads them. */
TEST(import_refuses_a_sealed_file_that_lacks_its_memory)
{
	const uint64_t size = UINT64_C(64) << 30;
	struct tshare_region *region = new_region(NULL);
	struct header header;
	int fd = memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(pread(tshare_region_get_fd(region), &header, sizeof(header), 0) == sizeof(header));
	header.size = size;
	CHECK(!ftruncate(fd, header.data_offset + size));
	CHECK(pwrite(fd, &header, sizeof(header), 0) == sizeof(header));
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
	CHECK(import_error(fd) == -EPROTO);
	CHECK(error_says("less memory"));
	/* The flags of a draft excuse nothing. */
	header.flags = 2;
	CHECK(pwrite(fd, &header, sizeof(header), 0) == sizeof(header));
	CHECK(import_error(fd) == -EPROTO);
	CHECK(error_says("less memory"));
	close(fd);
	tshare_region_unref(region);
}

TEST(open_refuses_a_region_that_lacks_its_memory)
{
	struct tshare_region *region = new_victim("holes");
	int fd = open(path_of("holes"), O_RDWR | O_CLOEXEC);

	CHECK(!open_error("holes"));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096));
	CHECK(open_error("holes") == -EPROTO);
	CHECK(error_says("less memory"));
	close(fd);
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
}

TEST(import_refuses_files_of_other_file_systems)
{
	struct tshare_region *region = new_region(NULL);
	char path[] = "/var/tmp/tshare-test-XXXXXX";
	int fd = mkstemp(path);
	struct stat st, there;

	CHECK(fd >= 0 && !unlink(path));
	CHECK(!fstat(tshare_region_get_fd(region), &st) && !fstat(fd, &there));
	CHECK(sendfile(fd, tshare_region_get_fd(region), &(off_t){ 0 }, st.st_size) == st.st_size);
	CHECK(import_error(fd) == -EINVAL);
	close(fd);
	tshare_region_unref(region);
}

/* Runs in a child, which a signal ends if the import blocks. */
static int import_in_time(void *fd)
{
	alarm(HANG_SECONDS);
	return import_error(*(int *)fd) != -EINVAL;
}

TEST(import_does_not_read_devices)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || lseek(fd, 0, SEEK_END) < 0)
		SKIP("needs /dev/kmsg, where reading waits for the kernel to say more");
	CHECK(!in_child(import_in_time, &fd));
	close(fd);
}

static int import_from_silent_fuse(void *path)
{
	int fd;

	if (mount_silent_fuse(path) < 0)
		return NO_FUSE;
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 || import_in_time(&fd);
}

TEST(import_does_not_wait_for_a_fuse_server)
{
	int status;

	CHECK(!mkdir(home_of("silent"), 0755));
	status = in_child(import_from_silent_fuse, (void *)home_of("silent"));
	CHECK(!rmdir(home_of("silent")));
	if (status == NO_FUSE)
		SKIP("needs FUSE, and to be allowed to mount it");
	CHECK(!status);
}

/* Reopens a file of this process with a lease, which it gives up only when forced to. */
static int lease(int fd)
{
	char path[32];
	int leased;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	leased = open(path, O_RDWR | O_CLOEXEC);
	close(fd);
	CHECK(signal(SIGIO, SIG_IGN) != SIG_ERR);
	CHECK(leased >= 0 && !fcntl(leased, F_SETLEASE, F_WRLCK));
	return leased;
}

static int publish_in_time(void *fd)
{
	struct tshare_region *region;

	alarm(HANG_SECONDS);
	return tshare_region_import(ctx, *(int *)fd, 0, &region) ||
	       tshare_region_publish(region, NULL) != -EACCES;
}

static int import_readonly_in_time(void *fd)
{
	struct tshare_region *region;

	alarm(HANG_SECONDS);
	return tshare_region_import(ctx, *(int *)fd, TSHARE_READONLY, &region) ||
	       !tshare_region_is_readonly(region);
}

TEST(import_does_not_wait_for_a_lease)
{
	struct tshare_region *region = new_region(NULL);
	int fd = lease(copy_of(region, F_SEAL_SHRINK));

	CHECK(!in_child(publish_in_time, &fd));
	close(fd);
	fd = lease(copy_of(region, F_SEAL_SHRINK));
	CHECK(!in_child(import_readonly_in_time, &fd));
	close(fd);
	CHECK(signal(SIGIO, SIG_DFL) != SIG_ERR);
	tshare_region_unref(region);
}

/* Sends a named region of its own, and once more after the name is removed. */
static int send_own_region(void *data)
{
	struct steps *steps = data;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int fd;

	if (!become(USER_ONE) || tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, "sent", 1, NULL, 0, NULL, &region))
		return 1;
	fd = tshare_region_get_fd(region);
	return !(send_fd(steps->ends[1], fd) && await_byte(steps->ends[1]) &&
		 !tshare_ctx_unlink(own, "sent") && send_fd(steps->ends[1], fd));
}

TEST(import_refuses_another_users_file_without_a_name)
{
	struct steps steps;
	int fd, status;
	pid_t pid;

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 01777));
	CHECK(steps_open(&steps));
	pid = fork();
	if (!pid)
		_exit(send_own_region(&steps));
	fd = receive_fd(steps.ends[0]);
	CHECK(!import_error(fd));
	close(fd);
	CHECK(send_byte(steps.ends[0]));
	fd = receive_fd(steps.ends[0]);
	CHECK(import_error(fd) == -EPROTO);
	close(fd);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	steps_close(&steps);
	CHECK(!chmod(directory, 0700));
}

struct few {
	unsigned int left;
	int fd;
};

static int import_with_few_descriptors(void *data)
{
	const struct few *few = data;

	return leave_descriptors(few->left) ? -import_error(few->fd) : -1;
}

TEST(import_with_few_descriptors_does_not_take_another_users_region_for_a_file_without_a_name)
{
	struct few few = { 0 };
	int err = EMFILE, status;
	struct steps steps;
	pid_t pid;

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 01777));
	CHECK(steps_open(&steps));
	pid = fork();
	if (!pid)
		_exit(send_own_region(&steps));
	few.fd = receive_fd(steps.ends[0]);
	for (; err == EMFILE && few.left < 16; few.left++)
		err = in_child(import_with_few_descriptors, &few);
	close(few.fd);
	CHECK(send_byte(steps.ends[0]));
	close(receive_fd(steps.ends[0]));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	steps_close(&steps);
	CHECK(!chmod(directory, 0700));
	CHECK(!err);
}

TEST(import_takes_the_callers_own_file_without_a_name)
{
	struct tshare_region *region = new_region("own");

	CHECK(!tshare_ctx_unlink(ctx, "own"));
	CHECK(!import_error(tshare_region_get_fd(region)));
	tshare_region_unref(region);
}

/* Exit status of a child that may not make a user namespace. */
enum { NO_NAMESPACE = 78 };

/* In a user namespace that gives nobody an id. */
static int import_without_an_id(void *data)
{
	const int *fds = data;

	if (unshare(CLONE_NEWUSER))
		return NO_NAMESPACE;
	if (import_error(fds[0]) != -EPROTO)
		return 1;
	return import_error(fds[1]) ? 2 : 0;
}

TEST(import_takes_no_other_users_file_for_the_callers_own_where_both_have_no_id)
{
	struct tshare_region *theirs, *own;
	int fds[2], status;

	if (geteuid())
		SKIP("needs root, to be two users");
	theirs = new_region("theirs");
	own = new_region("own");
	CHECK(!tshare_ctx_unlink(ctx, "theirs") && !tshare_ctx_unlink(ctx, "own"));
	fds[0] = tshare_region_get_fd(theirs);
	fds[1] = tshare_region_get_fd(own);
	CHECK(!fchown(fds[0], USER_ONE, USER_ONE));
	status = in_child(import_without_an_id, fds);
	tshare_region_unref(theirs);
	tshare_region_unref(own);
	if (status == NO_NAMESPACE)
		SKIP("may not make namespaces");
	CHECK(!status);
}

static struct {
	int shared, small, large;
	atomic_bool enough;
} swapping;

static void *swap_descriptors(void *unused)
{
	while (!atomic_load(&swapping.enough)) {
		dup2(swapping.small, swapping.shared);
		dup2(swapping.large, swapping.shared);
	}
	return unused;
}

TEST(import_takes_what_it_has_checked)
{
	struct tshare_region *small = new_region(NULL), *large, *imported;
	int i, mixed = 0;
	pthread_t thread;
	struct stat st;

	CHECK(!tshare_region_create(ctx, NULL, 1 << 16, NULL, 0, NULL, &large));
	swapping.small = tshare_region_get_fd(small);
	swapping.large = tshare_region_get_fd(large);
	swapping.shared = dup(swapping.small);
	CHECK(!pthread_create(&thread, NULL, swap_descriptors, NULL));
	for (i = 0; i < 20000; i++) {
		CHECK(!tshare_region_import(ctx, swapping.shared, 0, &imported));
		CHECK(!fstat(tshare_region_get_fd(imported), &st));
		mixed += (uint64_t)st.st_size != tshare_region_get_size(imported) + 4096;
		tshare_region_unref(imported);
	}
	atomic_store(&swapping.enough, true);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!mixed);
	close(swapping.shared);
	tshare_region_unref(large);
	tshare_region_unref(small);
}

int main(void)
{
	return shm_main();
}
