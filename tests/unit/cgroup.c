// SPDX-License-Identifier: MIT
/*
 * What memory cgroups do to shared memory. Needs to be root where no other program
 * uses the hierarchy, as in a virtual machine: it is set up and limited here.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

#define ROOT "/sys/fs/cgroup"
#define MIB  (1ULL << 20)

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

struct limits {
	const char *outer, *inner;
	uint64_t size;
	int expected;
};

/* Creates @size bytes, named and not, in a cgroup within another. */
static int create_within(void *data)
{
	const struct limits *limits = data;
	struct tshare_limits known = { .size = sizeof(known) };
	struct tshare_region *region;
	int i;

	alarm(HANG_SECONDS);
	if (!write_file(ROOT "/outer/memory.max", limits->outer) ||
	    !write_file(ROOT "/outer/inner/memory.max", limits->inner) ||
	    !write_file(ROOT "/outer/inner/cgroup.procs", "0"))
		return 1;
	for (i = 0; i < 2; i++) {
		if (tshare_region_create(ctx, i ? "within" : NULL, limits->size, NULL, 0, NULL,
					 &region) != limits->expected)
			return 2;
		if (limits->expected && !error_says("cgroup"))
			return 3;
		if (!limits->expected)
			tshare_region_unref(region);
		tshare_ctx_unlink(ctx, "within");
	}
	if (tshare_ctx_get_limits(ctx, &known) || known.region_bytes_max > 64 * MIB)
		return 4;
	return 0;
}

static int set_up(void)
{
	mkdir(ROOT "/outer", 0755);
	if (!write_file(ROOT "/cgroup.subtree_control", "+memory") ||
	    !write_file(ROOT "/outer/cgroup.subtree_control", "+memory"))
		return -1;
	return mkdir(ROOT "/outer/inner", 0755) && errno != EEXIST;
}

static void tear_down(void)
{
	rmdir(ROOT "/outer/inner");
	rmdir(ROOT "/outer");
}

static int status_within(const char *outer, const char *inner, uint64_t size, int expected)
{
	struct limits limits = { outer, inner, size, expected };
	int status;

	CHECK(!set_up());
	status = in_child(create_within, &limits);
	tear_down();
	return status;
}

TEST(a_region_beyond_its_cgroup_is_an_error_and_no_signal)
{
	CHECK(!status_within("max", "67108864", 256 * MIB, -ENOMEM));
}

TEST(a_region_beyond_an_outer_cgroup_is_an_error_and_no_signal)
{
	CHECK(!status_within("67108864", "max", 256 * MIB, -ENOMEM));
}

TEST(a_region_within_its_cgroup_is_created)
{
	CHECK(!status_within("67108864", "67108864", 48 * MIB, 0));
}

/* Asks for the limits when nothing is left to look at the cgroup with. */
static bool look_without_descriptors(void)
{
	struct tshare_limits known = { .size = sizeof(known) };
	struct rlimit before, none = { 0 };
	bool refused;

	if (getrlimit(RLIMIT_NOFILE, &before))
		return false;
	none.rlim_max = before.rlim_max;
	refused = !setrlimit(RLIMIT_NOFILE, &none) && tshare_ctx_get_limits(ctx, &known) == -EMFILE;
	return !setrlimit(RLIMIT_NOFILE, &before) && refused;
}

static int create_within_after_a_look(void *limits)
{
	return look_without_descriptors() ? create_within(limits) : 5;
}

TEST(a_cgroup_that_could_not_be_looked_at_once_is_seen_later)
{
	struct limits limits = { "max", "67108864", 256 * MIB, -ENOMEM };
	int status;

	CHECK(!set_up());
	status = in_child(create_within_after_a_look, &limits);
	tear_down();
	CHECK(!status);
}

/* Of which the descriptors take 60 MiB, and a region of 4 MiB. */
#define MANY	 65000
#define NAME_LEN 900

static struct tshare_spec specs[MANY];

/* The library's own copy of the descriptors has room, the file's has none. */
static int create_described(void *unused)
{
	const struct tshare_options draft = {
		.size = sizeof(draft),
		.flags = TSHARE_DRAFT,
	};
	struct tshare_region *region;

	(void)unused;
	if (!write_file(ROOT "/outer/memory.max", "100663296") ||
	    !write_file(ROOT "/outer/cgroup.procs", "0"))
		return 1;
	if (tshare_region_create(ctx, NULL, 0, specs, MANY, NULL, &region) != -ENOMEM)
		return 2;
	if (tshare_region_create(ctx, "within", 0, specs, MANY, &draft, &region) != -ENOMEM)
		return 3;
	return error_says("cgroup") ? 0 : 4;
}

TEST(descriptors_beyond_the_cgroup_are_an_error_and_no_signal)
{
	char(*names)[NAME_LEN + 1] = malloc(MANY * sizeof(*names));
	int status;
	size_t i;

	CHECK(names);
	for (i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "%0*zu", NAME_LEN, i);
		specs[i] = (struct tshare_spec){
			.size = sizeof(specs[i]),
			.name = names[i],
			.dtype = TSHARE_UINT8,
		};
	}
	mkdir(ROOT "/outer", 0755);
	CHECK(write_file(ROOT "/cgroup.subtree_control", "+memory"));
	status = in_child(create_described, NULL);
	tear_down();
	free(names);
	CHECK(!status);
}

/* No size between the largest offered region and the limit ends the process. */
static int create_the_largest(void *data)
{
	struct tshare_limits known = { .size = sizeof(known) };
	struct tshare_region *region;

	(void)data;
	if (!write_file(ROOT "/outer/memory.max", "67108864") ||
	    !write_file(ROOT "/outer/cgroup.procs", "0") || tshare_ctx_get_limits(ctx, &known))
		return 1;
	return tshare_region_create(ctx, NULL, known.region_bytes_max, NULL, 0, NULL, &region);
}

TEST(the_largest_region_that_is_offered_is_created)
{
	int status;

	mkdir(ROOT "/outer", 0755);
	CHECK(write_file(ROOT "/cgroup.subtree_control", "+memory"));
	status = in_child(create_the_largest, NULL);
	tear_down();
	CHECK(!status);
}

int main(void)
{
	struct stat st;

	/* The test doesn't touch the machine's own cgroups. */
	if (geteuid() || !getenv("TSHARE_TEST_CGROUP") || stat(ROOT "/cgroup.controllers", &st)) {
		puts("1..0 # SKIP needs TSHARE_TEST_CGROUP, root and a cgroup2 hierarchy to change");
		return 0;
	}
	return tap_main(open_context, close_context);
}
