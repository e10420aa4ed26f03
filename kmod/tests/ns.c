// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of ns.c, which includes this: the key of a namespace's names. */
#include <kunit/test.h>

/* Two uses of one namespace, as if it had gone and come back. */
static void names_are_hashed_with_a_new_key_each_time(struct kunit *test)
{
	struct tshare_ns *one = ns_alloc(current->nsproxy->ipc_ns);
	struct tshare_ns *other = ns_alloc(current->nsproxy->ipc_ns);

	KUNIT_ASSERT_FALSE(test, IS_ERR(one));
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	KUNIT_EXPECT_EQ(test, tshare_ns_hash(one, "name"), tshare_ns_hash(one, "name"));
	KUNIT_EXPECT_NE(test, tshare_ns_hash(one, "name"), tshare_ns_hash(one, "names"));
	KUNIT_EXPECT_NE(test, tshare_ns_hash(one, "name"), tshare_ns_hash(other, "name"));
	ns_free(one);
	ns_free(other);
}

static struct kunit_case ns_cases[] = { KUNIT_CASE(names_are_hashed_with_a_new_key_each_time), {} };

static struct kunit_suite ns_suite = {
	.name = "tshare_ns",
	.test_cases = ns_cases,
};

kunit_test_suite(ns_suite);
