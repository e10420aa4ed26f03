// SPDX-License-Identifier: MIT
/*
 * The calls of a stream in one process, for streams.py: for each line of input, it loans,
 * publishes, takes and releases some frames, and asks for the memory of each. It prints the seconds
 * of loan and publish, and those of take and release.
 */
#include <tshare.h>

#include "pair.h"

#define NAME   "bench-streams-c"
#define ROUNDS 3000

static void check(int result)
{
	if (result < 0)
		errx(1, "%s", tshare_error_get());
}

static void check_data(struct tshare_frame *frame)
{
	struct tshare_tensor *tensor;

	check(tshare_frame_get_tensor(frame, 0, &tensor));
	if (!tshare_tensor_get_data(tensor))
		errx(1, "no data");
	tshare_tensor_unref(tensor);
}

int main(void)
{
	static const int64_t shape[] = { 1024 };
	const struct tshare_spec field = {
		.size = sizeof(field),
		.name = "data",
		.dtype = TSHARE_UINT8,
		.ndim = 1,
		.shape = shape,
	};
	struct tshare_stream *producer, *consumer;
	struct tshare_frame *frame;
	struct tshare_ctx *ctx;
	double start, middle, times[2];
	char line[8];
	int i;

	check(tshare_ctx_new(NULL, &ctx));
	check(tshare_stream_create(ctx, NAME, &field, 1, NULL, &producer));
	check(tshare_stream_open(ctx, NAME, NULL, &consumer));
	while (fgets(line, sizeof(line), stdin)) {
		times[0] = times[1] = 0;
		for (i = 0; i < ROUNDS; i++) {
			start = pair_now();
			check(tshare_stream_loan(producer, -1, &frame));
			check_data(frame);
			check(tshare_frame_publish(frame));
			tshare_frame_unref(frame);
			middle = pair_now();
			check(tshare_stream_take(consumer, -1, &frame));
			check_data(frame);
			tshare_frame_unref(frame);
			times[0] += middle - start;
			times[1] += pair_now() - middle;
		}
		printf("%.9f %.9f\n", times[0] / ROUNDS, times[1] / ROUNDS);
		fflush(stdout);
	}
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
	tshare_ctx_unref(ctx);
	return 0;
}
