// SPDX-License-Identifier: MIT
/*
 * What only the backend on POSIX shared memory has: files, which anybody who
 * may write to them can damage. In a directory of its own, where the tests know
 * each file.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

/*
 * The format, written down a second time: a change of it that isn't meant makes
 * these tests fail.
 */
struct header {
	char magic[8];
	uint32_t version;
	uint32_t flags;
	uint64_t id;
	uint64_t size;
	uint64_t data_offset;
	uint32_t mode;
	uint32_t desc_count;
	uint32_t desc_size;
	uint32_t reserved;
	char name[128];
	uint64_t unused;
	uint64_t counter[8];
};

struct descriptor {
	uint64_t byte_offset;
	uint8_t dtype[4];
	uint32_t ndim;
	uint32_t flags;
	uint32_t reserved[3];
	int64_t shape[32];
	int64_t strides[32];
	char name[128];
};

static char directory[] = "/dev/shm/tshare-test-XXXXXX";

/* The directory of a region. */
static const char *home_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/tshare.%s", directory, name);
	return path;
}

/* Its file. */
static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/region", home_of(name));
	return path;
}

static bool has_home(const char *name)
{
	struct stat st;

	return !lstat(home_of(name), &st);
}

static bool has_file(const char *name)
{
	struct stat st;

	return !lstat(path_of(name), &st);
}

/* A named region of a page with one tensor, 4 x 8 uint8, whose maker lives. */
static struct tshare_region *new_victim(const char *name)
{
	static const int64_t shape[] = { 4, 8 };
	struct tshare_spec spec = { "t", TSHARE_UINT8, 2, shape, NULL, 0 };
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, name, 0, &spec, 1, NULL, &region));
	return region;
}

