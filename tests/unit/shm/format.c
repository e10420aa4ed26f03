// SPDX-License-Identifier: MIT
/* The file format: damaged files are refused, and never lead outside of the file. */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../shm.h"

/* The error of opening a region and of requesting its tensor; either call may read the list. */
static int use_error(const char *name)
{
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	int err;

	err = tshare_region_open(ctx, name, NULL, &region);
	if (err)
		return err;
	err = tshare_region_get_tensor(region, 0, &tensor);
	if (!err)
		tshare_tensor_unref(tensor);
	tshare_region_unref(region);
	return err;
}

/* Overwrites bytes of a new region's file; returns the error of using it. */
static int damage(off_t offset, const void *bytes, size_t size)
{
	struct tshare_region *region = new_victim("victim");
	int err;

	write_at("victim", offset, bytes, size);
	err = use_error("victim");
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
	CHECK(!damage32(HEADER(version), 4));
	CHECK(!damage32(HEADER(desc_count), 1));
	CHECK(!damage32(HEADER(descs_size), sizeof(struct descriptor)));
	CHECK(!damage64(DESC(shape[0]), 4));
	CHECK(!damage(DESC(name), "u", 1));
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
	CHECK(damage32(HEADER(version), 2) == -EPROTO);
	CHECK(damage32(HEADER(version), 3) == -EPROTO);
	CHECK(damage32(HEADER(version), 5) == -EPROTO);
}

TEST(the_counter_may_have_any_value)
{
	uint64_t any[8];

	memset(any, 0xa5, sizeof(any));
	CHECK(!damage(HEADER(counter), any, sizeof(any)));
}

/* 0 if a sleeper on the counter wakes up; 1 if none does although it changes. */
static int sleep_on_counter(void *data)
{
	const struct timespec timeout = { .tv_sec = 60 };
	volatile uint32_t *word = (uint32_t *)((char *)data + HEADER(counter));

	for (;;) {
		if (!syscall(SYS_futex, word, FUTEX_WAIT, *word, &timeout, NULL, 0))
			return 0;
		if (errno == ETIMEDOUT)
			return 1;
	}
}

/* tshare_region_wait() checks periodically, and so would hide a missing wake-up. */
TEST(a_publish_wakes_sleepers_on_the_counter)
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

/* A publisher of a region, which ends when it receives a byte. */
struct publisher {
	struct tshare_region *region;
	struct steps steps;
	pid_t pid;
};

static _Noreturn void publish_until_told(struct publisher *publisher, bool exits)
{
	struct tshare_region *own;

	if (tshare_region_import(ctx, tshare_region_get_fd(publisher->region), 0, &own) ||
	    tshare_region_publish(own, NULL) || !send_byte(publisher->steps.ends[0]) ||
	    !await_byte(publisher->steps.ends[0]))
		_exit(1);
	if (exits)
		exit(0);
	tshare_region_unref(own);
	await_byte(publisher->steps.ends[0]);
	_exit(0);
}

static void start_publisher(struct publisher *publisher, bool exits)
{
	CHECK(steps_open(&publisher->steps));
	publisher->pid = fork();
	CHECK(publisher->pid >= 0);
	if (!publisher->pid) {
		close(publisher->steps.ends[1]);
		publish_until_told(publisher, exits);
	}
	close(publisher->steps.ends[0]);
	CHECK(await_byte(publisher->steps.ends[1]));
}

/* tshare_region_wait() checks publishers periodically, and so would hide a missing wake-up. */
static void check_end_wakes(bool exits)
{
	struct tshare_region *region = new_victim("ended");
	void *file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, tshare_region_get_fd(region), 0);
	struct publisher publisher = { .region = region };
	int status, i;
	pid_t pid;

	CHECK(file != MAP_FAILED);
	start_publisher(&publisher, exits);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(sleep_on_counter(file));
	for (i = 0; i < 60000 && !is_asleep(pid); i++)
		usleep(1000);
	CHECK(send_byte(publisher.steps.ends[1]));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	close(publisher.steps.ends[1]);
	CHECK(waitpid(publisher.pid, NULL, 0) == publisher.pid);
	CHECK(!WEXITSTATUS(status));
	munmap(file, 4096);
	tshare_region_unref(region);
}

