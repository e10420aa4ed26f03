// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is there when the machine goes to sleep is there when it wakes: suspended, in the
 * kernel's test mode as far as each level and then to memory, and hibernated to a disk.
 *
 * For a machine that has no files by a device that doesn't survive it.
 */
#include <mntent.h>
#include <sys/mount.h>
#include <sys/swap.h>

#include "device.h"
#include "frozen.h"
#include "harness.h"
#include "pool.h"

#define POWER "/sys/power/"
#define DELAY "/sys/module/suspend/parameters/pm_test_delay"
#define ALARM "/sys/class/rtc/rtc0/wakealarm"
#define DISK "/dev/vda"

#define LARGE (8 * MIB)
#define POOLED (4 * MIB)
#define POOL_SIZE (16 * MIB)

static void __attribute__((constructor)) need_sleep(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;

	while (mounts && (mount = getmntent(mounts)))
		if (!strcmp(mount->mnt_type, "9p"))
			ksft_exit_skip("files come through a device that doesn't sleep\n");
	endmntent(mounts);
}

FIXTURE(asleep)
{
	int dev;
};

/* How the machine goes to sleep, the file that says so, and how far in the kernel's test mode. */
struct way {
	const char *state;
	const char *file;
	const char *kind;
	const char *level;
};

FIXTURE_VARIANT(asleep)
{
	struct way way;
};

/* All but the last step, from which the clock doesn't wake an emulated machine. */
FIXTURE_VARIANT_ADD(asleep, idle)
{
	.way.state = "mem",
	.way.file = POWER "mem_sleep",
	.way.kind = "s2idle",
	.way.level = "platform",
};

FIXTURE_VARIANT_ADD(asleep, memory)
{
	.way.state = "mem",
	.way.file = POWER "mem_sleep",
	.way.kind = "deep",
	.way.level = "none",
};

FIXTURE_VARIANT_ADD(asleep, disk)
{
	.way.state = "disk",
	.way.file = POWER "disk",
	.way.kind = "reboot",
	.way.level = "none",
};

FIXTURE_SETUP(asleep)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(asleep)
{
	close(self->dev);
}

/* Swaps to the disk on which the scratch directory was. */
static bool swap(void)
{
	static struct {
		char boot[1024];
		__u32 version, last_page, bad_pages;
		char more[PAGE - 1024 - 12 - 10];
		char magic[10];
	} __attribute__((packed)) header = {
		.version = 1,
		.last_page = GIB / PAGE - 1,
		.magic = "SWAPSPACE2",
	};
	bool done;
	int fd;

	umount(getenv("TSHARE_SCRATCH"));
	fd = open(DISK, O_WRONLY | O_CLOEXEC);
	done = write(fd, &header, sizeof(header)) == sizeof(header) && !fsync(fd);
	close(fd);
	return done && !swapon(DISK, 0);
}

/* 0 when the machine is awake again. The clock wakes it, or from the disk its boot. */
static int sleep_by(const struct way *way)
{
	bool to_disk = !strcmp(way->state, "disk");
	int fd, ret;

	if (!write_file(DELAY, "1") || !write_file(POWER "pm_test", way->level) ||
	    !write_file(way->file, way->kind))
		return -EIO;
	if (to_disk ? !swap() : !write_file(ALARM, "0") || !write_file(ALARM, "+2"))
		return -ENODEV;
	fd = open(POWER "state", O_WRONLY | O_CLOEXEC);
	ret = write(fd, way->state, strlen(way->state)) < 0 ? -errno : 0;
	close(fd);
	write_file(POWER "pm_test", "none");
	if (to_disk)
		swapoff(DISK);
	return ret;
}

static volatile __u64 *map_counter(int dev, int fd)
{
	struct tshare_counter args = { .fd = fd };

	if (xioctl(dev, TSHARE_IOCTL_COUNTER, &args))
		return MAP_FAILED;
	return map(args.counter_fd, PAGE, RW);
}

/* All in one, for to hibernate takes as long as to boot. */
TEST_F(asleep, all_is_as_it_was)
{
	int importer = open_importer(), small, large, pooled, fd, status;
	volatile __u64 *counter;
	char *page, *pages, *pool;
	pid_t waiter;
	__u64 id;

	/* From the pool is what takes 2 MiB and more. */
	ASSERT_EQ(0, resize(POOL_SIZE));
	pooled = create(self->dev, POOLED, NULL);
	ASSERT_EQ(1, from_pool(self->dev, pooled));
	pool = map(pooled, POOLED, RW);
	ASSERT_NE(MAP_FAILED, pool);
	fill(pool, POOLED, 1);

	small = create(self->dev, PAGE, NULL);
	page = map(small, PAGE, RW);
	ASSERT_NE(MAP_FAILED, page);
	fill(page, PAGE, 2);

	large = create(self->dev, LARGE, "large");
	pages = map_aligned(large, LARGE, RW);
	ASSERT_NE(MAP_FAILED, pages);
	fill(pages, 4 * MIB, 3);
	id = id_of(self->dev, large);
	counter = map_counter(self->dev, large);
	ASSERT_NE(MAP_FAILED, counter);
	*counter = 4;
	ASSERT_EQ(0, attach(importer, large, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, device_writes(importer, 4 * MIB, 5));

	/* Its name is all that keeps it. */
	close(create_persistent(self->dev, PAGE, "persistent"));

	waiter = fork();
	if (!waiter)
		_exit(wait_for_name());
	ASSERT_TRUE(sleeps(waiter));

	ASSERT_EQ(0, sleep_by(&variant->way));

	EXPECT_TRUE(filled(page, PAGE, 2));
	EXPECT_TRUE(filled(pages, 4 * MIB, 3));
	EXPECT_EQ(4, *counter);
	EXPECT_EQ(id, id_of(self->dev, open_name(self->dev, "large", TSHARE_OPEN_WRITE)));
	EXPECT_LE(0, open_name(self->dev, "persistent", 0));
	EXPECT_EQ(0, unlink_name(self->dev, "persistent"));

	/* The device has the addresses that it had. */
	EXPECT_TRUE(filled(pages + 4 * MIB, CHUNK, 5));
	EXPECT_TRUE(device_reads(importer, 4 * MIB, 5));
	EXPECT_EQ(0, device_writes(importer, 6 * MIB, 6));
	EXPECT_TRUE(filled(pages + 6 * MIB, CHUNK, 6));

	EXPECT_EQ(POOL_SIZE, pool_size());
	EXPECT_EQ(POOL_SIZE - POOLED - LARGE, pool_free());
	EXPECT_TRUE(filled(pool, POOLED, 1));
	fd = create(self->dev, POOLED, NULL);
	EXPECT_EQ(1, from_pool(self->dev, fd));
	EXPECT_TRUE(is_zero_and_filled(fd, POOLED));
	close(fd);
	EXPECT_TRUE(is_all_zeroed(POOL_SIZE - POOLED - LARGE));
	EXPECT_EQ(0, resize(0));

	EXPECT_EQ(0, waitpid(waiter, &status, WNOHANG));
	EXPECT_LE(0, create(self->dev, PAGE, "awaited"));
	ASSERT_EQ(waiter, waitpid(waiter, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
