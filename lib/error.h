/* SPDX-License-Identifier: MIT */
/* The text behind tshare_error_get(). */
#ifndef TSHARE_ERROR_H
#define TSHARE_ERROR_H

/*
 * Stores the thread's error text, "argument: reason", and returns @err, so that
 * a failure is one statement: return tshare_fail(-EINVAL, "size: ...").
 */
int tshare_fail(int err, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));

/* Puts a prefix in front of the text that is there, and returns @err. */
int tshare_fail_within(int err, const char *format, ...)
	__attribute__((cold, format(printf, 2, 3)));

/* As tshare_fail(), with one text for what can be wrong with a region's name on any backend. */
int tshare_fail_name(int err, const char *name) __attribute__((cold));

/*
 * Replaces what could end a line or control a terminal by '?', in text with names
 * of any bytes: control characters, those from U+0080 to U+009F, and whatever is
 * not UTF-8, as terminals without UTF-8 take its bytes for those.
 */
void tshare_make_printable(char *text);

/* Forgets a failure that the caller didn't see, such as that of a backend that was only tried. */
void tshare_error_clear(void);

#endif /* TSHARE_ERROR_H */
