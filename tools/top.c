// SPDX-License-Identifier: MIT
/* tshare top: a live view of the regions, the busiest or largest first. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "columns.h"
#include "nearest.h"
#include "number.h"
#include "processes.h"
#include "terminal.h"

/* Lines of the screen without a region: the summary, an empty one, the headings, the last one. */
#define LINES_LEFT 4

typedef int (*compare_fn)(const void *a, const void *b);

static int compare_names(const struct details *left, const struct details *right)
{
	return strcmp(left->info.name, right->info.name);
}

#define COMPARE(what, value)                                            \
	static int compare_##what(const void *a, const void *b)         \
	{                                                               \
		const struct details *left = a, *right = b;             \
                                                                        \
		if ((value(left)) != (value(right)))                    \
			return (value(left)) < (value(right)) ? 1 : -1; \
		return compare_names(left, right);                      \
	}

#define SIZE_OF(details)       ((details)->info.region_size)
#define USERS_OF(details)      ((details)->user_count)
#define GENERATION_OF(details) ((details)->generation)
#define RATE_OF(details)       ((details)->rate)
#define CREATED_OF(details)    ((details)->created)
#define NONE_OF(details)       0

COMPARE(size, SIZE_OF)
COMPARE(users, USERS_OF)
COMPARE(generation, GENERATION_OF)
COMPARE(rate, RATE_OF)
COMPARE(age, CREATED_OF)
COMPARE(name, NONE_OF)

/* The first letter is the key that sorts by it. */
static const struct {
	const char *name;
	compare_fn compare;
} orders[] = {
	{ "size", compare_size }, { "users", compare_users }, { "generation", compare_generation },
	{ "rate", compare_rate }, { "age", compare_age },     { "name", compare_name },
};

#define N_ORDERS (sizeof(orders) / sizeof(orders[0]))

struct top {
	struct tshare_ctx *ctx;
	size_t order;
	int64_t delay_ms;
	struct details_list regions;
	struct timespec when; /* @regions were listed */
};

/* Publishes per second since the last look, or -1 if the region was not there. */
static double rate_of(const struct details *now, const struct details_list *before, double seconds)
{
	size_t i;

	for (i = 0; i < before->count; i++)
		if (before->regions[i].info.id == now->info.id && before->regions[i].opened)
			return (double)(now->generation - before->regions[i].generation) / seconds;
	return -1;
}

/* Looks at all regions again. Returns an exit status. */
static int look(struct top *top)
{
	struct details_list before = top->regions;
	struct timespec now;
	double seconds;
	int status;
	size_t i;

	top->regions = (struct details_list){ 0 };
	status = details_list(top->ctx, &top->regions);
	details_open(top->ctx, &top->regions);
	processes_find(&top->regions);
	clock_gettime(CLOCK_MONOTONIC, &now);
	seconds = (double)(now.tv_sec - top->when.tv_sec) +
		  (double)(now.tv_nsec - top->when.tv_nsec) / 1e9;
	for (i = 0; i < top->regions.count; i++)
		top->regions.regions[i].rate = rate_of(&top->regions.regions[i], &before, seconds);
	top->when = now;
	details_release(&before);
	return status;
}

static void sort(struct top *top)
{
	if (top->regions.count)
		qsort(top->regions.regions, top->regions.count, sizeof(*top->regions.regions),
		      orders[top->order].compare);
}

static void add_rows(const struct top *top, int width, size_t rows, struct table *table)
{
	struct columns columns;
	size_t i;

	columns_take_live(&columns, width);
	columns_begin(&columns, table);
	for (i = 0; i < top->regions.count && i < rows; i++)
		columns_add(&columns, table, &top->regions.regions[i]);
}

