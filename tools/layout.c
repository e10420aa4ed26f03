// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "number.h"

void layout_init(struct layout *layout)
{
	*layout = (struct layout){ .options.size = sizeof(layout->options) };
}

void layout_release(struct layout *layout)
{
	free(layout->tensors);
}

static bool parse_shape(const char *text, struct layout_tensor *tensor)
{
	uint64_t dimension;
	char *end;

	tensor->spec.ndim = 0;
	if (!strcmp(text, "scalar"))
		return true;
	for (;;) {
		if (tensor->spec.ndim == TSHARE_NDIM_LIMIT ||
		    !parse_number(text, 10, &dimension, &end) || dimension > INT64_MAX)
			return false;
		tensor->shape[tensor->spec.ndim++] = dimension;
		if (!*end)
			return true;
		if (*end != 'x')
			return false;
		text = end + 1;
	}
}

int layout_shape(struct layout *layout, const struct verb *verb, const char *shape,
		 const char *dtype)
{
	struct layout_tensor *tensors, *tensor;

	tensors = realloc(layout->tensors, (layout->count + 1) * sizeof(*tensors));
	if (!tensors)
		return failure("out of memory");
	layout->tensors = tensors;
	tensor = &tensors[layout->count];
	*tensor = (struct layout_tensor){ .spec.size = sizeof(tensor->spec) };
	if (!parse_shape(shape, tensor))
		return usage_error(verb, "'%s' is not a shape (such as 8x480x640x3, or 'scalar')",
				   shape);
	if (tshare_dtype_parse(dtype, &tensor->spec.dtype))
		return usage_error(verb, "%s", tshare_error_get());
	layout->count++;
	return EXIT_OK;
}

/* Parses NAME:SHAPE:DTYPE, in which only NAME can have a colon. */
static int add_named_tensor(struct layout *layout, const struct verb *verb, const char *value)
{
	char *text = strdup(value), *shape, *dtype;
	int status;

	if (!text)
		return failure("out of memory");
	dtype = strrchr(text, ':');
	if (dtype)
		*dtype++ = '\0';
	shape = strrchr(text, ':');
	if (shape)
		*shape++ = '\0';
	if (!shape) {
		status = usage_error(verb, "'%s' is not NAME:SHAPE:DTYPE", value);
	} else if (strlen(text) > TSHARE_TENSOR_NAME_MAX) {
		status = usage_error(verb, "the name of a tensor is longer than %d bytes",
				     TSHARE_TENSOR_NAME_MAX);
	} else {
		status = layout_shape(layout, verb, shape, dtype);
		if (status == EXIT_OK)
			strcpy(layout->tensors[layout->count - 1].name, text);
	}
	free(text);
	return status;
}

int layout_option(struct layout *layout, const struct verb *verb, int option, const char *value)
{
	uint64_t number;
	char *end;

	switch (option) {
	case 't':
		return add_named_tensor(layout, verb, value);
	case 's':
		if (!parse_bytes(value, &layout->size) || !layout->size)
			return usage_error(verb,
					   "--size: '%s' is not a positive number of bytes "
					   "(K, M, G or T may follow)",
					   value);
		break;
	case 'm':
		if (!parse_number(value, 8, &number, &end) || *end || (number & ~0666))
			return usage_error(
				verb,
				"--mode: '%s' is not an octal number without bits beyond 0666",
				value);
		layout->options.mode = number ? number : TSHARE_MODE_NONE;
		break;
	case LAYOUT_NODE:
		if (!parse_node(value, &layout->options.node))
			return usage_error(verb, "--node: '%s' is not the number of a NUMA node",
					   value);
		layout->options.flags |= TSHARE_NODE;
		break;
	case LAYOUT_DMA32:
		layout->options.flags |= TSHARE_DMA32;
		break;
	case LAYOUT_CONTIGUOUS:
		layout->options.flags |= TSHARE_CONTIGUOUS;
		break;
	case 'r':
		layout->options.flags |= TSHARE_REPLACE;
		break;
	}
	return EXIT_OK;
}

bool layout_needs_shape(const struct layout *layout)
{
	return !layout->size && !layout->count;
}

/* The library names a tensor by its index; here it has a name, or is the only one. */
static void fail_create(const struct layout *layout, int err)
{
	const char *text = tshare_error_get();
	int prefix = 0;
	size_t i = 0;

	if (sscanf(text, "specs[%zu].%n", &i, &prefix) != 1 || !prefix || i >= layout->count)
		failure_of_library(err);
	else if (*layout->tensors[i].name)
		failure("tensor '%s': %s", layout->tensors[i].name, text + prefix);
	else
		failure("%s", text + prefix);
}

struct tshare_region *layout_create(struct layout *layout, struct tshare_ctx *ctx)
{
	struct tshare_spec *specs;
	struct tshare_region *region;
	size_t i;
	int err;

	specs = calloc(layout->count + 1, sizeof(*specs));
	if (!specs) {
		failure("out of memory");
		return NULL;
	}
	for (i = 0; i < layout->count; i++) {
		specs[i] = layout->tensors[i].spec;
		specs[i].shape = layout->tensors[i].shape;
		specs[i].name = layout->tensors[i].name;
	}
	err = tshare_region_create(ctx, layout->name, layout->size, specs, layout->count,
				   &layout->options, &region);
	free(specs);
	if (!err)
		return region;
	fail_create(layout, err);
	return NULL;
}
