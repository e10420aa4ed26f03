// SPDX-License-Identifier: MIT
/* The error text of each thread. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "tshare.h"

static _Thread_local char last_error[512];

/* Bytes of the UTF-8 character that @text begins with, or 0 if that isn't printable. */
static size_t printable_length(const unsigned char *text)
{
	static const unsigned int least[] = { 0, 0, 0xa0, 0x800, 0x10000 };
	size_t length = *text < 0x80 ? 1 : *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2, i;
	unsigned int code = *text;

	if (length == 1)
		return code >= ' ' && code != 0x7f;
	if (*text < 0xc0 || *text > 0xf4)
		return 0;
	code &= 0x7f >> length;
	for (i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	/* Surrogates, overlong forms and codes beyond Unicode aren't UTF-8. */
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return length;
}

void make_printable(char *text)
{
	size_t length;

	while (*text) {
		length = printable_length((const unsigned char *)text);
		if (!length)
			*text = '?';
		text += length ? length : 1;
	}
}

void error_store(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	make_printable(last_error);
}

void error_store_before(const char *format, ...)
{
	char text[sizeof(last_error)];
	va_list args;

	memcpy(text, last_error, sizeof(text));
	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	strncat(last_error, text, sizeof(last_error) - strlen(last_error) - 1);
}

void error_strip(const char *prefix)
{
	size_t length = strlen(prefix);

	if (!strncmp(last_error, prefix, length))
		memmove(last_error, last_error + length, strlen(last_error + length) + 1);
}

int fail_name(int err, const char *name)
{
	switch (err) {
	case -ENOENT:
		return fail(err, "name: there is no region '%s'", name);
	case -EACCES:
		return fail(err, "name: the mode of '%s' denies the access", name);
	case -EPERM:
		return fail(err, "name: '%s' belongs to another user", name);
	case -EAGAIN:
		return fail(err, "name: '%s' still leads to other_than", name);
	case -ETIMEDOUT:
		return fail(err, "name: '%s' could not be opened within the timeout", name);
	case -EINPROGRESS:
		return fail(err, "name: '%s' is a draft that is not finished yet", name);
	default:
		return fail(err, "name: '%s': %s", name, strerror(-err));
	}
}

int fail_taken(const char *name, bool draft)
{
	if (draft)
		return fail(-EEXIST,
			    "name: '%s' is taken by a draft; wait until its maker has "
			    "finished it, or unlink it",
			    name);
	return fail(-EEXIST,
		    "name: '%s' is taken by a finished region; unlink it, or replace it "
		    "(TSHARE_REPLACE)",
		    name);
}

void error_clear(void)
{
	last_error[0] = '\0';
}

TSHARE_EXPORT
const char *tshare_error_get(void)
{
	return last_error;
}
