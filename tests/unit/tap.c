// SPDX-License-Identifier: MIT
#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static struct tap_test *tests;
static struct tap_test **tests_end = &tests;
static const char *skipped;
static jmp_buf end_of_test;

enum { PASSED, FAILED, SKIPPED };

void tap_register(struct tap_test *test)
{
	*tests_end = test;
	tests_end = &test->next;
}

void tap_fail(const char *file, int line, const char *condition)
{
	printf("# %s:%d: %s\n", file, line, condition);
	longjmp(end_of_test, FAILED);
}

void tap_skip(const char *reason)
{
	skipped = reason;
	longjmp(end_of_test, SKIPPED);
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
static bool is_wanted(const struct tap_test *test)
{
	const char *only = getenv("TSHARE_TEST_ONLY");

	return !only || !strcmp(only, test->law);
}

int tap_main(void (*before)(void), void (*after)(void))
{
	const struct tap_test *test;
	bool good = true;
	int count = 0;

	/* Children would print again what stays in the buffer. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (test = tests; test; test = test->next)
		count += is_wanted(test);
	printf("TAP version 13\n1..%d\n", count);
	for (count = 0, test = tests; test; test = test->next) {
		if (!is_wanted(test))
			continue;
		good &= report(test, ++count, run_test(test, before));
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
