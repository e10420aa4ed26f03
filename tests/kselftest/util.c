// SPDX-License-Identifier: GPL-2.0-only

#include <grp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <linux/capability.h>

#include "util.h"

/* Runs before the constructors of the programs, which may call the device: see Makefile. */
static void __attribute__((constructor)) gate(void)
{
	/* A test ends with _exit(), which would drop buffered output. */
	setlinebuf(stdout);
	if (geteuid())
		ksft_exit_skip("must be root\n");
	if (access(DEVICE, R_OK | W_OK))
		ksft_exit_skip("no %s: %m\n", DEVICE);
}

int xioctl(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

int open_device(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

struct tshare_create create_args(__u64 size, const char *name)
{
	struct tshare_create args = {
		.size = size,
		.mode = 0600,
	};

	if (name)
		snprintf(args.name, sizeof(args.name), "%s", name);
	return args;
}

void set_node(struct tshare_create *args, __s32 node)
{
	args->flags |= TSHARE_CREATE_NODE;
	args->node = node;
}

int do_create(int dev, struct tshare_create *args)
{
	int err = xioctl(dev, TSHARE_IOCTL_CREATE, args);

	return err ? err : args->fd;
}

int create(int dev, __u64 size, const char *name)
{
	struct tshare_create args = create_args(size, name);

	return do_create(dev, &args);
}

int create_mode(int dev, __u64 size, const char *name, __u32 mode)
{
	struct tshare_create args = create_args(size, name);

	args.mode = mode;
	return do_create(dev, &args);
}

int create_flags(int dev, __u64 size, const char *name, __u32 flags)
{
	struct tshare_create args = create_args(size, name);

	args.flags = flags;
	return do_create(dev, &args);
}

int create_persistent(int dev, __u64 size, const char *name)
{
	return create_flags(dev, size, name, TSHARE_CREATE_PERSIST);
}

int create_draft(int dev, const char *name)
{
	return create_flags(dev, PAGE, name, TSHARE_CREATE_DRAFT);
}

int finish_flags(int dev, int fd, __u32 flags)
{
	struct tshare_finish args = { .fd = fd, .flags = flags };

	return xioctl(dev, TSHARE_IOCTL_FINISH, &args);
}

int finish(int dev, int fd)
{
	return finish_flags(dev, fd, 0);
}

int finish_replacing(int dev, int fd)
{
	return finish_flags(dev, fd, TSHARE_FINISH_REPLACE);
}

int open_name(int dev, const char *name, __u32 flags)
{
	struct tshare_open args = { .flags = flags };
	int err;

	snprintf(args.name, sizeof(args.name), "%s", name);
	err = xioctl(dev, TSHARE_IOCTL_OPEN, &args);
	return err ? err : args.fd;
}

__s64 deadline_in(__s64 ns)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec + ns;
}

int open_id(int dev, __u64 id, __u32 flags)
{
	struct tshare_open args = { .flags = flags, .id = id };
	int err = xioctl(dev, TSHARE_IOCTL_OPEN, &args);

	return err ? err : args.fd;
}

int unlink_name(int dev, const char *name)
{
	struct tshare_unlink args = {};

	snprintf(args.name, sizeof(args.name), "%s", name);
	return xioctl(dev, TSHARE_IOCTL_UNLINK, &args);
}

int unlink_id(int dev, __u64 id)
{
	struct tshare_unlink args = { .id = id };

	return xioctl(dev, TSHARE_IOCTL_UNLINK, &args);
}

int export_range(int dev, int fd, __u64 offset, __u64 size, __u32 flags)
{
	struct tshare_export args = {
		.fd = fd,
		.flags = flags,
		.offset = offset,
		.size = size,
	};
	int err = xioctl(dev, TSHARE_IOCTL_EXPORT, &args);

	return err ? err : args.export_fd;
}

unsigned long counter_inode_of(int dev, int fd, __u64 id)
{
	struct tshare_counter args = { .fd = fd, .id = id };
	struct stat stat;

	if (xioctl(dev, TSHARE_IOCTL_COUNTER, &args) || fstat(args.counter_fd, &stat))
		return 0;
	return stat.st_ino;
}

unsigned long counter_inode(int dev, int fd)
{
	return counter_inode_of(dev, fd, 0);
}

int get_info_of(int dev, int fd, __u64 id, struct tshare_info *info)
{
	*info = (struct tshare_info){ .fd = fd, .id = id };
	return xioctl(dev, TSHARE_IOCTL_INFO, info);
}

int get_info(int dev, int fd, struct tshare_info *info)
{
	return get_info_of(dev, fd, 0, info);
}

__u64 id_of(int dev, int fd)
{
	struct tshare_info info;

	return get_info(dev, fd, &info) ? 0 : info.id;
}

int do_list(int dev, __u32 flags, struct tshare_list_entry *entries, __u32 count)
{
	struct tshare_list args = {
		.entries = (uintptr_t)entries,
		.count = count,
		.entry_size = sizeof(*entries),
		.flags = flags,
	};
	int err = xioctl(dev, TSHARE_IOCTL_LIST, &args);

	return err ? err : (int)args.count;
}

int listed(int dev, __u32 flags, __u64 id)
{
	struct tshare_list_entry entries[16];
	struct tshare_list args = {
		.entries = (uintptr_t)entries,
		.entry_size = sizeof(entries[0]),
		.flags = flags,
	};
	__u32 i;
	int err;

	do {
		args.count = ARRAY_SIZE(entries);
		err = xioctl(dev, TSHARE_IOCTL_LIST, &args);
		if (err)
			return err;
		for (i = 0; i < args.count; i++)
			if (entries[i].id == id)
				return 1;
	} while (args.count == ARRAY_SIZE(entries));
	return 0;
}

bool maps_huge_pages(int dev)
{
	struct tshare_query query = {};

	return !xioctl(dev, TSHARE_IOCTL_QUERY, &query) &&
	       query.features & TSHARE_FEATURE_HUGE_MAP;
}

void *map(int fd, size_t size, int prot)
{
	return mmap(NULL, size, prot, MAP_SHARED, fd, 0);
}

void *map_aligned(int fd, size_t size, int prot)
{
	const size_t align = 2 * MIB;
	char *area, *start;

	area = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (area == MAP_FAILED)
		return area;
	start = (char *)(((uintptr_t)area + align - 1) & ~(align - 1));
	return mmap(start, size, prot, MAP_SHARED | MAP_FIXED, fd, 0);
}

__u64 whole_pages(__u64 size)
{
	return (size + PAGE - 1) & ~(PAGE - 1);
}

void *guarded(size_t size)
{
	size_t whole = whole_pages(size);
	char *area = mmap(NULL, whole + PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED || munmap(area + whole, PAGE))
		abort();
	return area + whole - size;
}

__u64 pattern(__u64 seed, size_t i)
{
	return (seed + i) * 0x9e3779b97f4a7c15ULL;
}

void fill(void *mem, size_t size, __u64 seed)
{
	__u64 *words = mem;
	size_t i;

	for (i = 0; i < size / sizeof(*words); i++)
		words[i] = pattern(seed, i);
}

bool filled(const void *mem, size_t size, __u64 seed)
{
	const __u64 *words = mem;
	size_t i;

	for (i = 0; i < size / sizeof(*words); i++)
		if (words[i] != pattern(seed, i))
			return false;
	return true;
}

bool zeroed(const void *mem, size_t size)
{
	const __u64 *words = mem;
	size_t i;

	for (i = 0; i < size / sizeof(*words); i++)
		if (words[i])
			return false;
	return true;
}

long read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	long value = -1;

	if (file) {
		if (fscanf(file, "%ld", &value) != 1)
			value = -1;
		fclose(file);
	}
	return value;
}

