// SPDX-License-Identifier: GPL-2.0-only
/* Names for the dma-bufs of other drivers: vgem's, udmabuf's, the system heap's. */
#include <linux/capability.h>
#include <linux/dma-heap.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "drm.h"
#include "foreign.h"
#include "harness.h"
#include "record.h"

#define PAGES 4
#define SIZE (PAGES * PAGE)

static int create_in_udmabuf(void)
{
	return create_udmabuf(SIZE);
}

static int create_in_heap(void)
{
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC), err;
	struct dma_heap_allocation_data args = { .len = SIZE, .fd_flags = O_RDWR | O_CLOEXEC };

	if (heap < 0)
		return -errno;
	err = xioctl(heap, DMA_HEAP_IOCTL_ALLOC, &args);
	close(heap);
	return err ? err : (int)args.fd;
}

static int create_in_vgem(__u32 flags)
{
	int drm = open_drm("vgem"), fd;

	if (drm < 0)
		return drm;
	fd = create_gem(drm, PAGES, flags);
	close(drm);
	return fd;
}

static int create_writable_in_vgem(void)
{
	return create_in_vgem(DRM_RDWR);
}

static bool same_file(int a, int b)
{
	struct stat one, two;

	return !fstat(a, &one) && !fstat(b, &two) && one.st_ino == two.st_ino &&
	       one.st_dev == two.st_dev;
}

FIXTURE(foreign)
{
	int dev;
	int dmabuf;
	struct counters before;
};

FIXTURE_VARIANT(foreign)
{
	const char *missing;
	int (*create)(void);
};

FIXTURE_VARIANT_ADD(foreign, vgem)
{
	.missing = "vgem",
	.create = create_writable_in_vgem,
};

FIXTURE_VARIANT_ADD(foreign, udmabuf)
{
	.missing = "udmabuf",
	.create = create_in_udmabuf,
};

FIXTURE_VARIANT_ADD(foreign, heap)
{
	.missing = "system heap",
	.create = create_in_heap,
};

FIXTURE_SETUP(foreign)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->dmabuf = variant->create();
	self->before = count_all();
}

FIXTURE_TEARDOWN(foreign)
{
	close(self->dmabuf);
	close(self->dev);
}

TEST_F(foreign, is_opened_as_the_very_dma_buf)
{
	int made, opened;
	char *one, *two;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	made = name_foreign(self->dev, self->dmabuf, "camera", 0);
	ASSERT_LE(0, made);
	opened = open_name(self->dev, "camera", TSHARE_OPEN_WRITE);
	ASSERT_LE(0, opened);
	EXPECT_NE(self->dmabuf, made);
	EXPECT_TRUE(same_file(self->dmabuf, made));
	EXPECT_TRUE(same_file(self->dmabuf, opened));
	EXPECT_EQ(FD_CLOEXEC, fcntl(made, F_GETFD));
	one = map(self->dmabuf, SIZE, RW);
	two = map(opened, SIZE, RW);
	ASSERT_NE(MAP_FAILED, one);
	ASSERT_NE(MAP_FAILED, two);
	fill(one, SIZE, 1);
	EXPECT_TRUE(filled(two, SIZE, 1));
}

TEST_F(foreign, has_the_size_of_the_dma_buf)
{
	struct tshare_create args = foreign_args(self->dmabuf, "camera");
	struct tshare_open opened = { .name = "camera" };

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	args.size = 1;
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_CREATE, &args));
	EXPECT_EQ(SIZE, args.size);
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_OPEN, &opened));
	EXPECT_EQ(SIZE, opened.size);
}

