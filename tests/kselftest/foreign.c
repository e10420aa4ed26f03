// SPDX-License-Identifier: GPL-2.0-only
/* Names for the dma-bufs of other drivers: vgem's, udmabuf's, the system heap's. */
#include <linux/dma-heap.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "drm.h"
#include "foreign.h"
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

TEST_F(foreign, that_has_a_region_is_ebusy)
{
	int fd;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	fd = name_foreign(self->dev, self->dmabuf, "camera", 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, name_foreign(self->dev, self->dmabuf, "again", 0));
	EXPECT_EQ(-EBUSY, name_foreign(self->dev, fd, "again", 0));
	EXPECT_EQ(-EEXIST, name_foreign(self->dev, fd, "camera", 0));
	EXPECT_EQ(-ENOENT, open_name(self->dev, "again", 0));
	EXPECT_EQ(self->before.regions + 1, read_number(SYSFS "regions"));
}

TEST_F(foreign, can_be_named_again_when_the_name_is_gone)
{
	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", 0));
	ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "again", 0));
	EXPECT_LE(0, open_name(self->dev, "again", 0));
}

TEST_F(foreign, is_found_by_its_dma_buf_until_the_name_is_gone)
{
	struct tshare_info info;
	int fd;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	EXPECT_EQ(-EINVAL, get_info(self->dev, self->dmabuf, &info));
	fd = name_foreign(self->dev, self->dmabuf, "camera", 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, self->dmabuf, &info));
	EXPECT_EQ(info.id, id_of(self->dev, fd));
	EXPECT_STREQ("camera", info.name);
	ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	EXPECT_EQ(-EINVAL, get_info(self->dev, self->dmabuf, &info));
	EXPECT_EQ(-EINVAL, get_info(self->dev, fd, &info));
	close(fd);
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(foreign, info_reports_flags_and_size)
{
	const __u32 flags = TSHARE_REGION_FOREIGN | TSHARE_REGION_WRITABLE;
	struct tshare_list_entry entry;
	struct tshare_info info;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", 0));
	ASSERT_EQ(0, get_info(self->dev, self->dmabuf, &info));
	EXPECT_EQ(flags, info.region_flags);
	EXPECT_EQ(SIZE, info.size);
	EXPECT_EQ(0, info.offset);
	EXPECT_EQ(SIZE, info.length);
	EXPECT_EQ(-1, info.node);
	EXPECT_EQ(0, info.segments);
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

TEST_F(foreign, has_a_counter)
{
	int fd;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	fd = name_foreign(self->dev, self->dmabuf, "camera", 0);
	ASSERT_LE(0, fd);
	EXPECT_NE(0, counter_inode(self->dev, fd));
	EXPECT_EQ(counter_inode(self->dev, fd), counter_inode(self->dev, self->dmabuf));
}

/* A reader of the first region can make the second one. */
TEST_F(foreign, next_region_of_a_dma_buf_is_told_by_its_id)
{
	struct tshare_open opened = { .name = "camera" };
	struct tshare_counter counter;
	__u64 next;

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	close(name_foreign(self->dev, self->dmabuf, "camera", 0));
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_OPEN, &opened));
	counter = (struct tshare_counter){ .fd = opened.fd };
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_COUNTER, &counter));
	EXPECT_EQ(opened.id, counter.id);
	ASSERT_EQ(0, unlink_name(self->dev, "camera"));
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", 0));
	next = id_of(self->dev, opened.fd);
	EXPECT_LT(opened.id, next);
	counter = (struct tshare_counter){ .fd = opened.fd };
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_COUNTER, &counter));
	EXPECT_EQ(next, counter.id);
}

TEST_F(foreign, range_is_eopnotsupp)
{
	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	EXPECT_EQ(-EINVAL, export_range(self->dev, self->dmabuf, 0, PAGE, 0));
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

TEST_F(foreign, draft_is_finished_by_its_dma_buf)
{
	struct tshare_finish finish = { .fd = self->dmabuf };

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	ASSERT_LE(0, name_foreign(self->dev, self->dmabuf, "camera", TSHARE_CREATE_DRAFT));
	EXPECT_EQ(-EINPROGRESS, open_name(self->dev, "camera", 0));
	EXPECT_EQ(-EBUSY, name_foreign(self->dev, self->dmabuf, "again", 0));
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_FINISH, &finish));
	EXPECT_LE(0, open_name(self->dev, "camera", 0));
	EXPECT_NE(0, id_of(self->dev, self->dmabuf));
}

TEST_F(foreign, that_is_replaced_can_be_named_again)
{
	struct tshare_create args = create_args(PAGE, "camera");

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	close(name_foreign(self->dev, self->dmabuf, "camera", 0));
	args.flags = TSHARE_CREATE_REPLACE;
	ASSERT_LE(0, do_create(self->dev, &args));
	EXPECT_EQ(0, id_of(self->dev, self->dmabuf));
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

struct namer {
	pthread_t thread;
	int dev;
	int fd;
	int number;
	int ret;
};

static void *name_it(void *arg)
{
	struct namer *namer = arg;
	char name[16];

	sprintf(name, "camera-%d", namer->number);
	namer->ret = name_foreign(namer->dev, namer->fd, name, 0);
	return NULL;
}

TEST_F(foreign, that_is_contested_is_won_by_exactly_one)
{
	struct namer namers[8];
	int i, round, won, times = rounds(50);

	if (self->dmabuf < 0)
		SKIP(return, "the kernel has no %s", variant->missing);
	for (round = 0; round < times; round++) {
		won = 0;
		for (i = 0; i < 8; i++) {
			namers[i] = (struct namer){
				.dev = self->dev,
				.fd = self->dmabuf,
				.number = i,
			};
			ASSERT_EQ(0, pthread_create(&namers[i].thread, NULL, name_it,
						    &namers[i]));
		}
		for (i = 0; i < 8; i++)
			ASSERT_EQ(0, pthread_join(namers[i].thread, NULL));
		for (i = 0; i < 8; i++) {
			char name[16];

			if (namers[i].ret < 0) {
				EXPECT_EQ(-EBUSY, namers[i].ret);
				continue;
			}
			won++;
			close(namers[i].ret);
			sprintf(name, "camera-%d", i);
			EXPECT_EQ(0, unlink_name(self->dev, name));
		}
		EXPECT_EQ(1, won);
	}
	EXPECT_SAME_COUNTERS(self->before);
}

/* Looks the region up until it is stopped. */
static void *look_for_it(void *arg)
{
	struct namer *namer = arg;
	struct tshare_info info;

	while (!__atomic_load_n(&namer->number, __ATOMIC_RELAXED)) {
		int err = get_info(namer->dev, namer->fd, &info);
		int fd = open_name(namer->dev, "camera", 0);

		if (err && err != -EINVAL)
			namer->ret = err;
		if (fd >= 0)
			close(fd);
		else if (fd != -ENOENT)
			namer->ret = fd;
	}
	return NULL;
}

TEST_F(foreign, can_be_named_and_unlinked_while_it_is_looked_for)
{
	struct namer looker = { .dev = self->dev, .fd = self->dmabuf };
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
	__atomic_store_n(&looker.number, 1, __ATOMIC_RELAXED);
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
