// SPDX-License-Identifier: MIT
/*
 * Memory of half a terabyte and more, which no test machine has: address space that is
 * reserved, and the function of the library that registers it, by itself.
 */
#define _GNU_SOURCE 1
#include <sys/mman.h>

#include "cuda.h"
#include "other.h"

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

int main(void)
{
	return tap_main(before, after);
}
