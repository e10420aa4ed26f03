// SPDX-License-Identifier: MIT
/* Names of regions. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "desc.h"
#include "format/region-name.h"
#include "tshare.h"

int region_name_copy(char copy[TSHARE_NAME_LEN], const char *name)
{
	const char *why;
	size_t length;
	int err;

	if (!name)
		return fail(-EINVAL, "name: is NULL");
	if (!*name)
		return fail(-EINVAL, "name: is empty");
	length = strnlen(name, TSHARE_NAME_LEN);
	if (length == TSHARE_NAME_LEN)
		return fail(-ENAMETOOLONG, "name: longer than %d bytes", TSHARE_NAME_MAX);
	memset(copy, 0, TSHARE_NAME_LEN);
	memcpy(copy, name, length);
	err = tshare_name_check(copy, &why);
	if (err)
		return fail(err, "%s: '%s'", why, name);
	return 0;
}