static void write_at(const char *name, off_t offset, const void *bytes, size_t size)
{
	int fd = open(path_of(name), O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(pwrite(fd, bytes, size, offset) == (ssize_t)size);
	close(fd);
}

static int open_error(const char *name)
{
	struct tshare_region *region;
	int err;

	err = tshare_region_open(ctx, name, 0, &region);
	if (!err)
		tshare_region_unref(region);
	return err;
}

/* Overwrites bytes of a fresh region's file; what opening it then gives. */
static int damage(off_t offset, const void *bytes, size_t size)
{
	struct tshare_region *region = new_victim("victim");
	int err;

	write_at("victim", offset, bytes, size);
	err = open_error("victim");
	CHECK(!tshare_unlink(ctx, "victim"));
	tshare_region_unref(region);
	return err;
}

static int damage32(off_t offset, uint32_t value)
{
	return damage(offset, &value, sizeof(value));
}

static int damage64(off_t offset, uint64_t value)
{
	return damage(offset, &value, sizeof(value));
}

#define HEADER(member) offsetof(struct header, member)
#define DESC(member)   (sizeof(struct header) + offsetof(struct descriptor, member))

TEST(undamaged_files_are_taken)
{
	CHECK(!damage32(HEADER(version), 2));
	CHECK(!damage32(HEADER(desc_count), 1));
	CHECK(!damage64(DESC(shape[0]), 4));
}

TEST(the_magic_is_checked)
{
	CHECK(damage(HEADER(magic), "T", 1) == -EPROTO);
	CHECK(error_says("damaged"));
}

TEST(the_version_is_checked)
{
	CHECK(damage32(HEADER(version), 0) == -EPROTO);
	CHECK(damage32(HEADER(version), 1) == -EPROTO);
	CHECK(damage32(HEADER(version), 3) == -EPROTO);
}

TEST(the_counter_is_whatever_it_is)
{
	uint64_t any[8];

	memset(any, 0xa5, sizeof(any));
	CHECK(!damage(HEADER(counter), any, sizeof(any)));
}

/* 0 if somebody wakes who sleeps on a counter; 1 if nobody does, though it changes. */
static int sleep_on_counter(void *data)
{
	const struct timespec timeout = { .tv_sec = 10 };
	volatile uint32_t *word = (uint32_t *)((char *)data + HEADER(counter));

	for (;;) {
		if (!syscall(SYS_futex, word, FUTEX_WAIT, *word, &timeout, NULL, 0))
			return 0;
		if (errno == ETIMEDOUT)
			return 1;
	}
}

/* A wait of the library's looks again after a while, and so would never miss it. */
TEST(a_publish_wakes_who_sleeps_on_the_counter)
{
	struct tshare_region *region = new_victim("woken");
	void *file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, tshare_region_fd(region), 0);
	int status;
	pid_t pid;

	CHECK(file != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(sleep_on_counter(file));
	do {
		CHECK(!tshare_region_publish(region, NULL));
		usleep(10000);
	} while (!waitpid(pid, &status, WNOHANG));
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	munmap(file, 4096);
	tshare_region_unref(region);
}

TEST(flags_and_reserved_members_are_checked)
{
	CHECK(damage32(HEADER(flags), 2) == -EPROTO);
	CHECK(damage32(HEADER(reserved), 1) == -EPROTO);
}

TEST(the_size_is_checked)
{
	CHECK(damage64(HEADER(size), 0) == -EPROTO);
	CHECK(damage64(HEADER(size), 1) == -EPROTO);
	CHECK(damage64(HEADER(size), 8192) == -EPROTO);
	CHECK(damage64(HEADER(size), -4096) == -EPROTO);
	CHECK(damage64(HEADER(size), 1ULL << 63) == -EPROTO);
}

TEST(the_place_of_the_data_is_checked)
{
	CHECK(damage64(HEADER(data_offset), 0) == -EPROTO);
	CHECK(damage64(HEADER(data_offset), 1) == -EPROTO);
	CHECK(damage64(HEADER(data_offset), 8192) == -EPROTO);
	CHECK(damage64(HEADER(data_offset), -4096) == -EPROTO);
}

TEST(the_mode_is_checked)
{
	CHECK(damage32(HEADER(mode), 01000) == -EPROTO);
}

TEST(the_number_of_descriptors_is_checked)
{
	CHECK(damage32(HEADER(desc_count), TSHARE_TENSOR_LIMIT + 1) == -EPROTO);
	CHECK(damage32(HEADER(desc_count), UINT32_MAX) == -EPROTO);
	/* So many that they would reach into the data. */
	CHECK(damage32(HEADER(desc_count), 7) == -EPROTO);
	CHECK(damage32(HEADER(desc_size), sizeof(struct descriptor) - 1) == -EPROTO);
}

TEST(the_name_is_checked)
{
	char endless[128];

	memset(endless, 'n', sizeof(endless));
	CHECK(damage(HEADER(name), "other", 6) == -EPROTO);
	CHECK(damage(HEADER(name), endless, sizeof(endless)) == -EPROTO);
}

TEST(descriptors_are_checked)
{
	CHECK(damage64(DESC(byte_offset), 4096) == -EPROTO);
	CHECK(damage(DESC(dtype[1]), "\0", 1) == -EPROTO);
	CHECK(damage(DESC(dtype[2]), "\0\0", 2) == -EPROTO);
	CHECK(damage32(DESC(ndim), 33) == -EPROTO);
	CHECK(damage32(DESC(flags), 1) == -EPROTO);
	CHECK(damage32(DESC(reserved[2]), 1) == -EPROTO);
	CHECK(damage64(DESC(shape[0]), -1) == -EPROTO);
	CHECK(damage64(DESC(shape[0]), 1 << 20) == -EPROTO);
	CHECK(damage64(DESC(shape[31]), 1) == -EPROTO);
	CHECK(damage64(DESC(strides[0]), 1 << 20) == -EPROTO);
	CHECK(damage64(DESC(strides[0]), -1) == -EPROTO);
	CHECK(error_says("damaged"));
}

TEST(truncated_files_are_refused)
{
	static const off_t sizes[] = { 0,    1,	  sizeof(struct header) - 1, sizeof(struct header),
				       4096, 8191 };
	struct tshare_region *region;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		region = new_victim("short");
		CHECK(!truncate(path_of("short"), sizes[i]));
		CHECK(open_error("short") == -EPROTO);
		CHECK(!tshare_unlink(ctx, "short"));
		tshare_region_unref(region);
	}
}

