/* SPDX-License-Identifier: GPL-2.0-only */
/* The calls that the fuzzer makes: the device's commands, and what else a process can do. */
#ifndef TSHARE_KSELFTEST_FUZZ_CALLS_H
#define TSHARE_KSELFTEST_FUZZ_CALLS_H

#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/mempolicy.h>
#include <linux/udmabuf.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "fuzz_state.h"

/**
 * struct fuzz_call - one call of a program
 * @op: index in fuzz_ops
 * @thread: the thread that makes the call, from 0
 * @fail: 0, or which allocation of the call is to fail, from 1
 * @arg: what the operation makes its arguments of
 */
struct fuzz_call {
	__u8 op;
	__u8 thread;
	__u8 fail;
	__u32 arg[FUZZ_ARGS];
};

/* What all processes count together. */
struct fuzz_counts {
	__u64 programs;
	__u64 ioctls;
	__u64 succeeded;
	/* Whether a limit of the module is not what it was. */
	__u32 limited;
	/* Errors that the header doesn't name, and the last of them. */
	__u64 wrong;
	__u32 wrong_cmd;
	int wrong_error;
};

static struct fuzz_counts *fuzz_counts;

static __thread struct fuzz_thread fuzz_thread;

/* The calls that a thread makes meanwhile end by a signal. */
static void fuzz_set_alarm(bool on)
{
	struct itimerspec when = {};

	if (on) {
		when.it_value.tv_nsec = 2000000;
		when.it_interval.tv_nsec = 2000000;
	}
	if (fuzz_thread.has_timer)
		timer_settime(fuzz_thread.timer, 0, &when, NULL);
}

static void fuzz_set_fail(int nth)
{
	char text[8];

	if (fuzz_thread.fail_nth >= 0)
		pwrite(fuzz_thread.fail_nth, text, sprintf(text, "%d", nth), 0);
}

/* The errors in the header. ENOSYS isn't there, and no error that only the kernel may see. */
static bool fuzz_documented(int error)
{
	static const int errors[] = {
		E2BIG,	EACCES,	     EAGAIN, EBADF,  EDQUOT,	   EEXIST, EFAULT,
		EINTR,	EINVAL,	     EINPROGRESS, EIO, EMFILE, ENAMETOOLONG, ENFILE,
		ENOENT, ENOMEM,	     ENOTTY, EPERM,  ERANGE,	   EOPNOTSUPP,
		ETIMEDOUT,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i] == error)
			return true;
	return false;
}

/* @dev is what a device's descriptor should be. */
static int fuzz_count_ioctl(int dev, unsigned int cmd, int ret)
{
	__atomic_add_fetch(&fuzz_counts->ioctls, 1, __ATOMIC_RELAXED);
	if (ret >= 0) {
		__atomic_add_fetch(&fuzz_counts->succeeded, 1, __ATOMIC_RELAXED);
	} else if (!fuzz_documented(-ret)) {
		struct stat stat;

		/* Of another driver's file nothing is known. */
		if (fstat(dev, &stat) || !S_ISCHR(stat.st_mode))
			return ret;
		fuzz_counts->wrong_cmd = cmd;
		fuzz_counts->wrong_error = -ret;
		__atomic_add_fetch(&fuzz_counts->wrong, 1, __ATOMIC_RELAXED);
	}
	return ret;
}

/*
 * Whether a byte of a command's struct says where the kernel stores an array, or how many elements.
 * With another value the kernel would store into the fuzzer's own memory.
 */
static bool fuzz_is_destination(unsigned int cmd, size_t at)
{
	switch (cmd) {
	case TSHARE_IOCTL_OPEN:
		return at - offsetof(struct tshare_open, descs) < sizeof(__u64);
	case TSHARE_IOCTL_INFO:
		return at - offsetof(struct tshare_info, descs) < sizeof(__u64);
	case TSHARE_IOCTL_LIST:
		return at >= offsetof(struct tshare_list, entries) &&
		       at < offsetof(struct tshare_list, flags);
	default:
		return false;
	}
}

/**
 * fuzz_ioctl() - make a command's call, seldom with a struct or a number that is wrong
 * @call: what makes the call: its first number picks the device, its last one what is wrong
 * @cmd: the command
 * @args: its struct, into which the kernel's is copied
 *
 * Return: what ioctl() does.
 */
static int fuzz_ioctl(const struct fuzz_call *call, unsigned int cmd, void *args)
{
	static __thread char buffer[4 * PAGE];
	size_t size = _IOC_SIZE(cmd), other = size;
	__u32 twist = call->arg[5];
	int dev = fuzz_fd(FUZZ_DEVICE, call->arg[0]), ret;
	void *place;

	memcpy(buffer, args, size);
	switch (twist % 32) {
	case 0:
		if (!fuzz_is_destination(cmd, twist / 32 % size))
			buffer[twist / 32 % size] = twist >> 20;
		break;
	case 1:
		other = twist / 32 % (2 * PAGE);
		memset(buffer + size, 0, 2 * PAGE);
		break;
	case 2:
		other = size + 8 * (twist / 32 % 16);
		memset(buffer + size, 0, 8 * 16);
		memset(buffer + size, twist >> 24, 8);
		break;
	case 3:
		other = size - twist / 32 % size;
		break;
	default:
		break;
	}
	place = fuzz_place(buffer, other, twist / 32 % 2 ? 31 : twist >> 8);
	if (call->fail)
		fuzz_set_fail(call->fail);
	ret = xioctl(dev, _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), other), place);
	if (call->fail)
		fuzz_set_fail(0);
	fuzz_count_ioctl(dev, cmd, ret);
	if (!fuzz_copy(args, place, size) && !ret)
		memset(args, 0xff, size);
	return ret;
}

