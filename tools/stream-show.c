// SPDX-License-Identifier: MIT
/* tshare stream show: a stream, its fields and its consumers. */
#include <inttypes.h>

#include "json.h"
#include "number.h"
#include "processes.h"
#include "report.h"
#include "shape.h"
#include "stream-facts.h"
#include "table.h"

/* Columns for a field's name, so that one long name doesn't widen the table. */
#define NAME_SHOWN 64

struct request {
	bool json;
	bool exact; /* sizes are bytes */
};

static int print_facts(const struct stream_facts *facts, const struct details *details, bool exact)
{
	char user[REPORT_USER_LEN], producer[DETAILS_TEXT_LEN];
	struct table table;

	report_user(details->info.uid, user);
	details_maker(details, producer);
	facts_init(&table);
	facts_add(&table, "stream", "%s", details->info.name);
	facts_add(&table, "backend", "%s", details->backend);
	facts_add_bytes(&table, "size", details->info.region_size, exact);
	facts_add(&table, "owner", "%s", user);
	facts_add(&table, "mode", "%04o", details->info.mode);
	facts_add(&table, "slots", "%" PRIu32, facts->info.slots);
	facts_add(&table, "history", "%" PRIu32, facts->info.history);
	facts_add(&table, "keep all", "%s",
		  facts->info.flags & TSHARE_KEEP_ALL ? "allowed" : "not allowed");
	facts_add(&table, "newest", "%" PRIu64, facts->info.newest);
	facts_add(&table, "producer", "%s", producer);
	facts_add(&table, "state", "%s", stream_facts_state(facts, details));
	if (facts->seats_known)
		facts_add(&table, "consumers", "%zu", facts->seat_count);
	else
		facts_add(&table, "consumers", "-");
	return table_print(&table);
}

static int print_fields(const struct stream_facts *facts, bool exact)
{
	static const struct table_column columns[] = {
		{ "FIELD" },
		{ "TYPE" },
		{ "SHAPE" },
		{ "SIZE", .right = true },
	};
	char dtype[TSHARE_DTYPE_NAME_LEN], size[BYTES_LEN];
	struct table table;
	uint32_t i;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < facts->info.field_count; i++) {
		const struct stream_field *field = &facts->fields[i];

		shape_name_type(field->dtype, dtype);
		format_bytes(size, stream_field_bytes(field), exact);
		table_row(&table);
		table_short_cell(&table, field->name, NAME_SHOWN);
		table_cell(&table, "%s", dtype);
		shape_cell(&table, field->shape, field->ndim);
		table_cell(&table, "%s", size);
	}
	return table_print(&table);
}

static int print_seats(const struct stream_facts *facts)
{
	static const struct table_column columns[] = {
		{ "SEAT", .right = true },
		{ "FRAMES", .right = true },
		{ "KEEPS" },
		{ "STATE" },
		{ "PID", .right = true },
		{ "COMMAND" },
	};
	struct table table;
	size_t i;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < facts->seat_count; i++) {
		const struct tshare_stream_seat *seat = &facts->seats[i];

		table_row(&table);
		table_cell(&table, "%" PRId32, seat->seat);
		table_cell(&table, "%" PRIu32, seat->held);
		table_cell(&table, "%s", seat->keeps_all ? "all" : "-");
		table_cell(&table, "%s", seat->evicted ? "evicted" : "live");
		table_cell(&table, "%" PRId32, seat->pid);
		table_cell(&table, "%s", seat->command);
	}
	return table_print(&table);
}

static int print_text(const struct stream_facts *facts, const struct details *details, bool exact)
{
	int status = print_facts(facts, details, exact);

	if (!status) {
		putchar('\n');
		status = print_fields(facts, exact);
	}
	if (!status && facts->seat_count) {
		putchar('\n');
		status = print_seats(facts);
	}
	return status;
}

static int show_facts(struct tshare_stream *stream, const struct stream_facts *facts,
		      const struct request *request)
{
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_region *region = tshare_stream_get_region(stream);
	struct details_list list = { 0 };
	int status, err;

	err = tshare_region_get_info(region, &info);
	if (err)
		return failure_of_library(err);
	status = details_add(&info, &list);
	if (!status) {
		details_read(list.regions, region);
		processes_find(&list);
		if (request->json)
			stream_facts_json(facts, list.regions);
		else
			status = print_text(facts, list.regions, request->exact);
	}
	details_release(&list);
	return status;
}

static int open_stream(struct tshare_ctx *ctx, const char *name, void *request,
		       struct tshare_stream **stream)
{
	(void)request;
	return stream_observe(ctx, name, 0, stream);
}

static int show_stream(struct tshare_stream *stream, void *request)
{
	struct stream_facts facts;
	int err, status;

	err = stream_facts_read(stream, &facts);
	if (err)
		return failure_of_library(err);
	status = show_facts(stream, &facts, request);
	stream_facts_release(&facts);
	return status;
}

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "bytes", no_argument, NULL, 'b' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	(void)verb;
	*(option == 'j' ? &request->json : &request->exact) = true;
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { 0 };
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	if (argc - optind != 1)
		return usage_error(verb, "needs one NAME");
	return use_stream(argv[optind], open_stream, show_stream, &request);
}

const struct verb verb_stream_show = {
	.name = "stream show",
	.arguments = "[OPTION...] NAME",
	.summary = "show a stream, its fields and its consumers",
	.help = REPORTING_HELP("object") "  -b, --bytes            print sizes in bytes\n",
	.options = options,
	.take = take,
	.run = run,
};
