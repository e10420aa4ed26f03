// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "table.h"
#include "terminal.h"
#include "text.h"

#define BOLD	  "\033[1m"
#define SEPARATOR "  "

/* https://no-color.org */
static bool wants_colors(void)
{
	const char *no_color = getenv("NO_COLOR");

	return terminal_is_usable() && !(no_color && *no_color);
}

static void start(struct table *table)
{
	*table = (struct table){ .err = -ENOMEM };
	/* libsmartcols writes in the locale's encoding; names are UTF-8 in any locale. */
	setlocale(LC_CTYPE, "C.UTF-8");
	table->table = scols_new_table();
	if (table->table)
		table->err = scols_table_set_column_separator(table->table, SEPARATOR);
	if (!table->err)
		table->err = scols_table_enable_colors(table->table, wants_colors());
}

static void add_column(struct table *table, const struct table_column *column)
{
	int flags = (column->right ? SCOLS_FL_RIGHT : 0) | (column->shorten ? SCOLS_FL_TRUNC : 0);
	struct libscols_column *added;

	if (table->err)
		return;
	added = scols_table_new_column(table->table, column->name, 0, flags);
	if (!added)
		table->err = -ENOMEM;
	else
		table->err = scols_cell_set_color(scols_column_get_header(added), BOLD);
}

void table_init(struct table *table, const struct table_column *columns, size_t count)
{
	size_t i;

	start(table);
	for (i = 0; i < count; i++)
		add_column(table, &columns[i]);
}

void table_hide_headings(struct table *table)
{
	if (!table->err)
		table->err = scols_table_enable_noheadings(table->table, 1);
}

void table_row(struct table *table)
{
	if (table->err)
		return;
	table->column = 0;
	table->row = scols_table_new_line(table->table, NULL);
	if (!table->row)
		table->err = -ENOMEM;
}

static void add_text(struct table *table, const char *given, size_t width)
{
	/* libsmartcols escapes what a terminal obeys, but not what reorders text or is invisible. */
	char *whole = text_reveal(given), *text = whole ? text_shorten(whole, width) : NULL;

	free(whole);
	if (!text) {
		table->err = -ENOMEM;
		return;
	}
	table->err = scols_line_refer_data(table->row, table->column++, text);
	if (table->err)
		free(text);
}

__attribute__((format(printf, 2, 0))) static void add_cell(struct table *table, const char *format,
							   va_list args)
{
	char *given;

	if (table->err)
		return;
	if (vasprintf(&given, format, args) < 0) {
		table->err = -ENOMEM;
		return;
	}
	add_text(table, given, SIZE_MAX);
	free(given);
}

void table_cell(struct table *table, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_cell(table, format, args);
	va_end(args);
}

void table_short_cell(struct table *table, const char *name, size_t width)
{
	if (!table->err)
		add_text(table, name, width);
}

/* Columns that are left of @width for the last column; libsmartcols measures the others. */
static size_t measure_room(struct table *table, size_t width)
{
	size_t last = scols_table_get_ncols(table->table) - 1, used = 0, i;
	char *text;

	table->err = scols_table_set_termwidth(table->table, UINT16_MAX);
	if (!table->err)
		table->err = scols_print_table_to_string(table->table, &text);
	if (table->err)
		return 0;
	free(text);
	for (i = 0; i < last; i++)
		used += scols_column_get_width(scols_table_get_column(table->table, i)) +
			strlen(SEPARATOR);
	return used < width ? width - used : 0;
}

static void shorten_last(struct table *table, size_t room)
{
	struct libscols_cell *cell;
	char *text;
	size_t i;

	for (i = 0; !table->err && i < scols_table_get_nlines(table->table); i++) {
		cell = scols_line_get_cell(scols_table_get_line(table->table, i),
					   scols_table_get_ncols(table->table) - 1);
		text = text_shorten(scols_cell_get_data(cell), room);
		table->err = text ? scols_cell_refer_data(cell, text) : -ENOMEM;
	}
}

int table_print_fitting(struct table *table, size_t width)
{
	size_t room;

	if (!table->err)
		table->err = scols_table_set_termforce(table->table, SCOLS_TERMFORCE_ALWAYS);
	if (!table->err) {
		room = measure_room(table, width);
		shorten_last(table, room);
	}
	if (!table->err)
		table->err = scols_table_set_termwidth(table->table, width);
	return table_print(table);
}

int table_print(struct table *table)
{
	int err = table->err;

	if (!err)
		err = scols_print_table(table->table);
	table_release(table);
	return err ? failure("table: %s", strerror(-err)) : EXIT_OK;
}

void table_release(struct table *table)
{
	scols_unref_table(table->table);
	table->table = NULL;
}

void facts_init(struct table *table)
{
	static const struct table_column columns[] = { { .name = "NAME" }, { .name = "VALUE" } };

	table_init(table, columns, 2);
	table_hide_headings(table);
}

void facts_add(struct table *table, const char *name, const char *format, ...)
{
	va_list args;

	table_row(table);
	table_cell(table, "%s", name);
	va_start(args, format);
	add_cell(table, format, args);
	va_end(args);
}

void facts_add_bytes(struct table *table, const char *name, uint64_t bytes, bool exact)
{
	char text[BYTES_LEN];

	format_bytes(text, bytes, exact);
	if (exact || bytes < 1024)
		facts_add(table, name, "%s bytes", text);
	else
		facts_add(table, name, "%s (%" PRIu64 " bytes)", text, bytes);
}