/* Descriptors of tensors: a few, many, or damaged ones. */
static void fuzz_descs(__u32 number, __u64 *descs, __u32 *size, __u32 *count)
{
	static __thread char buffer[32 * KIB];
	struct records *records = number % 4 == 3 ? &fuzz.many : &fuzz.few;
	__u64 word = fuzz_offset(number >> 20);

	if (number % 4 < 2)
		return;
	memcpy(buffer, records->data, records->size);
	*size = records->size;
	*count = records->count;
	number >>= 2;
	switch (number % 16) {
	case 0:
		buffer[number / 16 % 256] ^= 1U << (number >> 12) % 8;
		break;
	case 1:
		memcpy(buffer + number / 16 % 32 * 8, &word, sizeof(word));
		break;
	case 2:
		*size = fuzz_size(number / 16);
		break;
	case 3:
		*count = fuzz_size(number / 16);
		break;
	default:
		break;
	}
	*descs = (uintptr_t)fuzz_place(buffer, records->size, number / 16);
}

static int op_query(const struct fuzz_call *call)
{
	struct tshare_query args = { .flags = fuzz_flags(call->arg[1], 1) };

	return fuzz_ioctl(call, TSHARE_IOCTL_QUERY, &args);
}

static int op_create(const struct fuzz_call *call)
{
	struct tshare_create args = {
		.size = fuzz_size(call->arg[1]),
		.flags = fuzz_flags(call->arg[2], 8),
		.mode = fuzz_mode(call->arg[3]),
		.reserved = call->arg[3] % 256 == 255,
	};
	int ret;

	fuzz_name(args.name, call->arg[3] >> 8);
	fuzz_descs(call->arg[4], &args.descs, &args.descs_size, &args.desc_count);
	if (args.flags & TSHARE_CREATE_DMABUF) {
		args.fd = fuzz_fd(FUZZ_FOREIGN, call->arg[1]);
		args.size = call->arg[1] & 1 ? args.size : 0;
	}
	if (args.flags & TSHARE_CREATE_NODE)
		args.node = call->arg[1] % 16 == 15 ? (__s32)call->arg[1] : 0;
	ret = fuzz_ioctl(call, TSHARE_IOCTL_CREATE, &args);
	if (ret)
		return ret;
	fuzz_thread.last_id = args.id;
	return fuzz_keep(args.fd, args.flags & TSHARE_CREATE_DMABUF ? FUZZ_FOREIGN : FUZZ_DMABUF);
}

/* The id that the thread has seen last, or one near it. */
static __u64 fuzz_id(__u32 number)
{
	return number % 8 ? fuzz_thread.last_id - number / 8 % 3 : number;
}

static int op_open(const struct fuzz_call *call)
{
	static __thread char descs[32 * KIB];
	static const __s64 times[] = { 0, 0, 0, 1, 100000, 1000000, -1, 1LL << 62, FOR_EVER };
	const __s64 time = times[call->arg[2] % ARRAY_SIZE(times)];
	struct tshare_open args = {
		.flags = fuzz_flags(call->arg[1], 2),
		.descs_size = fuzz_size(call->arg[4]),
		.deadline_ns = time > 1 && time < FOR_EVER ? deadline_in(time) : time,
		.draft = call->arg[2] % 128 == 127,
	};
	int ret;

	args.descs = (uintptr_t)fuzz_place(descs, sizeof(descs), call->arg[4] >> 8);
	if (call->arg[3] % 4)
		fuzz_name(args.name, call->arg[3] >> 2);
	else
		args.id = fuzz_id(call->arg[3] >> 2);
	if (call->arg[2] >> 8 & 1)
		args.other_than = fuzz_id(call->arg[2] >> 9);
	if (args.deadline_ns)
		fuzz_set_alarm(true);
	ret = fuzz_ioctl(call, TSHARE_IOCTL_OPEN, &args);
	if (args.deadline_ns)
		fuzz_set_alarm(false);
	if (ret)
		return ret;
	fuzz_thread.last_id = args.id;
	return fuzz_keep(args.fd, FUZZ_DMABUF);
}

static int op_unlink(const struct fuzz_call *call)
{
	struct tshare_unlink args = {};

	if (call->arg[1] % 4)
		fuzz_name(args.name, call->arg[2]);
	if (call->arg[1] % 8 < 5)
		args.id = call->arg[1] % 4 ? 0 : fuzz_id(call->arg[2]);
	return fuzz_ioctl(call, TSHARE_IOCTL_UNLINK, &args);
}

