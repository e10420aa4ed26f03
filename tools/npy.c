// SPDX-License-Identifier: MIT
#include "npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC	  "\x93NUMPY"
#define ALIGNMENT 64

/* Bytes before the dict in version 1.0. */
#define PREFIX_LEN (NPY_MAGIC_LEN + 2)

/* The types that NumPy and tshare have. */
static const struct {
	char kind;
	uint8_t bytes;
	uint8_t code; /* of DLPack */
} types[] = {
	{ 'b', 1, 6 }, { 'i', 1, 0 }, { 'i', 2, 0 }, { 'i', 4, 0 },  { 'i', 8, 0 },
	{ 'u', 1, 1 }, { 'u', 2, 1 }, { 'u', 4, 1 }, { 'u', 8, 1 },  { 'f', 2, 2 },
	{ 'f', 4, 2 }, { 'f', 8, 2 }, { 'c', 8, 5 }, { 'c', 16, 5 },
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

size_t npy_check_magic(const unsigned char magic[NPY_MAGIC_LEN], const char **problem)
{
	*problem = "not a .npy file";
	if (memcmp(magic, MAGIC, strlen(MAGIC)))
		return 0;
	*problem = "unknown version of the .npy format (1.0, 2.0 and 3.0 are known)";
	if (magic[6] < 1 || magic[6] > 3 || magic[7])
		return 0;
	return magic[6] == 1 ? 2 : 4;
}

/* The rest of the dict, which needn't end with a NUL. */
struct text {
	const char *next;
	const char *end;
	const char *problem;
};

static bool fail(struct text *text, const char *problem)
{
	text->problem = problem;
	return false;
}

static void skip_blanks(struct text *text)
{
	while (text->next < text->end && strchr(" \t\r\n", *text->next) && *text->next)
		text->next++;
}

/* Takes a character, with the blanks around it. */
static bool take(struct text *text, char character)
{
	skip_blanks(text);
	if (text->next == text->end || *text->next != character)
		return false;
	text->next++;
	skip_blanks(text);
	return true;
}

static bool take_word(struct text *text, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(text->end - text->next) < length || memcmp(text->next, word, length))
		return false;
	text->next += length;
	return true;
}

/* A Python string without escapes: no key and no type needs them. */
static bool parse_string(struct text *text, char *string, size_t size)
{
	char quote;
	size_t i = 0;

	skip_blanks(text);
	if (text->next == text->end || (*text->next != '\'' && *text->next != '"'))
		return fail(text, "damaged header: a string is missing");
	quote = *text->next++;
	while (text->next < text->end && *text->next != quote) {
		if (i == size - 1 || !isprint((unsigned char)*text->next) || *text->next == '\\')
			return fail(text, "damaged header: a string is unknown");
		string[i++] = *text->next++;
	}
	if (text->next == text->end)
		return fail(text, "damaged header: a string has no end");
	text->next++;
	string[i] = '\0';
	return true;
}

static bool find_type(struct text *text, const char *name, struct tshare_dtype *dtype)
{
	unsigned int bytes;
	char order, kind;
	int length = 0;
	size_t i;

	if (strchr(name, 'O'))
		return fail(text, "the elements are Python objects, which can't be shared");
	if (sscanf(name, "%c%c%2u%n", &order, &kind, &bytes, &length) != 3 || name[length] ||
	    !strchr("<>|=", order) || !isdigit((unsigned char)name[2]))
		return fail(text, "unsupported type of elements");
	if (order == '>' && bytes > 1)
		return fail(text, "the elements are big-endian (save x.astype("
				  "x.dtype.newbyteorder('<')))");
	for (i = 0; i < N_TYPES; i++) {
		if (types[i].kind != kind || types[i].bytes != bytes)
			continue;
		*dtype = TSHARE_DTYPE(types[i].code, 8 * types[i].bytes);
		return true;
	}
	return fail(text, "unsupported type of elements");
}

static bool parse_type(struct text *text, struct npy *npy)
{
	char name[32];

	skip_blanks(text);
	if (text->next < text->end && *text->next == '[')
		return fail(text, "the elements are structured (save one field)");
	return parse_string(text, name, sizeof(name)) && find_type(text, name, &npy->dtype);
}

static bool parse_order(struct text *text, struct npy *npy)
{
	skip_blanks(text);
	npy->fortran_order = take_word(text, "True");
	return npy->fortran_order || take_word(text, "False") ||
	       fail(text, "damaged header: fortran_order is neither True nor False");
}

static bool parse_dimension(struct text *text, int64_t *dimension)
{
	if (text->next == text->end || !isdigit((unsigned char)*text->next))
		return fail(text, "damaged header: shape is not a tuple of numbers");
	*dimension = 0;
	for (; text->next < text->end && isdigit((unsigned char)*text->next); text->next++)
		if (__builtin_mul_overflow(*dimension, 10, dimension) ||
		    __builtin_add_overflow(*dimension, *text->next - '0', dimension))
			return fail(text, "damaged header: shape is too large");
	return true;
}

