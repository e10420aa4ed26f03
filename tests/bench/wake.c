// SPDX-License-Identifier: MIT
/*
 * Two processes that answer one another: publish and wait against a byte through a
 * pipe, and against an eventfd. The time is that of one way, from before one
 * process says something until the other one, which slept, runs.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tshare.h>

#include "pair.h"

#define NAME   "bench-wake"
#define ROUNDS 100

/* One direction of each channel; the second is the answer's. */
struct way {
	int pipe[2];
	int event;
	struct tshare_region *region;
	uint64_t seen;
};

static struct way there, back;
static int64_t spin_ns;

static void pipe_say(struct way *way)
{
	if (write(way->pipe[1], ".", 1) != 1)
		err(1, "pipe");
}

static void pipe_hear(struct way *way)
{
	char byte;

	if (read(way->pipe[0], &byte, 1) != 1)
		err(1, "pipe");
}

static void event_say(struct way *way)
{
	if (eventfd_write(way->event, 1))
		err(1, "eventfd");
}

static void event_hear(struct way *way)
{
	eventfd_t count;

	if (eventfd_read(way->event, &count))
		err(1, "eventfd");
}

static void tshare_say(struct way *way)
{
	if (tshare_region_publish(way->region, NULL) < 0)
		errx(1, "%s", tshare_error_get());
}

static void tshare_hear(struct way *way)
{
	if (tshare_region_wait(way->region, way->seen, -1, spin_ns, &way->seen) < 0)
		errx(1, "%s", tshare_error_get());
}

struct channel {
	void (*say)(struct way *way);
	void (*hear)(struct way *way);
};

static const struct channel channels[] = {
	{ tshare_say, tshare_hear },
	{ pipe_say, pipe_hear },
	{ event_say, event_hear },
};

enum { TSHARE, PIPE, EVENT };

/* The partner answers through the channel that it was told. */
static int orders[2];

static _Noreturn void answer(void)
{
	char order;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(orders[1]);
	while (read(orders[0], &order, 1) == 1) {
		spin_ns = order & 0x10 ? 100000 : 0;
		for (i = 0; i < ROUNDS; i++) {
			channels[order & 0xf].hear(&there);
			channels[order & 0xf].say(&back);
		}
	}
	_exit(0);
}

static double play(int kind, int64_t spin)
{
	char order = kind | (spin ? 0x10 : 0);
	double start;
	int i;

	spin_ns = spin;
	if (write(orders[1], &order, 1) != 1)
		err(1, "pipe");
	start = pair_now();
	for (i = 0; i < ROUNDS; i++) {
		channels[kind].say(&there);
		channels[kind].hear(&back);
	}
	return (pair_now() - start) / ROUNDS / 2;
}

static double play_tshare(void)
{
	return play(TSHARE, 0);
}

static double play_spinning(void)
{
	return play(TSHARE, 100000);
}

static double play_pipe(void)
{
	return play(PIPE, 0);
}

static double play_event(void)
{
	return play(EVENT, 0);
}

static void open_way(struct tshare_ctx *ctx, const char *name, struct way *way)
{
	way->event = eventfd(0, EFD_CLOEXEC);
	if (way->event < 0 || pipe(way->pipe))
		err(1, "pipe");
	if (tshare_region_create(ctx, name, 1, NULL, 0, NULL, &way->region) < 0)
		errx(1, "%s", tshare_error_get());
}

int main(void)
{
	struct tshare_ctx *ctx;
	char row[64];
	pid_t pid;

	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	open_way(ctx, NAME "-there", &there);
	open_way(ctx, NAME "-back", &back);
	if (pipe(orders))
		err(1, "pipe");
	pid = fork();
	if (!pid)
		answer();

	snprintf(row, sizeof(row), "C: publish to wake-up (%s)", tshare_ctx_get_backend(ctx));
	pair_run(row, "a byte through a pipe", play_tshare, play_pipe, 100, 1.0);
	pair_run(row, "an eventfd", play_tshare, play_event, 100, 1.0);
	pair_run("C: the same, spinning", "a byte through a pipe", play_spinning, play_pipe, 100,
		 1.0);

	close(orders[1]);
	waitpid(pid, NULL, 0);
	tshare_region_unref(there.region);
	tshare_region_unref(back.region);
	tshare_ctx_unref(ctx);
	return 0;
}
