// SPDX-License-Identifier: MIT
/* A process that has closed descriptors 0 to 2, to which it and its libraries print. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../util.h"

static bool first_three_are_closed(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			return false;
	return true;
}

/* A step of a child that has closed them; the number of the first that fails is its status. */
#define STEP(condition)                                        \
	do {                                                   \
		step++;                                        \
		if (!(condition) || !first_three_are_closed()) \
			return step;                           \
	} while (0)

static const struct tshare_options draft_options = {
	.size = sizeof(draft_options),
	.flags = TSHARE_DRAFT,
};

static int use_everything(void *name)
{
	const struct tshare_open_options soon = { .size = sizeof(soon), .timeout_ns = 1000 };
	struct tshare_region *region, *opened, *draft, *imported;
	struct tshare_waiter *waiter;
	struct tshare_ctx *own;
	int fd, step = 0;
	uint64_t seen;

	close(0);
	close(1);
	close(2);
	STEP(!ctx_new(NULL, &own));
	STEP(!tshare_region_create(own, name, 1, NULL, 0, NULL, &region));
	STEP(!tshare_region_open(own, name, &readonly_options, &opened));
	STEP(!tshare_region_export(region, 0, 0, TSHARE_READONLY, &fd) && fd > 2);
	STEP(!tshare_region_import(own, fd, 0, &imported));
	close(fd);
	STEP(!tshare_region_publish(region, NULL));
	STEP(!tshare_region_wait(opened, 0, -1, 0, &seen));
	STEP(tshare_region_wait(opened, 1, 1, 0, &seen) == -ETIMEDOUT);
	STEP(!tshare_region_get_event_fd(opened, &fd) && fd > 2);
	STEP(!tshare_waiter_new(imported, &waiter));
	STEP(!tshare_waiter_get_event_fd(waiter, &fd) && fd > 2);
	tshare_waiter_unref(waiter);
	tshare_region_unref(imported);
	tshare_region_unref(opened);
	STEP(limits_of(own).page_size);
	STEP(!tshare_region_unlink(region));
	tshare_region_unref(region);
	STEP(!tshare_region_create(own, name, 1, NULL, 0, &draft_options, &draft));
	STEP(tshare_region_open(own, name, &soon, &region) == -ETIMEDOUT);
	STEP(!tshare_region_finish(draft, 0));
	tshare_region_unref(draft);
	STEP(!tshare_ctx_unlink(own, name));
	STEP(!tshare_region_create(own, NULL, 1, NULL, 0, NULL, &region));
	STEP(tshare_region_get_fd(region) > 2);
	tshare_region_unref(region);
	tshare_ctx_unref(own);
	return 0;
}

TEST(no_descriptor_of_the_library_is_one_that_messages_go_to)
{
	char name[TSHARE_NAME_MAX];

	snprintf(name, sizeof(name), "%s", unique("closed"));
	CHECK(!in_child(use_everything, name));
}

/* What a program prints then goes nowhere. */
static int print_into_a_region(void *unused)
{
	static const char message[] = "a message that is longer than a header's magic";
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_region *region;

	(void)unused;
	close(1);
	close(2);
	if (tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region))
		return 1;
	if (write(1, message, sizeof(message)) > 0 || write(2, message, sizeof(message)) > 0)
		return 2;
	return tshare_region_get_info(region, &info) ? 3 : 0;
}

TEST(a_message_of_a_program_without_output_overwrites_no_region)
{
	CHECK(!in_child(print_into_a_region, NULL));
}

int main(void)
{
	return tap_main(open_context, close_context);
}