/* Most often of the device's own dma-bufs, and also of a foreign region's. */
static int fuzz_region(__u32 number)
{
	return fuzz_fd(number % 8 == 7 ? FUZZ_FOREIGN : FUZZ_DMABUF, number >> 3);
}

static int op_info(const struct fuzz_call *call)
{
	static __thread char descs[32 * KIB];
	struct tshare_info args = {
		.fd = fuzz_region(call->arg[1]),
		.id = call->arg[2] % 2 ? fuzz_id(call->arg[2] >> 6) : 0,
		.flags = call->arg[2] % 64 == 63,
		.descs_size = fuzz_size(call->arg[3]),
		.reserved = call->arg[2] % 64 == 62,
	};
	int ret;

	args.descs = (uintptr_t)fuzz_place(descs, sizeof(descs), call->arg[4]);
	ret = fuzz_ioctl(call, TSHARE_IOCTL_INFO, &args);
	if (!ret)
		fuzz_thread.last_id = args.id;
	return ret;
}

static int op_list(const struct fuzz_call *call)
{
	static __thread char entries[8 * PAGE];
	struct tshare_list args = {
		.cursor = call->arg[1] % 4 ? 0 : fuzz_id(call->arg[1] >> 2),
		.count = call->arg[2] % 8 == 7 ? call->arg[2] : call->arg[2] / 8 % 8,
		.entry_size = sizeof(struct tshare_list_entry),
		.flags = fuzz_flags(call->arg[3], 1),
		.reserved = call->arg[3] % 256 == 255,
	};

	if (call->arg[4] % 8 == 7)
		args.entry_size = fuzz_size(call->arg[4] >> 3);
	args.entries = (uintptr_t)fuzz_place(entries, sizeof(entries), call->arg[4] >> 8);
	/* A call that counts more entries than there is room for gets memory that faults. */
	if ((__u64)args.count * args.entry_size > sizeof(entries))
		args.entries = (uintptr_t)fuzz.edge - PAGE;
	return fuzz_ioctl(call, TSHARE_IOCTL_LIST, &args);
}

static int op_counter(const struct fuzz_call *call)
{
	struct tshare_counter args = {
		.fd = fuzz_region(call->arg[1]),
		.id = call->arg[2] & 2 ? fuzz_id(call->arg[2] >> 2) : 0,
		.flags = fuzz_flags(call->arg[2], 1),
	};
	int ret = fuzz_ioctl(call, TSHARE_IOCTL_COUNTER, &args);

	return ret ? ret : fuzz_keep(args.counter_fd, FUZZ_COUNTER);
}

static int op_finish(const struct fuzz_call *call)
{
	struct tshare_finish args = {
		.fd = fuzz_region(call->arg[1]),
		.id = call->arg[2] & 2 ? fuzz_id(call->arg[2] >> 2) : 0,
		.flags = fuzz_flags(call->arg[2], 1),
	};

	return fuzz_ioctl(call, TSHARE_IOCTL_FINISH, &args);
}

static int op_export(const struct fuzz_call *call)
{
	struct tshare_export args = {
		.fd = fuzz_region(call->arg[1]),
		.flags = fuzz_flags(call->arg[2], 2),
		.offset = fuzz_offset(call->arg[3]),
		.size = call->arg[4] % 4 ? fuzz_size(call->arg[4] >> 2) : 0,
	};
	int ret = fuzz_ioctl(call, TSHARE_IOCTL_EXPORT, &args);

	return ret ? ret : fuzz_keep(args.export_fd, FUZZ_DMABUF);
}

static int op_watch(const struct fuzz_call *call)
{
	struct tshare_watch args = { .flags = fuzz_flags(call->arg[1], 1) };
	int ret;

	fuzz_name(args.name, call->arg[2]);
	ret = fuzz_ioctl(call, TSHARE_IOCTL_WATCH, &args);
	return ret ? ret : fuzz_keep(args.fd, FUZZ_OTHER);
}

/* Any number of the device's type, or of none. */
static int op_raw_ioctl(const struct fuzz_call *call)
{
	char buffer[256];
	__u32 type = call->arg[1] % 4 ? TSHARE_IOCTL_MAGIC : call->arg[1] >> 8 & 255;
	__u32 cmd = _IOC(call->arg[2] % 4, type, call->arg[3] % 16, call->arg[3] >> 8 & 255);
	int dev = fuzz_fd(FUZZ_DEVICE, call->arg[0]);

	/* A number that another driver knows may be one that waits, or changes the machine. */
	if (call->arg[0] % 16 == 15)
		return -EINVAL;
	memset(buffer, call->arg[4], sizeof(buffer));
	return fuzz_count_ioctl(dev, cmd, xioctl(dev, cmd, buffer));
}

static int op_device(const struct fuzz_call *call)
{
	static const int modes[] = { O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, O_RDWR | O_NONBLOCK };
	int fd;

	if (call->fail)
		fuzz_set_fail(call->fail);
	fd = open(DEVICE, O_CLOEXEC | modes[call->arg[0] % ARRAY_SIZE(modes)]);
	if (call->fail)
		fuzz_set_fail(0);
	return fuzz_keep(fd < 0 ? -errno : fd, FUZZ_DEVICE);
}

