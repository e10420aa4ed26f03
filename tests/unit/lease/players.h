/* SPDX-License-Identifier: MIT */
/* Processes that are killed or stopped at a step: the library's lease_step() calls this program. */
#ifndef TSHARE_TESTS_PLAYERS_H
#define TSHARE_TESTS_PLAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A child that runs @play until its step @stop_at, where it gets @signal. */
struct player {
	const char *name;
	uint32_t flags;
	int (*play)(const struct player *player);
	int stop_at;
	int signal;
	int *count;  /* of its steps so far; shared with the parent */
	char *label; /* of the last one; shared, too */
	pid_t pid;
};

struct player new_player(const char *name, uint32_t flags, int (*play)(const struct player *player),
			 int signal);
void end_player(struct player *player);

void start_player(struct player *player);

/* Waits until it is stopped or ends: true if it got its signal. */
bool is_caught(const struct player *player);

/* For the child: whether its steps from now on count. They do when it starts. */
void count_steps(const struct player *player, bool count);

#endif /* TSHARE_TESTS_PLAYERS_H */
