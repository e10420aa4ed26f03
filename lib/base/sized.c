// SPDX-License-Identifier: MIT
/* Extensible structs, which callers allocate. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "tshare.h"

/* More than any struct will ever have: a larger size was not set, and the struct isn't read. */
#define SIZE_LIMIT 4096

/*
 * A struct that callers fill in has no padding. If a later version had a member there, an older
 * program would pass what its stack happens to hold. So its size is that of its members.
 */
#define HAS_NO_PADDING(type, pointers, words, halves)                                        \
	_Static_assert(sizeof(struct type) == sizeof(size_t) + (pointers) * sizeof(void *) + \
						      8UL * (words) + 4UL * (halves),        \
		       #type " has padding, or a member that isn't counted here")

HAS_NO_PADDING(tshare_ctx_options, 3, 0, 2);
HAS_NO_PADDING(tshare_options, 0, 0, 4);
HAS_NO_PADDING(tshare_spec, 3, 1, 2);
HAS_NO_PADDING(tshare_open_options, 3, 2, 2);
HAS_NO_PADDING(tshare_read_options, 2, 0, 2);
HAS_NO_PADDING(tshare_cuda_options, 0, 0, 4);
HAS_NO_PADDING(tshare_stream_options, 1, 0, 4);
HAS_NO_PADDING(tshare_stream_open_options, 2, 2, 4);
HAS_NO_PADDING(tshare_pool_options, 1, 0, 2);

static bool is_zero(const char *bytes, size_t count)
{
	while (count && !*bytes) {
		bytes++;
		count--;
	}
	return !count;
}

static size_t size_of(const void *given)
{
	size_t size;

	memcpy(&size, given, sizeof(size));
	return size;
}

int sized_check(const void *given, const char *prefix, size_t shortest)
{
	size_t size = size_of(given);

	if (size >= shortest && size <= SIZE_LIMIT)
		return 0;
	return fail(-EINVAL, "%ssize: %zu bytes is invalid; set it to the struct's sizeof", prefix,
		    size);
}

int sized_read(const void *given, const char *prefix, size_t shortest, void *known, size_t size)
{
	size_t theirs = size_of(given), both = theirs < size ? theirs : size;
	int err;

	err = sized_check(given, prefix, shortest);
	if (err)
		return err;
	if (!is_zero((const char *)given + both, theirs - both))
		return fail(-EINVAL,
			    "%ssize: nonzero bytes beyond the %zu that this library "
			    "supports; set them to 0",
			    prefix, size);
	memcpy(known, given, both);
	memset((char *)known + both, 0, size - both);
	memcpy(known, &size, sizeof(size)); /* so that it can be passed on */
	return 0;
}

void sized_fill(void *given, const void *known, size_t size)
{
	size_t theirs = size_of(given), both = theirs < size ? theirs : size;

	memcpy((char *)given + sizeof(theirs), (const char *)known + sizeof(theirs),
	       both - sizeof(theirs));
	memset((char *)given + both, 0, theirs - both);
}