long open_fds(void)
{
	long count = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

struct counters count_all(void)
{
	return (struct counters){
		.regions = read_number(SYSFS "regions"),
		.exports = read_number(SYSFS "exports"),
		.names = read_number(SYSFS "names"),
		.bytes = read_number(SYSFS "bytes"),
		.fds = open_fds(),
	};
}

int rounds(int all)
{
	return getenv("TSHARE_TEST_SHORT") ? (all + 3) / 4 : all;
}

int stress_seconds(int usual)
{
	const char *seconds = getenv("TSHARE_TEST_STRESS");

	return seconds ? atoi(seconds) : usual;
}

bool counters_return_to(struct counters before)
{
	int tries;

	for (tries = 0; tries < 3000; tries++) {
		struct counters now = count_all();

		if (now.regions == before.regions && now.exports == before.exports &&
		    now.names == before.names && now.bytes == before.bytes)
			return true;
		usleep(10000);
	}
	return false;
}

bool act_as(uid_t uid, gid_t gid, gid_t group)
{
	return !setgroups(1, &group) && !setresgid(-1, gid, -1) && !setresuid(-1, uid, -1);
}

bool act_as_user(uid_t uid)
{
	return act_as(uid, uid, uid);
}

bool act_as_root(void)
{
	return !setresuid(-1, 0, -1) && !setresgid(-1, 0, -1) && !setgroups(0, NULL);
}

bool become(uid_t uid)
{
	return !setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid) &&
	       !prctl(PR_SET_DUMPABLE, 1);
}

/* Makes @on the only effective capabilities, or takes those in @off from them. */
static bool change_capabilities(bool only, __u64 on, __u64 off)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int i;

	if (syscall(SYS_capget, &header, data))
		return false;
	for (i = 0; i < 2; i++) {
		if (only)
			data[i].effective = on >> (32 * i);
		data[i].effective &= ~(__u32)(off >> (32 * i));
	}
	return !syscall(SYS_capset, &header, data);
}

bool drop_capability(int cap)
{
	return change_capabilities(false, 0, 1ULL << cap);
}

bool keep_only_capability(int cap)
{
	return change_capabilities(true, 1ULL << cap, 0);
}

int in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(fn(arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

pid_t start_region_maker(struct tshare_create args)
{
	int pipes[2];
	char byte;
	pid_t pid;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (!pid) {
		int fd = do_create(open_device(), &args);
		char *mem = map(fd, args.size, RW);

		if (fd < 0 || mem == MAP_FAILED)
			_exit(1);
		memset(mem, 1, args.size);
		if (write(pipes[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 1)
		pid = -1;
	close(pipes[0]);
	return pid;
}

bool send_fd(int sock, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	return sendmsg(sock, &msg, 0) == 1;
}

int receive_fd(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(sock, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

bool write_file(const char *path, const char *format, ...)
{
	char text[128];
	va_list args;
	int fd, len;
	bool done;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, len) == len;
	close(fd);
	return done;
}