static int op_close(const struct fuzz_call *call)
{
	fuzz_close_slot(call->arg[0] % FUZZ_SLOTS);
	return 0;
}

static int op_dup(const struct fuzz_call *call)
{
	__u32 slot = call->arg[0] % FUZZ_SLOTS;
	int fd = fcntl(fuzz.fds[slot], call->arg[1] & 1 ? F_DUPFD : F_DUPFD_CLOEXEC, 3);

	return fuzz_keep(fd < 0 ? -errno : fd, fuzz.kinds[slot]);
}

/* Through a socket, out of which it may never be taken. */
static int op_pass(const struct fuzz_call *call)
{
	__u32 slot = call->arg[0] % FUZZ_SLOTS;
	int sockets[2], fd = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	if (send_fd(sockets[0], fuzz.fds[slot]) && call->arg[1] & 1)
		fd = receive_fd(sockets[1]);
	close(sockets[0]);
	close(sockets[1]);
	return fuzz_keep(fd, fuzz.kinds[slot]);
}

/* By its entry in /proc, with another mode. */
static int op_reopen(const struct fuzz_call *call)
{
	static const int modes[] = { O_RDONLY, O_RDWR, O_WRONLY, O_PATH };
	__u32 slot = call->arg[0] % FUZZ_SLOTS;
	char path[40];
	int fd;

	sprintf(path, "/proc/self/fd/%d", fuzz.fds[slot]);
	fd = open(path, O_CLOEXEC | O_NONBLOCK | modes[call->arg[1] % ARRAY_SIZE(modes)]);
	return fuzz_keep(fd < 0 ? -errno : fd, fuzz.kinds[slot]);
}

/* Of any file that maps, at an address that fits large entries or doesn't. */
static int fuzz_map_fd(__u32 number)
{
	static const enum fuzz_kind kinds[] = {
		FUZZ_DMABUF, FUZZ_DMABUF, FUZZ_DMABUF, FUZZ_DMABUF, FUZZ_COUNTER, FUZZ_FOREIGN,
		FUZZ_DEVICE,
	};

	if (number % 8 == 7)
		return fuzz.importer;
	return fuzz_fd(kinds[number % 8], number >> 3);
}

static int op_mmap(const struct fuzz_call *call)
{
	static const int prots[] = { RW, RW, RW, PROT_READ, PROT_WRITE, PROT_NONE, RW | PROT_EXEC };
	static const int types[] = { MAP_SHARED, MAP_SHARED, MAP_SHARED, MAP_SHARED,
				     MAP_SHARED, MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE };
	int prot = prots[call->arg[2] % ARRAY_SIZE(prots)];
	int type = types[call->arg[2] / 8 % ARRAY_SIZE(types)];
	__u64 size = fuzz_size(call->arg[1]) % FUZZ_MAP_ROOM;
	__u32 number = call->arg[3];
	int fd = fuzz_map_fd(call->arg[0]);
	char *start;

	if (call->arg[2] / 64 % 4 == 3)
		type |= MAP_POPULATE;
	if (call->arg[2] / 64 % 16 == 4)
		type |= MAP_LOCKED;
	/* The neighbour begins behind. */
	if (size > FUZZ_MAP_ROOM - 16 * PAGE)
		size = PAGE;
	start = fuzz_map_start(number) + (number >> 8 & 1 ? number / 512 % 8 * PAGE : 0);
	if (call->fail)
		fuzz_set_fail(call->fail);
	start = mmap(start, size, prot, type | MAP_FIXED, fd,
		     number >> 16 & 1 ? (off_t)fuzz_offset(number >> 17) : 0);
	if (call->fail)
		fuzz_set_fail(0);
	if (start == MAP_FAILED)
		return -errno;
	fuzz.map_sizes[number % FUZZ_MAPS] = size;
	return 0;
}

/* A part of a mapping, in whole pages. */
static char *fuzz_part(const struct fuzz_call *call, size_t *size)
{
	size_t pages = fuzz.map_sizes[call->arg[0] % FUZZ_MAPS] / PAGE + 1, from;

	from = call->arg[1] & 1 ? call->arg[1] / 2 % pages : 0;
	*size = PAGE * (call->arg[2] & 1 ? call->arg[2] / 2 % (pages - from) + 1 : pages - from);
	return fuzz_map_start(call->arg[0]) + from * PAGE;
}

/* Another thread must get no memory there: the part is mapped as the reserved area is. */
static int op_munmap(const struct fuzz_call *call)
{
	size_t size;
	char *part = fuzz_part(call, &size);

	return mmap(part, size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		    0) == MAP_FAILED ? -errno : 0;
}

static int op_mremap(const struct fuzz_call *call)
{
	size_t size;
	char *part = fuzz_part(call, &size), *to = fuzz_map_start(call->arg[4]);
	__u32 number = call->arg[3];
	const size_t sizes[] = { size, size, size * 2, size / 2, PAGE, 0 };
	size_t new_size = sizes[number / 4 % ARRAY_SIZE(sizes)];
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	if (number % 4 == 3)
		flags |= MREMAP_DONTUNMAP;
	if (new_size > FUZZ_MAP_ROOM / 2)
		new_size = size;
	/* None of the old ones: what is shared is mapped once more. */
	if (number >> 8 & 1)
		size = 0;
	/* What a move leaves behind is reserved again, by whichever call is the next there. */
	return mremap(part, size, new_size, flags, to) == MAP_FAILED ? -errno : 0;
}

