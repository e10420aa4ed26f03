// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "text.h"

int text_sequence(const unsigned char *text)
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

bool text_is_control(const unsigned char *sequence)
{
	return *sequence < ' ' || *sequence == 0x7f ||
	       (*sequence == 0xc2 && sequence[1] >= 0x80 && sequence[1] <= 0x9f);
}

struct range {
	uint32_t first, last;
};

/* Characters that reorder the text around them, end a line, or take no place. No letters. */
static const struct range hidden[] = {
	{ 0xad, 0xad },	      /* soft hyphen */
	{ 0x34f, 0x34f },     /* grapheme joiner */
	{ 0x61c, 0x61c },     /* Arabic letter mark */
	{ 0x115f, 0x1160 },   /* Hangul fillers */
	{ 0x17b4, 0x17b5 },   /* Khmer's inherent vowels */
	{ 0x180e, 0x180e },   /* Mongolian vowel separator */
	{ 0x200b, 0x200b },   /* zero width space */
	{ 0x200e, 0x200f },   /* left-to-right mark and right-to-left mark */
	{ 0x2028, 0x202e },   /* line and paragraph separator, embeddings and overrides */
	{ 0x2060, 0x206f },   /* word joiner, invisible operators, isolates */
	{ 0x3164, 0x3164 },   /* Hangul filler */
	{ 0xfeff, 0xfeff },   /* byte order mark */
	{ 0xffa0, 0xffa0 },   /* Hangul filler of half the width */
	{ 0xfff9, 0xfffb },   /* interlinear annotations */
	{ 0x1bca0, 0x1bca3 }, /* controls of shorthand */
	{ 0x1d173, 0x1d17a }, /* controls of musical notation */
	{ 0xe0000, 0xe00ff }, /* tags */
};

/* Characters that form emoji and letters with a non-ASCII character before them. */
static const struct range joining[] = {
	{ 0x180b, 0x180d },   /* Mongolian variation selectors */
	{ 0x180f, 0x180f },   /* one more of them */
	{ 0x200c, 0x200d },   /* joiner and non-joiner */
	{ 0xfe00, 0xfe0f },   /* variation selectors */
	{ 0xe0100, 0xe01ef }, /* more of them, for ideographs */
};

static bool is_in(const struct range *ranges, size_t count, uint32_t code)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

#define IS_IN(ranges, code) is_in(ranges, sizeof(ranges) / sizeof((ranges)[0]), code)

/* The character at @at, which is UTF-8. */
static uint32_t code_at(const unsigned char *at)
{
	int length = text_sequence(at), i;
	uint32_t code;

	if (length == 1)
		return *at;
	code = *at & 0x7f >> length;
	for (i = 1; i < length; i++)
		code = code << 6 | (at[i] & 0x3f);
	return code;
}

/* Where the character before @at begins; NULL if there is none that is UTF-8. */
static const unsigned char *before(const char *text, const unsigned char *at)
{
	const unsigned char *p = at;

	do {
		if (p == (const unsigned char *)text || at - p == 4)
			return NULL;
		p--;
	} while ((*p & 0xc0) == 0x80);
	return p + text_sequence(p) == at ? p : NULL;
}

/*
 * Whether the character at @at, after others that join, follows a non-ASCII character that isn't
 * escaped: an escape is ASCII.
 */
static bool is_joined(const char *text, const unsigned char *at)
{
	do
		at = before(text, at);
	while (at && IS_IN(joining, code_at(at)));
	return at && code_at(at) > 0x9f && !IS_IN(hidden, code_at(at));
}

uint32_t text_hidden(const char *text, const unsigned char *at)
{
	uint32_t code = text_sequence(at) ? code_at(at) : 0;

	return IS_IN(hidden, code) || (IS_IN(joining, code) && !is_joined(text, at)) ? code : 0;
}

/* Writes the escape of a hidden character, or of a backslash that would begin such an escape. */
static bool put_hidden(FILE *stream, const char *text, const unsigned char *at)
{
	uint32_t code = text_hidden(text, at);

	if (at[0] == '\\' && (at[1] == 'u' || at[1] == 'U'))
		code = '\\';
	if (code)
		fprintf(stream, code > 0xffff ? "\\U%08" PRIx32 : "\\u%04" PRIx32, code);
	return code;
}

void text_put(FILE *stream, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	int length, i;

	for (; *p; p += length) {
		length = text_sequence(p);
		if (put_hidden(stream, text, p))
			continue;
		/* A backslash before an x would look like an escape. */
		if (length && !text_is_control(p) && !(p[0] == '\\' && p[1] == 'x')) {
			fwrite(p, 1, length, stream);
			continue;
		}
		length = length ? length : 1;
		for (i = 0; i < length; i++)
			fprintf(stream, "\\x%02x", p[i]);
	}
}

char *text_reveal(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char *revealed = NULL;
	size_t size;
	FILE *stream = open_memstream(&revealed, &size);
	int length;

	if (!stream)
		return NULL;
	for (; *p; p += length) {
		length = text_sequence(p) ?: 1;
		if (!put_hidden(stream, text, p))
			fwrite(p, 1, length, stream);
	}
	if (!fclose(stream))
		return revealed;
	free(revealed);
	return NULL;
}

/* Columns that libsmartcols fills with the character at @at; stores its @length. */
static size_t columns_of(const unsigned char *at, size_t *length)
{
	int sequence = text_sequence(at), columns = -1;

	*length = sequence ? sequence : 1;
	if (sequence && !text_is_control(at) && !(at[0] == '\\' && at[1] == 'x'))
		columns = wcwidth((wchar_t)code_at(at));
	return columns < 0 ? *length * strlen("\\x00") : (size_t)columns;
}

/* Where the columns of @text beyond @width begin, or its end. */
static const char *skip_columns(const char *text, size_t width)
{
	size_t length, columns;

	for (; *text; text += length) {
		columns = columns_of((const unsigned char *)text, &length);
		if (columns > width)
			break;
		width -= columns;
	}
	return text;
}

static size_t count_columns(const char *text)
{
	size_t columns = 0, length;

	for (; *text; text += length)
		columns += columns_of((const unsigned char *)text, &length);
	return columns;
}

char *text_shorten(const char *text, size_t width)
{
	size_t whole = count_columns(text), kept = width - strlen("..."), length;
	const char *tail = text;
	char *shortened;
	int head;

	if (whole <= width || width <= strlen("..."))
		return strdup(text);
	head = (int)(skip_columns(text, kept / 2) - text);
	for (; whole > kept - kept / 2; tail += length)
		whole -= columns_of((const unsigned char *)tail, &length);
	/* A tail must not begin with an accent of the character before it. */
	while (*tail && !columns_of((const unsigned char *)tail, &length))
		tail += length;
	return asprintf(&shortened, "%.*s...%s", head, text, tail) < 0 ? NULL : shortened;
}

bool text_read_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");

	text[0] = '\0';
	if (!file)
		return false;
	if (fgets(text, size, file))
		text[strcspn(text, "\n")] = '\0';
	fclose(file);
	return text[0];
}
