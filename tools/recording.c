// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "recording.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

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

/* Takes a text; false if another one is there. */
static bool take(const char **next, const char *text)
{
	const size_t length = strlen(text);

	if (strncmp(*next, text, length))
		return false;
	*next += length;
	return true;
}

static bool take_number(const char **next, uint64_t most, uint64_t *number)
{
	char *end;

	if (!parse_number(*next, 10, number, &end) || *number > most)
		return false;
	*next = end;
	return true;
}

char *recording_decode(const char *file)
{
	char *field = strdup(file), *to = field, *again;
	const char *from = file;
	unsigned int code;
	bool same;

	if (!field)
		return NULL;
	while (*from) {
		if (sscanf(from, "%%%2X", &code) == 1) {
			*to++ = (char)code;
			from += strlen("%XX") < strlen(from) ? strlen("%XX") : strlen(from);
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	again = recording_encode(field);
	same = again && !strcmp(again, file);
	free(again);
	if (same)
		return field;
	free(field);
	return NULL;
}

/* "('FILE.shape', '<i8', (NDIM,))" */
static bool take_field(const char **next, struct recording *recording)
{
	const size_t index = recording->field_count;
	const char *end;
	uint64_t ndim;

	if (index == TSHARE_STREAM_FIELDS || !take(next, "('"))
		return false;
	end = strstr(*next, ".shape', '<i8', (");
	if (!end)
		return false;
	recording->files[index] = strndup(*next, end - *next);
	if (!recording->files[index])
		return false;
	recording->field_count++;
	*next = end;
	if (!take(next, ".shape', '<i8', (") || !take_number(next, TSHARE_NDIM_LIMIT - 1, &ndim) ||
	    !take(next, ",))"))
		return false;
	recording->ndims[index] = (int32_t)ndim;
	recording->dims += ndim;
	return true;
}

bool recording_parse(const char *dict, struct recording *recording)
{
	const char *next = dict;
	bool parsed;

	*recording = (struct recording){ 0 };
	parsed = take(&next, "{'descr': [" MEMBERS);
	while (parsed && take(&next, ", "))
		parsed = take_field(&next, recording);
	parsed = parsed && recording->field_count &&
		 take(&next, "], 'fortran_order': False, 'shape': (") &&
		 take_number(&next, INT64_MAX, &recording->count) && take(&next, ",), }") &&
		 !next[strspn(next, " \n")];
	if (!parsed)
		recording_release(recording);
	return parsed;
}

void recording_release(struct recording *recording)
{
	while (recording->field_count)
		free(recording->files[--recording->field_count]);
}
