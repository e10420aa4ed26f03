// SPDX-License-Identifier: GPL-2.0-only
/* References that keep the memory, and that it is freed with the last one. */
#include <linux/if_xdp.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "harness.h"
#include "module.h"

FIXTURE(lifetime)
{
	int dev;
	struct counters before;
};

FIXTURE_SETUP(lifetime)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
}

FIXTURE_TEARDOWN(lifetime)
{
	close(self->dev);
}

/* A mapping as the last reference to a region. */
static char *mapped_region(int dev, size_t size)
{
	int fd = create(dev, size, NULL);
	char *mem = map_aligned(fd, size, RW);

	close(fd);
	return mem;
}

TEST_F(lifetime, mapping_keeps_the_memory)
{
	char *mem = mapped_region(self->dev, 5 * MIB);

	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(self->before.regions + 1, read_number(SYSFS "regions"));
	fill(mem, 5 * MIB, 1);
	EXPECT_TRUE(filled(mem, 5 * MIB, 1));
	munmap(mem, 5 * MIB);
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(lifetime, mapping_outlives_the_device)
{
	int dev = open_device();
	char *mem = mapped_region(dev, PAGE);

	ASSERT_NE(MAP_FAILED, mem);
	close(dev);
	fill(mem, PAGE, 1);
	EXPECT_TRUE(filled(mem, PAGE, 1));
	munmap(mem, PAGE);
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(lifetime, part_of_a_mapping_keeps_the_memory)
{
	char *mem = mapped_region(self->dev, 4 * MIB);

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, 4 * MIB, 1);
	munmap(mem, 3 * MIB);
	munmap(mem + 3 * MIB + PAGE, MIB - PAGE);
	EXPECT_EQ(self->before.regions + 1, read_number(SYSFS "regions"));
	EXPECT_EQ(pattern(1, 3 * MIB / 8), *(__u64 *)(mem + 3 * MIB));
	munmap(mem + 3 * MIB, PAGE);
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(lifetime, all_mappings_are_of_the_same_memory)
{
	int fd = create(self->dev, 2 * MIB, "shown");
	char *one = map_aligned(fd, 2 * MIB, RW), *two = map(fd, 2 * MIB, RW), *three;

	three = map(open_name(self->dev, "shown", 0), 2 * MIB, PROT_READ);
	ASSERT_NE(MAP_FAILED, one);
	ASSERT_NE(MAP_FAILED, two);
	ASSERT_NE(MAP_FAILED, three);
	fill(one, 2 * MIB, 1);
	EXPECT_TRUE(filled(two, 2 * MIB, 1));
	fill(two, 2 * MIB, 2);
	EXPECT_TRUE(filled(one, 2 * MIB, 2));
	EXPECT_TRUE(filled(three, 2 * MIB, 2));
}

TEST_F(lifetime, mapping_at_an_offset_shows_that_part)
{
	int fd = create(self->dev, 4 * MIB, NULL);
	char *all = map(fd, 4 * MIB, RW), *part;

	ASSERT_NE(MAP_FAILED, all);
	fill(all, 4 * MIB, 1);
	part = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 2 * MIB + PAGE);
	ASSERT_NE(MAP_FAILED, part);
	EXPECT_EQ(0, memcmp(part, all + 2 * MIB + PAGE, MIB));
}

TEST_F(lifetime, mapping_beyond_the_end_is_einval)
{
	int fd = create(self->dev, 2 * PAGE, NULL);

	ASSERT_LE(0, fd);
	EXPECT_EQ(MAP_FAILED, map(fd, 3 * PAGE, PROT_READ));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, PAGE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 1ULL << 62));
}

TEST_F(lifetime, mapping_can_be_moved_but_not_grown)
{
	int fd = create(self->dev, 4 * PAGE, NULL);
	char *mem = map(fd, 2 * PAGE, RW), *moved;

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, 2 * PAGE, 1);
	EXPECT_EQ(MAP_FAILED, mremap(mem, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(mem, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE));
	moved = mremap(mem, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, mem + 64 * MIB);
	ASSERT_NE(MAP_FAILED, moved);
	EXPECT_TRUE(filled(moved, 2 * PAGE, 1));
	close(fd);
	munmap(moved, 2 * PAGE);
	EXPECT_SAME_COUNTERS(self->before);
}

