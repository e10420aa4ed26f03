// SPDX-License-Identifier: MIT
/* What went wrong, in words, per thread. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "export.h"
#include "tshare.h"

static _Thread_local char last_error[512];

/* One line is promised, but names and shapes come from anywhere. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = '?';
}

int tshare_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	make_printable(last_error);
	return err;
}

int tshare_fail_within(int err, const char *format, ...)
{
	char text[sizeof(last_error)];
	va_list args;

	memcpy(text, last_error, sizeof(text));
	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	strncat(last_error, text, sizeof(last_error) - strlen(last_error) - 1);
	return err;
}

int tshare_fail_name(int err, const char *name)
{
	switch (err) {
	case -ENOENT:
		return tshare_fail(err, "name: there is no region '%s'", name);
	case -EEXIST:
		return tshare_fail(err, "name: '%s' is taken", name);
	case -EACCES:
		return tshare_fail(err, "name: the mode of '%s' denies the access", name);
	case -EPERM:
		return tshare_fail(err, "name: '%s' belongs to another user", name);
	default:
		return tshare_fail(err, "name: '%s': %s", name, strerror(-err));
	}
}

void tshare_error_clear(void)
{
	last_error[0] = '\0';
}

TSHARE_EXPORT
const char *tshare_last_error(void)
{
	return last_error;
}
