// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "lease/seat-label.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

void seat_label(const struct seat_labels *labels, int seat)
{
	char *command = labels->commands[seat];
	const char *name = program_invocation_short_name;

	memset(command, 0, SEAT_COMMAND_LEN);
	memcpy(command, name, strnlen(name, SEAT_COMMAND_LEN - 1));
	atomic_store(&labels->pids[seat], getpid());
}

void seat_unlabel(const struct seat_labels *labels, int seat)
{
	atomic_store(&labels->pids[seat], 0);
}

void seat_command(const struct seat_labels *labels, int seat, char *command)
{
	char *quote;

	memcpy(command, labels->commands[seat], SEAT_COMMAND_LEN);
	command[SEAT_COMMAND_LEN - 1] = '\0';
	make_printable(command);
	while ((quote = strpbrk(command, "'();")))
		*quote = '?';
}