static int check_and_refill(void *arg)
{
	if (!filled(arg, 4 * MIB, 1))
		return 1;
	fill(arg, 4 * MIB, 2);
	return 0;
}

TEST_F(lifetime, forked_child_shares_the_mapping)
{
	char *mem = mapped_region(self->dev, 4 * MIB);

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, 4 * MIB, 1);
	EXPECT_EQ(0, in_child(check_and_refill, mem));
	EXPECT_TRUE(filled(mem, 4 * MIB, 2));
}

TEST_F(lifetime, forked_childs_mapping_keeps_the_memory)
{
	char *mem = mapped_region(self->dev, 4 * MIB);
	pid_t child;

	ASSERT_NE(MAP_FAILED, mem);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	munmap(mem, 4 * MIB);
	EXPECT_EQ(self->before.regions + 1, read_number(SYSFS "regions"));
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(lifetime, descriptor_in_flight_keeps_the_memory)
{
	int fd = create(self->dev, PAGE, NULL), socks[2];
	char *mem = map(fd, PAGE, RW);

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, PAGE, 1);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	ASSERT_TRUE(send_fd(socks[0], fd));
	munmap(mem, PAGE);
	close(fd);
	EXPECT_EQ(self->before.regions + 1, read_number(SYSFS "regions"));
	fd = receive_fd(socks[1]);
	ASSERT_LE(0, fd);
	mem = map(fd, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(filled(mem, PAGE, 1));
}

TEST_F(lifetime, descriptor_that_is_never_received_is_released)
{
	int fd = create(self->dev, PAGE, NULL), socks[2];

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	ASSERT_TRUE(send_fd(socks[0], fd));
	close(fd);
	close(socks[0]);
	close(socks[1]);
	EXPECT_TRUE(counters_return_to(self->before));
}

/* Pages that something else holds when their region is gone. */
FIXTURE(pinned)
{
	int dev;
	struct counters before;
	int pipes[2];
};

FIXTURE_VARIANT(pinned)
{
	size_t size;
	size_t offset;
};

FIXTURE_VARIANT_ADD(pinned, single_page)
{
	.size = PAGE,
};

FIXTURE_VARIANT_ADD(pinned, page_of_a_block)
{
	.size = 5 * PAGE,
	.offset = 3 * PAGE,
};

FIXTURE_VARIANT_ADD(pinned, page_of_one_folio)
{
	.size = 2 * MIB,
	.offset = MIB,
};

FIXTURE_VARIANT_ADD(pinned, page_of_a_run)
{
	.size = 8 * MIB,
	.offset = 6 * MIB - PAGE,
};

FIXTURE_VARIANT_ADD(pinned, page_of_a_tail)
{
	.size = 8 * MIB + 5 * PAGE,
	.offset = 8 * MIB + 2 * PAGE,
};

FIXTURE_SETUP(pinned)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, pipe(self->pipes));
	self->before = count_all();
}

FIXTURE_TEARDOWN(pinned)
{
	close(self->pipes[0]);
	close(self->pipes[1]);
	close(self->dev);
}

/* Makes and fills regions, which would reuse pages that were freed too early. */
static bool churn(int dev)
{
	static const size_t sizes[] = { PAGE, 5 * PAGE, 2 * MIB, 8 * MIB, 8 * MIB + 5 * PAGE };
	size_t i, round;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			char *mem = mapped_region(dev, sizes[i]);

			if (mem == MAP_FAILED || !zeroed(mem, sizes[i]))
				return false;
			memset(mem, 0xff, sizes[i]);
			/* Some stay until the process ends. */
			if (round % 2)
				munmap(mem, sizes[i]);
		}
	}
	return true;
}

