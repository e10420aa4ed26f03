// SPDX-License-Identifier: MIT
/*
 * usage: streamer produce NAME [SLOTS [HISTORY]] [keep]
 *        streamer fields NAME TYPE FIELD...
 *        streamer consume NAME [keep]
 *
 * A producer or a consumer of a stream, which obeys lines of standard input, and answers each with
 * a line. "publish N" publishes N frames, "small ROWS" a frame whose image has so many rows, "close"
 * ends the stream; the answer is the newest number. "take" takes a frame and keeps it; the answer is
 * its number. The first line that is printed says that the stream is there.
 *
 * Frame n has image, uint8 (4, 6): (7 n + index) % 256; pose, float32 (2,): n and -n; and
 * "the/count", int64 (): 1000 n. It was captured 5 ms before, its sequence is 10 n, its flags n % 3.
 * With "fields" it has these instead, numbers whose bytes are n; "small" is not for it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tshare.h>

#define ROWS	    4
#define COLUMNS	    6
#define CAPTURED_NS 5000000

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static uint64_t newest(struct tshare_stream *stream)
{
	struct tshare_stream_info info = { .size = sizeof(info) };

	return tshare_stream_get_info(stream, &info) ? 0 : info.newest;
}

static void *data_of(struct tshare_frame *frame, size_t field)
{
	struct tshare_tensor *tensor;
	void *data;

	if (tshare_frame_get_tensor(frame, field, &tensor))
		return NULL;
	data = tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	return data;
}

/* Of a stream with other fields. */
static size_t other_fields;

static void fill_others(struct tshare_frame *frame, uint64_t number)
{
	struct tshare_tensor *tensor;
	size_t i;

	for (i = 0; i < other_fields; i++) {
		if (tshare_frame_get_tensor(frame, i, &tensor))
			continue;
		memset(tshare_tensor_get_data(tensor), (int)number,
		       tshare_tensor_get_nbytes(tensor));
		tshare_tensor_unref(tensor);
	}
}

static void fill(struct tshare_frame *frame, uint64_t number)
{
	uint8_t *image = data_of(frame, 0);
	float *pose = data_of(frame, 1);
	int64_t *count = data_of(frame, 2);
	int i;

	for (i = 0; i < ROWS * COLUMNS; i++)
		image[i] = (7 * number + i) % 256;
	pose[0] = (float)number;
	pose[1] = -(float)number;
	*count = 1000 * (int64_t)number;
}

static int publish(struct tshare_stream *stream, int64_t rows)
{
	struct tshare_frame_info info = { .size = sizeof(info) };
	const int64_t shape[] = { rows, COLUMNS };
	uint64_t number = newest(stream) + 1;
	struct tshare_frame *frame;
	int err;

	err = tshare_stream_loan(stream, -1, &frame);
	if (err)
		return err;
	if (other_fields)
		fill_others(frame, number);
	else
		fill(frame, number);
	info.captured_ns = now() - CAPTURED_NS;
	info.sequence = 10 * number;
	info.flags = number % 3;
	err = tshare_frame_set_info(frame, &info);
	if (!err && !other_fields)
		err = tshare_frame_set_shape(frame, 0, shape);
	if (!err)
		err = tshare_frame_publish(frame);
	tshare_frame_unref(frame);
	return err;
}

static int obey(struct tshare_stream *stream, const char *line)
{
	struct tshare_frame_info info = { .size = sizeof(info) };
	struct tshare_frame *frame;
	long long number;
	int err = 0;

	if (!strncmp(line, "take", 4)) {
		err = tshare_stream_take(stream, -1, &frame);
		if (!err && !tshare_frame_get_info(frame, &info))
			printf("%llu\n", (unsigned long long)info.number);
		return err;
	}
	if (sscanf(line, "publish %lld", &number) == 1)
		while (!err && number--)
			err = publish(stream, ROWS);
	else if (sscanf(line, "small %lld", &number) == 1)
		err = publish(stream, number);
	else
		err = tshare_stream_close(stream, 0);
	if (!err)
		printf("%llu\n", (unsigned long long)newest(stream));
	return err;
}

static int produce(struct tshare_ctx *ctx, int argc, char **argv, struct tshare_stream **stream)
{
	static const int64_t image[] = { ROWS, COLUMNS }, pose[] = { 2 };
	static const struct tshare_spec fields[] = {
		{ sizeof(*fields), "image", TSHARE_UINT8, 2, image },
		{ sizeof(*fields), "pose", TSHARE_FLOAT32, 1, pose },
		{ sizeof(*fields), "the/count", TSHARE_INT64, 0, NULL },
	};
	struct tshare_stream_options options = { .size = sizeof(options) };

	if (argc > 3 && !strcmp(argv[argc - 1], "keep")) {
		options.flags = TSHARE_KEEP_ALL;
		argc--;
	}
	options.slots = argc > 3 ? atoi(argv[3]) : 0;
	options.history = argc > 4 ? atoi(argv[4]) : 0;
	return tshare_stream_create(ctx, argv[2], fields, 3, &options, stream);
}

static int produce_fields(struct tshare_ctx *ctx, int argc, char **argv,
			  struct tshare_stream **stream)
{
	struct tshare_stream_options options = { .size = sizeof(options),
						 .flags = TSHARE_KEEP_ALL };
	struct tshare_spec fields[TSHARE_STREAM_FIELDS] = { { 0 } };
	int i, err;

	for (i = 4; i < argc; i++) {
		fields[i - 4] = (struct tshare_spec){ sizeof(*fields), argv[i] };
		err = tshare_dtype_parse(argv[3], &fields[i - 4].dtype);
		if (err)
			return err;
	}
	other_fields = argc - 4;
	return tshare_stream_create(ctx, argv[2], fields, other_fields, &options, stream);
}

static int consume(struct tshare_ctx *ctx, int argc, char **argv, struct tshare_stream **stream)
{
	struct tshare_stream_open_options options = { .size = sizeof(options), .hold = 256 };

	if (argc > 3)
		options.flags = TSHARE_KEEP_ALL;
	return tshare_stream_open(ctx, argv[2], &options, stream);
}

int main(int argc, char **argv)
{
	struct tshare_stream *stream;
	struct tshare_ctx *ctx;
	char line[64];
	int err;

	if (argc < 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	err = tshare_ctx_new(NULL, &ctx);
	if (!err) {
		if (*argv[1] == 'p')
			err = produce(ctx, argc, argv, &stream);
		else if (*argv[1] == 'f')
			err = produce_fields(ctx, argc, argv, &stream);
		else
			err = consume(ctx, argc, argv, &stream);
		tshare_ctx_unref(ctx);
	}
	if (!err)
		puts("ready");
	while (!err && fgets(line, sizeof(line), stdin))
		err = obey(stream, line);
	if (err)
		fprintf(stderr, "%s\n", tshare_error_get());
	return err ? 1 : 0;
}
