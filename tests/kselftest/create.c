// SPDX-License-Identifier: GPL-2.0-only
/* Arguments and results of CREATE: sizes, names, modes, nodes, addresses. */
#include <limits.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "harness.h"

FIXTURE(create)
{
	int dev;
	struct counters before;
};

FIXTURE_SETUP(create)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
}

FIXTURE_TEARDOWN(create)
{
	close(self->dev);
}

TEST_F(create, rounds_sizes_up_to_whole_pages)
{
	static const struct {
		__u64 asked, given;
	} sizes[] = {
		{ 1, PAGE },
		{ PAGE - 1, PAGE },
		{ PAGE, PAGE },
		{ PAGE + 1, 2 * PAGE },
		{ 3 * PAGE, 3 * PAGE },
		{ 2 * MIB - PAGE, 2 * MIB - PAGE },
		{ 2 * MIB - 1, 2 * MIB },
		{ 2 * MIB, 2 * MIB },
		{ 2 * MIB + 1, 2 * MIB + PAGE },
		{ 2 * MIB + PAGE, 2 * MIB + PAGE },
		{ 3 * MIB + 1, 3 * MIB + PAGE },
		{ 4 * MIB, 4 * MIB },
		{ 5 * MIB - PAGE, 5 * MIB - PAGE },
		{ 64 * MIB, 64 * MIB },
	};
	struct tshare_info info;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct tshare_create args = create_args(sizes[i].asked, NULL);
		int fd = do_create(self->dev, &args);

		ASSERT_LE(0, fd) {
			TH_LOG("size %llu", sizes[i].asked);
		}
		EXPECT_EQ(sizes[i].given, args.size);
		EXPECT_EQ(sizes[i].given, lseek(fd, 0, SEEK_END));
		ASSERT_EQ(0, get_info(self->dev, fd, &info));
		EXPECT_EQ(sizes[i].given, info.size);
		EXPECT_EQ(self->before.bytes + (long)sizes[i].given, read_number(SYSFS "bytes"));
		close(fd);
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, size_of_zero_is_einval)
{
	EXPECT_EQ(-EINVAL, create(self->dev, 0, NULL));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, sizes_beyond_memory_are_enomem)
{
	struct sysinfo memory;
	__u64 sizes[] = { 1ULL << 63, ~0ULL, ~0ULL - PAGE, (1ULL << 63) - 1, 1ULL << 44, 0 };
	size_t i;

	ASSERT_EQ(0, sysinfo(&memory));
	sizes[ARRAY_SIZE(sizes) - 1] = (__u64)memory.totalram * memory.mem_unit + 1;
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_EQ(-ENOMEM, create(self->dev, sizes[i], NULL));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, names_have_up_to_127_bytes)
{
	struct tshare_create args = create_args(PAGE, NULL);
	struct tshare_info info;
	int fd;

	memset(args.name, 'n', TSHARE_NAME_LEN - 1);
	fd = do_create(self->dev, &args);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_STREQ(args.name, info.name);
	EXPECT_LE(0, open_name(self->dev, args.name, 0));
}

TEST_F(create, names_without_nul_are_enametoolong)
{
	struct tshare_create args = create_args(PAGE, NULL);

	memset(args.name, 'n', TSHARE_NAME_LEN);
	EXPECT_EQ(-ENAMETOOLONG, do_create(self->dev, &args));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, malformed_names_are_einval)
{
	static const char *const names[] = { "/", "/a", "a/", "a/b", ".", ".." };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_EQ(-EINVAL, create(self->dev, PAGE, names[i]));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, names_may_have_any_other_byte)
{
	static const char *const names[] = {
		"...", ".a", "a.", " ", "\n", "\xff\x80", "\u00fcml\u00e4ut",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_LE(0, create(self->dev, PAGE, names[i]));
		EXPECT_LE(0, open_name(self->dev, names[i], 0));
	}
}

TEST_F(create, bytes_behind_the_nul_are_not_the_name)
{
	struct tshare_create args = create_args(PAGE, "short");
	struct tshare_info info;
	int fd;

	strcpy(args.name + 10, "long");
	fd = do_create(self->dev, &args);
	ASSERT_LE(0, fd);
	EXPECT_LE(0, open_name(self->dev, "short", 0));
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_TRUE(zeroed(info.name + 8, sizeof(info.name) - 8));
}

TEST_F(create, taken_names_are_eexist)
{
	struct counters before;

	ASSERT_LE(0, create(self->dev, PAGE, "taken"));
	before = count_all();
	EXPECT_EQ(-EEXIST, create(self->dev, PAGE, "taken"));
	EXPECT_SAME_COUNTERS(before);
}

TEST_F(create, unnamed_regions_don_t_conflict)
{
	EXPECT_LE(0, create(self->dev, PAGE, NULL));
	EXPECT_LE(0, create(self->dev, PAGE, NULL));
	EXPECT_EQ(-ENOENT, open_name(self->dev, "", 0));
}

