// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "players.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"
#include "lease/ring.h"

/* Of the child, whose steps these are; the parent's don't count. */
static const struct player *self;

void lease_step(const char *label)
{
	if (!self)
		return;
	strcpy(self->label, label);
	if ((*self->count)++ == self->stop_at)
		raise(self->signal);
}

void count_steps(const struct player *player, bool count)
{
	self = count ? player : NULL;
}

static void *shared_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	return page;
}

struct player new_player(const char *name, uint32_t flags, int (*play)(const struct player *player),
			 int signal)
{
	struct player player = {
		.name = name,
		.flags = flags,
		.play = play,
		.signal = signal,
		.count = shared_page(),
	};

	player.label = (char *)(player.count + 1);
	return player;
}

void end_player(struct player *player)
{
	munmap(player->count, 4096);
}

void start_player(struct player *player)
{
	*player->count = 0;
	player->pid = fork();
	CHECK(player->pid >= 0);
	if (player->pid)
		return;
	count_steps(player, true);
	_exit(player->play(player));
}

bool is_caught(const struct player *player)
{
	int status;

	CHECK(waitpid(player->pid, &status, WUNTRACED) == player->pid);
	if (WIFEXITED(status) && WEXITSTATUS(status))
		printf("# after %d steps, %s: exit status %d\n", *player->count, player->label,
		       WEXITSTATUS(status));
	CHECK(!WIFEXITED(status) || !WEXITSTATUS(status));
	return !WIFEXITED(status);
}
