// SPDX-License-Identifier: MIT
/*
 * Memory of gigabytes to half a terabyte, which no test machine has: address space that is
 * reserved or nothing at all, and functions inside the library.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/driver.h"
#include "other.h"
#include "region/object.h"

#define GIB (1ULL << 30)

static struct cuda_scope scope;

static void before(void)
{
	stub_reset();
	stub_allow_inaccessible(true);
	CHECK(!cuda_start() && !cuda_enter(&scope, 0));
}

static void after(void)
{
	cuda_leave(&scope);
}

static char *reserve(uint64_t size)
{
	char *start =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(start != MAP_FAILED);
	return start;
}

TEST(less_than_512_gib_is_registered_in_one_piece)
{
	const uint64_t size = 512 * GIB - 4096;
	char *start = reserve(size);

	CHECK(cuda_piece_bytes(size) == size);
	CHECK(!cuda_register(start, size, false));
	CHECK(stub_registrations() == 1 && stub_is_registered(start, size));
	CHECK(!cuda_unregister(start, size));
	CHECK(!stub_registrations() && !stub_complaint());
	munmap(start, size);
}

TEST(more_is_registered_in_pieces_of_64_gib)
{
	const uint64_t size = 512 * GIB + 4096;
	char *start = reserve(size);

	CHECK(cuda_piece_bytes(512 * GIB) == 64 * GIB && cuda_piece_bytes(size) == 64 * GIB);
	CHECK(!cuda_register(start, size, false));
	CHECK(stub_registrations() == 9);
	CHECK(stub_is_registered(start + 448 * GIB, 64 * GIB));
	CHECK(stub_is_registered(start + 512 * GIB, 4096));
	CHECK(!cuda_unregister(start, size));
	CHECK(!stub_registrations() && !stub_complaint());
	munmap(start, size);
}

TEST(a_piece_that_fails_takes_those_before_it_along)
{
	const uint64_t size = 600 * GIB;
	char *start = reserve(size);

	stub_fail("cuMemHostRegister", 5, 304);
	CHECK(cuda_register(start, size, false) == 304);
	CHECK(stub_calls("cuMemHostUnregister") == 4);
	CHECK(!stub_registrations() && !stub_complaint());
	munmap(start, size);
}

TEST(pieces_have_one_address_only_if_theirs_are_contiguous)
{
	const uint64_t size = 600 * GIB;
	char *start = reserve(size);
	uint64_t address;

	CHECK(!cuda_register(start, size, false));
	CHECK(!cuda_get_address(start, size, &address) && address == (uintptr_t)start);
	stub_set_attribute(-1, 91, 0);
	CHECK(cuda_get_address(start, size, &address) == -EFBIG);
	CHECK(!cuda_unregister(start, size));
	munmap(start, size);
}

/* One copy can't cross from one registration to the next. */
TEST(what_lies_in_two_pieces_is_copied_in_two)
{
	const uint64_t size = 512 * GIB, offset = 64 * GIB - 4096;
	char *start = reserve(size);
	uint64_t address;

	CHECK(!mprotect(start + offset, 3 * 4096, PROT_READ | PROT_WRITE));
	memset(start + offset, 1, 4096);
	memset(start + offset + 4096, 2, 2 * 4096);
	CHECK(!cuda_register(start, size, false) && !cuda_allocate(3 * 4096, &address));
	CHECK(!cuda_stream_copy(LEGACY, address, start, offset, 3 * 4096, cuda_piece_bytes(size)));
	CHECK(stub_calls("cuMemcpyHtoDAsync") == 2);
	CHECK(!cuda_stream_finish(LEGACY));
	CHECK(!memcmp((void *)(uintptr_t)address, start + offset, 3 * 4096));
	cuda_free(address);
	CHECK(!cuda_unregister(start, size) && !stub_complaint());
	munmap(start, size);
}

TEST(an_error_that_is_not_the_driver_s_has_its_own_text)
{
	CHECK(cuda_fail(-ENOMEM, "stream") == -ENOMEM);
	CHECK(error_says("stream: Cannot allocate memory"));
	CHECK(cuda_fail(2, "stream") == -ENOMEM);
	CHECK(error_says("stream: CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST(a_pin_reports_its_pieces)
{
	struct tshare_pin_info info = { .size = sizeof(info) };
	struct tshare_region region = { .handle.size = 512 * GIB };
	struct tshare_pin *pin;

	atomic_init(&region.refs, 1);
	region.data = reserve(region.handle.size);
	CHECK(!tshare_region_pin(&region, NULL, &pin));
	CHECK(!tshare_pin_get_info(pin, &info) && info.piece_bytes == 64 * GIB);
	CHECK(stub_registrations() == 8);
	tshare_pin_unref(pin);
	CHECK(!stub_registrations() && !stub_complaint());
	munmap(region.data, region.handle.size);
}

/* A region of that size with a dma-buf that isn't one, which the driver refuses if it is asked. */
static int import_dmabuf_of(uint64_t size)
{
	const struct backend_ops backend = { .has_dmabufs = true };
	const struct tshare_cuda_options options = {
		.size = sizeof(options),
		.path = TSHARE_CUDA_DMABUF,
	};
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_region region = { .backend = &backend, .data = reserve(size) };
	int ret;

	region.handle.fd = -1;
	region.handle.size = size;
	ret = tshare_cuda_import(&region, &options, &info);
	munmap(region.data, size);
	return ret;
}

TEST(dmabufs_of_less_than_4_gib_are_imported)
{
	CHECK(import_dmabuf_of(4 * GIB - 4096) == -EOPNOTSUPP);
	CHECK(stub_calls("cuImportExternalMemory") == 1);
	CHECK(import_dmabuf_of(4 * GIB) == -EOPNOTSUPP);
	CHECK(stub_calls("cuImportExternalMemory") == 1);
	CHECK(error_says("dma-buf: CUDA imports less than 4 GiB"));
}

int main(void)
{
	return tap_main(before, after);
}