TEST_F(foreign, of_fewer_bytes_than_wanted_is_erange)
{
	struct tshare_create args = foreign_args(self->dmabuf, "camera");

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	args.size = SIZE + 1;
	EXPECT_EQ(-ERANGE, do_create(self->dev, &args));
	args.size = ~0ULL;
	EXPECT_EQ(-ERANGE, do_create(self->dev, &args));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(foreign, has_tensors_inside)
{
	struct tensor tensor = { .bits = 8, .lanes = 1, .ndim = 1, .strides = { 1 } };
	struct tshare_create args = foreign_args(self->dmabuf, "camera");
	char record[64], found[64];
	struct tshare_open opened = {
		.descs = (uintptr_t)found,
		.descs_size = sizeof(found),
		.name = "camera",
	};

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	tensor.shape[0] = SIZE + 1;
	args.descs = (uintptr_t)record;
	args.descs_size = pack(&tensor, record);
	args.desc_count = 1;
	EXPECT_EQ(-ERANGE, do_create(self->dev, &args));
	EXPECT_SAME_COUNTERS(self->before);
	tensor.shape[0] = SIZE;
	pack(&tensor, record);
	ASSERT_LE(0, do_create(self->dev, &args));
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_OPEN, &opened));
	ASSERT_EQ(args.descs_size, opened.descs_size);
	EXPECT_EQ(0, memcmp(record, found, args.descs_size));
}

