// SPDX-License-Identifier: MIT
#include "frames.h"

struct tshare_stream *new_stream(const char *name, uint32_t slots, uint32_t history, uint32_t flags)
{
	const int64_t shape[] = { FRAME_ELEMENTS };
	const struct tshare_spec field = SPEC("data", TSHARE_UINT64, 1, shape);
	const struct tshare_stream_options options = {
		.size = sizeof(options),
		.slots = slots,
		.history = history,
		.flags = flags,
	};
	struct tshare_stream *stream;

	CHECK(!tshare_stream_create(ctx, name, &field, 1, &options, &stream));
	return stream;
}

struct tshare_stream *open_stream(const char *name, uint32_t flags)
{
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = flags,
	};
	struct tshare_stream *stream;

	CHECK(!tshare_stream_open(ctx, name, &options, &stream));
	return stream;
}

static uint64_t *data_of(struct tshare_frame *frame)
{
	struct tshare_tensor *tensor;
	uint64_t *data;

	if (tshare_frame_find_tensor(frame, "data", &tensor))
		return NULL;
	data = tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	return data;
}

void fill_frame(struct tshare_frame *frame, uint64_t number)
{
	uint64_t *data = data_of(frame);
	int i;

	for (i = 0; i < FRAME_ELEMENTS; i++)
		data[i] = number;
}

bool publish_until(struct tshare_stream *stream, uint64_t last)
{
	struct tshare_stream_info info = { .size = sizeof(info) };
	struct tshare_frame *frame;
	bool published = true;

	tshare_stream_get_info(stream, &info);
	while (published && info.newest < last) {
		if (tshare_stream_loan(stream, 0, &frame))
			return false;
		fill_frame(frame, ++info.newest);
		published = !tshare_frame_publish(frame);
		tshare_frame_unref(frame);
	}
	return published;
}

uint64_t whole_number(struct tshare_frame *frame)
{
	struct tshare_frame_info info = { .size = sizeof(info) };
	const uint64_t *data = data_of(frame);
	int i;

	tshare_frame_get_info(frame, &info);
	for (i = 0; i < FRAME_ELEMENTS; i++)
		if (data[i] != info.number)
			return 0;
	return info.number;
}

int64_t take_number(struct tshare_stream *stream)
{
	struct tshare_frame *frame;
	int64_t number;
	int err;

	err = tshare_stream_take(stream, 0, &frame);
	if (err)
		return err;
	number = whole_number(frame);
	tshare_frame_unref(frame);
	return number;
}

struct tshare_frame *take_frame(struct tshare_stream *stream)
{
	struct tshare_frame *frame;

	CHECK(!tshare_stream_take(stream, 0, &frame));
	return frame;
}