TEST_F(create, mode_is_kept)
{
	struct tshare_info info;
	__u32 mode = 0;

	do {
		int fd = create_mode(self->dev, PAGE, NULL, mode);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, get_info(self->dev, fd, &info));
		EXPECT_EQ(mode, info.mode);
		close(fd);
		mode = (mode - 0666) & 0666;
	} while (mode);
}

TEST_F(create, mode_bits_outside_0666_are_einval)
{
	__u32 bit;

	for (bit = 1; bit; bit <<= 1) {
		if (!(bit & 0666))
			EXPECT_EQ(-EINVAL, create_mode(self->dev, PAGE, NULL, bit));
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, umask_is_not_applied)
{
	struct tshare_info info;
	int fd;

	umask(0777);
	fd = create_mode(self->dev, PAGE, NULL, 0666);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(0666, info.mode);
}

TEST_F(create, on_a_node_is_on_that_node)
{
	struct tshare_create args = create_args(8 * MIB, NULL);
	struct tshare_info info;
	int fd;

	set_node(&args, 0);
	fd = do_create(self->dev, &args);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(0, info.node);
}

TEST_F(create, nodes_that_are_not_online_are_einval)
{
	static const __s32 nodes[] = { -2, -1, 63, 1023, 1024, 65536, INT_MAX, INT_MIN };
	struct tshare_create args;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nodes); i++) {
		args = create_args(PAGE, NULL);
		set_node(&args, nodes[i]);
		EXPECT_EQ(-EINVAL, do_create(self->dev, &args));
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, node_without_its_flag_is_einval)
{
	static const __s32 nodes[] = { -1, 1, INT_MAX };
	struct tshare_create args;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nodes); i++) {
		args = create_args(PAGE, NULL);
		args.node = nodes[i];
		EXPECT_EQ(-EINVAL, do_create(self->dev, &args));
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, persist_without_a_name_is_einval)
{
	EXPECT_EQ(-EINVAL, create_persistent(self->dev, PAGE, NULL));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(create, persist_is_shown)
{
	struct tshare_info info;
	int fd = create_persistent(self->dev, PAGE, "persistent");

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(TSHARE_REGION_PERSIST, info.region_flags & TSHARE_REGION_PERSIST);
	EXPECT_EQ(0, unlink_name(self->dev, "persistent"));
}

static bool memory_above_4gib(void)
{
	FILE *file = fopen("/proc/iomem", "re");
	unsigned long end;
	bool found = false;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, ": System RAM") && sscanf(line, "%*x-%lx", &end) == 1)
			found |= end >= 4 * GIB;
	if (file)
		fclose(file);
	return found;
}

TEST_F(create, dma32_is_below_4_gib)
{
	static const __u64 sizes[] = { PAGE, 3 * PAGE, 2 * MIB, 2 * MIB + PAGE, 64 * MIB };
	struct tshare_info info;
	size_t i;
	int fd;

	if (!memory_above_4gib())
		SKIP(return, "all memory is below 4 GiB");
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct tshare_create args = create_args(sizes[i], NULL);

		args.flags = TSHARE_CREATE_DMA32;
		fd = do_create(self->dev, &args);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, get_info(self->dev, fd, &info));
		EXPECT_EQ(TSHARE_REGION_DMA32, info.region_flags & TSHARE_REGION_DMA32);
		EXPECT_NE(0, info.phys_addr);
		EXPECT_LE(info.phys_addr + info.size, 4 * GIB);
		close(fd);
	}
}

TEST_F(create, physical_address_is_for_cap_sys_rawio_only)
{
	struct tshare_info info;
	int fd = create(self->dev, PAGE, NULL);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(TSHARE_REGION_PHYS, info.region_flags & TSHARE_REGION_PHYS);
	EXPECT_NE(0, info.phys_addr);
	ASSERT_TRUE(drop_capability(CAP_SYS_RAWIO));
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(0, info.region_flags & TSHARE_REGION_PHYS);
	EXPECT_EQ(0, info.phys_addr);
}

TEST_F(create, ids_rise_and_are_not_used_again)
{
	__u64 last = 0;
	int i;

	for (i = 0; i < 20; i++) {
		struct tshare_create args = create_args(PAGE, NULL);
		int fd = do_create(self->dev, &args);

		ASSERT_LE(0, fd);
		EXPECT_LT(last, args.id);
		last = args.id;
		close(fd);
		EXPECT_EQ(-ENOENT, open_id(self->dev, last, 0));
	}
}

TEST_F(create, owner_and_group_are_the_callers)
{
	struct tshare_info info;
	int fd;

	ASSERT_TRUE(act_as(USER_A, USER_B, USER_C));
	fd = create(self->dev, PAGE, NULL);
	ASSERT_TRUE(act_as_root());
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(USER_A, info.uid);
	EXPECT_EQ(USER_B, info.gid);
}

TEST_F(create, gives_a_readable_and_writable_descriptor_whatever_the_mode)
{
	int fd = create_mode(self->dev, PAGE, NULL, 0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(O_RDWR, fcntl(fd, F_GETFL) & O_ACCMODE);
	EXPECT_NE(MAP_FAILED, map(fd, PAGE, RW));
}

TEST_HARNESS_MAIN
