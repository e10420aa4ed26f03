// SPDX-License-Identifier: MIT
/*
 * Publishes a hundred frames a second until it is interrupted. stream.py does the same in Python.
 *
 *	stream_producer NAME
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tshare.h>

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

int main(int argc, char **argv)
{
	const int64_t shape[] = { 480, 640 };
	const struct tshare_spec image = {
		.size = sizeof(image),
		.name = "image",
		.dtype = TSHARE_UINT8,
		.ndim = 2,
		.shape = shape,
	};
	const struct tshare_stream_options options = {
		.size = sizeof(options),
		.flags = TSHARE_KEEP_ALL,
	};
	/* Without SA_RESTART, so that it ends waits. */
	const struct sigaction action = { .sa_handler = stop };
	struct tshare_stream *stream;
	struct tshare_tensor *tensor;
	struct tshare_frame *frame;
	struct tshare_ctx *ctx;
	int error, n;

	if (argc != 2)
		errx(2, "usage: stream_producer NAME");
	sigaction(SIGINT, &action, NULL);
	if (tshare_ctx_new(NULL, &ctx) < 0 ||
	    tshare_stream_create(ctx, argv[1], &image, 1, &options, &stream) < 0)
		errx(1, "%s", tshare_error_get());
	for (n = 1; !stopped;) {
		/* Not for ever: a signal that comes just before the wait doesn't end it. */
		error = tshare_stream_loan(stream, INT64_C(1000000000), &frame);
		if (error == -EINTR)
			continue;
		if (error == -ETIMEDOUT) {
			/* It names the consumers that hold all slots. */
			warnx("%s", tshare_error_get());
			continue;
		}
		if (error < 0 || tshare_frame_find_tensor(frame, "image", &tensor) < 0)
			errx(1, "%s", tshare_error_get());
		memset(tshare_tensor_get_data(tensor), n++, tshare_tensor_get_nbytes(tensor));
		tshare_tensor_unref(tensor);
		if (tshare_frame_publish(frame) < 0)
			errx(1, "%s", tshare_error_get());
		tshare_frame_unref(frame);
		usleep(10000);
	}
	/* Consumers that are slower get 5 seconds for what is left. */
	if (tshare_stream_close(stream, INT64_C(5000000000)) < 0)
		warnx("%s", tshare_error_get());
	tshare_stream_unref(stream);
	tshare_ctx_unref(ctx);
	return 0;
}