/* Deterministic noise over header and descriptor: nothing that opens may be out of bounds. */
TEST(random_damage_never_leads_outside)
{
	uint64_t noise = 88172645463325252ULL;
	struct tshare_tensor *tensor;
	struct tshare_region *region, *opened;
	unsigned char byte;
	char last;
	off_t offset;
	int i;

	for (i = 0; i < 2000; i++) {
		noise ^= noise << 13;
		noise ^= noise >> 7;
		noise ^= noise << 17;
		offset = noise % (sizeof(struct header) + sizeof(struct descriptor));
		byte = noise >> 32;
		region = new_victim("noise");
		write_at("noise", offset, &byte, 1);
		if (!tshare_region_open(ctx, "noise", 0, &opened)) {
			CHECK(tshare_region_size(opened) == 4096);
			if (!tshare_region_tensor(opened, 0, &tensor)) {
				last = *(volatile char *)tshare_tensor_data(tensor);
				(void)last;
				tshare_tensor_unref(tensor);
			}
			tshare_region_unref(opened);
		}
		CHECK(!tshare_unlink(ctx, "noise"));
		tshare_region_unref(region);
	}
}

TEST(an_import_checks_the_header_too)
{
	struct tshare_region *region = new_victim("import"), *imported;
	uint64_t size = 1 << 30;

	write_at("import", HEADER(size), &size, sizeof(size));
	CHECK(tshare_region_import(ctx, tshare_region_fd(region), 0, &imported) == -EPROTO);
	write_at("import", HEADER(magic), "T", 1);
	CHECK(tshare_region_import(ctx, tshare_region_fd(region), 0, &imported) == -EINVAL);
	tshare_region_unref(region);
}

