// SPDX-License-Identifier: MIT
/* tshare list: the named regions, by name. */
#include <stdlib.h>

#include "columns.h"
#include "json.h"
#include "number.h"
#include "processes.h"
#include "report.h"

struct request {
	struct columns columns;
	bool chosen; /* the columns */
	bool all_namespaces;
	bool json;
	bool headings;
};

static void print_summary(const struct details_list *list, const struct request *request)
{
	size_t i, dead = 0, tensors = 0;
	char bytes[BYTES_LEN];
	uint64_t size = 0;

	for (i = 0; i < list->count; i++) {
		size += list->regions[i].info.region_size;
		tensors += list->regions[i].info.tensor_count;
		dead += list->regions[i].publishers == PUBLISHERS_DEAD;
	}
	format_bytes(bytes, size, request->columns.exact);
	printf("\n%zu region%s, %zu tensor%s, %s%s", list->count, list->count == 1 ? "" : "s",
	       tensors, tensors == 1 ? "" : "s", bytes, request->columns.exact ? " bytes" : "");
	if (dead)
		printf(", %zu dead", dead);
	putchar('\n');
}

static int print_text(const struct details_list *list, const struct request *request)
{
	struct table table;
	int status;
	size_t i;

	columns_begin(&request->columns, &table);
	if (!request->headings)
		table_hide_headings(&table);
	for (i = 0; i < list->count; i++)
		columns_add(&request->columns, &table, &list->regions[i]);
	status = table_print(&table);
	if (!status && request->headings && !request->chosen && list->count)
		print_summary(list, request);
	return status;
}

static void print_json(const struct details_list *list)
{
	size_t i;

	json_open(NULL, '[');
	for (i = 0; i < list->count; i++) {
		json_open(NULL, '{');
		report_region_json(&list->regions[i].info);
		details_json(&list->regions[i]);
		json_close('}');
	}
	json_close(']');
}

static int list(const struct request *request)
{
	struct details_list regions = { 0 };
	struct tshare_ctx *ctx;
	int status;

	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	status = request->all_namespaces ? details_list_all(ctx, &regions) :
					   details_list(ctx, &regions);
	if (!status && (request->json || request->columns.details)) {
		details_open(ctx, &regions);
		processes_find(&regions);
	}
	tshare_ctx_unref(ctx);
	if (!status && request->json)
		print_json(&regions);
	else if (!status)
		status = print_text(&regions, request);
	details_release(&regions);
	return status;
}

static const struct option options[] = {
	{ "all-namespaces", no_argument, NULL, 'A' },
	{ "json", no_argument, NULL, 'j' },
	{ "output", required_argument, NULL, 'o' },
	{ "output-all", no_argument, NULL, 'O' },
	{ "bytes", no_argument, NULL, 'b' },
	{ "noheadings", no_argument, NULL, 'n' },
	{ 0 },
};

/* A table with chosen columns, or without headings, is for programs. */
static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	switch (option) {
	case 'A':
		request->all_namespaces = true;
		break;
	case 'j':
		request->json = true;
		break;
	case 'o':
		request->chosen = true;
		return columns_parse(&request->columns, verb, optarg);
	case 'O':
		request->chosen = true;
		columns_take_all(&request->columns);
		break;
	case 'b':
		request->columns.exact = true;
		break;
	case 'n':
		request->headings = false;
		break;
	}
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { .headings = true };
	int status;

	columns_init(&request.columns);
	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	if (optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	if (request.all_namespaces && !request.chosen)
		columns_take_elsewhere(&request.columns);
	return list(&request);
}

const struct verb verb_list = {
	.name = "list",
	.arguments = "[OPTION...]",
	.summary = "list the named regions that you may read or own",
	.help = REPORTING_HELP(
		"array") "  -A, --all-namespaces   list those of all IPC namespaces (root, kmod)\n"
			 "  -o, --output COLUMNS   print these, such as NAME,SIZE, or +RUNG for one more\n"
			 "  -O, --output-all       print all columns\n"
			 "  -b, --bytes            print sizes in bytes\n"
			 "  -n, --noheadings       print no headings, and no summary\n" COLUMNS_HELP,
	.options = options,
	.take = take,
	.run = run,
};
