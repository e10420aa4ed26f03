// SPDX-License-Identifier: MIT
/*
 * tshare bench: runs the benchmark, which is written in Python because it times
 * Python libraries.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

static const struct option options[] = {
	{ "quick", no_argument, NULL, OPTION_LONG },
	{ "max-size", required_argument, NULL, OPTION_LONG + 1 },
	{ "time", required_argument, NULL, OPTION_LONG + 2 },
	{ "csv", required_argument, NULL, OPTION_LONG + 3 },
	{ "plot", required_argument, NULL, OPTION_LONG + 4 },
	{ "progress", no_argument, NULL, OPTION_LONG + 5 },
	{ 0 },
};

#define PACKAGE "tshare.bench"

/* Exit status of the script below if Python has no such package. */
#define NO_PACKAGE 3
/* Exit status of a command that can't be run, as in shells. */
#define NOT_RUN 127

/* Looks the package up, which imports its parent; that import may fail. */
static const char question[] =
	"import importlib.util, sys\n"
	"found = importlib.util.find_spec('tshare') and importlib.util.find_spec('" PACKAGE "')\n"
	"sys.exit(0 if found else 3)\n";

static const char *interpreter(void)
{
	const char *name = getenv("TSHARE_PYTHON");

	return name && name[0] ? name : "python3";
}

static int no_python(const char *python, int error)
{
	return failure("bench: %s: %s (install Python 3.11 or newer, or set TSHARE_PYTHON to one)",
		       python, strerror(error));
}

/* Runs the question and returns its exit status; -errno if Python can't be run. */
static int ask(const char *python)
{
	int status, error = 0, fds[2];
	ssize_t got;
	pid_t pid;

	/* A failed exec sends its errno through the pipe; a successful one closes it. */
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		execlp(python, python, "-c", question, (char *)NULL);
		error = errno;
		_exit(write(fds[1], &error, sizeof(error)) < 0 ? 1 : NOT_RUN);
	}
	close(fds[1]);
	got = read(fds[0], &error, sizeof(error));
	close(fds[0]);
	if (pid < 0)
		return -EAGAIN;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (got == sizeof(error))
		return -error;
	return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_RUN;
}

static int execute(int argc, char **argv)
{
	const char *python = interpreter();
	char **arguments;
	int answer;

	answer = ask(python);
	if (answer < 0)
		return no_python(python, -answer);
	if (answer == NO_PACKAGE)
		return failure("bench: %s has no package " PACKAGE " (run 'pip install "
			       "tshare[bench]', or set TSHARE_PYTHON to a Python that has it)",
			       python);
	if (answer)
		return failure("bench: %s can't import the package tshare (see its message above)",
			       python);

	/* python -m tshare.bench, the arguments behind the verb, NULL */
	arguments = calloc(argc + 3, sizeof(*arguments));
	if (!arguments)
		return failure("out of memory");
	arguments[0] = (char *)python;
	arguments[1] = (char *)"-m";
	arguments[2] = (char *)PACKAGE;
	memcpy(arguments + 3, argv + 1, (argc - 1) * sizeof(*arguments));
	execvp(python, arguments);
	free(arguments);
	return no_python(python, errno);
	(void)verb;
	(void)option;
	(void)unused;
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	int status;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	if (optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	return execute(argc, argv);
}

const struct verb verb_bench = {
	.name = "bench",
	.arguments = "[OPTION...]",
	.summary = "time how arrays pass between libraries and processes, with tshare and without",
	.help = "      --quick            few sizes, up to 16M, in 20 seconds\n"
		"      --max-size SIZE    the largest array (default: 1G)\n"
		"      --time SECONDS     how long to measure (default: 160)\n"
		"      --csv FILE         write all results as CSV\n"
		"      --plot FILE        draw a figure, .png or .svg; needs matplotlib\n"
		"      --progress         show progress even if stderr is not a terminal\n",
	.options = options,
	.take = take,
	.in_order = true, /* as the arguments are passed on */
	.run = run,
};
