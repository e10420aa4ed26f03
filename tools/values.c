// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "values.h"

/* Type codes of struct tshare_dtype. */
enum {
	CODE_INT = 0,
	CODE_UINT = 1,
	CODE_FLOAT = 2,
	CODE_BFLOAT = 4,
	CODE_COMPLEX = 5,
	CODE_BOOL = 6,
};

static int64_t sign_extend(uint64_t value, unsigned int bits)
{
	return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static double make_single(uint32_t bits)
{
	float single;

	memcpy(&single, &bits, sizeof(single));
	return single;
}

/* IEEE's float16: a sign, 5 bits of exponent, 10 of fraction. */
static double make_half(uint32_t bits)
{
	uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 0x1f,
		 fraction = bits & 0x3ff;
	double number;

	if (exponent == 0x1f)
		return make_single(sign | 0x7f800000 | fraction << 13);
	if (exponent)
		return make_single(sign | (exponent + 127 - 15) << 23 | fraction << 13);
	number = fraction / 16777216.0; /* 2^24 */
	return sign ? -number : number;
}

static double make_float(uint64_t value, struct tshare_dtype dtype)
{
	double number;

	if (dtype.code == CODE_BFLOAT)
		return make_single(value << 16);
	if (dtype.bits == 16)
		return make_half(value);
	if (dtype.bits == 32)
		return make_single(value);
	memcpy(&number, &value, sizeof(number));
	return number;
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
		return dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
	case CODE_BFLOAT:
		return dtype.bits == 16;
	case CODE_COMPLEX:
		return dtype.bits == 64 || dtype.bits == 128;
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

/* As Python writes it: 1.5-2j */
static void print_complex(FILE *stream, const char *element, unsigned int bytes)
{
	const struct tshare_dtype part = TSHARE_DTYPE(CODE_FLOAT, 4 * bytes);

	fprintf(stream, "%g%+gj", make_float(load(element, bytes / 2), part),
		make_float(load(element + bytes / 2, bytes / 2), part));
}

static void print_element(FILE *stream, const char *element, struct tshare_dtype dtype)
{
	unsigned int bytes = dtype.bits / 8;

	switch (dtype.code) {
	case CODE_COMPLEX:
		print_complex(stream, element, bytes);
		break;
	case CODE_FLOAT:
	case CODE_BFLOAT:
		fprintf(stream, "%g", make_float(load(element, bytes), dtype));
		break;
	case CODE_INT:
		fprintf(stream, "%" PRId64, sign_extend(load(element, bytes), dtype.bits));
		break;
	default:
		fprintf(stream, "%" PRIu64, load(element, bytes));
	}
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
