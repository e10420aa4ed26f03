/* SPDX-License-Identifier: MIT */
/*
 * What a fuzzer's bytes are decoded by. Where they have ended all is zero. Numbers are
 * mostly small, and else near the ends of their types: of 64 random bits hardly any tensor
 * could be made.
 */
#ifndef TSHARE_TESTS_FUZZ_INPUT_H
#define TSHARE_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the fuzzer, which keeps the input. */
#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

struct input {
	const uint8_t *data;
	size_t left;
};

static inline void take_bytes(struct input *input, void *bytes, size_t size)
{
	size_t there = size < input->left ? size : input->left;

	memset(bytes, 0, size);
	if (there)
		memcpy(bytes, input->data, there);
	input->data += there;
	input->left -= there;
}

static inline uint8_t take_byte(struct input *input)
{
	uint8_t byte;

	take_bytes(input, &byte, sizeof(byte));
	return byte;
}

static inline uint64_t take_word(struct input *input)
{
	uint64_t word;

	take_bytes(input, &word, sizeof(word));
	return word;
}

static inline int64_t take_number(struct input *input)
{
	uint8_t kind = take_byte(input);
	int8_t near = (int8_t)take_byte(input);

	if (kind < 224)
		return near;
	if (kind < 240)
		return (int64_t)take_word(input);
	/* Near a power of two. */
	return (int64_t)((1ULL << (take_byte(input) % 64)) + (uint64_t)near);
}

#endif /* TSHARE_TESTS_FUZZ_INPUT_H */