TEST_F(foreign, without_a_name_is_einval)
{
	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	EXPECT_EQ(-EINVAL, name_foreign(self->dev, self->dmabuf, NULL, 0));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(foreign, with_wishes_for_memory_is_einval)
{
	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	EXPECT_EQ(-EINVAL, name_foreign(self->dev, self->dmabuf, "camera", TSHARE_CREATE_DMA32));
	EXPECT_EQ(-EINVAL, name_foreign(self->dev, self->dmabuf, "camera", TSHARE_CREATE_NODE));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(foreign, with_the_lifetime_of_its_users_is_eopnotsupp)
{
	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	EXPECT_EQ(-EOPNOTSUPP,
		  name_foreign(self->dev, self->dmabuf, "camera", TSHARE_CREATE_USERS));
	EXPECT_SAME_COUNTERS(self->before);
}

/* Nobody who has the dma-buf can keep others from naming it. */
TEST_F(foreign, has_any_number_of_regions)
{
	struct tshare_info info;
	__u64 one, two;
	int fd;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	fd = name_foreign(self->dev, self->dmabuf, "camera", 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EEXIST, name_foreign(self->dev, fd, "camera", 0));
	ASSERT_LE(0, name_foreign(self->dev, fd, "again", 0));
	one = id_named(self->dev, "camera");
	two = id_named(self->dev, "again");
	ASSERT_NE(one, two);
	ASSERT_EQ(0, get_info_of(self->dev, fd, one, &info));
	EXPECT_STREQ("camera", info.name);
	ASSERT_EQ(0, get_info_of(self->dev, self->dmabuf, two, &info));
	EXPECT_STREQ("again", info.name);
	EXPECT_NE(0, counter_inode_of(self->dev, fd, one));
	EXPECT_NE(counter_inode_of(self->dev, fd, one), counter_inode_of(self->dev, fd, two));
	EXPECT_EQ(counter_inode_of(self->dev, fd, one),
		  counter_inode_of(self->dev, self->dmabuf, one));
}

TEST_F(foreign, is_found_by_its_dma_buf_and_id_until_the_name_is_gone)
{
	struct tshare_info info;
	__u64 id;
	int fd;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	fd = name_foreign(self->dev, self->dmabuf, "camera", 0);
	ASSERT_LE(0, fd);
	id = id_named(self->dev, "camera");
	ASSERT_EQ(0, get_info_of(self->dev, self->dmabuf, id, &info));
	EXPECT_EQ(id, info.id);
	EXPECT_EQ(-EINVAL, get_info(self->dev, self->dmabuf, &info));
	EXPECT_EQ(-ENOENT, get_info_of(self->dev, fd, id + 1, &info));
	ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	EXPECT_EQ(-ENOENT, get_info_of(self->dev, fd, id, &info));
	EXPECT_EQ(0, counter_inode_of(self->dev, fd, id));
	close(fd);
	EXPECT_SAME_COUNTERS(self->before);
}

/* The mode is for OPEN: a process that has the dma-buf has the memory already. */
TEST_F(foreign, is_shown_with_its_counter_to_all_who_have_its_dma_buf)
{
	struct tshare_info info;
	int other;
	__u64 id;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", 0));
	id = id_named(self->dev, "camera");
	other = create(self->dev, PAGE, NULL);
	ASSERT_LE(0, other);
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-EACCES, open_name(self->dev, "camera", 0));
	EXPECT_EQ(0, get_info_of(self->dev, self->dmabuf, id, &info));
	EXPECT_STREQ("camera", info.name);
	EXPECT_NE(0, counter_inode_of(self->dev, self->dmabuf, id));
	EXPECT_EQ(-ENOENT, get_info_of(self->dev, other, id, &info));
	EXPECT_EQ(0, counter_inode_of(self->dev, other, id));
	ASSERT_TRUE(act_as_root());
}

TEST_F(foreign, id_of_another_region_is_enoent)
{
	int fd = create(self->dev, PAGE, NULL), other = create(self->dev, PAGE, NULL);
	__u64 id = id_of(self->dev, other);
	struct tshare_info info;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	EXPECT_EQ(-ENOENT, get_info_of(self->dev, self->dmabuf, id, &info));
	EXPECT_EQ(-ENOENT, get_info_of(self->dev, fd, id, &info));
	EXPECT_EQ(0, get_info_of(self->dev, other, id, &info));
}

TEST_F(foreign, is_not_found_from_another_namespace)
{
	struct tshare_info info;
	__u64 id;
	int dev;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", 0));
	id = id_named(self->dev, "camera");
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	dev = open_device();
	ASSERT_LE(0, name_foreign(dev, self->dmabuf, "camera", 0));
	EXPECT_EQ(0, get_info_of(dev, self->dmabuf, id_named(dev, "camera"), &info));
	ASSERT_TRUE(drop_capability(CAP_SYS_ADMIN));
	EXPECT_EQ(-ENOENT, get_info_of(dev, self->dmabuf, id, &info));
	EXPECT_EQ(0, counter_inode_of(dev, self->dmabuf, id));
}

TEST_F(foreign, info_reports_flags_and_size)
{
	const __u32 flags = TSHARE_REGION_FOREIGN | TSHARE_REGION_WRITABLE;
	struct tshare_list_entry entry;
	struct tshare_info info;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", 0));
	ASSERT_EQ(0, get_info_of(self->dev, self->dmabuf, id_named(self->dev, "camera"), &info));
	EXPECT_EQ(flags, info.region_flags);
	EXPECT_EQ(SIZE, info.size);
	EXPECT_EQ(0, info.offset);
	EXPECT_EQ(SIZE, info.length);
	EXPECT_EQ(-1, info.node);
	EXPECT_EQ(0, info.phys_addr);
	ASSERT_EQ(1, do_list(self->dev, 0, &entry, 1));
	EXPECT_EQ(info.id, entry.id);
	EXPECT_EQ(SIZE, entry.size);
	EXPECT_EQ(flags, entry.region_flags);
	EXPECT_EQ(-1, entry.node);
	EXPECT_STREQ("camera", entry.name);
}

TEST_F(foreign, counts_as_one_page)
{
	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	close(name_foreign(self->dev, self->dmabuf, "camera", 0));
	EXPECT_EQ(self->before.bytes + (long)PAGE, read_number(SYSFS "bytes"));
	EXPECT_EQ(self->before.regions + 1, read_number(SYSFS "regions"));
	ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	EXPECT_SAME_COUNTERS(self->before);
}

/* A name that persists keeps memory of the kernel's, and needs no process. */
TEST_F(foreign, names_are_limited)
{
	struct rlimit memlock = { .rlim_cur = PAGE - 1, .rlim_max = PAGE };

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &memlock));
	ASSERT_TRUE(become(USER_A));
	EXPECT_EQ(-EDQUOT, name_foreign(self->dev, self->dmabuf, "camera", TSHARE_CREATE_PERSIST));
	EXPECT_EQ(-ENOENT, unlink_name(self->dev, "camera"));
	memlock.rlim_cur = PAGE;
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &memlock));
	EXPECT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", TSHARE_CREATE_PERSIST));
	EXPECT_EQ(0, unlink_name(self->dev, "camera"));
}

TEST_F(foreign, descriptors_count_while_it_has_its_name)
{
	struct tshare_create args = foreign_args(self->dmabuf, "camera");
	struct records records = many_records(1000);

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	set_records(&args, &records);
	close(do_create(self->dev, &args));
	EXPECT_EQ(self->before.bytes + (long)(PAGE + whole_pages(records.size)),
		  read_number(SYSFS "bytes"));
	ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	EXPECT_SAME_COUNTERS(self->before);
	free(records.data);
}

