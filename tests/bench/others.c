// SPDX-License-Identifier: MIT
/*
 * What creating a region does to others: many processes that create at the same time, and a
 * processor that creates nothing while another one does.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tshare.h>

#include "pair.h"

#define PROCESSES 16
#define CALLS	  20

static struct tshare_ctx *ctx;
static uint64_t size;

static void create_region(void)
{
	struct tshare_region *region;

	if (tshare_region_create(ctx, NULL, size, NULL, 0, NULL, &region) < 0)
		errx(1, "%s", tshare_error_get());
	tshare_region_unref(region);
}

static void create_memfd(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC);
	void *data;

	if (fd < 0 || ftruncate(fd, size) < 0)
		err(1, "memfd_create");
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		err(1, "mmap");
	munmap(data, size);
	close(fd);
}

/* The time of one of all calls, of processes that have one session each. */
static double by_processes(void (*create)(void))
{
	int status, gate[2];
	double start;
	char byte;

	if (pipe(gate))
		err(1, "pipe");
	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		if (pid < 0)
			err(1, "fork");
		if (pid)
			continue;
		close(gate[1]);
		if (tshare_ctx_new(NULL, &ctx) < 0)
			errx(1, "%s", tshare_error_get());
		if (read(gate[0], &byte, 1))
			err(1, "read");
		for (int j = 0; j < CALLS; j++)
			create();
		_exit(0);
	}
	close(gate[0]);
	/* Time for all to have a session. */
	usleep(300000);
	start = pair_now();
	close(gate[1]);
	for (int i = 0; i < PROCESSES; i++)
		if (wait(&status) < 0 || status)
			errx(1, "a process failed");
	return (pair_now() - start) / (PROCESSES * CALLS);
}

static double regions_by_processes(void)
{
	return by_processes(create_region);
}

static double memfds_by_processes(void)
{
	return by_processes(create_memfd);
}

static void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "sched_setaffinity");
}

static atomic_bool stop;

/* Looks at the clock all the time; returns the longest gap, in nanoseconds. */
static void *work(void *arg)
{
	double last, now, *longest = arg;

	pin_to(1);
	last = pair_now();
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		now = pair_now();
		if (now - last > *longest)
			*longest = now - last;
		last = now;
	}
	return NULL;
}

static double longest_beside(void (*act)(void))
{
	double longest = 0;
	pthread_t thread;

	atomic_store(&stop, false);
	if (pthread_create(&thread, NULL, work, &longest))
		err(1, "pthread_create");
	act();
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	return longest;
}

static double longest_beside_region(void)
{
	return longest_beside(create_region);
}

static double longest_beside_memfd(void)
{
	return longest_beside(create_memfd);
}

int main(void)
{
	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	size = 4096;
	pair_run("C: create 4 KiB, 16 processes", "memfd", regions_by_processes,
		 memfds_by_processes, 10, 0);
	size = 2 << 20;
	pair_run("C: create 2 MiB, 16 processes", "memfd", regions_by_processes,
		 memfds_by_processes, 3, 0);
	pin_to(0);
	size = 1 << 30;
	pair_run("C: another CPU waits, create 1 GiB", "memfd", longest_beside_region,
		 longest_beside_memfd, 3, 0);
	tshare_ctx_unref(ctx);
	return 0;
}
