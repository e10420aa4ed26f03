// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * The alternate screen, without a cursor. It doesn't wrap lines, so that a line too long for a
 * narrow terminal takes no second one.
 */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };

#define N_HANDLED (sizeof(handled) / sizeof(handled[0]))

static volatile sig_atomic_t arrived;

static void note(int number)
{
	arrived = number;
}

bool terminal_is_usable(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

/* The terminal's own settings, without the signals. */
static void take_screen(struct terminal *terminal)
{
	struct termios raw;

	terminal->has_keys = !tcgetattr(STDIN_FILENO, &terminal->before);
	if (terminal->has_keys) {
		raw = terminal->before;
		raw.c_lflag &= ~(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	fputs(ENTER, stdout);
	fflush(stdout);
}

static void give_screen_back(struct terminal *terminal)
{
	fputs(LEAVE, stdout);
	fflush(stdout);
	if (terminal->has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal->before);
}

void terminal_enter(struct terminal *terminal)
{
	const struct sigaction action = { .sa_handler = note };
	struct sigaction before;
	sigset_t blocked;
	size_t i;

	sigemptyset(&blocked);
	for (i = 0; i < N_HANDLED; i++)
		sigaddset(&blocked, handled[i]);
	sigprocmask(SIG_BLOCK, &blocked, &terminal->waiting);
	/* Ignored signals stay ignored: SIGTSTP, where no shell would continue the process. */
	for (i = 0; i < N_HANDLED; i++)
		if (!sigaction(handled[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(handled[i], &action, NULL);
	take_screen(terminal);
}

void terminal_leave(struct terminal *terminal)
{
	struct sigaction action;
	size_t i;

	give_screen_back(terminal);
	for (i = 0; i < N_HANDLED; i++)
		if (!sigaction(handled[i], NULL, &action) && action.sa_handler == note)
			signal(handled[i], SIG_DFL);
	sigprocmask(SIG_SETMASK, &terminal->waiting, NULL);
}

void terminal_size(int *columns, int *lines)
{
	struct winsize size;

	*columns = 80;
	*lines = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
		return;
	*columns = size.ws_col;
	*lines = size.ws_row;
}

/* Ctrl-Z: the shell has its screen until it continues this process. */
static int stop(struct terminal *terminal)
{
	give_screen_back(terminal);
	raise(SIGSTOP);
	take_screen(terminal);
	return 0;
}

static int handle_signal(struct terminal *terminal)
{
	int number = arrived;

	arrived = 0;
	if (number == SIGTSTP)
		return stop(terminal);
	return number == SIGWINCH ? 0 : -number;
}

int terminal_wait(struct terminal *terminal, int milliseconds)
{
	const struct timespec time = {
		.tv_sec = milliseconds / 1000,
		.tv_nsec = milliseconds % 1000 * 1000000L,
	};
	struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;
	int ready;

	ready = ppoll(&keys, terminal->has_keys, &time, &terminal->waiting);
	if (arrived)
		return handle_signal(terminal);
	if (ready <= 0)
		return 0;
	return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}