TEST_F(pinned, pages_in_a_pipe_keep_their_content)
{
	char *mem = mapped_region(self->dev, variant->size);
	struct iovec iov;
	__u64 seen[PAGE / 8];

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem + variant->offset, PAGE, 3);
	iov = (struct iovec){ .iov_base = mem + variant->offset, .iov_len = PAGE };
	ASSERT_EQ(PAGE, vmsplice(self->pipes[1], &iov, 1, 0));
	munmap(mem, variant->size);
	EXPECT_EQ(self->before.regions, read_number(SYSFS "regions"));
	ASSERT_TRUE(churn(self->dev));
	ASSERT_EQ(PAGE, read(self->pipes[0], seen, PAGE));
	EXPECT_TRUE(filled(seen, PAGE, 3));
}

TEST_F(pinned, pages_in_a_pipe_outlive_the_name)
{
	int fd = create(self->dev, variant->size, "piped");
	char *mem = map(fd, variant->size, RW);
	struct iovec iov;
	__u64 seen[PAGE / 8];

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem + variant->offset, PAGE, 4);
	iov = (struct iovec){ .iov_base = mem + variant->offset, .iov_len = PAGE };
	ASSERT_EQ(PAGE, vmsplice(self->pipes[1], &iov, 1, 0));
	munmap(mem, variant->size);
	close(fd);
	ASSERT_EQ(0, unlink_name(self->dev, "piped"));
	EXPECT_EQ(self->before.regions, read_number(SYSFS "regions"));
	ASSERT_EQ(PAGE, read(self->pipes[0], seen, PAGE));
	EXPECT_TRUE(filled(seen, PAGE, 4));
}

TEST_F(pinned, io_uring_buffers_outlive_the_region)
{
	char *mem = mapped_region(self->dev, variant->size);
	struct iovec iov = { .iov_base = mem, .iov_len = variant->size };
	struct io_uring_params params = {};
	int ring;

	ASSERT_NE(MAP_FAILED, mem);
	ring = syscall(SYS_io_uring_setup, 4, &params);
	if (ring < 0)
		SKIP(return, "the kernel has no io_uring");
	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1)) {
		/* Up to 6.4 of files only those of shmem and hugetlbfs are taken. */
		ASSERT_EQ(EOPNOTSUPP, errno);
		SKIP(return, "the kernel's io_uring takes no buffers of files");
	}
	munmap(mem, variant->size);
	EXPECT_EQ(self->before.regions, read_number(SYSFS "regions"));
	ASSERT_TRUE(churn(self->dev));
	close(ring);
}

TEST_F(pinned, af_xdp_memory_outlives_the_region)
{
	int sock = socket(AF_XDP, SOCK_RAW, 0);
	char *mem = mapped_region(self->dev, variant->size);
	struct xdp_umem_reg umem = {
		.addr = (uintptr_t)mem,
		.len = variant->size,
		.chunk_size = PAGE,
	};

	ASSERT_NE(MAP_FAILED, mem);
	if (sock < 0)
		SKIP(return, "the kernel has no AF_XDP");
	ASSERT_EQ(0, setsockopt(sock, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)));
	munmap(mem, variant->size);
	EXPECT_EQ(self->before.regions, read_number(SYSFS "regions"));
	ASSERT_TRUE(churn(self->dev));
	close(sock);
}

TEST_F(lifetime, module_stays_while_the_device_is_open)
{
	EXPECT_EQ(-EAGAIN, remove_module());
}

TEST_F(lifetime, module_stays_while_a_descriptor_is_open)
{
	int fd = create(self->dev, PAGE, NULL);

	ASSERT_LE(0, fd);
	close(self->dev);
	EXPECT_EQ(-EAGAIN, remove_module());
}

TEST_F(lifetime, module_stays_while_a_mapping_exists)
{
	char *mem = mapped_region(self->dev, PAGE);

	ASSERT_NE(MAP_FAILED, mem);
	close(self->dev);
	EXPECT_EQ(-EAGAIN, remove_module());
	EXPECT_TRUE(zeroed(mem, PAGE));
}

TEST_F(lifetime, module_stays_while_a_name_persists)
{
	ASSERT_EQ(0, close(create_persistent(self->dev, PAGE, "persistent")));
	close(self->dev);
	EXPECT_EQ(-EAGAIN, remove_module());
	self->dev = open_device();
	EXPECT_EQ(0, unlink_name(self->dev, "persistent"));
}

TEST_HARNESS_MAIN
