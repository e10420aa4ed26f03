/* SPDX-License-Identifier: MIT */
/* The text behind tshare_error_get(). */
#ifndef TSHARE_BASE_ERROR_H
#define TSHARE_BASE_ERROR_H

#include <stdbool.h>

/*
 * Stores the thread's error text, "argument: reason", and returns @err, so that
 * a failure is one statement: return fail(-EINVAL, "size: ...").
 */
#define fail(err, ...) FAIL_WITH(err, error_store(__VA_ARGS__))

/* Puts a prefix in front of the stored text, and returns @err. */
#define fail_within(err, ...) FAIL_WITH(err, error_store_before(__VA_ARGS__))

/* Removes from the stored text a prefix that means nothing to the caller. */
#define fail_without(err, prefix) FAIL_WITH(err, error_strip(prefix))

/*
 * Macros, so that the compiler and its analyzer see that they return @err, and not 0.
 * @err is evaluated first: the text may need functions that set errno.
 */
#define FAIL_WITH(err, store)         \
	({                            \
		int fail_err = (err); \
                                      \
		store;                \
		fail_err;             \
	})

void error_store(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));
void error_store_before(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));
void error_strip(const char *prefix) __attribute__((cold));

/* As fail(), with the text of @err for a region's name, the same on all backends. */
int fail_name(int err, const char *name) __attribute__((cold));

/* The same for -EEXIST: a draft has the name, or a finished region. */
int fail_taken(const char *name, bool draft) __attribute__((cold));

/*
 * Replaces by '?' what could end a line or control a terminal, since names may have
 * any bytes: control characters, also U+0080 to U+009F, and whatever is not UTF-8,
 * which a terminal without UTF-8 may take for them.
 */
void make_printable(char *text);

/* Forgets a failure that the caller didn't see, such as that of a backend that was only tried. */
void error_clear(void);

#endif /* TSHARE_BASE_ERROR_H */
