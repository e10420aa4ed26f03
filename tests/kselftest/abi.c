// SPDX-License-Identifier: GPL-2.0-only
/* The rules that every command keeps: sizes, flags, reserved members, pointers. */
#include <stddef.h>

#include "harness.h"

#define LARGEST_ARG ((1 << _IOC_SIZEBITS) - 1)
#define COMMANDS 10

FIXTURE(command)
{
	int dev;
	int region;
	/* Targets for the commands that need a pointer. */
	struct tshare_list_entry entry;
	struct counters before;
	/* A valid argument, with room for the largest. */
	char *arg;
};

FIXTURE_VARIANT(command)
{
	unsigned int nr;
	size_t size;
	size_t flags_offset;
	__u32 flags;
	/* Flags that don't go with the others. */
	__u32 flags_apart;
	/* Members that must be zero; none if the length is zero. */
	size_t reserved_offset;
	size_t reserved_size;
	bool writes;
};

FIXTURE_VARIANT_ADD(command, query)
{
	.nr = 0,
	.size = 72,
	.flags_offset = offsetof(struct tshare_query, flags),
	.writes = true,
};

FIXTURE_VARIANT_ADD(command, create)
{
	.nr = 1,
	.size = 184,
	.flags_offset = offsetof(struct tshare_create, flags),
	.flags = TSHARE_CREATE_PERSIST | TSHARE_CREATE_DMA32 | TSHARE_CREATE_NO_CLOEXEC |
		 TSHARE_CREATE_DRAFT | TSHARE_CREATE_REPLACE | TSHARE_CREATE_NODE,
	.flags_apart = TSHARE_CREATE_USERS,
	.reserved_offset = offsetof(struct tshare_create, reserved),
	.reserved_size = sizeof(__u64),
	.writes = true,
};

FIXTURE_VARIANT_ADD(command, open)
{
	.nr = 2,
	.size = 192,
	.flags_offset = offsetof(struct tshare_open, flags),
	.flags = TSHARE_OPEN_WRITE | TSHARE_OPEN_NO_CLOEXEC,
	.writes = true,
};

FIXTURE_VARIANT_ADD(command, unlink)
{
	.nr = 3,
	.size = 144,
	.flags_offset = offsetof(struct tshare_unlink, flags),
	.reserved_offset = offsetof(struct tshare_unlink, reserved),
	.reserved_size = sizeof(__u32),
};

FIXTURE_VARIANT_ADD(command, info)
{
	.nr = 4,
	.size = 216,
	.flags_offset = offsetof(struct tshare_info, flags),
	.reserved_offset = offsetof(struct tshare_info, reserved),
	.reserved_size = sizeof(__u32),
	.writes = true,
};

FIXTURE_VARIANT_ADD(command, list)
{
	.nr = 5,
	.size = 32,
	.flags_offset = offsetof(struct tshare_list, flags),
	.flags = TSHARE_LIST_ALL,
	.reserved_offset = offsetof(struct tshare_list, reserved),
	.reserved_size = sizeof(__u32),
	.writes = true,
};

FIXTURE_VARIANT_ADD(command, counter)
{
	.nr = 6,
	.size = 24,
	.flags_offset = offsetof(struct tshare_counter, flags),
	.flags = TSHARE_COUNTER_NO_CLOEXEC,
	.reserved_offset = offsetof(struct tshare_counter, reserved),
	.reserved_size = sizeof(__u32),
	.writes = true,
};

FIXTURE_VARIANT_ADD(command, finish)
{
	.nr = 7,
	.size = 16,
	.flags_offset = offsetof(struct tshare_finish, flags),
	.flags = TSHARE_FINISH_REPLACE,
};

FIXTURE_VARIANT_ADD(command, export)
{
	.nr = 8,
	.size = 32,
	.flags_offset = offsetof(struct tshare_export, flags),
	.flags = TSHARE_EXPORT_WRITE | TSHARE_EXPORT_NO_CLOEXEC,
	.reserved_offset = offsetof(struct tshare_export, reserved),
	.reserved_size = sizeof(__u32),
	.writes = true,
};

FIXTURE_VARIANT_ADD(command, watch)
{
	.nr = 9,
	.size = 136,
	.flags_offset = offsetof(struct tshare_watch, flags),
	.flags = TSHARE_WATCH_NO_CLOEXEC,
	.writes = true,
};