static void print_head(const struct top *top, int width)
{
	char bytes[BYTES_LEN], text[128];
	uint64_t size = 0;
	size_t i;

	for (i = 0; i < top->regions.count; i++)
		size += top->regions.regions[i].info.region_size;
	format_bytes(bytes, size, false);
	snprintf(text, sizeof(text), "%zu region%s, %s, by %s; q quits, sort: s u g r a n",
		 top->regions.count, top->regions.count == 1 ? "" : "s", bytes,
		 orders[top->order].name);
	printf("\033[H\033[2J%.*s\n\n", width, text);
}

static int draw(struct top *top)
{
	int columns, lines, status;
	struct table table;

	terminal_size(&columns, &lines);
	sort(top);
	print_head(top, columns);
	add_rows(top, columns, lines > LINES_LEFT ? lines - LINES_LEFT : 0, &table);
	status = table_print_fitting(&table, columns);
	/* The terminal is gone; main() prints the error. */
	if (fflush(stdout) || ferror(stdout))
		return EXIT_FAILED;
	return status;
}

static void press(struct top *top, int key)
{
	size_t i;

	for (i = 0; i < N_ORDERS; i++)
		if (orders[i].name[0] == key)
			top->order = i;
}

/* Returns an exit status, or the negative number of the signal that ends the view. */
static int show(struct top *top, struct terminal *terminal)
{
	int status, key;

	for (;;) {
		status = look(top);
		if (!status)
			status = draw(top);
		if (status)
			return status;
		key = terminal_wait(terminal, (int)top->delay_ms);
		if (key < 0 || key == 'q')
			return key < 0 ? key : EXIT_OK;
		press(top, key);
	}
}

/* A signal ends the process as if there had been no handler. */
static int run_live(struct top *top)
{
	struct terminal terminal;
	int status;

	terminal_enter(&terminal);
	status = show(top, &terminal);
	terminal_leave(&terminal);
	if (status < 0)
		raise(-status);
	return status;
}

static int run_once(struct top *top)
{
	int status = look(top);
	struct table table;

	if (status)
		return status;
	sort(top);
	add_rows(top, TOP_WIDE, top->regions.count, &table);
	return table_print(&table);
}

static int parse_order(const struct verb *verb, const char *name, size_t *order)
{
	struct nearest nearest;
	size_t i;

	nearest_init(&nearest, name);
	for (i = 0; i < N_ORDERS; i++) {
		*order = i;
		if (!strcmp(orders[i].name, name))
			return EXIT_OK;
		nearest_try(&nearest, orders[i].name);
	}
	usage_error(verb, "--sort: '%s' is not size, users, generation, rate, age or name", name);
	nearest_suggest(&nearest, "");
	return EXIT_USAGE;
}

static const struct option options[] = {
	{ "sort", required_argument, NULL, 's' },
	{ "delay", required_argument, NULL, 'd' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct top *top = data;
	int64_t nanoseconds;

	if (option == 's')
		return parse_order(verb, optarg, &top->order);
	if (!parse_seconds(optarg, &nanoseconds) || nanoseconds < 100000000 ||
	    nanoseconds > 3600000000000)
		return usage_error(verb, "--delay: '%s' is not 0.1 to 3600 seconds", optarg);
	top->delay_ms = nanoseconds / 1000000;
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct top top = { .delay_ms = 1000 };
	int status;

	if (!parse_options(verb, argc, argv, &top, &status))
		return status;
	if (optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	top.ctx = open_session();
	if (!top.ctx)
		return EXIT_FAILED;
	status = terminal_is_usable() ? run_live(&top) : run_once(&top);
	details_release(&top.regions);
	tshare_ctx_unref(top.ctx);
	return status;
}

const struct verb verb_top = {
	.name = "top",
	.arguments = "[OPTION...]",
	.summary = "show the regions live, sorted; q quits",
	.help = "  -s, --sort KEY         size (default), users, generation, rate, age or name\n"
		"  -d, --delay SECONDS    between two looks (default: 1)\n",
	.options = options,
	.take = take,
	.run = run,
};
