// SPDX-License-Identifier: MIT
/*
 * Two processes that answer one another: publish and wait against a byte through a
 * pipe, and against an eventfd. The time is that of one way, from before one
 * process says something until the other one, which slept, runs.
 *
 * Where both run decides more than the calls do, and the scheduler would choose it
 * anew for each kind of call. Both are therefore bound: to one CPU, where the time is
 * that of the calls and of a switch; and to a CPU each, where an interrupt wakes the other.
 */
#define _GNU_SOURCE 1
#include <sched.h>
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

/* Where the partners run. */
static int own_cpu, partners_cpu;
static bool apart;

static void find_cpus(void)
{
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		err(1, "sched_getaffinity");
	own_cpu = -1;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		partners_cpu = cpu;
		if (own_cpu >= 0)
			return;
		own_cpu = cpu;
	}
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "sched_setaffinity");
}

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

/* The partner answers through the channel that it was told, where it was told. */
static int orders[2];

#define ORDER_CHANNEL 0x0f
#define ORDER_SPIN    0x10
#define ORDER_APART   0x20

static _Noreturn void answer(void)
{
	char order;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(orders[1]);
	while (read(orders[0], &order, 1) == 1) {
		run_on(order & ORDER_APART ? partners_cpu : own_cpu);
		spin_ns = order & ORDER_SPIN ? 100000 : 0;
		for (i = 0; i < ROUNDS; i++) {
			channels[order & ORDER_CHANNEL].hear(&there);
			channels[order & ORDER_CHANNEL].say(&back);
		}
	}
	_exit(0);
}

static double play(int kind, int64_t spin)
{
	char order = kind | (spin ? ORDER_SPIN : 0) | (apart ? ORDER_APART : 0);
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

static void compare(struct tshare_ctx *ctx, const char *where)
{
	char row[64];

	snprintf(row, sizeof(row), "C: publish to wake-up, %s (%s)", where,
		 tshare_ctx_get_backend(ctx));
	pair_run(row, "a byte through a pipe", play_tshare, play_pipe, 100, 1.0);
	pair_run(row, "an eventfd", play_tshare, play_event, 100, 1.0);
}

int main(void)
{
	struct tshare_ctx *ctx;
	pid_t pid;

	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	open_way(ctx, NAME "-there", &there);
	open_way(ctx, NAME "-back", &back);
	if (pipe(orders))
		err(1, "pipe");
	find_cpus();
	pid = fork();
	if (!pid)
		answer();

	run_on(own_cpu);
	compare(ctx, "one CPU");
	apart = partners_cpu != own_cpu;
	if (apart) {
		compare(ctx, "two CPUs");
		pair_run("C: the same, spinning", "a byte through a pipe", play_spinning, play_pipe,
			 100, 1.0);
	}

	close(orders[1]);
	waitpid(pid, NULL, 0);
	tshare_region_unref(there.region);
	tshare_region_unref(back.region);
	tshare_ctx_unref(ctx);
	return 0;
}
