// SPDX-License-Identifier: MIT
/* Opening a region by its name, among many names against among few. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/tshare.h>

#include "pair.h"

#define FEW   10
#define MANY  100000
#define CALLS 100

/* A namespace of its own, as names of persistent regions belong to one. */
struct names {
	int dev;
	unsigned int count;
};

static struct names few, many;

static void name_of(char *name, unsigned int i)
{
	sprintf(name, "bench-name-%06u", i);
}

static struct names new_names(unsigned int count)
{
	struct names names = { .count = count };

	if (unshare(CLONE_NEWIPC))
		err(1, "unshare");
	names.dev = open("/dev/tshare", O_RDWR | O_CLOEXEC);
	if (names.dev < 0)
		err(1, "/dev/tshare");
	for (unsigned int i = 0; i < count; i++) {
		struct tshare_create args = {
			.size = 4096,
			.mode = 0600,
			.flags = TSHARE_CREATE_PERSIST,
		};

		name_of(args.name, i);
		if (ioctl(names.dev, TSHARE_IOCTL_CREATE, &args))
			err(1, "CREATE");
		close(args.fd);
	}
	return names;
}

static void unlink_all(const struct names *names)
{
	for (unsigned int i = 0; i < names->count; i++) {
		struct tshare_unlink args = {};

		name_of(args.name, i);
		if (ioctl(names->dev, TSHARE_IOCTL_UNLINK, &args))
			err(1, "UNLINK");
	}
}

/* One name of @step after the other, round and round. */
static double open_some(const struct names *names, unsigned int step)
{
	double start = pair_now();

	for (unsigned int i = 0; i < CALLS; i++) {
		struct tshare_open args = {};

		name_of(args.name, i * step % names->count);
		if (ioctl(names->dev, TSHARE_IOCTL_OPEN, &args))
			err(1, "OPEN");
		close(args.fd);
	}
	return (pair_now() - start) / CALLS;
}

/* Far from one another. */
static double open_among_many(void)
{
	return open_some(&many, 7919);
}

static double open_among_few(void)
{
	return open_some(&few, 7919);
}

static double open_one_of_many(void)
{
	return open_some(&many, 0);
}

static double open_one_of_few(void)
{
	return open_some(&few, 0);
}

int main(void)
{
	few = new_names(FEW);
	many = new_names(MANY);
	pair_run("C: open by name among 100000", "among 10", open_among_many, open_among_few, 200,
		 1.2);
	pair_run("C: the same name each time", "among 10", open_one_of_many, open_one_of_few, 200,
		 1.2);
	unlink_all(&many);
	unlink_all(&few);
	return 0;
}
