// SPDX-License-Identifier: MIT
#include "columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "number.h"
#include "report.h"

static void put_id(struct table *table, const struct details *details)
{
	table_cell(table, "%" PRIu64, details->info.id);
}

static void put_name(struct table *table, const struct details *details)
{
	table_cell(table, "%s", details->info.name);
}

static void put_tensors(struct table *table, const struct details *details)
{
	table_cell(table, "%" PRIu32, details->info.tensor_count);
}

static void put_mode(struct table *table, const struct details *details)
{
	table_cell(table, "%04o", details->info.mode);
}

static void put_owner(struct table *table, const struct details *details)
{
	char user[REPORT_USER_LEN];

	report_user(details->info.uid, user);
	table_cell(table, "%s", user);
}

static void put_group(struct table *table, const struct details *details)
{
	char group[REPORT_USER_LEN];

	report_group(details->info.gid, group);
	table_cell(table, "%s", group);
}

static void put_users(struct table *table, const struct details *details)
{
	if (details->opened)
		table_cell(table, "%zu", details->user_count);
	else
		table_cell(table, "-");
}

static void put_pids(struct table *table, const struct details *details)
{
	char *text = NULL;
	size_t size, i;
	FILE *stream = open_memstream(&text, &size);

	for (i = 0; stream && i < details->user_count; i++)
		fprintf(stream, "%s%d", i ? "," : "", details->users[i].pid);
	if (stream)
		fclose(stream);
	table_cell(table, "%s", text && *text ? text : "-");
	free(text);
}

static void put_maker(struct table *table, const struct details *details)
{
	char text[DETAILS_TEXT_LEN];

	details_maker(details, text);
	table_cell(table, "%s", text);
}

static void put_age(struct table *table, const struct details *details)
{
	char text[DETAILS_TEXT_LEN];

	details_age(details, text);
	table_cell(table, "%s", text);
}

static void put_generation(struct table *table, const struct details *details)
{
	if (details->opened)
		table_cell(table, "%" PRIu64, details->generation);
	else
		table_cell(table, "-");
}

static void put_rate(struct table *table, const struct details *details)
{
	if (details->rate < 0)
		table_cell(table, "-");
	else
		table_cell(table, "%.1f", details->rate);
}

static void put_state(struct table *table, const struct details *details)
{
	table_cell(table, "%s", details_state(details));
}

static void put_rung(struct table *table, const struct details *details)
{
	table_cell(table, "%s", details_rung(details));
}

static void put_node(struct table *table, const struct details *details)
{
	if (details->info.node == TSHARE_ANY_NODE)
		table_cell(table, "-");
	else
		table_cell(table, "%" PRId32, details->info.node);
}

static void put_lifetime(struct table *table, const struct details *details)
{
	table_cell(table, "%s", report_lifetime(&details->info));
}

static void put_backend(struct table *table, const struct details *details)
{
	table_cell(table, "%s", details->opened ? details->backend : "-");
}

static void put_flags(struct table *table, const struct details *details)
{
	char flags[REPORT_FLAGS_LEN];

	report_flags(&details->info, flags);
	table_cell(table, "%s", flags);
}

static const struct {
	struct table_column column;
	void (*put)(struct table *table, const struct details *details); /* NULL: the size */
	bool usual;
	bool details;
	bool elsewhere; /* known of regions in other namespaces, which can't be opened */
	bool live;	/* for top alone, which looks more than once */
} all[N_COLUMNS] = {
	{ { "SIZE", .right = true }, NULL, .usual = true, .elsewhere = true },
	{ { "TENSORS", .right = true }, put_tensors, .usual = true, .elsewhere = true },
	{ { "MODE" }, put_mode },
	{ { "OWNER" }, put_owner, .usual = true, .elsewhere = true },
	{ { "USERS", .right = true }, put_users, .usual = true, .details = true },
	{ { "MAKER" }, put_maker, .usual = true, .details = true },
	{ { "AGE", .right = true }, put_age, .usual = true, .details = true },
	{ { "GENERATION", .right = true }, put_generation, .usual = true, .details = true },
	{ { "STATE" }, put_state, .usual = true, .details = true },
	{ { "FLAGS" }, put_flags, .usual = true },
	{ { "ID", .right = true }, put_id, .elsewhere = true },
	{ { "GROUP" }, put_group },
	{ { "NODE", .right = true }, put_node },
	{ { "LIFETIME" }, put_lifetime, .elsewhere = true },
	{ { "RUNG" }, put_rung, .details = true },
	{ { "BACKEND" }, put_backend, .details = true },
	{ { "PIDS" }, put_pids, .details = true },
	{ { "RATE", .right = true }, put_rate, .live = true },
	/* The longest column is the last. */
	{ { "NAME" }, put_name, .usual = true, .elsewhere = true },
};

