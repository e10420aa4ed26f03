// SPDX-License-Identifier: MIT
/* The file format: what is damaged is refused, and never leads outside of the file. */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../shm.h"

/* Overwrites bytes of a fresh region's file; what opening it then gives. */
static int damage(off_t offset, const void *bytes, size_t size)
{
	struct tshare_region *region = new_victim("victim");
	int err;

	write_at("victim", offset, bytes, size);
	err = open_error("victim");
	CHECK(!tshare_ctx_unlink(ctx, "victim"));
	tshare_region_unref(region);
	return err;
}

static int damage32(off_t offset, uint32_t value)
{
	return damage(offset, &value, sizeof(value));
}

static int damage64(off_t offset, uint64_t value)
{
	return damage(offset, &value, sizeof(value));
}

TEST(undamaged_files_are_taken)
{
	CHECK(!damage32(HEADER(version), 2));
	CHECK(!damage32(HEADER(desc_count), 1));
	CHECK(!damage64(DESC(shape[0]), 4));
}

TEST(the_magic_is_checked)
{
	CHECK(damage(HEADER(magic), "T", 1) == -EPROTO);
	CHECK(error_says("damaged"));
}

TEST(the_version_is_checked)
{
	CHECK(damage32(HEADER(version), 0) == -EPROTO);
	CHECK(damage32(HEADER(version), 1) == -EPROTO);
	CHECK(damage32(HEADER(version), 3) == -EPROTO);
}

TEST(the_counter_is_whatever_it_is)
{
	uint64_t any[8];

	memset(any, 0xa5, sizeof(any));
	CHECK(!damage(HEADER(counter), any, sizeof(any)));
}

/* 0 if somebody wakes who sleeps on a counter; 1 if nobody does, though it changes. */
static int sleep_on_counter(void *data)
{
	const struct timespec timeout = { .tv_sec = 10 };
	volatile uint32_t *word = (uint32_t *)((char *)data + HEADER(counter));

	for (;;) {
		if (!syscall(SYS_futex, word, FUTEX_WAIT, *word, &timeout, NULL, 0))
			return 0;
		if (errno == ETIMEDOUT)
			return 1;
	}
}

/* A wait of the library's looks again after a while, and so would never miss it. */
TEST(a_publish_wakes_who_sleeps_on_the_counter)
{
	struct tshare_region *region = new_victim("woken");
	void *file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, tshare_region_get_fd(region), 0);
	int status;
	pid_t pid;

	CHECK(file != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(sleep_on_counter(file));
	do {
		CHECK(!tshare_region_publish(region, NULL));
		usleep(10000);
	} while (!waitpid(pid, &status, WNOHANG));
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	munmap(file, 4096);
	tshare_region_unref(region);
}

TEST(flags_and_reserved_members_are_checked)
{
	CHECK(damage32(HEADER(flags), 2) == -EPROTO);
	CHECK(damage32(HEADER(reserved), 1) == -EPROTO);
}

TEST(the_size_is_checked)
{
	CHECK(damage64(HEADER(size), 0) == -EPROTO);
	CHECK(damage64(HEADER(size), 1) == -EPROTO);
	CHECK(damage64(HEADER(size), 8192) == -EPROTO);
	CHECK(damage64(HEADER(size), -4096) == -EPROTO);
	CHECK(damage64(HEADER(size), 1ULL << 63) == -EPROTO);
}

TEST(the_place_of_the_data_is_checked)
{
	CHECK(damage64(HEADER(data_offset), 0) == -EPROTO);
	CHECK(damage64(HEADER(data_offset), 1) == -EPROTO);
	CHECK(damage64(HEADER(data_offset), 8192) == -EPROTO);
	CHECK(damage64(HEADER(data_offset), -4096) == -EPROTO);
}

TEST(the_mode_is_checked)
{
	CHECK(damage32(HEADER(mode), 01000) == -EPROTO);
}

