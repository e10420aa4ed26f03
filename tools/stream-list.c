// SPDX-License-Identifier: MIT
/* tshare stream list: the streams, by name. */
#include <inttypes.h>
#include <stdlib.h>

#include "json.h"
#include "processes.h"
#include "stream-facts.h"
#include "table.h"

struct request {
	bool json;
	bool names; /* alone */
	bool headings;
};

/* @regions and @facts have one entry for each stream. */
struct streams {
	struct details_list regions;
	struct stream_facts *facts;
};

static int add_stream(struct tshare_stream *stream, struct streams *streams)
{
	struct tshare_region *region = tshare_stream_get_region(stream);
	struct stream_facts *facts = &streams->facts[streams->regions.count];
	struct tshare_region_info info = { .size = sizeof(info) };
	int err;

	err = tshare_region_get_info(region, &info);
	if (!err)
		err = stream_facts_read(stream, facts);
	if (err)
		return failure_of_library(err);
	if (details_add(&info, &streams->regions)) {
		stream_facts_release(facts);
		return EXIT_FAILED;
	}
	details_read(&streams->regions.regions[streams->regions.count - 1], region);
	return EXIT_OK;
}

/* A region that this user may not read, or that has gone, is passed over as one that is no stream. */
static int find_streams(struct tshare_ctx *ctx, const struct details_list *all,
			struct streams *streams)
{
	struct tshare_stream *stream;
	int status = EXIT_OK;
	size_t i;

	streams->facts = calloc(all->count + 1, sizeof(*streams->facts));
	if (!streams->facts)
		return failure("out of memory");
	for (i = 0; !status && i < all->count; i++) {
		if (stream_observe(ctx, all->regions[i].info.name, 0, &stream))
			continue;
		status = add_stream(stream, streams);
		tshare_stream_unref(stream);
	}
	return status;
}

static void release_streams(struct streams *streams)
{
	size_t i;

	for (i = 0; i < streams->regions.count; i++)
		stream_facts_release(&streams->facts[i]);
	free(streams->facts);
	details_release(&streams->regions);
}

static int print_names(const struct streams *streams)
{
	static const struct table_column column = { "NAME" };
	struct table table;
	size_t i;

	table_init(&table, &column, 1);
	table_hide_headings(&table);
	for (i = 0; i < streams->regions.count; i++) {
		table_row(&table);
		table_cell(&table, "%s", streams->regions.regions[i].info.name);
	}
	return table_print(&table);
}

static void add_row(struct table *table, const struct stream_facts *facts,
		    const struct details *details)
{
	char producer[DETAILS_TEXT_LEN];

	table_row(table);
	table_cell(table, "%" PRIu32, facts->info.slots);
	table_cell(table, "%" PRIu32, facts->info.history);
	table_cell(table, "%" PRIu64, facts->info.newest);
	table_cell(table, "%" PRIu32, facts->info.field_count);
	if (facts->seats_known)
		table_cell(table, "%zu", facts->seat_count);
	else
		table_cell(table, "-");
	details_maker(details, producer);
	table_cell(table, "%s", producer);
	table_cell(table, "%s", stream_facts_state(facts, details));
	table_cell(table, "%s", details->info.name);
}

static int print_text(const struct streams *streams, bool headings)
{
	static const struct table_column columns[] = {
		{ "SLOTS", .right = true },
		{ "HISTORY", .right = true },
		{ "NEWEST", .right = true },
		{ "FIELDS", .right = true },
		{ "SEATS", .right = true },
		{ "PRODUCER" },
		{ "STATE" },
		{ "NAME" },
	};
	struct table table;
	size_t i;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	if (!headings)
		table_hide_headings(&table);
	for (i = 0; i < streams->regions.count; i++)
		add_row(&table, &streams->facts[i], &streams->regions.regions[i]);
	return table_print(&table);
}

static int print_json(const struct streams *streams)
{
	size_t i;

	json_open(NULL, '[');
	for (i = 0; i < streams->regions.count; i++)
		stream_facts_json(&streams->facts[i], &streams->regions.regions[i]);
	json_close(']');
	return EXIT_OK;
}

static int print(struct streams *streams, const struct request *request)
{
	if (request->names)
		return print_names(streams);
	processes_find(&streams->regions);
	return request->json ? print_json(streams) : print_text(streams, request->headings);
}

static int list(const struct request *request)
{
	struct details_list all = { 0 };
	struct streams streams = { 0 };
	struct tshare_ctx *ctx;
	int status;

	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	status = details_list(ctx, &all);
	if (!status)
		status = find_streams(ctx, &all, &streams);
	tshare_ctx_unref(ctx);
	details_release(&all);
	if (!status)
		status = print(&streams, request);
	release_streams(&streams);
	return status;
}

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "noheadings", no_argument, NULL, 'n' },
	{ "names", no_argument, NULL, 'N' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	(void)verb;
	switch (option) {
	case 'j':
		request->json = true;
		break;
	case 'n':
		request->headings = false;
		break;
	case 'N':
		request->names = true;
		break;
	}
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { .headings = true };
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	if (optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	return list(&request);
}

const struct verb verb_stream_list = {
	.name = "stream list",
	.arguments = "[OPTION...]",
	.summary = "list the streams that you may read",
	.help = REPORTING_HELP("array") "  -n, --noheadings       print no headings\n"
					"  -N, --names            print the names alone\n",
	.options = options,
	.take = take,
	.run = run,
};
