/* SPDX-License-Identifier: MIT */
/* A terminal that a live view fills. It is restored when the view ends or is stopped. */
#ifndef TSHARE_CLI_TERMINAL_H
#define TSHARE_CLI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

struct terminal {
	struct termios before; /* of standard input, if that is a terminal */
	bool has_keys;
	sigset_t waiting; /* the signals that may arrive in terminal_wait() */
};

/* Whether standard output is a terminal that understands escape sequences. */
bool terminal_is_usable(void);

/* Until terminal_leave(), signals arrive only in terminal_wait(). */
void terminal_enter(struct terminal *terminal);
void terminal_leave(struct terminal *terminal);

/* Stores the terminal's present size. */
void terminal_size(int *columns, int *lines);

/*
 * Waits for a key. Returns the key; 0 after the time or a change of the size; the negative number
 * of a signal that has to end the process; 'q' if the terminal is gone.
 */
int terminal_wait(struct terminal *terminal, int milliseconds);

#endif /* TSHARE_CLI_TERMINAL_H */