TEST(a_publisher_that_closes_wakes_sleepers_on_the_counter)
{
	check_end_wakes(false);
}

TEST(a_publisher_that_exits_wakes_sleepers_on_the_counter)
{
	check_end_wakes(true);
}

TEST(flags_and_reserved_members_are_checked)
{
	CHECK(damage32(HEADER(flags), 8) == -EPROTO);
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
	/* Another number than there are. */
	CHECK(damage32(HEADER(desc_count), 0) == -EPROTO);
	CHECK(damage32(HEADER(desc_count), 2) == -EPROTO);
	CHECK(damage32(HEADER(desc_count), TSHARE_TENSOR_LIMIT) == -EPROTO);
}

TEST(the_size_of_the_descriptors_is_checked)
{
	static const uint32_t sizes[] = {
		0,
		1,
		32,
		sizeof(struct descriptor) - 1,
		sizeof(struct descriptor) + 8,
		768, /* all that is read at once */
		64 << 20,
		UINT32_MAX,
	};
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK(damage32(HEADER(descs_size), sizes[i]) == -EPROTO);
}

TEST(the_name_is_checked)
{
	char endless[128];

	memset(endless, 'n', sizeof(endless));
	CHECK(damage(HEADER(name), "other", 6) == -EPROTO);
	CHECK(damage(HEADER(name), endless, sizeof(endless)) == -EPROTO);
}

static int damage16(off_t offset, uint16_t value)
{
	return damage(offset, &value, sizeof(value));
}

TEST(descriptors_are_checked)
{
	CHECK(damage64(DESC(byte_offset), 4096) == -EPROTO);
	CHECK(damage(DESC(dtype[1]), "\0", 1) == -EPROTO);
	CHECK(damage(DESC(dtype[2]), "\0\0", 2) == -EPROTO);
	CHECK(damage32(DESC(flags), 1) == -EPROTO);
	CHECK(damage64(DESC(shape[0]), -1) == -EPROTO);
	CHECK(damage64(DESC(shape[0]), 1 << 20) == -EPROTO);
	CHECK(damage64(DESC(strides[0]), 1 << 20) == -EPROTO);
	CHECK(damage64(DESC(strides[0]), -1) == -EPROTO);
	CHECK(error_says("damaged"));
}

TEST(the_sizes_of_records_are_checked)
{
	static const uint32_t sizes[] = { 0,  8,  24,  63,
					  65, 72, 768, /* all that is read at once */ UINT32_MAX };
	static const uint16_t ndims[] = { 0, 1, 3, 32, 33, UINT16_MAX };
	static const uint16_t lengths[] = { 0, 2, 8, 1023, 1024, UINT16_MAX };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK(damage32(DESC(size), sizes[i]) == -EPROTO);
	for (i = 0; i < sizeof(ndims) / sizeof(ndims[0]); i++)
		CHECK(damage16(DESC(ndim), ndims[i]) == -EPROTO);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		CHECK(damage16(DESC(name_len), lengths[i]) == -EPROTO);
}

TEST(the_names_of_records_are_checked)
{
	CHECK(damage(DESC(name), "\0", 1) == -EPROTO);
	CHECK(damage(DESC(name[1]), "t", 1) == -EPROTO);
	CHECK(damage(DESC(name[7]), "t", 1) == -EPROTO);
}

/* Lists too long to be read with an open are read when a tensor is requested. */

#define MANY 1000

/* A region with so many tensors, each with a record of 32 bytes: a scalar with a name. */
static struct tshare_region *new_long_victim(const char *name)
{
	static struct tshare_spec specs[MANY];
	static char names[MANY][8];
	struct tshare_region *region;
	size_t i;

	for (i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "%zu", 1000 + i);
		specs[i] = (struct tshare_spec)SPEC(names[i], TSHARE_UINT8, 0, NULL, NULL, i);
	}
	CHECK(!tshare_region_create(ctx, name, 4096, specs, MANY, NULL, &region));
	return region;
}

#define RECORD(i) (sizeof(struct header) + (i)*32)

static bool all_refused(struct tshare_region *region, int err)
{
	struct tshare_tensor *tensor;
	const char *name;

	return tshare_region_get_tensor(region, 0, &tensor) == err && error_says("damaged") &&
	       tshare_region_get_tensor_name(region, MANY - 1, &name) == err &&
	       tshare_region_find_tensor(region, "1500", &tensor) == err;
}

