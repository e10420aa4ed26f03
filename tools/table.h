/* SPDX-License-Identifier: MIT */
/*
 * Tables on standard output, through libsmartcols. A column is as wide as its widest cell.
 * text_put() describes the escapes in cells.
 */
#ifndef TSHARE_CLI_TABLE_H
#define TSHARE_CLI_TABLE_H

#include "cli.h"

struct table_column {
	const char *name;
	bool right;   /* aligned to the right, as numbers are */
	bool shorten; /* if the terminal is narrow; otherwise a line may be longer */
};

/* Cells are added in order. table_print() returns the first error of any call. */
struct table {
	struct libscols_table *table;
	struct libscols_line *row;
	size_t column; /* of the next cell */
	int err;
};

void table_init(struct table *table, const struct table_column *columns, size_t count);
void table_hide_headings(struct table *table);
void table_row(struct table *table);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a name, shortened in the middle to @width columns of a terminal. */
void table_short_cell(struct table *table, const char *name, size_t width);

/* Prints and releases the table. Returns EXIT_OK, or EXIT_FAILED after printing the error. */
int table_print(struct table *table);

/*
 * As table_print(), for a terminal of that width, which no line exceeds. The last column's cells
 * are shortened in the middle; if that isn't enough, the columns with @shorten at their ends.
 */
int table_print_fitting(struct table *table, size_t width);
void table_release(struct table *table);

/* A table of names and values, without headings. */
void facts_init(struct table *table);
void facts_add(struct table *table, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A number of bytes, rounded for people and in full; @exact: in full alone */
void facts_add_bytes(struct table *table, const char *name, uint64_t bytes, bool exact);

#endif /* TSHARE_CLI_TABLE_H */