TEST(the_number_of_descriptors_is_checked)
{
	CHECK(damage32(HEADER(desc_count), TSHARE_TENSOR_LIMIT + 1) == -EPROTO);
	CHECK(damage32(HEADER(desc_count), UINT32_MAX) == -EPROTO);
	/* So many that they would reach into the data. */
	CHECK(damage32(HEADER(desc_count), 7) == -EPROTO);
	CHECK(damage32(HEADER(desc_size), sizeof(struct descriptor) - 1) == -EPROTO);
}

TEST(the_name_is_checked)
{
	char endless[128];

	memset(endless, 'n', sizeof(endless));
	CHECK(damage(HEADER(name), "other", 6) == -EPROTO);
	CHECK(damage(HEADER(name), endless, sizeof(endless)) == -EPROTO);
}

TEST(descriptors_are_checked)
{
	CHECK(damage64(DESC(byte_offset), 4096) == -EPROTO);
	CHECK(damage(DESC(dtype[1]), "\0", 1) == -EPROTO);
	CHECK(damage(DESC(dtype[2]), "\0\0", 2) == -EPROTO);
	CHECK(damage32(DESC(ndim), 33) == -EPROTO);
	CHECK(damage32(DESC(flags), 1) == -EPROTO);
	CHECK(damage32(DESC(reserved[2]), 1) == -EPROTO);
	CHECK(damage64(DESC(shape[0]), -1) == -EPROTO);
	CHECK(damage64(DESC(shape[0]), 1 << 20) == -EPROTO);
	CHECK(damage64(DESC(shape[31]), 1) == -EPROTO);
	CHECK(damage64(DESC(strides[0]), 1 << 20) == -EPROTO);
	CHECK(damage64(DESC(strides[0]), -1) == -EPROTO);
	CHECK(error_says("damaged"));
}

TEST(truncated_files_are_refused)
{
	static const off_t sizes[] = { 0,    1,	  sizeof(struct header) - 1, sizeof(struct header),
				       4096, 8191 };
	struct tshare_region *region;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		region = new_victim("short");
		CHECK(!truncate(path_of("short"), sizes[i]));
		CHECK(open_error("short") == -EPROTO);
		CHECK(!tshare_ctx_unlink(ctx, "short"));
		tshare_region_unref(region);
	}
}

/* Deterministic noise over header and descriptor: nothing that opens may be out of bounds. */
TEST(random_damage_never_leads_outside)
{
	uint64_t noise = 88172645463325252ULL;
	struct tshare_tensor *tensor;
	struct tshare_region *region, *opened;
	unsigned char byte;
	char last;
	off_t offset;
	int i;

	for (i = 0; i < 2000; i++) {
		noise ^= noise << 13;
		noise ^= noise >> 7;
		noise ^= noise << 17;
		offset = noise % (sizeof(struct header) + sizeof(struct descriptor));
		byte = noise >> 32;
		region = new_victim("noise");
		write_at("noise", offset, &byte, 1);
		if (!tshare_region_open(ctx, "noise", 0, &opened)) {
			CHECK(tshare_region_get_size(opened) == 4096);
			if (!tshare_region_get_tensor(opened, 0, &tensor)) {
				last = *(volatile char *)tshare_tensor_get_data(tensor);
				(void)last;
				tshare_tensor_unref(tensor);
			}
			tshare_region_unref(opened);
		}
		CHECK(!tshare_ctx_unlink(ctx, "noise"));
		tshare_region_unref(region);
	}
}

TEST(an_import_checks_the_header_too)
{
	struct tshare_region *region = new_victim("import"), *imported;
	uint64_t size = 1 << 30;

	write_at("import", HEADER(size), &size, sizeof(size));
	CHECK(tshare_region_import(ctx, tshare_region_get_fd(region), 0, &imported) == -EPROTO);
	write_at("import", HEADER(magic), "T", 1);
	CHECK(tshare_region_import(ctx, tshare_region_get_fd(region), 0, &imported) == -EINVAL);
	tshare_region_unref(region);
}

int main(void)
{
	return shm_main();
}