static int op_madvise(const struct fuzz_call *call)
{
	/* All but those that act as if memory broke, and those about whole machines. */
	static const int advices[] = {
		MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE,
		MADV_REMOVE, MADV_DONTFORK, MADV_DOFORK, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
		MADV_DONTDUMP, MADV_DODUMP, MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_COLD,
		MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_MERGEABLE, 25,
	};
	size_t size;
	char *part = fuzz_part(call, &size);

	return madvise(part, size, advices[call->arg[3] % ARRAY_SIZE(advices)]) ? -errno : 0;
}

static int op_mprotect(const struct fuzz_call *call)
{
	size_t size;
	char *part = fuzz_part(call, &size);

	return mprotect(part, size, call->arg[3] % 8) ? -errno : 0;
}

static int op_touch(const struct fuzz_call *call)
{
	size_t size;
	char *part = fuzz_part(call, &size), byte = call->arg[3];

	if (call->arg[4] & 1)
		return fuzz_copy(&byte, part, 1) ? 0 : -EFAULT;
	return fuzz_copy(part, &byte, 1) ? 0 : -EFAULT;
}

/* What keeps pages in memory, writes them back or counts them, and how many may be kept. */
static int op_lock(const struct fuzz_call *call)
{
	static const rlim_t limits[] = { 0, PAGE, 64 * KIB, RLIM_INFINITY };
	static __thread unsigned char resident[16];
	struct rlimit limit = { limits[call->arg[4] % ARRAY_SIZE(limits)], RLIM_INFINITY };
	size_t size;
	char *part = fuzz_part(call, &size);
	int ret;

	/* What is locked becomes memory as soon as it may be written. */
	if (size > sizeof(resident) * PAGE)
		size = sizeof(resident) * PAGE;
	switch (call->arg[3] % 6) {
	case 0:
		ret = mlock(part, size);
		break;
	case 1:
		ret = mlock2(part, size, MLOCK_ONFAULT);
		break;
	case 2:
		ret = munlock(part, size);
		break;
	case 3:
		ret = msync(part, size, call->arg[4] % 8);
		break;
	case 4:
		ret = mincore(part, size, resident);
		break;
	default:
		ret = setrlimit(RLIMIT_MEMLOCK, &limit);
	}
	return ret ? -errno : 0;
}

/* Where pages are to be, which moves some. The thread's own policy is also that of regions. */
static int op_policy(const struct fuzz_call *call)
{
	size_t size;
	char *part = fuzz_part(call, &size);
	unsigned long nodes = call->arg[4] % 8 ? 1 : call->arg[4] >> 3 & 3;
	int mode = call->arg[3] >> 3 & 7, places[4] = {}, status[4];
	void *pages[4] = { part, part + PAGE, part + size - PAGE, fuzz.edge - PAGE };
	long ret;

	switch (call->arg[3] % 4) {
	case 0:
		ret = syscall(SYS_mbind, part, size, mode, &nodes, 64, call->arg[3] >> 6 & 15);
		break;
	case 1:
		fuzz_thread.other_policy = true;
		ret = syscall(SYS_set_mempolicy, mode, &nodes, 64);
		break;
	case 2:
		ret = syscall(SYS_move_pages, 0, ARRAY_SIZE(pages), pages,
			      call->arg[4] & 1 ? places : NULL, status, MPOL_MF_MOVE);
		break;
	default:
		ret = syscall(SYS_migrate_pages, 0, 64, &nodes, &nodes);
	}
	return ret < 0 ? -errno : 0;
}

static int op_remap(const struct fuzz_call *call)
{
	size_t size;
	char *part = fuzz_part(call, &size);

	return remap_file_pages(part, size, 0, fuzz_offset(call->arg[3]) / PAGE,
				call->arg[4] & 1 ? MAP_NONBLOCK : 0) ? -errno : 0;
}

/* Nobody answers: an access to what is registered meanwhile is an error. */
static int op_userfault(const struct fuzz_call *call)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_SIGBUS };
	size_t size;
	char *part = fuzz_part(call, &size);
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)part, .len = size },
		.mode = call->arg[3] % 8,
	};
	struct uffdio_zeropage zeropage = { .range = range.range };
	struct uffdio_copy copy = {
		.dst = (uintptr_t)part,
		.src = (uintptr_t)fuzz.readonly,
		.len = PAGE,
	};
	struct uffdio_continue go_on = { .range = range.range };
	struct uffdio_writeprotect protect = {
		.range = range.range,
		.mode = call->arg[4] & UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), ret;

	if (fd < 0)
		return -errno;
	ret = xioctl(fd, UFFDIO_API, &api) ?: xioctl(fd, UFFDIO_REGISTER, &range);
	if (!ret || call->arg[4] & 2) {
		xioctl(fd, UFFDIO_ZEROPAGE, &zeropage);
		xioctl(fd, UFFDIO_COPY, &copy);
		xioctl(fd, UFFDIO_CONTINUE, &go_on);
		xioctl(fd, UFFDIO_WRITEPROTECT, &protect);
	}
	close(fd);
	return ret;
}

