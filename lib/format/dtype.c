// SPDX-License-Identifier: MIT
/* Names of data types. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "format/strides.h"
#include "tshare.h"

static const struct {
	const char *name;
	uint8_t code;
	uint8_t bits;
} types[] = {
	{ "bool", 6, 8 },
	{ "int2", 0, 2 },
	{ "int4", 0, 4 },
	{ "int8", 0, 8 },
	{ "int16", 0, 16 },
	{ "int32", 0, 32 },
	{ "int64", 0, 64 },
	{ "uint2", 1, 2 },
	{ "uint4", 1, 4 },
	{ "uint8", 1, 8 },
	{ "uint16", 1, 16 },
	{ "uint32", 1, 32 },
	{ "uint64", 1, 64 },
	{ "float16", 2, 16 },
	{ "float32", 2, 32 },
	{ "float64", 2, 64 },
	{ "bfloat16", 4, 16 },
	{ "complex32", 5, 32 },
	{ "complex64", 5, 64 },
	{ "complex128", 5, 128 },
	{ "float8_e3m4", 7, 8 },
	{ "float8_e4m3", 8, 8 },
	{ "float8_e4m3b11fnuz", 9, 8 },
	{ "float8_e4m3fn", 10, 8 },
	{ "float8_e4m3fnuz", 11, 8 },
	{ "float8_e5m2", 12, 8 },
	{ "float8_e5m2fnuz", 13, 8 },
	{ "float8_e8m0fnu", 14, 8 },
	{ "float6_e2m3fn", 15, 6 },
	{ "float6_e3m2fn", 16, 6 },
	{ "float4_e2m1fn", 17, 4 },
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

/* "" or "x2" to "x65535", without leading zeros: each type has one name only. */
static bool parse_lanes(const char *text, uint16_t *lanes)
{
	unsigned long n;
	char *end;

	*lanes = 1;
	if (!*text)
		return true;
	if (text[0] != 'x' || !isdigit((unsigned char)text[1]) || text[1] == '0')
		return false;
	n = strtoul(text + 1, &end, 10);
	*lanes = n;
	return !*end && n >= 2 && n <= UINT16_MAX;
}

TSHARE_EXPORT
int tshare_dtype_parse(const char *name, struct tshare_dtype *dtype)
{
	uint16_t lanes;
	size_t i, len;

	if (!name)
		return fail(-EINVAL, "dtype: is NULL");
	for (i = 0; i < N_TYPES; i++) {
		len = strlen(types[i].name);
		if (strncmp(name, types[i].name, len) || !parse_lanes(name + len, &lanes))
			continue;
		*dtype = (struct tshare_dtype){ types[i].code, types[i].bits, lanes };
		return 0;
	}
	return fail(-EINVAL, "dtype: '%s' is not the name of a type", name);
}

TSHARE_EXPORT
int tshare_dtype_get_name(struct tshare_dtype dtype, char *name)
{
	size_t i;

	for (i = 0; i < N_TYPES; i++)
		if (types[i].code == dtype.code && types[i].bits == dtype.bits)
			break;
	if (i == N_TYPES || !dtype.lanes)
		return fail(-EINVAL, "dtype: no name for code %u, %u bits, %u lanes", dtype.code,
			    dtype.bits, dtype.lanes);
	if (dtype.lanes == 1)
		snprintf(name, TSHARE_DTYPE_NAME_LEN, "%s", types[i].name);
	else
		snprintf(name, TSHARE_DTYPE_NAME_LEN, "%sx%u", types[i].name, dtype.lanes);
	return 0;
}

TSHARE_EXPORT
uint32_t tshare_dtype_get_itemsize(struct tshare_dtype dtype)
{
	uint32_t bits = element_bits(dtype);

	return bits % 8 ? 0 : bits / 8;
}