TEST_F(foreign, range_is_eopnotsupp)
{
	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	EXPECT_EQ(-EOPNOTSUPP, export_range(self->dev, self->dmabuf, 0, PAGE, 0));
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", 0));
	EXPECT_EQ(-EOPNOTSUPP, export_range(self->dev, self->dmabuf, 0, PAGE, 0));
	EXPECT_EQ(-EOPNOTSUPP, export_range(self->dev, self->dmabuf, 0, 0, 0));
}

TEST_F(foreign, is_kept_by_its_name)
{
	char *mem;
	int fd;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	mem = map(self->dmabuf, SIZE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, SIZE, 1);
	munmap(mem, SIZE);
	close(name_foreign(self->dev, self->dmabuf, "camera", 0));
	close(self->dmabuf);
	self->dmabuf = -1;
	fd = open_name(self->dev, "camera", 0);
	mem = map(fd, SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(filled(mem, SIZE, 1));
}

/* Number of dma-bufs of all drivers; -1 if the kernel doesn't report it. */
static int count_dma_bufs(void)
{
	FILE *file;
	char line[256];
	int count = -1;

	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	file = fopen("/sys/kernel/debug/dma_buf/bufinfo", "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "Total %d objects", &count);
	if (file)
		fclose(file);
	return count;
}

TEST_F(foreign, is_released_with_its_name)
{
	int count;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	count = count_dma_bufs();
	ASSERT_LT(0, count);
	close(name_foreign(self->dev, self->dmabuf, "camera", 0));
	close(self->dmabuf);
	self->dmabuf = -1;
	EXPECT_EQ(count, count_dma_bufs());
	ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	EXPECT_EQ(count - 1, count_dma_bufs());
}

TEST_F(foreign, that_is_refused_is_not_held)
{
	struct tshare_create args = foreign_args(self->dmabuf, "camera");
	int count;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	count = count_dma_bufs();
	ASSERT_LT(0, count);
	args.descs_size = sizeof(struct tshare_desc);
	args.desc_count = 1;
	EXPECT_EQ(-EFAULT, do_create(self->dev, &args));
	close(self->dmabuf);
	self->dmabuf = -1;
	EXPECT_EQ(count - 1, count_dma_bufs());
}

TEST_F(foreign, goes_with_its_maker)
{
	int maker = open_device();

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	close(name_foreign(maker, self->dmabuf, "camera", 0));
	close(maker);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "camera", 0));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(foreign, persists_with_the_flag)
{
	int maker = open_device();

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	close(name_foreign(maker, self->dmabuf, "camera", TSHARE_CREATE_PERSIST));
	close(maker);
	EXPECT_LE(0, open_name(self->dev, "camera", 0));
	EXPECT_EQ(0, unlink_name(self->dev, "camera"));
}

TEST_F(foreign, draft_is_finished_by_its_dma_buf_and_id)
{
	struct tshare_create args = foreign_args(self->dmabuf, "camera");
	struct tshare_finish finish = { .fd = self->dmabuf };

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	args.flags |= TSHARE_CREATE_DRAFT;
	ASSERT_LE(0, do_create(self->dev, &args));
	EXPECT_EQ(-EINPROGRESS, open_name(self->dev, "camera", 0));
	EXPECT_EQ(-EINVAL, xioctl(self->dev, TSHARE_IOCTL_FINISH, &finish));
	finish.id = args.id;
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_FINISH, &finish));
	EXPECT_EQ(args.id, id_named(self->dev, "camera"));
}

TEST_F(foreign, that_is_replaced_can_be_named_again)
{
	struct tshare_create args = create_args(PAGE, "camera");

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	close(name_foreign(self->dev, self->dmabuf, "camera", 0));
	args.flags = TSHARE_CREATE_REPLACE;
	ASSERT_LE(0, do_create(self->dev, &args));
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", TSHARE_CREATE_REPLACE));
	EXPECT_TRUE(same_file(self->dmabuf, open_name(self->dev, "camera", 0)));
}