/* The kernel gets at the pages by the process's own addresses. */
static int op_vm(const struct fuzz_call *call)
{
	char buffer[64] = {};
	size_t size;
	char *part = fuzz_part(call, &size);
	struct iovec local = { .iov_base = buffer, .iov_len = sizeof(buffer) };
	struct iovec remote = { .iov_base = part, .iov_len = sizeof(buffer) };
	off_t at = (uintptr_t)part;
	ssize_t len;
	int fd;

	switch (call->arg[3] % 6) {
	case 0:
		len = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
		break;
	case 1:
		len = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
		break;
	case 4:
		fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
		len = pread(fd, buffer, sizeof(buffer), at / PAGE * sizeof(__u64));
		close(fd);
		break;
	case 5:
		fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
		buffer[0] = '1' + call->arg[4] % 5;
		len = write(fd, buffer, 1);
		close(fd);
		break;
	default:
		fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		len = call->arg[3] & 1 ? pread(fd, buffer, sizeof(buffer), at) :
					 pwrite(fd, buffer, sizeof(buffer), at);
		close(fd);
	}
	return len < 0 ? -errno : 0;
}

/* A pipe keeps pages until it is closed. */
static int op_pin(const struct fuzz_call *call)
{
	size_t size;
	char *part = fuzz_part(call, &size);
	struct iovec iov = { .iov_base = part, .iov_len = size < 16 * PAGE ? size : 16 * PAGE };
	int pipes[2];
	ssize_t len;

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	len = vmsplice(pipes[1], &iov, 1, SPLICE_F_NONBLOCK);
	close(pipes[1]);
	if (len > 0)
		return fuzz_keep(pipes[0], FUZZ_OTHER);
	close(pipes[0]);
	return -EFAULT;
}

static int op_poll(const struct fuzz_call *call)
{
	struct pollfd poll_fds[2] = {
		{ .fd = fuzz_fd(FUZZ_DMABUF, call->arg[0]), .events = call->arg[2] },
		{ .fd = fuzz_fd(FUZZ_FENCE, call->arg[1]), .events = POLLIN | POLLOUT },
	};

	return poll(poll_fds, 1 + call->arg[3] % 2, call->arg[3] / 2 % 3) < 0 ? -errno : 0;
}

/* A copy of @fd, which no other thread can make another file's. */
static int fuzz_own(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, fuzz.first);
}

static bool is_own_dmabuf(int fd)
{
	char path[40], info[512];
	ssize_t len;
	int file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = open(path, O_RDONLY | O_CLOEXEC);
	len = read(file, info, sizeof(info) - 1);
	close(file);
	info[len > 0 ? len : 0] = '\0';
	return strstr(info, "exp_name:\ttshare\n");
}

/*
 * Of the module's dma-bufs alone, as 6.1 has faults of its own in those of others. With
 * CONFIG_DMABUF_DEBUG the core changes the page pointers that an importer sees, and the system heap
 * itself goes by those when such a buffer is synced: it crashes. A udmabuf is mapped in the
 * direction of its first sync and unmapped in both, which CONFIG_DMA_API_DEBUG warns of.
 */
static int op_sync(const struct fuzz_call *call)
{
	struct dma_buf_sync args = { .flags = call->arg[1] % 8 };
	int fd = fuzz_own(fuzz_fd(FUZZ_DMABUF, call->arg[0])), ret;

	ret = is_own_dmabuf(fd) ? xioctl(fd, DMA_BUF_IOCTL_SYNC, &args) : 0;
	close(fd);
	return ret;
}

static int op_fence(const struct fuzz_call *call)
{
	struct dma_buf_export_sync_file export = { .flags = call->arg[2] % 4 };
	struct dma_buf_import_sync_file import = { .flags = call->arg[2] % 4 };
	int fd = fuzz_fd(FUZZ_DMABUF, call->arg[0]), ret;

	if (call->arg[1] & 1) {
		import.fd = fuzz_fd(FUZZ_FENCE, call->arg[1] >> 1);
		return xioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &import);
	}
	ret = xioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &export);
	return ret ? ret : fuzz_keep(export.fd, FUZZ_FENCE);
}

