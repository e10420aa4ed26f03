// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>

#include "json.h"

static unsigned int depth;
static bool needs_comma;

static void put_string(const char *text);

/* What goes before a value: the comma, a line of its own, and the key. */
static void begin(const char *key)
{
	if (needs_comma)
		putchar(',');
	if (depth)
		printf("\n%*s", 2 * depth, "");
	if (key) {
		put_string(key);
		fputs(": ", stdout);
	}
	needs_comma = true;
}

void json_open(const char *key, char bracket)
{
	begin(key);
	putchar(bracket);
	depth++;
	needs_comma = false;
}

void json_close(char bracket)
{
	depth--;
	if (needs_comma)
		printf("\n%*s", 2 * depth, "");
	putchar(bracket);
	needs_comma = true;
	if (!depth) {
		putchar('\n');
		needs_comma = false;
	}
}

/*
 * Bytes of the UTF-8 sequence that @text begins with, or 0: overlong forms,
 * surrogates and what is beyond U+10FFFF aren't UTF-8.
 */
static int utf8_length(const unsigned char *text)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high;
		int length;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	size_t i;
	int n;

	if (text[0] < 0x80)
		return 1;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (text[0] >= forms[i].first_low && text[0] <= forms[i].first_high)
			break;
	if (i == sizeof(forms) / sizeof(forms[0]) || text[1] < forms[i].second_low ||
	    text[1] > forms[i].second_high)
		return 0;
	for (n = 2; n < forms[i].length; n++)
		if ((text[n] & 0xc0) != 0x80)
			return 0;
	return forms[i].length;
}

static void put_string(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	int length;

	putchar('"');
	while (*p) {
		length = utf8_length(p);
		if (!length)
			printf("\\udc%02x", *p);
		else if (*p < ' ' || *p == 0x7f)
			printf("\\u%04x", *p);
		else if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else
			fwrite(p, 1, length, stdout);
		p += length ? length : 1;
	}
	putchar('"');
}

void json_string(const char *key, const char *value)
{
	begin(key);
	put_string(value);
}

void json_uint(const char *key, uint64_t value)
{
	begin(key);
	printf("%" PRIu64, value);
}

void json_int(const char *key, int64_t value)
{
	begin(key);
	printf("%" PRId64, value);
}

void json_bool(const char *key, bool value)
{
	begin(key);
	fputs(value ? "true" : "false", stdout);
}

void json_null(const char *key)
{
	begin(key);
	fputs("null", stdout);
}
