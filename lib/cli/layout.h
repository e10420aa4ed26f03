/* SPDX-License-Identifier: MIT */
/* The command line of the verbs that make a region: what is in it, and how it is made. */
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
	uint64_t size; /* 0 for what the tensors need */
	struct tshare_options options;
	const char *name; /* of the region; NULL for none */
};

/* Lines of --help for the options below. */
#define LAYOUT_HELP                                                               \
	"  SHAPE                  8x480x640x3, or 'scalar'\n"                     \
	"  DTYPE                  uint8, float32, bfloat16, ...\n"                \
	"  --tensor NAME:SHAPE:DTYPE\n"                                           \
	"                         a tensor of that name; may be repeated\n"       \
	"  --size BYTES           size of the region; K, M, G and T may follow\n" \
	"  --mode MODE            permission bits, octal (0600)\n"                \
	"  --node N               NUMA node that the memory must be on\n"         \
	"  --dma32                physical addresses below 4 GiB\n"               \
	"  --contiguous           physically contiguous, or fail\n"

/* clang-format off */
#define LAYOUT_OPTIONS                                  \
	{ "tensor", required_argument, NULL, 't' },     \
	{ "size", required_argument, NULL, 's' },       \
	{ "mode", required_argument, NULL, 'm' },       \
	{ "node", required_argument, NULL, 'n' },       \
	{ "dma32", no_argument, NULL, 'd' },            \
	{ "contiguous", no_argument, NULL, 'c' }
/* clang-format on */

void layout_init(struct layout *layout);
void layout_release(struct layout *layout);

/*
 * Takes one of LAYOUT_OPTIONS. EXIT_OK, or another status after saying what is
 * wrong.
 */
int layout_option(struct layout *layout, const struct verb *verb, int option, const char *value);

/* Whether SHAPE and DTYPE are needed, since no option said what is in the region. */
bool layout_needs_shape(const struct layout *layout);

/* Takes SHAPE and DTYPE for the only tensor. */
int layout_shape(struct layout *layout, const struct verb *verb, const char *shape,
		 const char *dtype);

/* Makes the region; NULL after saying what failed. */
struct tshare_region *layout_create(struct layout *layout, struct tshare_ctx *ctx);

#endif /* TSHARE_CLI_LAYOUT_H */
