// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>

#include "json.h"
#include "text.h"

static unsigned int depth;
static bool needs_comma;

static void put_string(const char *text);

/* Writes what precedes a value: comma, new line, key. */
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

/* Characters beyond U+FFFF are a pair of surrogates. */
static void put_escape(uint32_t code)
{
	if (code > 0xffff)
		printf("\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((code - 0x10000) >> 10),
		       0xdc00 + (code & 0x3ff));
	else
		printf("\\u%04" PRIx32, code);
}

static void put_string(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	int length;

	putchar('"');
	while (*p) {
		length = text_sequence(p);
		if (!length)
			printf("\\udc%02x", *p);
		else if (text_is_control(p))
			put_escape(length == 1 ? p[0] : p[1]);
		else if (text_hidden(text, p))
			put_escape(text_hidden(text, p));
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

void json_double(const char *key, double value)
{
	begin(key);
	printf("%.9g", value);
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
