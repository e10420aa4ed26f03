// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

static struct tap_test *tests;
static struct tap_test **tests_end = &tests;
static const char *skipped;
static jmp_buf end_of_test;

enum { PASSED, FAILED, SKIPPED };

/* As long as a child may take, see util.h. */
enum { LIMIT_SECONDS = 300 };

void tap_register(struct tap_test *test)
{
	*tests_end = test;
	tests_end = &test->next;
}

/* The test that runs, and what a signal handler says of it. */
static const char *running;
static char late[256], hung[512], children[64];
static volatile sig_atomic_t fifths;

/* meson shows a program's errors alone: its output is in the report. */
static bool has_other_errors(void)
{
	struct stat output, errors;

	return !fstat(STDOUT_FILENO, &output) && !fstat(STDERR_FILENO, &errors) &&
	       (output.st_dev != errors.st_dev || output.st_ino != errors.st_ino);
}

void tap_fail(const char *file, int line, const char *condition)
{
	printf("# %s:%d: %s: %s\n", file, line, running, condition);
	if (has_other_errors())
		fprintf(stderr, "# %s:%d: %s: %s\n", file, line, running, condition);
	longjmp(end_of_test, FAILED);
}

void tap_skip(const char *reason)
{
	skipped = reason;
	longjmp(end_of_test, SKIPPED);
}

static void say(int fd, const char *text)
{
	ssize_t written = write(fd, text, strlen(text));

	(void)written;
}

/* A child that has hung, too, would keep the program's output open. */
static void kill_children(void)
{
	char pids[4096];
	ssize_t size = 0;
	pid_t pid = 0;
	int fd;

	fd = open(children, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		size = read(fd, pids, sizeof(pids));
	for (ssize_t i = 0; i < size; i++) {
		if (pids[i] != ' ') {
			pid = pid * 10 + (pids[i] - '0');
			continue;
		}
		kill(pid, SIGKILL);
		pid = 0;
	}
}

/* Comes when a fifth of a test's time is over, and again. */
static void be_late(int signal)
{
	const char *file = getenv("TSHARE_TEST_LATE");
	int error = errno, fd;

	(void)signal;
	if (++fifths == 5) {
		say(STDOUT_FILENO, hung);
		if (has_other_errors())
			say(STDERR_FILENO, hung);
		kill_children();
		_exit(1);
	}
	if (fifths == 1) {
		say(STDOUT_FILENO, late);
		fd = file ? open(file, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
		if (fd >= 0) {
			say(fd, late);
			close(fd);
		}
	}
	errno = error;
}

static int limit(void)
{
	const char *seconds = getenv("TSHARE_TEST_LIMIT");

	return seconds && atoi(seconds) > 0 ? atoi(seconds) : LIMIT_SECONDS;
}

static timer_t make_timer(void)
{
	struct sigaction action = { .sa_handler = be_late, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX };
	timer_t timer;

	if (sigaction(SIGRTMAX, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer)) {
		perror("tap: timer");
		exit(2);
	}
	return timer;
}

/* Starts the time of a test, or stops it by 0 seconds. */
static void set_time(timer_t timer, int seconds)
{
	struct timespec fifth = { seconds / 5, seconds % 5 * 200000000L };
	struct itimerspec time = { .it_interval = fifth, .it_value = fifth };

	fifths = 0;
	timer_settime(timer, 0, &time, NULL);
}

static int run_test(const struct tap_test *test, void (*before)(void))
{
	int result = setjmp(end_of_test);

	if (result)
		return result;
	before();
	test->run();
	return PASSED;
}

static bool report(const struct tap_test *test, int number, int result)
{
	printf("%sok %d - %s", result == FAILED ? "not " : "", number, test->law);
	if (result == SKIPPED)
		printf(" # SKIP %s", skipped);
	putchar('\n');
	return result != FAILED;
}

/* TSHARE_TEST_ONLY names the one test that is to run, or isn't set. */
static bool is_wanted(const struct tap_test *test, const char *only)
{
	return !only || !strcmp(only, test->law);
}

int tap_main(void (*before)(void), void (*after)(void))
{
	const char *only = getenv("TSHARE_TEST_ONLY");
	const struct tap_test *test;
	bool good = true;
	int count = 0, result;
	timer_t timer;

	/* Children would print again what stays in the buffer. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (test = tests; test; test = test->next)
		count += is_wanted(test, only);
	if (!count) {
		fprintf(stderr, "TSHARE_TEST_ONLY: there is no test '%s' here\n", only);
		return 2;
	}
	printf("TAP version 13\n1..%d\n", count);
	timer = make_timer();
	snprintf(children, sizeof(children), "/proc/self/task/%d/children", getpid());
	for (count = 0, test = tests; test; test = test->next) {
		if (!is_wanted(test, only))
			continue;
		running = test->law;
		snprintf(late, sizeof(late), "# late: %s has run for %.3g s\n", running,
			 limit() / 5.);
		snprintf(hung, sizeof(hung), "# late: %s: no end after %d s\nnot ok %d - %s\n",
			 running, limit(), ++count, running);
		set_time(timer, limit());
		result = run_test(test, before);
		set_time(timer, 0);
		good &= report(test, count, result);
		after();
	}
	return good ? 0 : 1;
}

int in_child(int (*fn)(void *), void *data)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(fn(data));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
