// SPDX-License-Identifier: MIT
/*
 * Takes all frames of stream_producer, or of stream.py, until the stream ends.
 *
 *	stream_consumer NAME
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <tshare.h>

static int value_of(struct tshare_frame *frame)
{
	struct tshare_tensor *tensor;
	int value;

	if (tshare_frame_find_tensor(frame, "image", &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	value = *(uint8_t *)tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	return value;
}

int main(int argc, char **argv)
{
	/* It may be started first. */
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = TSHARE_KEEP_ALL,
		.timeout_ns = -1,
	};
	struct tshare_frame_info info = { .size = sizeof(info) };
	struct tshare_stream *stream;
	struct tshare_frame *frame;
	struct tshare_ctx *ctx;
	int error;

	if (argc != 2)
		errx(2, "usage: stream_consumer NAME");
	if (tshare_ctx_new(NULL, &ctx) < 0 ||
	    tshare_stream_open(ctx, argv[1], &options, &stream) < 0)
		errx(1, "%s", tshare_error_get());
	while (!(error = tshare_stream_take(stream, -1, &frame))) {
		tshare_frame_get_info(frame, &info);
		printf("frame %" PRIu64 " is %d, %" PRIu64 " were lost\n", info.number,
		       value_of(frame), info.lost);
		fflush(stdout);
		/* The slot is the producer's again. */
		tshare_frame_unref(frame);
	}
	if (error != -ENODATA)
		errx(1, "%s", tshare_error_get());
	printf("the stream has ended\n");
	tshare_stream_unref(stream);
	tshare_ctx_unref(ctx);
	return 0;
}