FIXTURE_SETUP(command)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->region = create_flags(self->dev, PAGE, "there",
				    variant->nr == 7 ? TSHARE_CREATE_DRAFT : 0);
	ASSERT_LE(0, self->region);
	self->arg = calloc(1, LARGEST_ARG);
	ASSERT_NE(NULL, self->arg);
	self->before = count_all();

	switch (variant->nr) {
	case 1:
		*(struct tshare_create *)self->arg = create_args(PAGE, "new");
		break;
	case 2:
		strcpy(((struct tshare_open *)self->arg)->name, "there");
		break;
	case 3:
		strcpy(((struct tshare_unlink *)self->arg)->name, "there");
		break;
	case 4:
		((struct tshare_info *)self->arg)->fd = self->region;
		break;
	case 5:
		*(struct tshare_list *)self->arg = (struct tshare_list){
			.entries = (uintptr_t)&self->entry,
			.count = 1,
			.entry_size = sizeof(self->entry),
		};
		break;
	case 6:
		((struct tshare_counter *)self->arg)->fd = self->region;
		break;
	case 7:
		((struct tshare_finish *)self->arg)->fd = self->region;
		break;
	case 8:
		((struct tshare_export *)self->arg)->fd = self->region;
		break;
	case 9:
		strcpy(((struct tshare_watch *)self->arg)->name, "there");
		break;
	}
}

FIXTURE_TEARDOWN(command)
{
	free(self->arg);
	close(self->region);
	close(self->dev);
}

static int call(int dev, unsigned int nr, size_t size, void *arg)
{
	return xioctl(dev, _IOC(_IOC_READ | _IOC_WRITE, TSHARE_IOCTL_MAGIC, nr, size), arg);
}

