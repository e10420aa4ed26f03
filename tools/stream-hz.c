// SPDX-License-Identifier: MIT
/* tshare stream hz: how often frames are published, how regularly, and how late. */
#include <inttypes.h>
#include <math.h>

#include "ending.h"
#include "json.h"
#include "stream-facts.h"
#include "stream-reader.h"
#include "table.h"

#define SECOND 1000000000

struct request {
	bool json;
	struct reader_limits limits;
};

/* Numbers, in nanoseconds: the mean and the squares as Welford adds them up. */
struct spread {
	uint64_t count;
	double least, most, mean, squares;
};

static void spread_add(struct spread *spread, double value)
{
	double before = value - spread->mean;

	if (!spread->count || value < spread->least)
		spread->least = value;
	if (!spread->count || value > spread->most)
		spread->most = value;
	spread->mean += before / (double)++spread->count;
	spread->squares += before * (value - spread->mean);
}

static double spread_deviation(const struct spread *spread)
{
	return spread->count ? sqrt(spread->squares / (double)spread->count) : 0;
}

/* Frames of a while. The producer's times may be anything. */
struct measure {
	uint64_t frames;
	uint64_t missed;
	struct tshare_frame_info first, last;
	struct spread intervals; /* between frames of successive numbers */
	struct spread delays;	 /* from capture to publish */
};

static void add_frame(struct measure *measure, const struct tshare_frame_info *info)
{
	if (!measure->frames++)
		measure->first = *info;
	else if (info->number == measure->last.number + 1)
		spread_add(&measure->intervals,
			   (double)info->published_ns - (double)measure->last.published_ns);
	measure->last = *info;
	measure->missed += info->lost;
	if (info->captured_ns)
		spread_add(&measure->delays,
			   (double)info->published_ns - (double)info->captured_ns);
}

/* A measure that begins with the last frame of another one, so that no interval is left out. */
static void begin_behind(struct measure *measure, const struct measure *before)
{
	struct tshare_frame_info last = before->last;
	bool had_frames = before->frames;

	*measure = (struct measure){ 0 };
	if (!had_frames)
		return;
	measure->first = last;
	measure->last = last;
	measure->frames = 1;
}

/* Frames per second, missed ones included; 0 if there are too few to say. */
static double rate_of(const struct measure *measure)
{
	double frames = (double)measure->last.number - (double)measure->first.number;
	double time = (double)measure->last.published_ns - (double)measure->first.published_ns;

	return frames > 0 && time > 0 ? frames * SECOND / time : 0;
}

static double milliseconds(double nanoseconds)
{
	return nanoseconds / 1e6;
}

#define SPREAD_LEN 160
static void describe(const struct spread *spread, char text[SPREAD_LEN])
{
	if (!spread->count)
		snprintf(text, SPREAD_LEN, "-");
	else
		snprintf(text, SPREAD_LEN, "%.3f ms (%.3f to %.3f, stddev %.3f)",
			 milliseconds(spread->mean), milliseconds(spread->least),
			 milliseconds(spread->most), milliseconds(spread_deviation(spread)));
}

static int print_text(const struct measure *measure)
{
	char interval[SPREAD_LEN], delay[SPREAD_LEN];
	struct table table;

	describe(&measure->intervals, interval);
	describe(&measure->delays, delay);
	facts_init(&table);
	facts_add(&table, "frames", "%" PRIu64, measure->frames);
	facts_add(&table, "missed", "%" PRIu64, measure->missed);
	if (rate_of(measure) > 0)
		facts_add(&table, "rate", "%.3f/s", rate_of(measure));
	else
		facts_add(&table, "rate", "-");
	facts_add(&table, "interval", "%s", interval);
	facts_add(&table, "delay", "%s", delay);
	return table_print(&table);
}

static void spread_json(const char *key, const struct spread *spread)
{
	if (!spread->count) {
		json_null(key);
		return;
	}
	json_open(key, '{');
	json_double("mean", spread->mean / SECOND);
	json_double("min", spread->least / SECOND);
	json_double("max", spread->most / SECOND);
	json_double("stddev", spread_deviation(spread) / SECOND);
	json_close('}');
}