static bool parse_shape(struct text *text, struct npy *npy)
{
	bool comma = true;

	npy->ndim = 0;
	if (!take(text, '('))
		return fail(text, "damaged header: shape is not a tuple of numbers");
	while (!take(text, ')')) {
		if (!comma)
			return fail(text, "damaged header: shape is not a tuple of numbers");
		if (npy->ndim == TSHARE_NDIM_LIMIT)
			return fail(text, "the array has more than 32 dimensions");
		if (!parse_dimension(text, &npy->shape[npy->ndim++]))
			return false;
		comma = take(text, ',');
	}
	/* (3) is a number in Python, and not a tuple. */
	return npy->ndim != 1 || comma ||
	       fail(text, "damaged header: shape is not a tuple of numbers");
}

static bool parse_item(struct text *text, struct npy *npy, unsigned int *seen)
{
	static const struct {
		const char *key;
		bool (*parse)(struct text *text, struct npy *npy);
	} items[] = {
		{ "descr", parse_type },
		{ "fortran_order", parse_order },
		{ "shape", parse_shape },
	};
	char key[16];
	size_t i;

	if (!parse_string(text, key, sizeof(key)))
		return false;
	if (!take(text, ':'))
		return fail(text, "damaged header: a colon is missing");
	for (i = 0; i < 3 && strcmp(items[i].key, key);)
		i++;
	if (i == 3 || *seen & 1U << i)
		return fail(text,
			    "damaged header: its keys are not descr, fortran_order and shape");
	*seen |= 1U << i;
	return items[i].parse(text, npy);
}

static bool parse_dict(struct text *text, struct npy *npy)
{
	unsigned int seen = 0;
	bool comma = true;

	if (!take(text, '{'))
		return fail(text, "damaged header: not a dict");
	while (!take(text, '}')) {
		if (!comma)
			return fail(text, "damaged header: a comma is missing");
		if (!parse_item(text, npy, &seen))
			return false;
		comma = take(text, ',');
	}
	if (seen != 7)
		return fail(text,
			    "damaged header: its keys are not descr, fortran_order and shape");
	return text->next == text->end ||
	       fail(text, "damaged header: something is behind the dict");
}

bool npy_parse(const char *dict, size_t length, struct npy *npy, const char **problem)
{
	struct text text = { .next = dict, .end = dict + length };
	bool parsed = parse_dict(&text, npy);

	*problem = text.problem;
	return parsed;
}

bool npy_describe(struct tshare_dtype dtype, char descr[NPY_DESCR_LEN])
{
	size_t i;

	for (i = 0; i < N_TYPES; i++)
		if (types[i].code == dtype.code && 8 * types[i].bytes == dtype.bits)
			break;
	if (i == N_TYPES || dtype.lanes != 1)
		return false;
	snprintf(descr, NPY_DESCR_LEN, "'%c%c%d'", types[i].bytes == 1 ? '|' : '<', types[i].kind,
		 types[i].bytes);
	return true;
}

/* Leaves room for @spare more characters. */
static size_t put_header(char *header, const char *descr, const struct npy *npy, size_t spare)
{
	size_t length, end;
	int32_t d;

	memcpy(header, MAGIC "\1", NPY_MAGIC_LEN);
	length = PREFIX_LEN;
	length += sprintf(header + length, "{'descr': %s, 'fortran_order': %s, 'shape': (", descr,
			  npy->fortran_order ? "True" : "False");
	for (d = 0; d < npy->ndim; d++)
		length += sprintf(header + length, "%s%" PRId64 "%s", d ? " " : "", npy->shape[d],
				  d < npy->ndim - 1 || !d ? "," : "");
	length += sprintf(header + length, "), }");
	end = ((length + spare) / ALIGNMENT + 1) * ALIGNMENT;
	memset(header + length, ' ', end - length);
	header[end - 1] = '\n';
	header[NPY_MAGIC_LEN] = (char)((end - PREFIX_LEN) & 0xff);
	header[NPY_MAGIC_LEN + 1] = (char)((end - PREFIX_LEN) >> 8);
	return end;
}

size_t npy_format(char header[NPY_HEADER_MAX], const struct npy *npy)
{
	char descr[NPY_DESCR_LEN];

	return npy_describe(npy->dtype, descr) ? put_header(header, descr, npy, 0) : 0;
}

size_t npy_format_growing(char *header, const char *descr, const struct npy *npy)
{
	char rows[NPY_ROWS_LEN];
	int digits = snprintf(rows, sizeof(rows), "%" PRId64, npy->shape[0]);

	return put_header(header, descr, npy, sizeof(rows) - digits);
}
