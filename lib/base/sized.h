/* SPDX-License-Identifier: MIT */
/*
 * Extensible structs, which callers allocate: tshare_options, tshare_spec, tshare_limits
 * and so on. Each begins with size_t size, the bytes of the caller's version of it. A
 * caller compiled for another version of the library has fewer or more.
 *
 * The functions name the member "size" with @prefix in front, such as "options.".
 */
#ifndef TSHARE_BASE_SIZED_H
#define TSHARE_BASE_SIZED_H

#include <stddef.h>

/* Bytes of a struct up to and including @member, the last of its first version. */
#define SIZED_UPTO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/*
 * Copies a caller's struct @given into @known, of @size bytes, and sets its size to that.
 * Members that the caller's version lacks become zero. -EINVAL if that version has less
 * than @shortest bytes, or has a nonzero byte beyond @size.
 */
int sized_read(const void *given, const char *prefix, size_t shortest, void *known, size_t size);

/* Whether a caller's struct can be filled: 0, or -EINVAL if it has less than @shortest bytes. */
int sized_check(const void *given, const char *prefix, size_t shortest);

/*
 * Fills a caller's struct, which sized_check() has accepted, from @known, of @size bytes.
 * Its size stays, and members that the library lacks become zero.
 */
void sized_fill(void *given, const void *known, size_t size);

#endif /* TSHARE_BASE_SIZED_H */