static int print_json(const struct measure *measure)
{
	json_open(NULL, '{');
	json_uint("frames", measure->frames);
	json_uint("missed", measure->missed);
	if (rate_of(measure) > 0)
		json_double("rate", rate_of(measure));
	else
		json_null("rate");
	spread_json("interval", &measure->intervals);
	spread_json("delay", &measure->delays);
	json_close('}');
	return EXIT_OK;
}

/* A line about the last second. Returns whether it could be written. */
static bool print_second(const struct measure *second)
{
	const struct spread *intervals = &second->intervals, *delays = &second->delays;

	if (rate_of(second) > 0)
		printf("%.3f/s", rate_of(second));
	else
		printf("no new frames");
	if (intervals->count)
		printf(", interval %.3f to %.3f ms", milliseconds(intervals->least),
		       milliseconds(intervals->most));
	if (delays->count)
		printf(", delay %.3f ms", milliseconds(delays->mean));
	printf(", missed %" PRIu64 "\n", second->missed);
	return !fflush(stdout) && !ferror(stdout);
}

/* Measures until the limits. Returns what has ended it; READER_PAUSE if the output is gone. */
static enum reader_news measure_frames(struct reader *reader, bool quiet, struct measure *all)
{
	int64_t next = quiet ? INT64_MAX : ending_now() + SECOND;
	struct tshare_frame_info info = { .size = sizeof(info) };
	struct measure second = { 0 };
	struct tshare_frame *frame;
	enum reader_news news;

	for (;;) {
		news = reader_next(reader, next, &frame);
		if (news == READER_FRAME) {
			tshare_frame_get_info(frame, &info);
			tshare_frame_unref(frame);
			add_frame(all, &info);
			add_frame(&second, &info);
		} else if (news != READER_PAUSE) {
			return news;
		}
		if (ending_now() < next)
			continue;
		if (!print_second(&second))
			return READER_PAUSE;
		begin_behind(&second, &second);
		next += SECOND;
	}
}

static int status_of(enum reader_news news, const struct reader *reader, const struct measure *all)
{
	if (news == READER_ERROR)
		return failure_of_library(reader->err);
	if (news == READER_PAUSE) /* main() prints the error */
		return EXIT_FAILED;
	if (news != READER_LIMIT || all->frames)
		return EXIT_OK;
	failure("no frame was published in time");
	return EXIT_TIMEOUT;
}

static int open_stream(struct tshare_ctx *ctx, const char *name, void *data,
		       struct tshare_stream **stream)
{
	const struct request *request = data;

	return stream_observe(ctx, name, request->limits.wait_ns, stream);
}

static int measure_stream(struct tshare_stream *stream, void *data)
{
	const struct request *request = data;
	struct measure all = { 0 };
	enum reader_news news;
	struct reader reader;
	int status, printed;

	status = reader_begin(&reader, stream, &request->limits);
	if (status)
		return status;
	news = measure_frames(&reader, request->json, &all);
	status = status_of(news, &reader, &all);
	if (news == READER_PAUSE)
		return status;
	printed = request->json ? print_json(&all) : print_text(&all);
	return status ? status : printed;
}

static const struct option options[] = {
	READER_OPTIONS,
	{ "json", no_argument, NULL, 'j' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	if (option != 'j')
		return reader_option(&request->limits, verb, option, optarg);
	request->json = true;
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { .limits = READER_LIMITS_INIT };
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	if (argc - optind != 1)
		return usage_error(verb, "needs one NAME");
	return use_stream(argv[optind], open_stream, measure_stream, &request);
}

const struct verb verb_stream_hz = {
	.name = "stream hz",
	.arguments = "[OPTION...] NAME",
	.summary = "measure how often, regularly and late frames are published",
	.help = READER_HELP REPORTING_HELP("object at the end, and nothing before"),
	.options = options,
	.take = take,
	.run = run,
};