/* A descriptor with a region's bytes in a memfd that has those seals. */
static int copy_of(struct tshare_region *region, int seals)
{
	int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;

	CHECK(!fstat(tshare_region_fd(region), &st));
	CHECK(sendfile(fd, tshare_region_fd(region), &(off_t){ 0 }, st.st_size) == st.st_size);
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

TEST(import_refuses_files_of_other_file_systems)
{
	struct tshare_region *region = new_region(NULL);
	char path[] = "/var/tmp/tshare-test-XXXXXX";
	int fd = mkstemp(path);
	struct stat st, there;

	CHECK(fd >= 0 && !unlink(path));
	CHECK(!fstat(tshare_region_fd(region), &st) && !fstat(fd, &there));
	CHECK(sendfile(fd, tshare_region_fd(region), &(off_t){ 0 }, st.st_size) == st.st_size);
	CHECK(import_error(fd) == -EINVAL);
	close(fd);
	tshare_region_unref(region);
}

/* Fails in a child that a signal ends if that takes long. */
static int import_in_time(void *fd)
{
	alarm(20);
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

/*
 * Mounts a FUSE whose server never answers, in a mount namespace of the process's
 * own; -1 where that is not possible, or what the server would read from.
 */
static int mount_silent_fuse(const char *path)
{
	static const char format[] = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other";
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[96];

	snprintf(options, sizeof(options), format, device);
	if (device < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	return mount("fuse", path, "fuse", 0, options) ? -1 : device;
}

enum { NO_FUSE = 77 };

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

/* Opens a file of the process's own anew, with a lease that it won't give up before it must. */
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

	alarm(20);
	return tshare_region_import(ctx, *(int *)fd, 0, &region) ||
	       tshare_region_publish(region, NULL) != -EACCES;
}

static int import_readonly_in_time(void *fd)
{
	struct tshare_region *region;

	alarm(20);
	return tshare_region_import(ctx, *(int *)fd, TSHARE_READONLY, &region) ||
	       !tshare_region_readonly(region);
}

TEST(nobody_waits_for_a_lease)
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

/* Sends a region of its own whose name the parent can look for, and again when that is gone. */
static int send_own_region(void *data)
{
	struct steps *steps = data;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int fd;

	if (!become(USER_ONE) || tshare_ctx_new(&own) ||
	    tshare_region_create(own, "sent", 1, NULL, 0, NULL, &region))
		return 1;
	fd = tshare_region_fd(region);
	return !(send_fd(steps->ends[1], fd) && await_byte(steps->ends[1]) &&
		 !tshare_unlink(own, "sent") && send_fd(steps->ends[1], fd));
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

TEST(import_takes_the_callers_own_file_without_a_name)
{
	struct tshare_region *region = new_region("own");

	CHECK(!tshare_unlink(ctx, "own"));
	CHECK(!import_error(tshare_region_fd(region)));
	tshare_region_unref(region);
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
	swapping.small = tshare_region_fd(small);
	swapping.large = tshare_region_fd(large);
	swapping.shared = dup(swapping.small);
	CHECK(!pthread_create(&thread, NULL, swap_descriptors, NULL));
	for (i = 0; i < 20000; i++) {
		CHECK(!tshare_region_import(ctx, swapping.shared, 0, &imported));
		CHECK(!fstat(tshare_region_fd(imported), &st));
		mixed += (uint64_t)st.st_size != tshare_region_size(imported) + 4096;
		tshare_region_unref(imported);
	}
	atomic_store(&swapping.enough, true);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!mixed);
	close(swapping.shared);
	tshare_region_unref(large);
	tshare_region_unref(small);
}

TEST(links_are_not_followed)
{
	struct tshare_region *region = new_victim("target"), *other;

	CHECK(!symlink("tshare.target", home_of("link")));
	CHECK(open_error("link") == -EPROTO);
	CHECK(tshare_region_create(ctx, "link", 1, NULL, 0, NULL, &other) == -EEXIST);
	CHECK(!tshare_unlink(ctx, "link"));
	CHECK(!has_home("link"));
	CHECK(!mkdir(home_of("link"), 0755));
	CHECK(!symlink("../tshare.target/region", path_of("link")));
	CHECK(open_error("link") == -EPROTO);
	CHECK(tshare_region_create(ctx, "link", 1, NULL, 0, NULL, &other) == -EEXIST);
	CHECK(!tshare_unlink(ctx, "link"));
	CHECK(has_file("target"));
	tshare_region_unref(region);
}

static bool spend_descriptors(void)
{
	struct rlimit limit = {};
	int next = dup(0);

	limit.rlim_cur = limit.rlim_max = next;
	return next >= 0 && !close(next) && !setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(create_without_a_free_descriptor_does_not_take_the_name_for_taken)
{
	struct tshare_region *region;
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(!spend_descriptors() ||
		      tshare_region_create(ctx, "free", 1, NULL, 0, NULL, &region) != -EMFILE);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!status);
}

/* As older sandboxes do with system calls that they don't know. */
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
		_exit(!deny_openat2() || tshare_region_open(ctx, "filtered", 0, &other) ||
		      open_error("absent") != -ENOENT);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!status);
	tshare_region_unref(region);
}

TEST(what_is_no_file_is_refused)
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

TEST(foreign_files_are_left_alone)
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
	CHECK(!tshare_unlink(ctx, "foreign"));
}

static int ignore(const struct tshare_region_info *info, void *data)
{
	(void)info;
	(void)data;
	return 0;
}

static int use_names_beside_silent_fuse(void *name)
{
	struct tshare_region *region;

	if (mount_silent_fuse(home_of(name)) < 0)
		return NO_FUSE;
	alarm(20);
	close_context();
	open_context();
	if (tshare_region_create(ctx, "beside", 1, NULL, 0, NULL, &region) || open_error("beside"))
		return 1;
	return tshare_list(ctx, ignore, NULL) || open_error(name) != -EPROTO ||
	       !tshare_unlink(ctx, name) || tshare_unlink(ctx, "beside");
}

TEST(nobody_waits_for_what_is_mounted_on_a_home)
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

TEST(an_empty_home_is_no_region)
{
	CHECK(!mkdir(home_of("empty"), 0755));
	CHECK(open_error("empty") == -ENOENT);
	tshare_region_unref(new_region("empty"));
	CHECK(has_file("empty"));
	CHECK(!tshare_unlink(ctx, "empty"));
	CHECK(!has_home("empty"));
}

