// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "stream-facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "shape.h"

int stream_observe(struct tshare_ctx *ctx, const char *name, int64_t timeout_ns,
		   struct tshare_stream **stream)
{
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = TSHARE_OBSERVE,
		.timeout_ns = timeout_ns,
	};

	return tshare_stream_open(ctx, name, &options, stream);
}

int use_stream(const char *name,
	       int (*open)(struct tshare_ctx *ctx, const char *name, void *request,
			   struct tshare_stream **stream),
	       int (*use)(struct tshare_stream *stream, void *request), void *request)
{
	struct tshare_stream *stream;
	struct tshare_ctx *ctx;
	int err, status;

	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	err = open(ctx, name, request, &stream);
	if (err) {
		status = failure_of_name(ctx, name, err);
	} else {
		status = use(stream, request);
		tshare_stream_unref(stream);
	}
	tshare_ctx_unref(ctx);
	return status;
}

/* A tensor of the stream's region, whose first dimension is the slot. */
static int read_field(const struct tshare_tensor *tensor, struct stream_field *field)
{
	field->name = strdup(tshare_tensor_get_name(tensor));
	if (!field->name)
		return -ENOMEM;
	field->dtype = tshare_tensor_get_dtype(tensor);
	field->ndim = tshare_tensor_get_ndim(tensor) - 1;
	memcpy(field->shape, tshare_tensor_get_shape(tensor) + 1,
	       field->ndim * sizeof(*field->shape));
	return 0;
}

/* Tensors whose names begin with '.' are the library's own. */
static int read_fields(struct tshare_region *region, struct stream_facts *facts)
{
	size_t count = tshare_region_get_tensor_count(region), fields = 0, i;
	struct tshare_tensor *tensor;
	int err = 0;

	for (i = 0; !err && i < count && fields < facts->info.field_count; i++) {
		err = tshare_region_get_tensor(region, i, &tensor);
		if (err)
			break;
		if (*tshare_tensor_get_name(tensor) != '.')
			err = read_field(tensor, &facts->fields[fields++]);
		tshare_tensor_unref(tensor);
	}
	return err;
}

static int add_seat(const struct tshare_stream_seat *seat, void *data)
{
	struct stream_facts *facts = data;

	facts->seats[facts->seat_count++] = *seat;
	return 0;
}

int stream_facts_read(struct tshare_stream *stream, struct stream_facts *facts)
{
	int err;

	*facts = (struct stream_facts){ .info.size = sizeof(facts->info) };
	err = tshare_stream_get_info(stream, &facts->info);
	if (err)
		return err;
	facts->fields = calloc(facts->info.field_count, sizeof(*facts->fields));
	err = facts->fields ? read_fields(tshare_stream_get_region(stream), facts) : -ENOMEM;
	if (err) {
		stream_facts_release(facts);
		return err;
	}
	facts->seats_known = !tshare_stream_list_seats(stream, add_seat, facts);
	return 0;
}

void stream_facts_release(struct stream_facts *facts)
{
	uint32_t i;

	for (i = 0; facts->fields && i < facts->info.field_count; i++)
		free(facts->fields[i].name);
	free(facts->fields);
	facts->fields = NULL;
}

uint64_t stream_field_bytes(const struct stream_field *field)
{
	uint64_t bytes = tshare_dtype_get_itemsize(field->dtype);
	int32_t i;

	/* All slots of the field are in memory: the product of one fits. */
	for (i = 0; i < field->ndim; i++)
		bytes *= field->shape[i];
	return bytes;
}

const char *stream_facts_state(const struct stream_facts *facts, const struct details *details)
{
	if (facts->info.ended)
		return "ended";
	return details->publishers == PUBLISHERS_DEAD ? "dead" : "live";
}

static void field_json(const struct stream_field *field)
{
	char dtype[TSHARE_DTYPE_NAME_LEN];

	shape_name_type(field->dtype, dtype);
	json_open(NULL, '{');
	json_string("name", field->name);
	json_string("dtype", dtype);
	shape_json("shape", field->shape, field->ndim);
	json_close('}');
}

static void seat_json(const struct tshare_stream_seat *seat)
{
	json_open(NULL, '{');
	json_int("seat", seat->seat);
	json_int("pid", seat->pid);
	json_string("command", seat->command);
	json_uint("held", seat->held);
	json_bool("keeps_all", seat->keeps_all);
	json_bool("evicted", seat->evicted);
	json_close('}');
}

void stream_facts_json(const struct stream_facts *facts, const struct details *details)
{
	size_t i;

	json_open(NULL, '{');
	json_string("name", details->info.name);
	json_string("backend", details->backend);
	json_uint("size", details->info.region_size);
	json_uint("slots", facts->info.slots);
	json_uint("history", facts->info.history);
	json_bool("keep_all", facts->info.flags & TSHARE_KEEP_ALL);
	json_uint("newest", facts->info.newest);
	json_string("state", stream_facts_state(facts, details));
	details_maker_json("producer", details);
	json_open("fields", '[');
	for (i = 0; i < facts->info.field_count; i++)
		field_json(&facts->fields[i]);
	json_close(']');
	if (facts->seats_known) {
		json_open("seats", '[');
		for (i = 0; i < facts->seat_count; i++)
			seat_json(&facts->seats[i]);
		json_close(']');
	} else {
		json_null("seats");
	}
	json_close('}');
}
