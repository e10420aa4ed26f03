/* SPDX-License-Identifier: MIT */
/* Options of the verbs that create a region: its tensors, size, mode and placement. */
#ifndef TSHARE_CLI_LAYOUT_H
#define TSHARE_CLI_LAYOUT_H

#include "cli.h"

/* One tensor, with the storage that its spec points to. */
struct layout_tensor {
	struct tshare_spec spec;
	int64_t shape[TSHARE_NDIM_LIMIT];
	char name[TSHARE_TENSOR_NAME_MAX + 1];
};

struct layout {
	struct layout_tensor *tensors;
	size_t count;
	uint64_t size; /* 0: as many bytes as the tensors need */
	struct tshare_options options;
	const char *name; /* of the region; NULL: none */
};

/* Lines of --help for the options below. */
#define LAYOUT_HELP                                                                          \
	"      SHAPE              elements along each dimension: 8x480x640x3; or 'scalar'\n" \
	"      DTYPE              type of an element: uint8, float32, bfloat16, ...\n"       \
	"  -t, --tensor NAME:SHAPE:DTYPE\n"                                                  \
	"                         a named tensor instead of SHAPE DTYPE; repeatable\n"       \
	"  -s, --size BYTES       size of the region; K, M, G and T may follow (default:\n"  \
	"                         what the tensors need)\n"                                  \
	"  -m, --mode MODE        permission bits, octal (default: 0600)\n"                  \
	"      --node N           NUMA node that the memory must be on (default: any)\n"     \
	"      --dma32            memory with physical addresses below 4 GiB, or an error\n" \
	"      --contiguous       physically contiguous memory, or an error\n"               \
	"  -r, --replace          take the name of another region, which loses it\n"

enum {
	LAYOUT_NODE = OPTION_LONG,
	LAYOUT_DMA32,
	LAYOUT_CONTIGUOUS,
};

/* clang-format off */
#define LAYOUT_OPTIONS                                          \
	{ "tensor", required_argument, NULL, 't' },             \
	{ "size", required_argument, NULL, 's' },               \
	{ "mode", required_argument, NULL, 'm' },               \
	{ "node", required_argument, NULL, LAYOUT_NODE },       \
	{ "dma32", no_argument, NULL, LAYOUT_DMA32 },           \
	{ "contiguous", no_argument, NULL, LAYOUT_CONTIGUOUS }, \
	{ "replace", no_argument, NULL, 'r' }
/* clang-format on */

void layout_init(struct layout *layout);
void layout_release(struct layout *layout);

/*
 * Parses one of LAYOUT_OPTIONS. Returns EXIT_OK, or another status after printing
 * the error.
 */
int layout_option(struct layout *layout, const struct verb *verb, int option, const char *value);

/* Whether SHAPE and DTYPE are needed: neither --size nor --tensor was given. */
bool layout_needs_shape(const struct layout *layout);

/* Adds a tensor of that shape and type, without a name yet. */
int layout_shape(struct layout *layout, const struct verb *verb, const char *shape,
		 const char *dtype);

/* Creates the region; returns NULL after printing the error. */
struct tshare_region *layout_create(struct layout *layout, struct tshare_ctx *ctx);

#endif /* TSHARE_CLI_LAYOUT_H */
