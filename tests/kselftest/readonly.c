// SPDX-License-Identifier: GPL-2.0-only
/*
 * Routes to write what is for reading: dma-bufs that were opened or exported so, and
 * mappings. The table in testing.rst has those of other programs, too.
 */
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "harness.h"
#include "held.h"
#include "ring.h"

FIXTURE(readonly)
{
	int dev;
	int rw;
	int ro;
	char *shown;
};

FIXTURE_VARIANT(readonly)
{
	bool exported;
};

FIXTURE_VARIANT_ADD(readonly, opened)
{
	.exported = false,
};

FIXTURE_VARIANT_ADD(readonly, exported)
{
	.exported = true,
};

FIXTURE_SETUP(readonly)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, 2 * MIB, "readable");
	ASSERT_LE(0, self->rw);
	self->ro = variant->exported ? export_range(self->dev, self->rw, 0, 0, 0) :
				       open_name(self->dev, "readable", 0);
	ASSERT_LE(0, self->ro);
	self->shown = map_aligned(self->ro, 2 * MIB, PROT_READ);
	ASSERT_NE(MAP_FAILED, self->shown);
}

FIXTURE_TEARDOWN(readonly)
{
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

TEST_F(readonly, info_reports_the_access)
{
	struct tshare_info info;

	ASSERT_EQ(0, get_info(self->dev, self->ro, &info));
	EXPECT_EQ(0, info.region_flags & TSHARE_REGION_WRITABLE);
	ASSERT_EQ(0, get_info(self->dev, self->rw, &info));
	EXPECT_EQ(TSHARE_REGION_WRITABLE, info.region_flags & TSHARE_REGION_WRITABLE);
}

TEST_F(readonly, sees_what_the_writer_writes)
{
	char *writable = map(self->rw, 2 * MIB, RW);

	ASSERT_NE(MAP_FAILED, writable);
	fill(writable, 2 * MIB, 1);
	EXPECT_TRUE(filled(self->shown, 2 * MIB, 1));
}

TEST_F(readonly, writable_mapping_is_eacces)
{
	EXPECT_EQ(MAP_FAILED, map(self->ro, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, map(self->ro, PAGE, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(readonly, mprotect_to_writable_is_eacces)
{
	EXPECT_EQ(-1, mprotect(self->shown, 2 * MIB, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(self->shown + PAGE, PAGE, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(readonly, private_mapping_is_einval)
{
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, self->ro, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, RW, MAP_PRIVATE, self->ro, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, RW, MAP_PRIVATE, self->rw, 0));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(readonly, can_not_be_reopened_for_writing)
{
	char path[64];

	sprintf(path, "/proc/self/fd/%d", self->ro);
	EXPECT_EQ(-1, open(path, O_RDWR));
	EXPECT_EQ(-1, open(path, O_WRONLY));
	sprintf(path, "/proc/self/map_files/%lx-%lx", (unsigned long)self->shown,
		(unsigned long)(self->shown + 2 * MIB));
	EXPECT_EQ(-1, open(path, O_RDWR));
}

TEST_F(readonly, fcntl_does_not_make_it_writable)
{
	fcntl(self->ro, F_SETFL, O_RDWR);
	EXPECT_EQ(O_RDONLY, fcntl(self->ro, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(MAP_FAILED, map(self->ro, PAGE, RW));
}

TEST_F_SIGNAL(readonly, store_is_sigsegv, SIGSEGV)
{
	*(volatile char *)self->shown = 1;
}

TEST_F_SIGNAL(readonly, store_after_load_is_sigsegv, SIGSEGV)
{
	volatile char *shown = self->shown;

	if (!*shown)
		*shown = 1;
}

TEST_F(readonly, remapping_does_not_make_it_writable)
{
	char *moved = mremap(self->shown, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED,
			     self->shown + 64 * MIB);

	ASSERT_NE(MAP_FAILED, moved);
	EXPECT_EQ(-1, mprotect(moved, PAGE, RW));
	/* A size of zero duplicates a shared mapping. */
	moved = mremap(moved, 0, PAGE, MREMAP_MAYMOVE);
	if (moved != MAP_FAILED)
		EXPECT_EQ(-1, mprotect(moved, PAGE, RW));
}

struct passing {
	int sock;
	int dev;
};

/* A user that may not open the region receives its descriptor. */
static int receive_as_stranger(void *arg)
{
	struct passing *passing = arg;
	char *shown;
	int fd;

	if (!become(USER_C) || open_name(passing->dev, "readable", 0) != -EACCES)
		return 1;
	fd = receive_fd(passing->sock);
	shown = map(fd, PAGE, PROT_READ);
	if (fd < 0 || shown == MAP_FAILED)
		return 2;
	if (map(fd, PAGE, RW) != MAP_FAILED || !mprotect(shown, PAGE, RW))
		return 3;
	return 0;
}

TEST_F(readonly, stays_so_when_it_is_passed_on)
{
	struct passing passing = { .dev = self->dev };
	int socks[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	ASSERT_TRUE(send_fd(socks[0], self->ro));
	passing.sock = socks[1];
	EXPECT_EQ(0, in_child(receive_as_stranger, &passing));
}

/* A process does all it can to the descriptor itself. */
TEST_F(readonly, descriptor_can_not_be_written_to)
{
	char bytes[PAGE] = {};
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	int file = memfd_create("zeros", MFD_CLOEXEC), pipes[2];
	off_t from = 0;
	loff_t to = 0;

	ASSERT_EQ(0, ftruncate(file, PAGE));
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(PAGE, write(pipes[1], bytes, PAGE));
	EXPECT_EQ(-1, write(self->ro, bytes, PAGE));
	EXPECT_EQ(-1, pwrite(self->ro, bytes, PAGE, 0));
	EXPECT_EQ(-1, pwritev2(self->ro, &iov, 1, 0, 0));
	EXPECT_EQ(-1, sendfile(self->ro, file, &from, PAGE));
	EXPECT_EQ(-1, splice(pipes[0], NULL, self->ro, &to, PAGE, SPLICE_F_MOVE));
	EXPECT_EQ(-1, copy_file_range(file, &from, self->ro, &to, PAGE, 0));
	EXPECT_EQ(-1, ftruncate(self->ro, 0));
	EXPECT_EQ(-1, fallocate(self->ro, 0, 0, PAGE));
	EXPECT_EQ(-1, fallocate(self->ro, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	EXPECT_EQ(-1, fallocate(self->ro, FALLOC_FL_ZERO_RANGE, 0, PAGE));
	EXPECT_TRUE(zeroed(self->shown, 2 * MIB));
}

TEST_F(readonly, stays_so_when_another_process_takes_it)
{
	int pidfd = syscall(SYS_pidfd_open, getpid(), 0), taken;

	ASSERT_LE(0, pidfd);
	taken = syscall(SYS_pidfd_getfd, pidfd, self->ro, 0);
	ASSERT_LE(0, taken);
	EXPECT_EQ(MAP_FAILED, map(taken, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-EACCES, export_range(self->dev, taken, 0, 0, TSHARE_EXPORT_WRITE));
}

/* Mappings for reading, also of a dma-buf that the process may write through another one. */
FIXTURE(shown)
{
	int dev;
	int rw;
	char *written;
	char *shown;
};

FIXTURE_VARIANT(shown)
{
	bool writable;
	bool exported;
};

FIXTURE_VARIANT_ADD(shown, opened)
{
	.writable = false,
};

FIXTURE_VARIANT_ADD(shown, exported)
{
	.exported = true,
};

FIXTURE_VARIANT_ADD(shown, of_a_writable_one)
{
	.writable = true,
};

#define SHOWN (2 * MIB)

FIXTURE_SETUP(shown)
{
	int fd;

	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, SHOWN, "shown");
	ASSERT_LE(0, self->rw);
	self->written = map(self->rw, SHOWN, RW);
	ASSERT_NE(MAP_FAILED, self->written);
	fill(self->written, SHOWN, 1);
	if (variant->exported)
		fd = export_range(self->dev, self->rw, 0, 0, 0);
	else
		fd = open_name(self->dev, "shown", variant->writable ? TSHARE_OPEN_WRITE : 0);
	ASSERT_LE(0, fd);
	self->shown = map_aligned(fd, SHOWN, PROT_READ);
	ASSERT_NE(MAP_FAILED, self->shown);
	close(fd);
	/* The routes shall meet pages that are there, and some that are not. */
	ASSERT_EQ(((volatile char *)self->written)[0], ((volatile char *)self->shown)[0]);
}

/* No test has written anything. */
FIXTURE_TEARDOWN(shown)
{
	EXPECT_TRUE(filled(self->written, SHOWN, 1));
	EXPECT_TRUE(filled(self->shown, SHOWN, 1));
	close(self->rw);
	close(self->dev);
}

/* A child that waits, with all mappings of this process, and that this process traces. */
static pid_t start_traced(void)
{
	int parent = getpid(), status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		for (;;)
			pause();
	}
	if (pid < 0 || ptrace(PTRACE_ATTACH, pid, NULL, NULL) ||
	    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -1;
	return pid;
}

TEST_F(shown, pokes_of_a_tracer_are_eio)
{
	pid_t pid = start_traced();
	long word;

	ASSERT_LT(0, pid);
	EXPECT_EQ(-1, ptrace(PTRACE_POKEDATA, pid, self->shown, 0x5a5a));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, ptrace(PTRACE_POKETEXT, pid, self->shown + PAGE, 0x5a5a));
	EXPECT_EQ(EIO, errno);
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, pid, self->shown, NULL);
	EXPECT_EQ(0, errno);
	EXPECT_EQ((long)pattern(1, 0), word);
	/* What it has read is mapped in the child now. */
	EXPECT_EQ(-1, ptrace(PTRACE_POKEDATA, pid, self->shown, 0x5a5a));
	end(pid);
}

TEST_F(shown, proc_mem_of_a_traced_process_does_not_write)
{
	pid_t pid = start_traced();
	__u64 word = 0x5a5a;
	char path[32];
	int mem;

	ASSERT_LT(0, pid);
	sprintf(path, "/proc/%d/mem", pid);
	mem = open(path, O_RDWR);
	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &word, sizeof(word), (off_t)self->shown));
	ASSERT_EQ(sizeof(word), pread(mem, &word, sizeof(word), (off_t)self->shown));
	word = 0x5a5a;
	EXPECT_EQ(-1, pwrite(mem, &word, sizeof(word), (off_t)self->shown));
	end(pid);
}

TEST_F(shown, own_proc_mem_does_not_write)
{
	int mem = open("/proc/self/mem", O_RDWR);
	__u64 word = 0x5a5a;

	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &word, sizeof(word), (off_t)self->shown));
	EXPECT_EQ(-1, pwrite(mem, &word, sizeof(word), (off_t)self->shown + PAGE));
	ASSERT_EQ(sizeof(word), pread(mem, &word, sizeof(word), (off_t)self->shown + PAGE));
	EXPECT_EQ(pattern(1, PAGE / sizeof(word)), word);
	EXPECT_EQ(-1, pwrite(mem, &word, sizeof(word), (off_t)self->shown + PAGE));
}

TEST_F(shown, process_vm_writev_is_efault)
{
	__u64 words[PAGE / 8] = {};
	struct iovec from = { .iov_base = words, .iov_len = PAGE };
	struct iovec to = { .iov_base = self->shown, .iov_len = PAGE };

	EXPECT_EQ(-1, process_vm_writev(getpid(), &from, 1, &to, 1, 0));
	EXPECT_EQ(EFAULT, errno);
}

/* Pages in a pipe: what comes later into the pipe goes elsewhere, and so does a file's content. */
TEST_F(shown, pages_given_to_a_pipe_are_not_written)
{
	struct iovec whole = { .iov_base = self->shown, .iov_len = PAGE };
	struct iovec part = { .iov_base = self->shown + PAGE, .iov_len = 100 };
	int pipes[2], file = memfd_create("moved", MFD_CLOEXEC);
	char bytes[PAGE] = {}, *mem;

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(PAGE, vmsplice(pipes[1], &whole, 1, SPLICE_F_GIFT));
	ASSERT_EQ(100, vmsplice(pipes[1], &part, 1, SPLICE_F_GIFT));
	ASSERT_EQ(200, write(pipes[1], bytes, 200));
	EXPECT_TRUE(filled(self->written, SHOWN, 1));
	ASSERT_EQ(PAGE, splice(pipes[0], NULL, file, NULL, PAGE, SPLICE_F_MOVE));
	mem = map(file, PAGE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_TRUE(filled(mem, PAGE, 1));
	memset(mem, 0, PAGE);
	EXPECT_EQ(PAGE, pwrite(file, bytes, PAGE, 0));
}

TEST_F(shown, vmsplice_out_of_a_pipe_is_efault)
{
	struct iovec to = { .iov_base = self->shown, .iov_len = 8 };
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(8, write(pipes[1], "????????", 8));
	EXPECT_EQ(-1, vmsplice(pipes[0], &to, 1, 0));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(shown, userfaultfd_is_einval)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)self->shown, .len = SHOWN },
	};
	struct uffdio_copy copy = {
		.dst = (uintptr_t)self->shown + SHOWN - PAGE,
		.src = (uintptr_t)guarded(PAGE),
		.len = PAGE,
	};
	struct uffdio_writeprotect protect = { .range = reg.range };
	static const __u64 modes[] = {
		UFFDIO_REGISTER_MODE_MISSING,
		UFFDIO_REGISTER_MODE_WP,
		UFFDIO_REGISTER_MODE_MINOR,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), i;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, UFFDIO_API, &api));
	for (i = 0; i < (int)ARRAY_SIZE(modes); i++) {
		reg.mode = modes[i];
		EXPECT_EQ(-EINVAL, xioctl(fd, UFFDIO_REGISTER, &reg));
	}
	EXPECT_GT(0, xioctl(fd, UFFDIO_COPY, &copy));
	EXPECT_GT(0, xioctl(fd, UFFDIO_WRITEPROTECT, &protect));
}

TEST_F(shown, io_uring_does_not_read_into_it)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct iovec iov = { .iov_base = self->shown, .iov_len = PAGE };
	struct ring ring;

	ASSERT_EQ(0, ring_open(&ring));
	EXPECT_EQ(-EFAULT, ring_do(&ring, IORING_OP_READ, zero, self->shown, PAGE, 0));
	EXPECT_GT(0, ring_register(&ring, &iov, 1));
	EXPECT_GT(0, ring_do(&ring, IORING_OP_READ_FIXED, zero, self->shown, PAGE, 0));
	ring_close(&ring);
}

/* The kernel would write the heads of such a ring. */
TEST_F(shown, io_uring_takes_no_ring_of_buffers_in_it)
{
	struct io_uring_buf_reg reg = {
		.ring_addr = (uintptr_t)self->shown,
		.ring_entries = 16,
	};
	struct ring ring;

	ASSERT_EQ(0, ring_open(&ring));
	EXPECT_EQ(-1, syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_PBUF_RING, &reg, 1));
	ring_close(&ring);
}

/* Not MADV_HWPOISON and MADV_SOFT_OFFLINE, which are about the memory's hardware. */
TEST_F(shown, advice_does_not_write)
{
	int advice;

	for (advice = 0; advice < 64; advice++) {
		madvise(self->shown, SHOWN, advice);
		EXPECT_TRUE(filled(self->shown, SHOWN, 1)) {
			TH_LOG("advice %d", advice);
		}
	}
	EXPECT_EQ(-1, madvise(self->shown, SHOWN, MADV_REMOVE));
	EXPECT_EQ(-1, madvise(self->shown, SHOWN, MADV_POPULATE_WRITE));
}

static int store_to(void *mem)
{
	*(volatile char *)mem = 1;
	return 0;
}

/* The same pages at another place have the same access. */
TEST_F(shown, remapped_pages_are_not_writable)
{
	char *moved = mremap(self->shown, SHOWN, SHOWN, MREMAP_MAYMOVE | MREMAP_FIXED,
			     self->shown + 64 * MIB);

	ASSERT_NE(MAP_FAILED, moved);
	self->shown = moved;
	EXPECT_EQ(-SIGSEGV, in_child(store_to, moved));
	EXPECT_EQ(MAP_FAILED, mremap(moved, SHOWN, SHOWN + PAGE, MREMAP_MAYMOVE));
	/* Refused where the file is for reading, and else another mapping. */
	remap_file_pages(moved, PAGE, 0, 0, 0);
	EXPECT_EQ(-SIGSEGV, in_child(store_to, moved));
}

static int end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

/* The kernel clears a word when a thread ends. */
TEST_F(shown, word_of_a_thread_is_not_cleared)
{
	static char stack[64 * KIB] __attribute__((aligned(16)));
	pid_t pid;

	pid = clone(end_at_once, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_CHILD_CLEARTID | SIGCHLD, NULL, NULL, NULL,
		    self->shown);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
}

TEST_F(shown, futex_operation_is_efault)
{
	__u32 word = 0;

	EXPECT_EQ(-1, syscall(SYS_futex, &word, FUTEX_WAKE_OP, 1, 1, self->shown,
			      FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_EQ, 0)));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(shown, system_calls_that_store_are_efault)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), socks[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	ASSERT_EQ(8, write(socks[0], "????????", 8));
	EXPECT_EQ(-1, read(zero, self->shown, PAGE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, recv(socks[1], self->shown, 8, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, pipe((int *)self->shown));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(socks[1], FIONREAD, self->shown));
	EXPECT_EQ(EFAULT, errno);
}

TEST_HARNESS_MAIN
