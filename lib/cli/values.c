// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "values.h"

/* Type codes of struct tshare_dtype. */
enum { CODE_INT = 0, CODE_UINT = 1, CODE_FLOAT = 2, CODE_BOOL = 6 };

static int64_t sign_extend(uint64_t value, unsigned int bits)
{
	return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static void print_float(FILE *stream, uint64_t value, unsigned int bits)
{
	uint32_t narrow = value;
	double number;
	float single;

	if (bits == 64) {
		memcpy(&number, &value, sizeof(number));
	} else {
		memcpy(&single, &narrow, sizeof(single));
		number = single;
	}
	fprintf(stream, "%g", number);
}

static bool is_printable(struct tshare_dtype dtype)
{
	if (dtype.lanes != 1)
		return false;
	switch (dtype.code) {
	case CODE_INT:
	case CODE_UINT:
	case CODE_BOOL:
		return dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
	case CODE_FLOAT:
		return dtype.bits == 32 || dtype.bits == 64;
	default:
		return false;
	}
}

static uint64_t load(const char *element, unsigned int bytes)
{
	uint64_t wide = 0;
	uint32_t word;
	uint16_t half;

	switch (bytes) {
	case 8:
		memcpy(&wide, element, sizeof(wide));
		return wide;
	case 4:
		memcpy(&word, element, sizeof(word));
		return word;
	case 2:
		memcpy(&half, element, sizeof(half));
		return half;
	default:
		return *(const unsigned char *)element;
	}
}

static void print_element(FILE *stream, const char *element, struct tshare_dtype dtype)
{
	uint64_t value = load(element, dtype.bits / 8);

	if (dtype.code == CODE_FLOAT)
		print_float(stream, value, dtype.bits);
	else if (dtype.code == CODE_INT)
		fprintf(stream, "%" PRId64, sign_extend(value, dtype.bits));
	else
		fprintf(stream, "%" PRIu64, value);
}

/* Bytes from element [0, 0, ...] to element number @place in C order. */
static int64_t offset_of(const struct tshare_tensor *tensor, uint64_t place)
{
	const int64_t *strides = tshare_tensor_get_strides(tensor);
	const int64_t *shape = tshare_tensor_get_shape(tensor);
	int64_t elements = 0;
	int32_t i;

	for (i = tshare_tensor_get_ndim(tensor); i-- > 0;) {
		elements += (int64_t)(place % shape[i]) * strides[i];
		place /= shape[i];
	}
	return elements * (tshare_tensor_get_dtype(tensor).bits / 8);
}

void print_values(FILE *stream, const struct tshare_tensor *tensor, uint64_t count)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(tensor);
	const char *data = tshare_tensor_get_data(tensor);
	uint64_t elements, i;

	if (!is_printable(dtype))
		return;
	elements = tshare_tensor_get_nbytes(tensor) / (dtype.bits / 8);
	for (i = 0; i < elements && i < count; i++) {
		if (i)
			fputc(' ', stream);
		print_element(stream, data + offset_of(tensor, i), dtype);
	}
	if (elements > count)
		fputs(" ...", stream);
}