TEST_F(command, smaller_than_first_version_is_einval)
{
	EXPECT_EQ(-EINVAL, call(self->dev, variant->nr, 0, self->arg));
	EXPECT_EQ(-EINVAL, call(self->dev, variant->nr, variant->size - 1, self->arg));
	EXPECT_EQ(-EINVAL, call(self->dev, variant->nr, variant->size / 2, self->arg));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(command, first_version_works)
{
	EXPECT_EQ(0, call(self->dev, variant->nr, variant->size, self->arg));
}

TEST_F(command, larger_with_zero_tail_works)
{
	EXPECT_EQ(0, call(self->dev, variant->nr, variant->size + 1, self->arg));
}

TEST_F(command, largest_with_zero_tail_works)
{
	EXPECT_EQ(0, call(self->dev, variant->nr, LARGEST_ARG, self->arg));
}

TEST_F(command, nonzero_tail_is_e2big)
{
	self->arg[variant->size] = 1;
	EXPECT_EQ(-E2BIG, call(self->dev, variant->nr, variant->size + 1, self->arg));
	self->arg[variant->size] = 0;
	self->arg[LARGEST_ARG - 1] = 1;
	EXPECT_EQ(-E2BIG, call(self->dev, variant->nr, LARGEST_ARG, self->arg));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(command, touches_nothing_behind_its_size)
{
	size_t i;

	memset(self->arg + variant->size, 0xa5, 256);
	EXPECT_EQ(0, call(self->dev, variant->nr, variant->size, self->arg));
	for (i = 0; i < 256; i++)
		ASSERT_EQ(0xa5, (unsigned char)self->arg[variant->size + i]);
}

TEST_F(command, other_directions_are_enotty)
{
	const unsigned int dirs[] = { _IOC_NONE, _IOC_READ, _IOC_WRITE };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		EXPECT_EQ(-ENOTTY, xioctl(self->dev, _IOC(dirs[i], TSHARE_IOCTL_MAGIC, variant->nr,
							  variant->size), self->arg));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(command, other_magic_is_enotty)
{
	EXPECT_EQ(-ENOTTY, xioctl(self->dev, _IOC(_IOC_READ | _IOC_WRITE, TSHARE_IOCTL_MAGIC + 1,
						  variant->nr, variant->size), self->arg));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(command, bad_pointer_is_efault)
{
	char *half = guarded(variant->size / 2);

	EXPECT_EQ(-EFAULT, call(self->dev, variant->nr, variant->size, NULL));
	EXPECT_EQ(-EFAULT, call(self->dev, variant->nr, variant->size,
				(void *)0xffff888000000000UL));
	memcpy(half, self->arg, variant->size / 2);
	EXPECT_EQ(-EFAULT, call(self->dev, variant->nr, variant->size, half));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(command, tail_outside_memory_is_efault)
{
	char *arg = guarded(variant->size);

	memcpy(arg, self->arg, variant->size);
	EXPECT_EQ(-EFAULT, call(self->dev, variant->nr, variant->size + 8, arg));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(command, read_only_argument_leaves_nothing_behind)
{
	char *arg = guarded(PAGE);

	memcpy(arg, self->arg, variant->size);
	ASSERT_EQ(0, mprotect(arg, PAGE, PROT_READ));
	EXPECT_EQ(variant->writes ? -EFAULT : 0,
		  call(self->dev, variant->nr, variant->size, arg));
	if (variant->writes)
		EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(command, rejects_unknown_flags)
{
	__u32 *flags = (__u32 *)(self->arg + variant->flags_offset);
	int bit;

	for (bit = 0; bit < 32; bit++) {
		if ((variant->flags | variant->flags_apart) & 1U << bit)
			continue;
		*flags = 1U << bit;
		EXPECT_EQ(-EINVAL, call(self->dev, variant->nr, variant->size, self->arg)) {
			TH_LOG("flag bit %d", bit);
		}
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(command, accepts_each_known_flag)
{
	__u32 *flags = (__u32 *)(self->arg + variant->flags_offset);

	*flags = variant->flags;
	EXPECT_EQ(0, call(self->dev, variant->nr, variant->size, self->arg));
	if (variant->flags & TSHARE_CREATE_PERSIST && variant->nr == 1)
		EXPECT_EQ(0, unlink_name(self->dev, "new"));
	*flags = variant->flags_apart;
	if (*flags)
		EXPECT_EQ(0, call(self->dev, variant->nr, variant->size, self->arg));
}

TEST_F(command, rejects_reserved_bits)
{
	size_t bit;

	for (bit = 0; bit < variant->reserved_size * 8; bit++) {
		char *byte = self->arg + variant->reserved_offset + bit / 8;

		*byte = 1 << bit % 8;
		EXPECT_EQ(-EINVAL, call(self->dev, variant->nr, variant->size, self->arg)) {
			TH_LOG("reserved bit %zu", bit);
		}
		*byte = 0;
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST(unknown_commands_are_enotty)
{
	char arg[256] = {};
	int dev = open_device();
	unsigned int nr;

	ASSERT_LE(0, dev);
	for (nr = COMMANDS; nr < 256; nr++)
		EXPECT_EQ(-ENOTTY, call(dev, nr, sizeof(arg), arg));
}

TEST(struct_sizes_are_those_of_the_first_version)
{
	EXPECT_EQ(72, sizeof(struct tshare_query));
	EXPECT_EQ(184, sizeof(struct tshare_create));
	EXPECT_EQ(192, sizeof(struct tshare_open));
	EXPECT_EQ(144, sizeof(struct tshare_unlink));
	EXPECT_EQ(216, sizeof(struct tshare_info));
	EXPECT_EQ(32, sizeof(struct tshare_list));
	EXPECT_EQ(24, sizeof(struct tshare_counter));
	EXPECT_EQ(16, sizeof(struct tshare_finish));
	EXPECT_EQ(32, sizeof(struct tshare_export));
	EXPECT_EQ(136, sizeof(struct tshare_watch));
	EXPECT_EQ(24, sizeof(struct tshare_desc));
	EXPECT_EQ(168, sizeof(struct tshare_list_entry));
}

TEST(device_has_neither_read_nor_write_nor_mmap)
{
	int dev = open_device();
	char byte = 0;

	ASSERT_LE(0, dev);
	EXPECT_EQ(-1, read(dev, &byte, 1));
	EXPECT_EQ(-1, write(dev, &byte, 1));
	EXPECT_EQ(MAP_FAILED, map(dev, PAGE, PROT_READ));
}

TEST(query_reports_the_limits_of_the_headers)
{
	struct tshare_query query = { .reserved = ~0U, .version = ~0U };
	int dev = open_device();

	ASSERT_LE(0, dev);
	ASSERT_EQ(0, xioctl(dev, TSHARE_IOCTL_QUERY, &query));
	EXPECT_EQ(0, query.flags);
	EXPECT_EQ(TSHARE_ABI_VERSION, query.version);
	EXPECT_EQ(0, query.features & ~TSHARE_FEATURE_HUGE_MAP);
	EXPECT_EQ(sysconf(_SC_PAGESIZE), query.page_size);
	EXPECT_EQ(query.features & TSHARE_FEATURE_HUGE_MAP ? 2 * MIB : PAGE, query.huge_page_size);
	EXPECT_EQ(TSHARE_NAME_LEN, query.name_len);
	EXPECT_EQ(TSHARE_NDIM_MAX, query.ndim_max);
	EXPECT_EQ(TSHARE_DESC_MAX, query.desc_max);
	EXPECT_EQ(TSHARE_DESCS_SIZE_MAX, query.descs_size_max);
	EXPECT_EQ(TSHARE_TENSOR_NAME_MAX, query.tensor_name_max);
	EXPECT_EQ(0, query.reserved);
	EXPECT_LT(0, query.bytes_limit);
	EXPECT_LE(query.bytes_used, query.bytes_limit);
	EXPECT_EQ(query.bytes_limit - query.bytes_used, query.region_bytes_max);
}

TEST(query_counts_bytes_used)
{
	struct tshare_query before = {}, after = {};
	int dev = open_device();

	ASSERT_LE(0, dev);
	ASSERT_EQ(0, xioctl(dev, TSHARE_IOCTL_QUERY, &before));
	ASSERT_LE(0, create(dev, 3 * MIB, NULL));
	ASSERT_EQ(0, xioctl(dev, TSHARE_IOCTL_QUERY, &after));
	EXPECT_EQ(before.bytes_used + 3 * MIB, after.bytes_used);
	EXPECT_EQ(before.region_bytes_max - 3 * MIB, after.region_bytes_max);
}

TEST(info_rejects_other_descriptors)
{
	struct tshare_info info;
	int dev = open_device(), pipes[2];
	int memfd = memfd_create("tshare", 0);

	ASSERT_LE(0, dev);
	ASSERT_LE(0, memfd);
	ASSERT_EQ(0, pipe(pipes));
	EXPECT_EQ(-EBADF, get_info(dev, -1, &info));
	EXPECT_EQ(-EBADF, get_info(dev, 1000000, &info));
	EXPECT_EQ(-EINVAL, get_info(dev, dev, &info));
	EXPECT_EQ(-EINVAL, get_info(dev, memfd, &info));
	EXPECT_EQ(-EINVAL, get_info(dev, pipes[0], &info));
}

TEST(info_refuses_the_dma_bufs_of_others)
{
	struct {
		__u32 memfd;
		__u32 flags;
		__u64 offset;
		__u64 size;
	} udmabuf = { .size = PAGE };
	int dev = open_device(), device = open("/dev/udmabuf", O_RDWR), fd;
	struct tshare_info info;

	if (device < 0)
		SKIP(return, "the kernel has no udmabuf");
	ASSERT_LE(0, dev);
	udmabuf.memfd = memfd_create("tshare", MFD_ALLOW_SEALING);
	ASSERT_EQ(0, ftruncate(udmabuf.memfd, PAGE));
	ASSERT_EQ(0, fcntl(udmabuf.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	fd = ioctl(device, _IOW('u', 0x42, udmabuf), &udmabuf);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, get_info(dev, fd, &info));
}

TEST(list_refuses_a_count_of_zero)
{
	struct tshare_list_entry entry;
	int dev = open_device();

	ASSERT_LE(0, dev);
	EXPECT_EQ(-EINVAL, do_list(dev, 0, &entry, 0));
}

TEST(list_checks_the_size_of_its_entries)
{
	char entries[2 * 4096];
	struct tshare_list args = { .entries = (uintptr_t)entries, .count = 1 };
	int dev = open_device();

	ASSERT_LE(0, dev);
	ASSERT_LE(0, create(dev, PAGE, NULL));
	EXPECT_EQ(-EINVAL, xioctl(dev, TSHARE_IOCTL_LIST, &args));
	args.entry_size = 167;
	EXPECT_EQ(-EINVAL, xioctl(dev, TSHARE_IOCTL_LIST, &args));
	args.entry_size = 4097;
	EXPECT_EQ(-E2BIG, xioctl(dev, TSHARE_IOCTL_LIST, &args));
	args.entry_size = 168;
	EXPECT_EQ(0, xioctl(dev, TSHARE_IOCTL_LIST, &args));
}

TEST(list_zeroes_the_tail_of_larger_entries)
{
	struct {
		struct tshare_list_entry entry;
		__u64 later[3];
	} entries[2];
	struct tshare_list args = {
		.entries = (uintptr_t)entries,
		.count = 2,
		.entry_size = sizeof(entries[0]),
	};
	int dev = open_device();
	int i;

	ASSERT_LE(0, dev);
	ASSERT_LE(0, create(dev, PAGE, "one"));
	ASSERT_LE(0, create(dev, PAGE, "two"));
	memset(entries, 0xa5, sizeof(entries));
	ASSERT_EQ(0, xioctl(dev, TSHARE_IOCTL_LIST, &args));
	ASSERT_EQ(2, args.count);
	EXPECT_STREQ("one", entries[0].entry.name);
	EXPECT_STREQ("two", entries[1].entry.name);
	for (i = 0; i < 2; i++)
		EXPECT_TRUE(zeroed(entries[i].later, sizeof(entries[i].later)));
}

TEST(list_into_bad_memory_is_efault)
{
	struct tshare_list_entry *entries = guarded(sizeof(*entries) * 3 / 2);
	int dev = open_device();
	struct counters before;

	ASSERT_LE(0, dev);
	ASSERT_LE(0, create(dev, PAGE, NULL));
	ASSERT_LE(0, create(dev, PAGE, NULL));
	before = count_all();
	EXPECT_EQ(-EFAULT, do_list(dev, 0, entries, 2));
	EXPECT_EQ(-EFAULT, do_list(dev, 0, NULL, 2));
	EXPECT_SAME_COUNTERS(before);
}

TEST(list_goes_on_at_its_cursor_and_lists_nothing_twice)
{
	struct tshare_list_entry entries[3];
	struct tshare_list args = {
		.entries = (uintptr_t)entries,
		.entry_size = sizeof(entries[0]),
	};
	__u64 last = 0, found = 0;
	int dev = open_device();
	__u32 i;

	ASSERT_LE(0, dev);
	for (i = 0; i < 10; i++)
		ASSERT_LE(0, create(dev, PAGE, NULL));
	do {
		args.count = ARRAY_SIZE(entries);
		ASSERT_EQ(0, xioctl(dev, TSHARE_IOCTL_LIST, &args));
		for (i = 0; i < args.count; i++) {
			EXPECT_LT(last, entries[i].id);
			last = entries[i].id;
			found++;
		}
	} while (args.count == ARRAY_SIZE(entries));
	EXPECT_EQ(10, found);

	args.cursor = ~0ULL;
	args.count = 1;
	EXPECT_EQ(0, xioctl(dev, TSHARE_IOCTL_LIST, &args));
	EXPECT_EQ(0, args.count);
}

TEST(list_agrees_with_info)
{
	struct tshare_list_entry entry;
	struct tshare_info info;
	int dev = open_device(), fd;

	ASSERT_LE(0, dev);
	fd = create_mode(dev, 3 * PAGE, "described", 0640);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(dev, fd, &info));
	ASSERT_EQ(1, do_list(dev, 0, &entry, 1));
	EXPECT_EQ(info.id, entry.id);
	EXPECT_EQ(3 * PAGE, entry.size);
	EXPECT_EQ(0, entry.uid);
	EXPECT_EQ(0, entry.gid);
	EXPECT_EQ(0640, entry.mode);
	EXPECT_EQ(info.node, entry.node);
	EXPECT_EQ(TSHARE_REGION_WRITABLE, entry.region_flags);
	EXPECT_EQ(0, entry.desc_count);
	EXPECT_STREQ("described", entry.name);
}

TEST(name_and_id_together_are_einval)
{
	struct tshare_open open_args = { .id = 1, .name = "both" };
	struct tshare_unlink unlink_args = { .id = 1, .name = "both" };
	int dev = open_device();

	ASSERT_LE(0, dev);
	EXPECT_EQ(-EINVAL, xioctl(dev, TSHARE_IOCTL_OPEN, &open_args));
	EXPECT_EQ(-EINVAL, xioctl(dev, TSHARE_IOCTL_UNLINK, &unlink_args));
}

TEST(neither_name_nor_id_is_enoent)
{
	int dev = open_device();

	ASSERT_LE(0, dev);
	EXPECT_EQ(-ENOENT, open_id(dev, 0, 0));
	EXPECT_EQ(-ENOENT, unlink_id(dev, 0));
	EXPECT_EQ(-ENOENT, open_id(dev, ~0ULL, 0));
}

TEST_HARNESS_MAIN
