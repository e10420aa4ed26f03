/* SPDX-License-Identifier: MIT */
/*
 * Tests that state a law each, and print TAP.
 *
 *	TEST(open_rejects_an_empty_name)
 *	{
 *		CHECK(tshare_region_open(ctx, "", NULL, &region) == -EINVAL);
 *	}
 *
 * CHECK() ends the test where it fails, SKIP() where it can't be held. Both work
 * in functions that a test calls, but not in its child processes: see
 * in_child().
 *
 * A test that hangs ends the program after TSHARE_TEST_LIMIT seconds, 300 unless that is set. After a
 * fifth of them it is late, which is printed, also to the file that TSHARE_TEST_LATE names.
 */
#ifndef TSHARE_TESTS_TAP_H
#define TSHARE_TESTS_TAP_H

struct tap_test {
	const char *law;
	void (*run)(void);
	struct tap_test *next;
};

void tap_register(struct tap_test *test);
_Noreturn void tap_fail(const char *file, int line, const char *condition);
_Noreturn void tap_skip(const char *reason);

/*
 * Runs every registered test, or the one that TSHARE_TEST_ONLY names, with @before
 * and @after around each; what main() returns: 2 if there is no such test.
 */
int tap_main(void (*before)(void), void (*after)(void));

/* Runs @fn in a child process, and returns the exit status that @fn returned. */
int in_child(int (*fn)(void *), void *data);

#define TEST(name)                                                     \
	static void name(void);                                        \
	static struct tap_test name##_test = { #name, name, 0 };       \
	__attribute__((constructor)) static void name##_register(void) \
	{                                                              \
		tap_register(&name##_test);                            \
	}                                                              \
	static void name(void)

#define CHECK(condition)                                          \
	do {                                                      \
		if (!(condition))                                 \
			tap_fail(__FILE__, __LINE__, #condition); \
	} while (0)

#define SKIP(reason) tap_skip(reason)

#endif /* TSHARE_TESTS_TAP_H */
