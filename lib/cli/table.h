/* SPDX-License-Identifier: MIT */
/*
 * Tables on standard output, by libsmartcols. Columns are as wide as what they
 * hold. What a terminal may obey, and what isn't UTF-8, is written as \xNN.
 */
#ifndef TSHARE_CLI_TABLE_H
#define TSHARE_CLI_TABLE_H

#include "cli.h"

struct table_column {
	const char *name;
	bool right;   /* aligned to the right, as numbers are */
	bool shorten; /* to the terminal's width; otherwise a line may be longer */
};

/* The cells of a row are given one after the other. Errors are kept for table_print(). */
struct table {
	struct libscols_table *table;
	struct libscols_line *row;
	size_t column; /* of the next cell */
	int err;
};

void table_init(struct table *table, const struct table_column *columns, size_t count);
void table_row(struct table *table);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints and releases the table, and returns EXIT_OK, or EXIT_FAILED after saying why. */
int table_print(struct table *table);
void table_release(struct table *table);

/* A table of names and values, without headings. */
void facts_init(struct table *table);
void facts_add(struct table *table, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* TSHARE_CLI_TABLE_H */