static int create_and_be_killed(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!tshare_ctx_new(&own) && !tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
		kill(getpid(), SIGKILL);
	return 1;
}

static void leave_dead(char *name)
{
	CHECK(in_child(create_and_be_killed, name) == -1);
	CHECK(has_file(name));
}

TEST(list_removes_what_the_dead_have_left)
{
	char name[] = "dead-listed";

	leave_dead(name);
	CHECK(!tshare_list(ctx, ignore, NULL));
	CHECK(!has_file(name));
}

TEST(the_first_create_removes_what_the_dead_have_left)
{
	char name[] = "dead-swept", persists[] = "persists";
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region *living, *region;

	options.flags = TSHARE_PERSIST;
	living = new_region("lives");
	leave_dead(name);
	CHECK(!tshare_region_create(ctx, persists, 1, NULL, 0, &options, &region));
	tshare_region_unref(region);
	CHECK(has_file(name));
	close_context();
	open_context();
	CHECK(has_file(name));
	CHECK(!tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region));
	tshare_region_unref(region);
	CHECK(!has_file(name));
	CHECK(has_file(persists));
	CHECK(has_file("lives"));
	CHECK(!tshare_unlink(ctx, persists));
	tshare_region_unref(living);
}

TEST(a_later_create_removes_what_the_dead_have_left)
{
	char name[] = "dead-later";
	int i;

	tshare_region_unref(new_region("first"));
	leave_dead(name);
	/* The next sweep is a second after the one before, or later where that took long. */
	for (i = 0; i < 100 && has_home(name); i++) {
		usleep(100000);
		tshare_region_unref(new_region(NULL));
	}
	CHECK(!has_home(name));
}

static int create_and_exit(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(&own) || tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
		return 1;
	exit(0);
}

TEST(exit_removes_names)
{
	char name[] = "exited";

	CHECK(!in_child(create_and_exit, name));
	CHECK(!has_home(name));
}

static int just_exit(void *unused)
{
	(void)unused;
	exit(0);
}

TEST(a_childs_exit_leaves_its_parents_names)
{
	struct tshare_region *region = new_victim("parents");

	CHECK(!in_child(just_exit, NULL));
	CHECK(!open_error("parents"));
	tshare_region_unref(region);
}

TEST(the_dead_of_other_versions_are_left_alone)
{
	struct tshare_region *region;
	char name[] = "dead-other";
	uint32_t version = 3;

	leave_dead(name);
	write_at(name, HEADER(version), &version, sizeof(version));
	CHECK(open_error(name) == -EPROTO);
	CHECK(!tshare_list(ctx, ignore, NULL));
	CHECK(tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region) == -EEXIST);
	CHECK(has_file(name));
	CHECK(!tshare_unlink(ctx, name));
}

TEST(open_removes_what_the_dead_have_left)
{
	char name[] = "dead-opened";

	leave_dead(name);
	CHECK(open_error(name) == -ENOENT);
	CHECK(!has_file(name));
}

TEST(unlink_does_not_find_what_the_dead_have_left)
{
	char name[] = "dead-unlinked";

	leave_dead(name);
	CHECK(tshare_unlink(ctx, name) == -ENOENT);
	CHECK(!has_file(name));
}

static int become_and_create(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(&own) || !become(USER_ONE))
		return 2;
	return tshare_region_create(own, name, 1, NULL, 0, NULL, &region) == -EEXIST &&
			       strstr(tshare_last_error(), "only its user can remove it") ?
		       0 :
		       1;
}

static int leave_readable(void *name)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region *region;
	struct tshare_ctx *own;

	options.mode = 0666;
	if (!tshare_ctx_new(&own) &&
	    !tshare_region_create(own, name, 1, NULL, 0, &options, &region))
		kill(getpid(), SIGKILL);
	return 1;
}

TEST(create_tells_of_a_dead_name_that_only_another_user_can_remove)
{
	char name[] = "dead-other";

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 01777));
	CHECK(in_child(leave_readable, name) == -1);
	CHECK(!in_child(become_and_create, name));
	CHECK(!chmod(directory, 0700));
	CHECK(tshare_unlink(ctx, name) == -ENOENT);
}

