/* SPDX-License-Identifier: MIT */
/* The columns of a table of regions, which list and top print. */
#ifndef TSHARE_CLI_COLUMNS_H
#define TSHARE_CLI_COLUMNS_H

#include "details.h"
#include "table.h"

#define N_COLUMNS 19

/* Width of a terminal that has all columns of top. */
#define TOP_WIDE 120

/* Which columns a table has, in which order. */
struct columns {
	size_t places[N_COLUMNS]; /* indices into all columns */
	size_t count;
	bool exact;   /* sizes are bytes */
	bool details; /* a column needs more than what the backend lists */
	bool live;    /* the table is drawn on a terminal, and has to fit it */
};

/* The usual ones, and all of them. */
void columns_init(struct columns *columns);
void columns_take_all(struct columns *columns);

/* The columns that are known of regions in other namespaces. */
void columns_take_elsewhere(struct columns *columns);

/* The columns of top for a terminal of that width; unlike list, top has the rate. */
void columns_take_live(struct columns *columns, int width);

/*
 * Parses "NAME,SIZE", or "+RUNG" for the usual columns and more. Returns EXIT_OK, or another status
 * after printing the error.
 */
int columns_parse(struct columns *columns, const struct verb *verb, const char *text);

/* Begins a table with these columns, and adds a row for a region. */
void columns_begin(const struct columns *columns, struct table *table);
void columns_add(const struct columns *columns, struct table *table, const struct details *details);

#define COLUMNS_HELP                                                                           \
	"\nColumns: ID, NAME, SIZE, TENSORS, MODE, OWNER, GROUP, USERS (processes that have\n" \
	"it open), PIDS, MAKER, AGE, GENERATION, STATE (of the publishers: live, dead),\n"     \
	"RUNG (where the memory is from), NODE, LIFETIME, BACKEND, FLAGS. See tshare(1).\n"

#endif /* TSHARE_CLI_COLUMNS_H */