static void take(struct columns *columns, size_t place)
{
	columns->places[columns->count++] = place;
	columns->details |= all[place].details;
}

void columns_init(struct columns *columns)
{
	size_t i;

	*columns = (struct columns){ 0 };
	for (i = 0; i < N_COLUMNS; i++)
		if (all[i].usual)
			take(columns, i);
}

void columns_take_all(struct columns *columns)
{
	size_t i;

	columns->count = 0;
	for (i = 0; i < N_COLUMNS; i++)
		if (!all[i].live)
			take(columns, i);
}

void columns_take_elsewhere(struct columns *columns)
{
	size_t i;

	*columns = (struct columns){ 0 };
	for (i = 0; i < N_COLUMNS; i++)
		if (all[i].elsewhere)
			take(columns, i);
}

void columns_take_live(struct columns *columns, int width)
{
	/* The least width of a terminal for each column, in the order of the columns. */
	static const struct {
		const char *name;
		int width;
	} live[] = {
		{ "SIZE", 0 },	       { "OWNER", 80 },	     { "USERS", 60 }, { "MAKER", TOP_WIDE },
		{ "AGE", 60 },	       { "GENERATION", 60 }, { "RATE", 20 },  { "STATE", 40 },
		{ "FLAGS", TOP_WIDE }, { "NAME", 0 },
	};
	size_t i, k;

	*columns = (struct columns){ .live = true };
	for (i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		for (k = 0; k < N_COLUMNS; k++)
			if (width >= live[i].width && !strcmp(all[k].column.name, live[i].name))
				take(columns, k);
}

static int take_named(struct columns *columns, const struct verb *verb, const char *name)
{
	struct nearest nearest;
	size_t i, k;

	nearest_init(&nearest, name);
	for (i = 0; i < N_COLUMNS; i++) {
		if (all[i].live)
			continue;
		if (!strcasecmp(all[i].column.name, name))
			break;
		nearest_try(&nearest, all[i].column.name);
	}
	if (i == N_COLUMNS) {
		usage_error(verb, "--output: '%s' is not a column", name);
		nearest_suggest(&nearest, "");
		return EXIT_USAGE;
	}
	for (k = 0; k < columns->count; k++)
		if (columns->places[k] == i)
			return EXIT_OK;
	take(columns, i);
	return EXIT_OK;
}

int columns_parse(struct columns *columns, const struct verb *verb, const char *text)
{
	char *names, *name, *rest;
	int status = EXIT_OK;

	if (*text == '+') {
		text++;
	} else {
		columns->count = 0;
		columns->details = false;
	}
	names = strdup(text);
	if (!names)
		return failure("out of memory");
	rest = names;
	while (!status && (name = strsep(&rest, ",")))
		status = take_named(columns, verb, name);
	free(names);
	return status;
}

void columns_begin(const struct columns *columns, struct table *table)
{
	struct table_column heads[N_COLUMNS];
	size_t i;

	for (i = 0; i < columns->count; i++) {
		heads[i] = all[columns->places[i]].column;
		heads[i].shorten = columns->live && !heads[i].right;
	}
	table_init(table, heads, columns->count);
}

void columns_add(const struct columns *columns, struct table *table, const struct details *details)
{
	char size[BYTES_LEN];
	size_t i;

	table_row(table);
	format_bytes(size, details->info.region_size, columns->exact);
	for (i = 0; i < columns->count; i++) {
		if (all[columns->places[i]].put)
			all[columns->places[i]].put(table, details);
		else
			table_cell(table, "%s", size);
	}
}