TEST(a_readers_lock_keeps_no_dead_name)
{
	struct flock whole_file = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char name[] = "dead-locked";
	int fd;

	CHECK(in_child(leave_readable, name) == -1);
	fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(!fcntl(fd, F_OFD_SETLK, &whole_file));
	tshare_region_unref(new_region(name));
	CHECK(!open_error(name));
	close(fd);
	CHECK(!tshare_unlink(ctx, name));
}

/* Makes a name that is free or dead's, and dies with it; 0 unless it was another's meanwhile. */
static int make_and_die(void *name)
{
	struct tshare_region *region, *found;
	struct tshare_ctx *own;
	int err;

	if (tshare_ctx_new(&own))
		return 1;
	err = tshare_region_create(own, name, 1, NULL, 0, NULL, &region);
	if (err)
		_exit(err != -EEXIST);
	usleep(200);
	if (tshare_region_open(ctx, name, 0, &found))
		_exit(2);
	_exit(tshare_region_id(found) != tshare_region_id(region));
}

static int make_and_die_often(void *name)
{
	int i;

	alarm(60);
	for (i = 0; i < 100; i++)
		if (in_child(make_and_die, name))
			return 1;
	return 0;
}

TEST(nobody_removes_the_living_for_the_dead)
{
	char name[] = "race";
	pid_t pids[4];
	int i, status, failed = 0;

	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(make_and_die_often(name));
	}
	for (i = 0; i < 4; i++)
		failed += waitpid(pids[i], &status, 0) != pids[i] || status;
	CHECK(!failed);
	CHECK(open_error(name) == -ENOENT);
	CHECK(!has_home(name));
}

/* Removes what the dead have left, until it is killed. */
static int sweep_for_ever(void)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	alarm(60);
	while (!tshare_ctx_new(&own)) {
		if (tshare_region_create(own, NULL, 1, NULL, 0, NULL, &region))
			return 1;
		tshare_region_unref(region);
		tshare_ctx_unref(own);
	}
	return 1;
}

TEST(nobody_removes_a_persistent_region_for_its_draft)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	char name[] = "was-a-draft";
	struct tshare_region *region;
	int i, lost = 0;
	pid_t pids[2];

	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(sweep_for_ever());
	}
	options.flags = TSHARE_PERSIST;
	for (i = 0; i < 5000; i++) {
		CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &options, &region));
		tshare_region_unref(region);
		lost += !!tshare_unlink(ctx, name);
	}
	for (i = 0; i < 2; i++)
		CHECK(!kill(pids[i], SIGKILL) && waitpid(pids[i], NULL, 0) == pids[i]);
	CHECK(!lost);
}

TEST(a_draft_of_the_dead_is_removed)
{
	char draft[sizeof(directory) + 32];
	struct tshare_region *region;
	char name[] = "dead-draft";
	struct stat st;

	leave_dead(name);
	snprintf(draft, sizeof(draft), "%s/.tshare.0123456789abcdef", directory);
	CHECK(!rename(home_of(name), draft));
	close_context();
	open_context();
	CHECK(!tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region));
	tshare_region_unref(region);
	CHECK(lstat(draft, &st) && errno == ENOENT);
}

TEST(the_context_removes_its_files)
{
	struct tshare_region *region = new_victim("closed");

	CHECK(has_file("closed"));
	tshare_region_unref(region);
	close_context();
	CHECK(!has_home("closed"));
}

TEST(the_context_removes_files_that_others_have_damaged)
{
	struct tshare_region *region = new_victim("damaged");

	write_at("damaged", HEADER(magic), "T", 1);
	tshare_region_unref(region);
	close_context();
	CHECK(!has_file("damaged"));
}

TEST(a_file_has_the_regions_mode_whatever_the_umask)
{
	mode_t before = umask(0777);
	struct tshare_region *region = new_region_mode("mode", 0644);
	struct stat st;

	umask(before);
	CHECK(!stat(path_of("mode"), &st));
	CHECK((st.st_mode & 07777) == 0644);
	tshare_region_unref(region);
}

