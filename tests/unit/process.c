// SPDX-License-Identifier: MIT
/* The process's lock, and the order in which parts are put right after fork(), and end at exit(). */
#include "base/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static const enum process_part from_the_bottom_up[] = {
	PROCESS_SHM_WATCHES, PROCESS_SHM_USERS,	    PROCESS_SHM_SESSIONS, PROCESS_LOG,
	PROCESS_PUBLISHERS,  PROCESS_FEEDERS,	    PROCESS_SEATS,	  PROCESS_CUDA,
	PROCESS_CUDA_MEMORY, PROCESS_REGISTRATIONS, PROCESS_REAPER,
};

_Static_assert(sizeof(from_the_bottom_up) / sizeof(from_the_bottom_up[0]) == PROCESS_PARTS,
	       "each part is in it");

/* Shared with child processes. */
static struct record {
	int count;
	int parts[2 * PROCESS_PARTS];
} * record;

static void note(enum process_part part)
{
	record->parts[record->count++] = part;
}

#define NOTE(part)                    \
	static void note_##part(void) \
	{                             \
		note(part);           \
	}

NOTE(PROCESS_SHM_WATCHES)
NOTE(PROCESS_SHM_USERS)
NOTE(PROCESS_SHM_SESSIONS)
NOTE(PROCESS_LOG)
NOTE(PROCESS_PUBLISHERS)
NOTE(PROCESS_FEEDERS)
NOTE(PROCESS_SEATS)
NOTE(PROCESS_CUDA)
NOTE(PROCESS_CUDA_MEMORY)
NOTE(PROCESS_REGISTRATIONS)
NOTE(PROCESS_REAPER)

#define HOOKS(part) [part] = { note_##part, note_##part }

static const struct process_hooks hooks[PROCESS_PARTS] = {
	HOOKS(PROCESS_SHM_WATCHES), HOOKS(PROCESS_SHM_USERS),  HOOKS(PROCESS_SHM_SESSIONS),
	HOOKS(PROCESS_LOG),	    HOOKS(PROCESS_PUBLISHERS), HOOKS(PROCESS_FEEDERS),
	HOOKS(PROCESS_SEATS),	    HOOKS(PROCESS_CUDA),       HOOKS(PROCESS_REGISTRATIONS),
	HOOKS(PROCESS_CUDA_MEMORY), HOOKS(PROCESS_REAPER),
};

_Static_assert(PROCESS_PARTS % 7, "steps of 7 reach each part");

/* Neither in the order nor in its opposite. */
static void join_all(void)
{
	int i;

	process_lock();
	for (i = 0; i < PROCESS_PARTS; i++)
		process_join((i * 7 + 3) % PROCESS_PARTS, &hooks[(i * 7 + 3) % PROCESS_PARTS]);
	process_unlock();
}

/* Forks a process that takes the lock and ends by exit() or, with @at_once, by _exit(). */
static void fork_one(bool at_once)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(60);
		process_lock();
		process_unlock();
		if (at_once)
			_exit(0);
		exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

TEST(a_child_puts_the_parts_right_from_the_bottom_up)
{
	int i;

	join_all();
	fork_one(true);
	CHECK(record->count == PROCESS_PARTS);
	for (i = 0; i < PROCESS_PARTS; i++)
		CHECK(record->parts[i] == (int)from_the_bottom_up[i]);
}

TEST(exit_ends_the_parts_from_the_top_down)
{
	int i;

	join_all();
	fork_one(false);
	CHECK(record->count == 2 * PROCESS_PARTS);
	for (i = 0; i < PROCESS_PARTS; i++)
		CHECK(record->parts[PROCESS_PARTS + i] ==
		      (int)from_the_bottom_up[PROCESS_PARTS - 1 - i]);
}

/* Holds the lock until some time after main's thread has begun to fork. */
static atomic_bool held, let_go;

static void *hold(void *data)
{
	process_lock();
	atomic_store(&held, true);
	usleep(200000);
	atomic_store(&let_go, true);
	process_unlock();
	return data;
}

TEST(fork_waits_for_the_holder_of_the_lock)
{
	pthread_t holder;
	int status;
	pid_t pid;

	CHECK(!pthread_create(&holder, NULL, hold, NULL));
	while (!atomic_load(&held))
		usleep(1000);
	pid = fork();
	if (!pid)
		_exit(!atomic_load(&let_go));
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	pthread_join(holder, NULL);
}

static void fork_in_handler(int signal)
{
	int status;
	pid_t pid;

	(void)signal;
	pid = fork();
	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		_exit(1);
}

static void exit_in_handler(int signal)
{
	(void)signal;
	exit(0);
}

/* In a process that holds the lock. */
static int status_after(void (*handler)(int signal))
{
	int status;
	pid_t pid;

	join_all();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(60);
		record->count = 0;
		signal(SIGUSR1, handler);
		process_lock();
		raise(SIGUSR1);
		process_unlock();
		_exit(record->count);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

TEST(a_handler_may_fork_while_its_thread_has_the_lock)
{
	CHECK(!status_after(fork_in_handler));
}

TEST(a_handler_may_exit_while_its_thread_has_the_lock)
{
	CHECK(!status_after(exit_in_handler));
	CHECK(!record->count);
}

TEST(a_fork_after_one_in_a_handler_is_as_any)
{
	join_all();
	CHECK(signal(SIGUSR1, fork_in_handler) != SIG_ERR);
	process_lock();
	raise(SIGUSR1);
	process_unlock();
	CHECK(!record->count);
	fork_one(false);
	CHECK(record->count == 2 * PROCESS_PARTS);
}

static void reset(void)
{
	memset(record, 0, sizeof(*record));
}

static void nothing(void)
{
}

int main(void)
{
	record = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (record == MAP_FAILED)
		return 1;
	return tap_main(reset, nothing);
}
