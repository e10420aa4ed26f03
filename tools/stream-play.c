// SPDX-License-Identifier: MIT
/* tshare stream play: publishes the frames of a recording. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "ending.h"
#include "number.h"
#include "player.h"

#define SECOND	     1000000000
#define MILLISECOND  1000000LL
#define RATE_MOST    1000000
#define TIMEOUT_MOST (1000000000LL * SECOND)

struct request {
	const char *folder;
	const char *name;
	double rate; /* 0: without pauses */
	bool loop;
	uint64_t consumers;
	struct tshare_stream_options stream;
	struct tshare_options region;
};

/* Functions that play return an exit status, or the negative number of a signal that ends them. */

static int count_seat(const struct tshare_stream_seat *seat, void *count)
{
	*(uint64_t *)count += !!seat->pid;
	return 0;
}

static int await_consumers(struct tshare_stream *stream, uint64_t wanted)
{
	uint64_t count;
	int err, number;

	while (wanted) {
		count = 0;
		err = tshare_stream_list_seats(stream, count_seat, &count);
		if (err)
			return failure_of_library(err);
		if (count >= wanted)
			break;
		number = ending_wait(-1, 10 * MILLISECOND);
		if (number)
			return -number;
	}
	return EXIT_OK;
}

/* Looks for signals now and then, while consumers that keep all have all slots. */
static int loan(struct tshare_stream *stream, struct tshare_frame **frame)
{
	int err, number;

	do {
		number = ending_wait(-1, 0);
		if (number)
			return -number;
		err = tshare_stream_loan(stream, 100 * MILLISECOND, frame);
	} while (err == -ETIMEDOUT);
	return err ? failure_of_library(err) : EXIT_OK;
}

static int sleep_until(int64_t until)
{
	int64_t left;
	int number;

	do {
		left = until - ending_now();
		number = ending_wait(-1, left > 0 ? left : 0);
	} while (!number && left > 0);
	return -number;
}

/* When a frame is due that was recorded so long after the first one. Any time can be recorded. */
static int64_t due(const struct request *request, int64_t begun, double after)
{
	double wait = request->rate > 0 ? after / request->rate : 0;

	if (!(wait > 0))
		return begun;
	return begun + (wait < (double)TIMEOUT_MOST ? (int64_t)wait : TIMEOUT_MOST);
}

static int play_frame(struct player *player, struct tshare_stream *stream, uint64_t index,
		      int64_t when)
{
	struct tshare_frame *frame;
	int result;

	result = loan(stream, &frame);
	if (result)
		return result;
	result = player_fill(player, index, frame);
	if (!result)
		result = sleep_until(when);
	if (!result)
		result = player_publish(player, frame, ending_now());
	tshare_frame_unref(frame);
	return result;
}

/* Plays the recording once; stores when the next round is due. */
static int play_once(struct player *player, struct tshare_stream *stream,
		     const struct request *request, int64_t *begun)
{
	const uint64_t count = player->recording.count;
	int64_t first = 0, published = 0;
	double after = 0;
	int result = EXIT_OK;
	uint64_t i;

	for (i = 0; !result && i < count; i++) {
		result = player_time(player, i, &published);
		if (!i)
			first = published;
		after = (double)published - (double)first;
		if (!result)
			result = play_frame(player, stream, i, due(request, *begun, after));
	}
	/* Between the last frame and the first one lies the mean interval. */
	after += count > 1 ? after / (double)(count - 1) : SECOND;
	*begun = due(request, *begun, after);
	return result;
}

static int play(struct player *player, struct tshare_stream *stream, const struct request *request)
{
	uint64_t frames = 0;
	int64_t begun;
	int result;

	result = await_consumers(stream, request->consumers);
	begun = ending_now();
	while (!result) {
		result = play_once(player, stream, request, &begun);
		if (!result)
			frames += player->recording.count;
		if (!request->loop)
			break;
	}
	if (!result)
		printf("%" PRIu64 " frames published\n", frames);
	return result;
}

/* Consumers take what is left, and then see the end, however the playing has ended. */
static int play_stream(struct player *player, struct tshare_ctx *ctx, const struct request *request)
{
	struct tshare_stream_options options = request->stream;
	struct tshare_stream *stream;
	int result;
	int err;

	options.region = &request->region;
	err = player_create(player, ctx, request->name, &options, &stream);
	if (err)
		return failure_of_library(err);
	ending_begin();
	result = play(player, stream, request);
	tshare_stream_close(stream, 0);
	tshare_stream_unref(stream);
	return result;
}

enum { OPTION_RATE = OPTION_LONG };

static const struct option options[] = {
	{ "rate", required_argument, NULL, OPTION_RATE },
	{ "loop", no_argument, NULL, 'l' },
	{ "consumers", required_argument, NULL, 'c' },
	{ "slots", required_argument, NULL, 's' },
	{ "replace", no_argument, NULL, 'r' },
	{ 0 },
};

static int take_rate(struct request *request, const struct verb *verb)
{
	uint64_t whole;
	char *end;

	if (parse_number(optarg, 10, &whole, &end)) {
		request->rate = strtod(optarg, &end);
		if (!*end && request->rate <= RATE_MOST)
			return EXIT_OK;
	}
	return usage_error(verb, "--rate: '%s' is not 0 to %d", optarg, RATE_MOST);
}

static int take_number(const struct verb *verb, const char *name, uint64_t most, uint64_t *number)
{
	char *end;

	if (parse_number(optarg, 10, number, &end) && !*end && *number && *number <= most)
		return EXIT_OK;
	return usage_error(verb, "--%s: '%s' is not 1 to %" PRIu64, name, optarg, most);
}

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;
	uint64_t slots = 0;
	int status;

	switch (option) {
	case OPTION_RATE:
		return take_rate(request, verb);
	case 'l':
		request->loop = true;
		break;
	case 'c':
		return take_number(verb, "consumers", TSHARE_STREAM_CONSUMERS, &request->consumers);
	case 's':
		status = take_number(verb, "slots", TSHARE_STREAM_SLOTS, &slots);
		request->stream.slots = (uint32_t)slots;
		return status;
	case 'r':
		request->region.flags |= TSHARE_REPLACE;
		break;
	}
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = {
		.rate = 1,
		.stream = { .size = sizeof(request.stream), .flags = TSHARE_KEEP_ALL },
		.region = { .size = sizeof(request.region) },
	};
	struct tshare_ctx *ctx;
	struct player player;
	int result;
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	if (argc - optind != 2)
		return usage_error(verb, "needs FOLDER and NAME");
	request.folder = argv[optind];
	request.name = argv[optind + 1];
	status = player_open(&player, request.folder);
	if (status)
		return status;
	ctx = open_session();
	result = ctx ? play_stream(&player, ctx, &request) : EXIT_FAILED;
	tshare_ctx_unref(ctx);
	player_close(&player);
	if (result < 0)
		ending_raise(-result);
	return result;
}

const struct verb verb_stream_play = {
	.name = "stream play",
	.arguments = "[OPTION...] FOLDER NAME",
	.summary = "publish the frames of a recording",
	.help = "      --rate X           X times as fast; 0: without pauses (default: 1)\n"
		"  -l, --loop             begin again after the last frame\n"
		"  -c, --consumers N      begin when there are so many consumers\n"
		"  -s, --slots N          slots of the stream (default: 8)\n"
		"  -r, --replace          take the name of another stream, which loses it\n",
	.options = options,
	.take = take,
	.run = run,
};
