// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nothing is handed over to the kernel that kexec starts. The program runs in both kernels:
 * the first time it leaves regions behind and boots, and the second time it tests.
 */
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "harness.h"
#include "pool.h"

/* The second kernel's command line has it. */
#define SECOND "tshare_second"

#define LARGE (64 * MIB)

static bool is_second(const char *cmdline)
{
	return strstr(cmdline, SECOND);
}

static int open_named_by(const char *variable)
{
	const char *path = getenv(variable);

	if (!path)
		ksft_exit_skip("%s names no file\n", variable);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Names, persistent ones too, a pool, and memory that is not zero. All regions stay open. */
static bool leave_behind(void)
{
	int dev = open_device();

	return is_zero_and_filled(create(dev, LARGE, "left"), LARGE) &&
	       create_persistent(dev, PAGE, "persistent") >= 0 && !resize(LARGE);
}

/*
 * As a shutdown does. The kernel checks the file system at each mount, and its background work may
 * have written half of a change.
 */
static bool unmount_scratch(void)
{
	const char *path = getenv("TSHARE_SCRATCH");

	return !path || !umount2(path, 0);
}

static void boot_second(char *cmdline)
{
	strcpy(strchrnul(cmdline, '\n'), " " SECOND);
	if (!leave_behind() || !unmount_scratch() ||
	    syscall(SYS_kexec_file_load, open_named_by("TSHARE_TEST_KERNEL"),
		    open_named_by("TSHARE_TEST_INITRAMFS"), strlen(cmdline) + 1, cmdline, 0L) ||
	    syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC,
		    NULL))
		ksft_exit_fail_msg("kexec: %m\n");
}

static void __attribute__((constructor)) be_in_the_second_kernel(void)
{
	char cmdline[4096] = {};
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);

	if (read(fd, cmdline, sizeof(cmdline) - sizeof(SECOND) - 2) < 0)
		ksft_exit_fail_msg("/proc/cmdline: %m\n");
	close(fd);
	if (!is_second(cmdline))
		boot_second(cmdline);
}

TEST(no_region_is_handed_over)
{
	struct tshare_list_entry entry;
	struct counters counters = count_all();
	int dev = open_device();

	EXPECT_EQ(0, counters.regions);
	EXPECT_EQ(0, counters.names);
	EXPECT_EQ(0, counters.bytes);
	EXPECT_EQ(0, do_list(dev, 0, &entry, 1));
	EXPECT_EQ(-ENOENT, open_name(dev, "left", 0));
	EXPECT_EQ(-ENOENT, open_name(dev, "persistent", 0));
	EXPECT_EQ(0, pool_size());
}

TEST(memory_is_zeroed)
{
	int dev = open_device();

	EXPECT_TRUE(is_zero_and_filled(create(dev, LARGE, "left"), LARGE));
	EXPECT_TRUE(is_zero_and_filled(create(dev, LARGE, "another"), LARGE));
}

TEST_HARNESS_MAIN
