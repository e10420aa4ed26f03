// SPDX-License-Identifier: MIT
#include "text.h"

#include <string.h>

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

void text_put(FILE *stream, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	int length, i;

	for (; *p; p += length) {
		length = text_sequence(p);
		/* A backslash before an x would be taken for an escape of the kind below. */
		if (length && !text_is_control(p) && !(p[0] == '\\' && p[1] == 'x')) {
			fwrite(p, 1, length, stream);
			continue;
		}
		length = length ? length : 1;
		for (i = 0; i < length; i++)
			fprintf(stream, "\\x%02x", p[i]);
	}
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