TEST(a_long_list_is_checked_when_it_is_read)
{
	static const uint32_t zero = 0, flag = 1, count = MANY + 1;
	static const struct {
		off_t offset;
		const uint32_t *bytes;
	} damages[] = {
		{ RECORD(0), &zero },		{ RECORD(500), &zero },
		{ RECORD(MANY - 1), &zero },	{ RECORD(MANY - 1) + 20, &flag },
		{ HEADER(desc_count), &count },
	};
	struct tshare_region *region, *opened;
	size_t i;

	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		region = new_long_victim("long");
		write_at("long", damages[i].offset, damages[i].bytes, 4);
		CHECK(!tshare_region_open(ctx, "long", NULL, &opened));
		CHECK(tshare_region_get_tensor_count(opened) >= MANY);
		CHECK(all_refused(opened, -EPROTO));
		tshare_region_unref(opened);
		CHECK(!tshare_ctx_unlink(ctx, "long"));
		tshare_region_unref(region);
	}
}

/* The library makes no such list, but a peer can. */
TEST(of_two_tensors_of_one_name_the_first_is_found)
{
	struct tshare_region *region = new_long_victim("twice"), *opened;
	struct tshare_tensor *tensor;

	write_at("twice", RECORD(700) + 24, "1300", 4);
	CHECK(!tshare_region_open(ctx, "twice", NULL, &opened));
	CHECK(!tshare_region_find_tensor(opened, "1300", &tensor));
	CHECK(tshare_tensor_get_byte_offset(tensor) == 300);
	tshare_tensor_unref(tensor);
	CHECK(tshare_region_find_tensor(opened, "1700", &tensor) == -ENOENT);
	tshare_region_unref(opened);
	tshare_region_unref(region);
}

TEST(a_list_that_was_read_is_not_read_again)
{
	struct tshare_region *region = new_long_victim("read"), *opened;
	struct tshare_tensor *tensor;
	uint32_t zero = 0;

	CHECK(!tshare_region_open(ctx, "read", NULL, &opened));
	CHECK(!tshare_region_find_tensor(opened, "1999", &tensor));
	write_at("read", RECORD(999), &zero, 4);
	CHECK(tshare_tensor_get_byte_offset(tensor) == 999);
	tshare_tensor_unref(tensor);
	CHECK(!tshare_region_find_tensor(opened, "1999", &tensor));
	tshare_tensor_unref(tensor);
	tshare_region_unref(opened);
	tshare_region_unref(region);
}

TEST(a_list_that_the_file_no_longer_has_is_eproto)
{
	struct tshare_region *region = new_long_victim("shrunk"), *opened;

	CHECK(!tshare_region_open(ctx, "shrunk", NULL, &opened));
	CHECK(!truncate(path_of("shrunk"), RECORD(998)));
	CHECK(all_refused(opened, -EPROTO));
	tshare_region_unref(opened);
	tshare_region_unref(region);
}

/* Deterministic noise over the list: every tensor returned lies inside the region. */
TEST(random_damage_of_a_long_list_never_leads_outside)
{
	uint64_t noise = 88172645463325252ULL;
	struct tshare_region *region, *opened;
	struct tshare_tensor *tensor;
	unsigned char byte;
	int i;

	for (i = 0; i < 1000; i++) {
		noise ^= noise << 13;
		noise ^= noise >> 7;
		noise ^= noise << 17;
		byte = noise >> 32;
		region = new_long_victim("noise");
		write_at("noise", RECORD(0) + noise % (RECORD(MANY) - RECORD(0)), &byte, 1);
		CHECK(!tshare_region_open(ctx, "noise", NULL, &opened));
		if (!tshare_region_get_tensor(opened, MANY - 1, &tensor)) {
			byte = *(volatile unsigned char *)tshare_tensor_get_data(tensor);
			tshare_tensor_unref(tensor);
			if (!tshare_region_find_tensor(opened, "1500", &tensor))
				tshare_tensor_unref(tensor);
		}
		tshare_region_unref(opened);
		CHECK(!tshare_ctx_unlink(ctx, "noise"));
		tshare_region_unref(region);
	}
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
		if (!tshare_region_open(ctx, "noise", NULL, &opened)) {
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
