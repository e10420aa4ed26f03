// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "recording.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A row's first members, in the order of RECORDING_NUMBER and the others. */
#define MEMBERS                                                                             \
	"('number', '<u8'), ('captured_ns', '<i8'), ('published_ns', '<i8'), ('sequence', " \
	"'<u8'), ('flags', '<u8')"

#define HIDDEN "/%'\"\\"

static bool is_plain(unsigned char character)
{
	return character >= ' ' && character < 0x7f && !strchr(HIDDEN, character);
}

char *recording_encode(const char *field)
{
	const unsigned char *next = (const unsigned char *)field;
	char *file = NULL;
	size_t size;
	FILE *stream;

	stream = open_memstream(&file, &size);
	if (!stream)
		return NULL;
	if (!strcmp(field, RECORDING_FRAMES))
		fprintf(stream, "%%%02X", *next++);
	for (; *next; next++) {
		if (is_plain(*next))
			fputc(*next, stream);
		else
			fprintf(stream, "%%%02X", *next);
	}
	if (!fclose(stream))
		return file;
	free(file);
	return NULL;
}

char *recording_describe(const struct stream_field *fields, char *const *files, size_t count)
{
	char *text = NULL;
	FILE *stream;
	size_t size, i;

	stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	fputs("[" MEMBERS, stream);
	for (i = 0; i < count; i++)
		fprintf(stream, ", ('%s.shape', '<i8', (%" PRId32 ",))", files[i], fields[i].ndim);
	fputs("]", stream);
	if (!fclose(stream))
		return text;
	free(text);
	return NULL;
}
