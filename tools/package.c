// SPDX-License-Identifier: MIT
/* Runs the modules of verbs that are written in Python. */
#define _GNU_SOURCE
#include "package.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

/* Exit statuses of the script below if Python has the package, and if not: 0 is any program's. */
#define HAS_PACKAGE 4
#define NO_PACKAGE  3
/* Exit status of a command that can't be run, as in shells. */
#define NOT_RUN 127

/*
 * Looks the module up, which imports its package; that import may fail. Python before 3.11 can't
 * have the package, and ignores PYTHONSAFEPATH: it would import what lies in the current folder.
 */
static const char question[] =
	"import sys\n"
	"if sys.version_info < (3, 11): sys.exit(3)\n"
	"import importlib.util\n"
	"found = importlib.util.find_spec('tshare') and importlib.util.find_spec(sys.argv[1])\n"
	"sys.exit(4 if found else 3)\n";

/* The Python of the virtual environment that has this command, or NULL. */
static const char *own_python(void)
{
	static char path[PATH_MAX + sizeof("/../pyvenv.cfg")];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
	char *end;

	if (length < 0)
		return NULL;
	path[length] = '\0';
	end = strrchr(path, '/');
	strcpy(end, "/../pyvenv.cfg");
	if (access(path, F_OK))
		return NULL;
	strcpy(end, "/python3");
	return path;
}

static const char *interpreter(void)
{
	const char *name = getenv("TSHARE_PYTHON");

	if (!name || !name[0])
		name = own_python();
	return name ? name : "python3";
}

static int no_python(const char *python, int error)
{
	return failure("%s: %s (install Python 3.11 or newer, or set TSHARE_PYTHON to one)", python,
		       strerror(error));
}

/* Runs the question and returns its exit status; -errno if Python can't be run. */
static int ask(const char *python, const char *module)
{
	int status, error = 0, fds[2];
	ssize_t got;
	pid_t pid;

	/* Where SIGCHLD is ignored, a child leaves no status, neither here nor in Python. */
	signal(SIGCHLD, SIG_DFL);
	/* A failed exec sends its errno through the pipe; a successful one closes it. */
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		execlp(python, python, "-c", question, module, (char *)NULL);
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

int run_package(const char *module, int argc, char **argv)
{
	const char *python = interpreter();
	char **arguments;
	int answer;

	/* "-c" and "-m" would search the current folder first, which may be anybody's. */
	if (setenv("PYTHONSAFEPATH", "1", 1))
		return failure("out of memory");
	answer = ask(python, module);
	if (answer < 0)
		return no_python(python, -answer);
	if (answer == NO_PACKAGE)
		return failure("%s has no package tshare (install Debian's python3-tshare; or run "
			       "'pip install .' in the sources, and set TSHARE_PYTHON to that "
			       "Python)",
			       python);
	if (!answer)
		return failure("%s is no Python (set TSHARE_PYTHON to Python 3.11 or newer)",
			       python);
	if (answer != HAS_PACKAGE)
		return failure("%s can't import the package tshare (see its message above)",
			       python);

	/* python -m MODULE, the arguments after the verb, NULL */
	arguments = calloc(argc + 3, sizeof(*arguments));
	if (!arguments)
		return failure("out of memory");
	arguments[0] = (char *)python;
	arguments[1] = (char *)"-m";
	arguments[2] = (char *)module;
	memcpy(arguments + 3, argv + 1, (argc - 1) * sizeof(*arguments));
	execvp(python, arguments);
	free(arguments);
	return no_python(python, errno);
}
