// SPDX-License-Identifier: MIT
/*
 * Opening a region by its name, among many names against among few; and, for comparison, a file
 * on tmpfs. Names that lie far from one another have their objects on pages of their own, and
 * the more of them are opened, the less of these is in the processor's caches. So the search for
 * a name shows in a row that opens as many names on both sides.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/tshare.h>

#include "pair.h"

#define FEW    10
#define MANY   100000
#define STEP   7919 /* from one name that is opened to the next */
#define CALLS  100
#define ROUNDS 600 /* of files */
#define TIMES  100 /* of @CALLS names, in one round */
#define TURNS  5   /* rounds of names; one more goes before, uncounted */

/* The names of a namespace of its own, for as long as @dev is open. */
struct names {
	int dev;
	unsigned int count;
};

static int few_files, many_files;

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
		struct tshare_create args = { .size = 4096, .mode = 0600 };

		name_of(args.name, i);
		if (ioctl(names.dev, TSHARE_IOCTL_CREATE, &args))
			err(1, "CREATE");
		close(args.fd);
	}
	return names;
}

/* @opened names in turn, far from one another. */
static double open_regions(const struct names *names, unsigned int opened)
{
	double times[TIMES];

	for (int t = 0; t < TIMES; t++) {
		double start = pair_now();

		for (unsigned int i = 0; i < CALLS; i++) {
			struct tshare_open args = {};

			name_of(args.name, i % opened * STEP % names->count);
			if (ioctl(names->dev, TSHARE_IOCTL_OPEN, &args))
				err(1, "OPEN");
			close(args.fd);
		}
		times[t] = (pair_now() - start) / CALLS;
	}
	return pair_median(times, TIMES);
}

/* One name, 10 and 100 of @MANY, against one and 10 of @FEW. */
static void run_names(void)
{
	double one_of_few[TURNS + 1], few_of_few[TURNS + 1];
	double one_of_many[TURNS + 1], few_of_many[TURNS + 1], more_of_many[TURNS + 1];
	const struct names few = new_names(FEW), many = new_names(MANY);

	for (int i = 0; i <= TURNS; i++) {
		one_of_few[i] = open_regions(&few, 1);
		few_of_few[i] = open_regions(&few, 10);
		one_of_many[i] = open_regions(&many, 1);
		few_of_many[i] = open_regions(&many, 10);
		more_of_many[i] = open_regions(&many, 100);
	}
	pair_print("C: open 10 names among 100000", "among 10", few_of_many + 1, few_of_few + 1,
		   TURNS, 1.2);
	pair_print("C: open one name among 100000", "among 10", one_of_many + 1, one_of_few + 1,
		   TURNS, 1.2);
	pair_print("C: open 100 names among 100000", "10 of 10", more_of_many + 1, few_of_few + 1,
		   TURNS, 0);
}

static int new_folder(const char *path, unsigned int count)
{
	char name[32];
	int dir, fd;

	if (mkdir(path, 0700))
		err(1, "%s", path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		err(1, "%s", path);
	for (unsigned int i = 0; i < count; i++) {
		name_of(name, i);
		fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			err(1, "%s", name);
		close(fd);
	}
	return dir;
}

static double open_files(int dir, unsigned int count, unsigned int opened)
{
	double start = pair_now();

	for (unsigned int i = 0; i < CALLS; i++) {
		char name[32];
		int fd;

		name_of(name, i % opened * STEP % count);
		fd = openat(dir, name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			err(1, "%s", name);
		close(fd);
	}
	return (pair_now() - start) / CALLS;
}

static double open_10_files_of_few(void)
{
	return open_files(few_files, FEW, 10);
}

static double open_10_files_of_many(void)
{
	return open_files(many_files, MANY, 10);
}

static double open_100_files_of_many(void)
{
	return open_files(many_files, MANY, 100);
}

int main(void)
{
	char folder[] = "/tmp/tshare-bench-XXXXXX";

	run_names();
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL))
		err(1, "unshare");
	if (!mkdtemp(folder) || mount("tmpfs", folder, "tmpfs", 0, NULL) || chdir(folder))
		err(1, "%s", folder);
	few_files = new_folder("few", FEW);
	many_files = new_folder("many", MANY);

	pair_run("C: 10 files on tmpfs among 100000", "among 10", open_10_files_of_many,
		 open_10_files_of_few, ROUNDS, 0);
	pair_run("C: 100 files on tmpfs among 100000", "10 of 10", open_100_files_of_many,
		 open_10_files_of_few, ROUNDS, 0);
	return 0;
}