/* What else files know. The mode of the device's would be the machine's. */
static int op_file(const struct fuzz_call *call)
{
	static const enum fuzz_kind kinds[] = {
		FUZZ_DMABUF, FUZZ_COUNTER, FUZZ_DMABUF, FUZZ_COUNTER, FUZZ_DEVICE,
	};
	enum fuzz_kind kind = kinds[call->arg[0] % ARRAY_SIZE(kinds)];
	int fd = fuzz_own(fuzz_fd(kind, call->arg[0] >> 3));
	struct stat stat;
	__u64 size = fuzz_size(call->arg[2]);
	struct flock lock = { .l_type = call->arg[2] % 3, .l_len = size };
	char buffer[16] = "name";
	ssize_t ret;

	switch (call->arg[1] % 10) {
	case 0:
		ret = lseek(fd, fuzz_offset(call->arg[2]), call->arg[3] % 4);
		break;
	case 1:
		ret = read(fd, buffer, sizeof(buffer));
		break;
	case 2:
		ret = pwrite(fd, buffer, sizeof(buffer), fuzz_offset(call->arg[2]));
		break;
	case 3:
		ret = ftruncate(fd, size);
		break;
	case 4:
		ret = fallocate(fd, call->arg[3] % 64, fuzz_offset(call->arg[2]), PAGE);
		break;
	case 5:
		ret = fcntl(fd, F_ADD_SEALS, call->arg[3] % 32);
		break;
	case 6:
		ret = fcntl(fd, F_OFD_SETLK, &lock);
		break;
	case 7:
		ret = ioctl(fd, call->arg[3] & 1 ? DMA_BUF_SET_NAME_B : DMA_BUF_SET_NAME_A, buffer);
		break;
	case 8:
		ret = fstat(fd, &stat);
		if (!ret && !S_ISCHR(stat.st_mode))
			ret = fchmod(fd, call->arg[3] % 01000);
		break;
	default:
		ret = fcntl(fd, F_SETFL, call->arg[3] & (O_APPEND | O_NONBLOCK | O_DIRECT));
	}
	if (ret < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static int fuzz_udmabuf(__u32 pages)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;
	struct udmabuf_create args = {
		.memfd = fuzz.memfds[pages - 1],
		.flags = UDMABUF_FLAGS_CLOEXEC,
		.size = pages * PAGE,
	};

	fd = xioctl(device, UDMABUF_CREATE, &args);
	close(device);
	return fd;
}

/* Another driver's dma-buf, or a file that is none. */
static int op_foreign(const struct fuzz_call *call)
{
	__u32 pages = 1 + call->arg[1] % FUZZ_MEMFDS;
	struct dma_heap_allocation_data args = {
		.len = pages * PAGE,
		.fd_flags = O_CLOEXEC | (call->arg[2] % 4 ? O_RDWR : O_RDONLY),
	};
	int heap, ret;

	if (call->arg[0] % 8 == 0)
		return fuzz_keep(memfd_create("tshare", MFD_CLOEXEC), FUZZ_FOREIGN);
	if (call->arg[0] & 1)
		return fuzz_keep(fuzz_udmabuf(pages), FUZZ_FOREIGN);
	heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
	ret = xioctl(heap, DMA_HEAP_IOCTL_ALLOC, &args);
	close(heap);
	return ret ? ret : fuzz_keep(args.fd, FUZZ_FOREIGN);
}

/*
 * Segments and boundaries that a device may have; with others the kernel complains of it. It also
 * complains of other exporters, which map what lies together in one segment, whatever the limits.
 */
static int op_attach(const struct fuzz_call *call)
{
	static const __u32 segments[] = { ~0U, 2 * MIB, 64 * KIB, 2 * PAGE, PAGE };
	static const __u64 boundaries[] = { ~0ULL, ~0U, 2 * MIB - 1, 64 * KIB - 1, PAGE - 1 };
	struct importer_attach args = {
		.fd = fuzz_own(fuzz.fds[fuzz_slot(FUZZ_DMABUF, call->arg[0])]),
		.direction = call->arg[1] % 3,
		.segment_max = segments[call->arg[2] % ARRAY_SIZE(segments)],
		.boundary = boundaries[call->arg[3] % ARRAY_SIZE(boundaries)],
		.address_bits = call->arg[1] & 4 ? 32 : 0,
	};
	int ret;

	if (!is_own_dmabuf(args.fd)) {
		args.segment_max = segments[0];
		args.boundary = boundaries[0];
	}
	ret = xioctl(fuzz.importer, IMPORTER_IOCTL_ATTACH, &args);
	close(args.fd);
	return ret;
}

static int op_detach(const struct fuzz_call *call)
{
	if (call->arg[0] & 1)
		return xioctl(fuzz.importer, IMPORTER_IOCTL_DETACH, NULL);
	return ioctl(fuzz.importer, IMPORTER_IOCTL_AREA, call->arg[1] % 4) ? -errno : 0;
}

static int op_transfer(const struct fuzz_call *call)
{
	static __thread char data[IMPORTER_TRANSFER_MAX];
	struct importer_transfer args = {
		.offset = fuzz_offset(call->arg[1]),
		.data = (uintptr_t)data,
		.size = 1 + call->arg[2] % IMPORTER_TRANSFER_MAX,
		.write = call->arg[2] >> 16 & 1,
	};
	struct importer_vmap vmap = { .offset = fuzz_offset(call->arg[1]) % MIB };

	if (call->arg[0] & 1)
		return xioctl(fuzz.importer, IMPORTER_IOCTL_VMAP, &vmap);
	return xioctl(fuzz.importer, IMPORTER_IOCTL_TRANSFER, &args);
}

/* Of the calling thread alone, which the C library's functions are not. */
static void fuzz_set_user(uid_t uid)
{
	/* Root first, who may become any other. */
	syscall(SYS_setresuid, -1, 0, -1);
	syscall(SYS_setresgid, -1, uid, -1);
	syscall(SYS_setresuid, -1, uid, -1);
	fuzz_thread.other_user = uid;
}

static int op_become(const struct fuzz_call *call)
{
	static const uid_t users[] = { 0, USER_A, USER_B };

	fuzz_set_user(users[call->arg[0] % ARRAY_SIZE(users)]);
	return 0;
}

static int op_unshare(const struct fuzz_call *call)
{
	fuzz_thread.other_namespace = true;
	return unshare(call->arg[0] & 1 ? CLONE_NEWIPC : CLONE_NEWIPC | CLONE_NEWUSER) ? -errno : 0;
}

/* So low that calls fail, and never so high that memory ends. */
static int op_limit(const struct fuzz_call *call)
{
	static const char *const limits[] = { "max_mib", "user_max_mib", "ns_max_mib" };
	static const int values[] = { 1, 2, 8, 16 };
	char path[64];

	__atomic_store_n(&fuzz_counts->limited, 1, __ATOMIC_RELAXED);
	sprintf(path, "/sys/module/tshare/parameters/%s",
		limits[call->arg[0] % ARRAY_SIZE(limits)]);
	return write_file(path, "%d", values[call->arg[1] % ARRAY_SIZE(values)]) ? 0 : -EIO;
}

static int op_pool(const struct fuzz_call *call)
{
	static const char *const sizes[] = { "0", "4194304", "8388608", "16777216", "6291457",
					     "18446744073709551615", "-1", "much" };

	return write_file(SYSFS "pool_node0/size", "%s", sizes[call->arg[0] % 8]) ? 0 : -EIO;
}

/* What anybody or root may look at, in pieces of odd sizes. */
static int op_look(const struct fuzz_call *call)
{
	static const char *const files[] = {
		"/sys/kernel/debug/tshare/regions", SYSFS "exports", SYSFS "names",
		SYSFS "regions", SYSFS "bytes", SYSFS "pool_node0/free", SYSFS "pool_node0/zeroed",
		"/proc/self/maps", "/proc/self/smaps_rollup", "/sys/kernel/debug/dma_buf/bufinfo",
	};
	static const size_t pieces[] = { 4096, 1, 100 };
	int fd = open(files[call->arg[0] % ARRAY_SIZE(files)], O_RDONLY | O_CLOEXEC), reads = 64;
	char buffer[4096];

	if (fd < 0)
		return -errno;
	lseek(fd, call->arg[2] % 4 ? 0 : fuzz_offset(call->arg[2]), SEEK_SET);
	while (reads-- && read(fd, buffer, pieces[call->arg[1] % ARRAY_SIZE(pieces)]) > 0)
		;
	close(fd);
	return 0;
}

/* For what fuzz.c does: a fork's child makes the calls that follow, a repeat the next command. */
static int op_none(const struct fuzz_call *call)
{
	(void)call;
	return 0;
}

/**
 * struct fuzz_op - an operation
 * @name: its name in texts
 * @weight: how often one is made, among the others
 * @run: makes the call; returns 0 or a negative errno
 */
struct fuzz_op {
	const char *name;
	__u32 weight;
	int (*run)(const struct fuzz_call *call);
};

/* The first operations are the device's commands. */
enum { FUZZ_COMMANDS = 11, FUZZ_REPEAT = FUZZ_COMMANDS, FUZZ_FORK };

static const struct fuzz_op fuzz_ops[] = {
	{ "query", 4, op_query },
	{ "create", 22, op_create },
	{ "open", 20, op_open },
	{ "unlink", 12, op_unlink },
	{ "info", 16, op_info },
	{ "list", 8, op_list },
	{ "counter", 14, op_counter },
	{ "finish", 16, op_finish },
	{ "export", 24, op_export },
	{ "watch", 8, op_watch },
	{ "raw_ioctl", 4, op_raw_ioctl },
	{ "repeat", 12, op_none },
	{ "fork", 2, op_none },
	{ "device", 6, op_device },
	{ "close", 8, op_close },
	{ "dup", 4, op_dup },
	{ "pass", 1, op_pass },
	{ "reopen", 1, op_reopen },
	{ "mmap", 12, op_mmap },
	{ "munmap", 4, op_munmap },
	{ "mremap", 4, op_mremap },
	{ "madvise", 4, op_madvise },
	{ "mprotect", 4, op_mprotect },
	{ "touch", 10, op_touch },
	{ "lock", 2, op_lock },
	{ "policy", 1, op_policy },
	{ "remap", 1, op_remap },
	{ "userfault", 1, op_userfault },
	{ "vm", 4, op_vm },
	{ "pin", 3, op_pin },
	{ "poll", 2, op_poll },
	{ "sync", 4, op_sync },
	{ "fence", 3, op_fence },
	{ "file", 4, op_file },
	{ "foreign", 3, op_foreign },
	{ "attach", 3, op_attach },
	{ "detach", 2, op_detach },
	{ "transfer", 2, op_transfer },
	{ "become", 2, op_become },
	{ "unshare", 1, op_unshare },
	{ "limit", 1, op_limit },
	{ "pool", 1, op_pool },
	{ "look", 1, op_look },
};

#endif /* TSHARE_KSELFTEST_FUZZ_CALLS_H */
