// SPDX-License-Identifier: MIT
/*
 * The file of a region on shared memory, from a sender that writes what it likes, also while
 * the region is open: whatever is accepted leads to no byte outside of it.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/shm.h"
#include "input.h"
#include "reference.h"
#include "tshare.h"

#define PAGE 4096

/* Where the descriptors and most of what is worth a change are. */
#define HEAD 1024

#define MOST_TENSORS 16

static struct tshare_ctx *session;

struct file {
	struct header header;
	struct descriptor desc;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct tshare_ctx_options options = { .size = sizeof(options), .backend = "shm" };

	(void)argc;
	(void)argv;
	REQUIRE(!tshare_ctx_new(&options, &session));
	return 0;
}

/* A region of a page with one tensor, which is as it should be. */
static struct file good_file(void)
{
	return (struct file){
		.header = {
			.magic = "tshare\r\n",
			.version = 4,
			.id = 1,
			.size = PAGE,
			.data_offset = PAGE,
			.mode = 0600,
			.desc_count = 1,
			.descs_size = sizeof(struct descriptor),
		},
		.desc = {
			.size = sizeof(struct descriptor),
			.ndim = 2,
			.name_len = 1,
			.dtype = { 1, 8, 1 },
			.shape = { 4, 8 },
			.strides = { 8, 1 },
			.name = "t",
		},
	};
}

/* Some numbers in the head, as many as the first byte says. */
static void change(struct input *input, int fd)
{
	uint8_t count = take_byte(input) % 8;
	int64_t number;
	uint16_t where;

	while (count--) {
		take_bytes(input, &where, sizeof(where));
		number = take_number(input);
		REQUIRE(pwrite(fd, &number, 1U << where / HEAD % 4, where % HEAD) > 0);
	}
}

static int sealed_file(struct input *input)
{
	const struct file good = good_file();
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t pages = take_byte(input) % 8;

	REQUIRE(fd >= 0 && !posix_fallocate(fd, 0, pages ? (off_t)pages * PAGE : 2 * PAGE));
	REQUIRE(pwrite(fd, &good, sizeof(good), 0) == sizeof(good));
	change(input, fd);
	REQUIRE(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return fd;
}

static void use_tensor(const struct tshare_region *region, const struct tshare_tensor *tensor)
{
	const struct tshare_dtype dtype = tshare_tensor_get_dtype(tensor);
	const struct reach reach =
		reach_of((uint32_t)dtype.bits * dtype.lanes, tshare_tensor_get_ndim(tensor),
			 tshare_tensor_get_shape(tensor), tshare_tensor_get_strides(tensor));
	const wide start = (wide)tshare_tensor_get_byte_offset(tensor) * 8;
	const volatile char *data = tshare_region_get_data(region);

	REQUIRE(reach.countable);
	REQUIRE(strlen(tshare_tensor_get_name(tensor)) <= TSHARE_TENSOR_NAME_MAX);
	if (reach.empty)
		return;
	REQUIRE(start + reach.low >= 0);
	REQUIRE(start + reach.high <= (wide)tshare_region_get_size(region) * 8);
	(void)data[(uint64_t)(start + reach.low) / 8];
	(void)data[((uint64_t)(start + reach.high) - 1) / 8];
}

static void use(struct tshare_region *region)
{
	size_t count = tshare_region_get_tensor_count(region), i;
	struct tshare_tensor *tensor, *same;
	uint64_t generation;

	for (i = 0; i < count && i < MOST_TENSORS; i++) {
		if (tshare_region_get_tensor(region, i, &tensor)) {
			REQUIRE(*tshare_error_get());
			break;
		}
		use_tensor(region, tensor);
		if (!tshare_region_find_tensor(region, tshare_tensor_get_name(tensor), &same)) {
			REQUIRE(!strcmp(tshare_tensor_get_name(same),
					tshare_tensor_get_name(tensor)));
			tshare_tensor_unref(same);
		}
		tshare_tensor_unref(tensor);
	}
	tshare_region_wait(region, 0, 0, 0, &generation);
	if (!tshare_region_is_readonly(region))
		tshare_region_publish(region, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct tshare_region *region;
	uint32_t flags = take_byte(&input) % 2 ? TSHARE_READONLY : 0;
	int fd = sealed_file(&input);

	if (!tshare_region_import(session, fd, flags, &region)) {
		change(&input, fd);
		use(region);
		tshare_region_unref(region);
	}
	close(fd);
	return 0;
}
