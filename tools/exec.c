// SPDX-License-Identifier: MIT
/* tshare exec: a region for as long as a command runs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layout.h"

/* Exit statuses as in shells and env(1). */
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127
#define EXIT_SIGNAL    128

static volatile sig_atomic_t child;

static void forward(int signal)
{
	if (child > 0)
		kill(child, signal);
}

/* Leaves a signal ignored that was ignored when this process began, as by nohup(1). */
static void forward_unless_ignored(int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) || action.sa_handler == SIG_IGN)
		return;
	action = (struct sigaction){ .sa_handler = forward, .sa_flags = SA_RESTART };
	sigaction(signal, &action, NULL);
}

/*
 * A terminal sends its signals to the command, too, so this process ignores
 * them. Signals sent to this process alone are forwarded. Either way this
 * process runs until the command ends, since the region ends with it.
 */
static void stay(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	forward_unless_ignored(SIGTERM);
	forward_unless_ignored(SIGHUP);
}

static int run_command(struct tshare_region *region, char **command)
{
	int fd = tshare_region_get_fd(region);
	char number[16];
	int err;

	snprintf(number, sizeof(number), "%d", fd);
	if (fcntl(fd, F_SETFD, 0) || setenv("TSHARE_FD", number, 1) ||
	    setenv("TSHARE_NAME", tshare_region_get_name(region), 1)) {
		failure("environment of the command: %s", strerror(errno));
		return EXIT_NOT_RUN;
	}
	execvp(command[0], command);
	err = errno;
	failure("%s: %s", command[0], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return failure("waitpid: %s", strerror(errno));
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static int fork_and_wait(struct tshare_region *region, char **command)
{
	sigset_t all, before;
	void (*children)(int);
	pid_t pid;
	int err;

	/* Signals are blocked until @child is set, so that none is lost. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	/* Where SIGCHLD is ignored, a child leaves no status to wait for. */
	children = signal(SIGCHLD, SIG_DFL);
	/* Before stay(), so that the command inherits the original dispositions. */
	pid = fork();
	if (!pid) {
		signal(SIGCHLD, children);
		sigprocmask(SIG_SETMASK, &before, NULL);
		_exit(run_command(region, command));
	}
	err = errno;
	child = pid;
	stay();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? failure("fork: %s", strerror(err)) : wait_for(pid);
}

static int execute(struct layout *layout, char **command)
{
	struct tshare_region *region;
	struct tshare_ctx *ctx;
	int status;

	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	region = layout_create(layout, ctx);
	tshare_ctx_unref(ctx);
	if (!region)
		return EXIT_FAILED;
	status = fork_and_wait(region, command);
	tshare_region_unref(region);
	return status;
}

static const struct option options[] = {
	LAYOUT_OPTIONS,
	{ "name", required_argument, NULL, 'n' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct layout *layout = data;

	if (option != 'n')
		return layout_option(layout, verb, option, optarg);
	layout->name = optarg;
	return EXIT_OK;
}

/*
 * Counts the words of SHAPE and DTYPE before the command; getopt moves them behind "--".
 * @behind: words behind "--"; -1 without "--", when only layout_needs_shape() tells them apart
 */
static int count_shape_words(const struct layout *layout, int words, int behind)
{
	if (behind >= 0)
		return words - behind;
	return layout_needs_shape(layout) ? 2 : 0;
}

static int parse_and_execute(const struct verb *verb, int argc, char **argv, struct layout *layout)
{
	int status, place = 0, behind, shape_words;

	while (place < argc && strcmp(argv[place], "--"))
		place++;
	behind = argc - place - 1;
	if (!parse_options(verb, argc, argv, layout, &status))
		return status;
	argv += optind;
	argc -= optind;
	shape_words = count_shape_words(layout, argc, behind);
	if (shape_words > argc || (shape_words != 2 && (shape_words || layout_needs_shape(layout))))
		return usage_error(verb,
				   "needs SHAPE and DTYPE before '--', or --size or --tensor");
	if (shape_words) {
		status = layout_shape(layout, verb, argv[0], argv[1]);
		if (status)
			return status;
	}
	if (argc == shape_words)
		return usage_error(verb, "needs a COMMAND after '--'");
	return execute(layout, argv + shape_words);
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct layout layout;
	int status;

	layout_init(&layout);
	status = parse_and_execute(verb, argc, argv, &layout);
	layout_release(&layout);
	return status;
}

const struct verb verb_exec = {
	.name = "exec",
	.arguments = "[OPTION...] [SHAPE DTYPE] -- COMMAND [ARGUMENT...]",
	.summary = "create a region for as long as a command runs",
	.options = options,
	.take = take,
	.help = LAYOUT_HELP
	"  -n, --name NAME        name of the region (default: none)\n"
	"\nThe command has the region's descriptor in $TSHARE_FD, its name in $TSHARE_NAME.\n",
	.run = run,
};
