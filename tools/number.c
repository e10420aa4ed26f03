// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

bool parse_number(const char *text, int base, uint64_t *number, char **end)
{
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoull(text, end, base);
	return !errno;
}

static const char suffixes[] = "KMGT";

bool parse_bytes(const char *text, uint64_t *bytes)
{
	const char *suffix;
	char *end;

	if (!parse_number(text, 10, bytes, &end))
		return false;
	if (!*end)
		return true;
	suffix = strchr(suffixes, toupper((unsigned char)*end));
	return suffix && !end[1] &&
	       !__builtin_mul_overflow(*bytes, 1ULL << (10 * (suffix - suffixes + 1)), bytes);
}

void format_bytes(char text[BYTES_LEN], uint64_t bytes, bool exact)
{
	double number = (double)bytes;
	size_t unit = 0, length;

	if (exact || bytes < 1024) {
		snprintf(text, BYTES_LEN, "%" PRIu64, bytes);
		return;
	}
	/* A number that rounds to 1024.0 is one of the next unit. */
	for (number /= 1024; number >= 1023.95 && suffixes[unit + 1]; unit++)
		number /= 1024;
	snprintf(text, BYTES_LEN, "%.1f", number);
	length = strlen(text);
	if (!strcmp(text + length - 2, ".0"))
		length -= 2;
	text[length] = suffixes[unit];
	text[length + 1] = '\0';
}

bool parse_seconds(const char *text, int64_t *nanoseconds)
{
	double seconds;
	uint64_t whole;
	char *end;

	if (!parse_number(text, 10, &whole, &end))
		return false;
	seconds = strtod(text, &end);
	if (*end || !(seconds <= 9e9))
		return false;
	*nanoseconds = (int64_t)(seconds * 1e9);
	return true;
}

bool parse_node(const char *text, int32_t *node)
{
	uint64_t number;
	char *end;

	if (!parse_number(text, 10, &number, &end) || *end || number > INT32_MAX)
		return false;
	*node = (int32_t)number;
	return true;
}