TEST(unnamed_regions_cannot_be_resized)
{
	struct tshare_region *region = new_region(NULL);

	CHECK(ftruncate(tshare_region_fd(region), 0) < 0 && errno == EPERM);
	CHECK(ftruncate(tshare_region_fd(region), 1 << 20) < 0 && errno == EPERM);
	tshare_region_unref(region);
}

TEST(memory_is_allocated_at_once)
{
	struct tshare_region *region;
	struct stat st;

	CHECK(!tshare_region_create(ctx, "full", 1 << 20, NULL, 0, NULL, &region));
	CHECK(!fstat(tshare_region_fd(region), &st));
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
	alarm(30);
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

TEST(regions_beyond_the_limits_have_no_memory)
{
	struct tshare_limits limits;
	struct tshare_region *region;

	CHECK(!tshare_ctx_limits(ctx, &limits));
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
	struct tshare_limits before, after;
	char path[sizeof(directory) + 16];
	int fd;

	CHECK(!tshare_ctx_limits(ctx, &before));
	CHECK(before.bytes_used == 8192);
	snprintf(path, sizeof(path), "%s/others", directory);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !posix_fallocate(fd, 0, 1 << 20));
	close(fd);
	CHECK(!tshare_ctx_limits(ctx, &after));
	CHECK(after.bytes_used == before.bytes_used);
	CHECK(!unlink(path));
	tshare_region_unref(region);
}

/* In the directory itself, which has no /proc. */
static int create_without_proc(void *unused)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	(void)unused;
	if (chroot(directory) || chdir("/") || setenv("TSHARE_SHM_DIR", "/", 1) ||
	    tshare_ctx_new(&own))
		return 1;
	if (tshare_region_create(own, NULL, 1, NULL, 0, NULL, &region))
		return 2;
	if (tshare_region_create(own, "no-proc", 1, NULL, 0, NULL, &region) != -ENODEV)
		return 3;
	return !error_says("/proc: is not mounted");
}

TEST(names_without_proc_are_an_error_that_says_so)
{
	if (geteuid())
		SKIP("needs root, to change the root");
	CHECK(!in_child(create_without_proc, NULL));
	CHECK(!has_home("no-proc"));
}

TEST(memory_of_names_that_others_unlinked_is_given_back)
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

TEST(an_unlinked_name_costs_no_descriptor_whatever_links_its_file_has)
{
	struct tshare_region *region = new_region("linked");
	char path[sizeof(directory) + 32];
	struct stat file, st;
	int fd, found = 0;

	snprintf(path, sizeof(path), "%s/kept", directory);
	CHECK(!link(path_of("linked"), path));
	CHECK(!stat(path, &file));
	CHECK(!tshare_unlink(ctx, "linked"));
	tshare_region_unref(region);
	for (fd = 0; fd < 1024; fd++)
		found += !fstat(fd, &st) && st.st_dev == file.st_dev && st.st_ino == file.st_ino;
	CHECK(!unlink(path));
	CHECK(!found);
}

TEST(a_relative_directory_is_refused)
{
	struct tshare_ctx *other;

	CHECK(!setenv("TSHARE_SHM_DIR", "relative", 1));
	CHECK(tshare_ctx_new_backend("shm", &other) == -EINVAL);
	CHECK(!setenv("TSHARE_SHM_DIR", directory, 1));
	CHECK(error_says("TSHARE_SHM_DIR"));
}

TEST(without_the_directory_there_is_no_backend)
{
	struct tshare_ctx *other;

	CHECK(!setenv("TSHARE_SHM_DIR", "/nonexistent", 1));
	CHECK(tshare_ctx_new_backend("shm", &other) == -ENODEV);
	CHECK(!setenv("TSHARE_SHM_DIR", directory, 1));
}

int main(void)
{
	int status;

	if (!mkdtemp(directory) || setenv("TSHARE_SHM_DIR", directory, 1) ||
	    setenv("TSHARE_BACKEND", "shm", 1))
		return 1;
	status = tap_main(open_context, close_context);
	if (rmdir(directory)) {
		printf("# %s: %s\n", directory, strerror(errno));
		status = 1;
	}
	return status;
}