TEST_F(foreign, writable_one_needs_write_permission)
{
	struct tshare_create args = foreign_args(self->dmabuf, "camera");
	int fd;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	args.mode = 0644;
	close(do_create(self->dev, &args));
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-EACCES, open_name(self->dev, "camera", 0));
	EXPECT_EQ(-EACCES, open_name(self->dev, "camera", TSHARE_OPEN_WRITE));
	ASSERT_TRUE(act_as_root());

	ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	args = foreign_args(self->dmabuf, "camera");
	args.mode = 0666;
	close(do_create(self->dev, &args));
	ASSERT_TRUE(act_as_user(USER_A));
	fd = open_name(self->dev, "camera", 0);
	EXPECT_EQ(O_RDWR, fcntl(fd, F_GETFL) & O_ACCMODE);
	ASSERT_TRUE(act_as_root());
}

struct looker {
	pthread_t thread;
	int dev;
	int fd;
	int stopped;
	int ret;
};

/* Looks the region up until it is stopped. */
static void *look_for_it(void *arg)
{
	struct looker *looker = arg;
	struct tshare_info info;

	while (!__atomic_load_n(&looker->stopped, __ATOMIC_RELAXED)) {
		__u64 id = id_named(looker->dev, "camera");
		int err = id ? get_info_of(looker->dev, looker->fd, id, &info) : 0;

		if (err && err != -ENOENT)
			looker->ret = err;
	}
	return NULL;
}

TEST_F(foreign, can_be_named_and_unlinked_while_it_is_looked_for)
{
	struct looker looker = { .dev = self->dev, .fd = self->dmabuf };
	int round, times = rounds(500);

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	ASSERT_EQ(0, pthread_create(&looker.thread, NULL, look_for_it, &looker));
	for (round = 0; round < times; round++) {
		int fd = name_foreign(self->dev, self->dmabuf, "camera", 0);

		ASSERT_LE(0, fd);
		close(fd);
		ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	}
	__atomic_store_n(&looker.stopped, 1, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(looker.thread, NULL));
	EXPECT_EQ(0, looker.ret);
	EXPECT_SAME_COUNTERS(self->before);
}

TEST(foreign_read_only_dma_buf_is_opened_only_for_reading)
{
	int dev = open_device(), dmabuf = create_in_vgem(0), fd;
	struct tshare_create args = foreign_args(dmabuf, "camera");
	struct tshare_list_entry entry;

	ASSERT_LE(0, dev);
	if (dmabuf < 0)
		SKIP(return, "the kernel has no vgem");
	args.mode = 0444;
	ASSERT_LE(0, do_create(dev, &args));
	EXPECT_EQ(-EACCES, open_name(dev, "camera", TSHARE_OPEN_WRITE));
	ASSERT_TRUE(act_as_user(USER_A));
	fd = open_name(dev, "camera", 0);
	EXPECT_EQ(O_RDONLY, fcntl(fd, F_GETFL) & O_ACCMODE);
	ASSERT_TRUE(act_as_root());
	ASSERT_EQ(1, do_list(dev, 0, &entry, 1));
	EXPECT_EQ(TSHARE_REGION_FOREIGN, entry.region_flags);
}

TEST(regions_and_other_descriptors_are_einval)
{
	int dev = open_device(), ours, range, memfd = memfd_create("tshare", MFD_CLOEXEC);
	struct counters before;

	ASSERT_LE(0, dev);
	ASSERT_LE(0, memfd);
	ours = create(dev, 2 * PAGE, NULL);
	range = export_range(dev, ours, 0, PAGE, 0);
	ASSERT_LE(0, range);
	before = count_all();
	EXPECT_EQ(-EINVAL, name_foreign(dev, ours, "camera", 0));
	EXPECT_EQ(-EINVAL, name_foreign(dev, range, "camera", 0));
	EXPECT_EQ(-EINVAL, name_foreign(dev, memfd, "camera", 0));
	EXPECT_EQ(-EINVAL, name_foreign(dev, dev, "camera", 0));
	EXPECT_EQ(-EBADF, name_foreign(dev, -1, "camera", 0));
	EXPECT_EQ(-EBADF, name_foreign(dev, 1000000, "camera", 0));
	EXPECT_SAME_COUNTERS(before);
}

TEST_HARNESS_MAIN
