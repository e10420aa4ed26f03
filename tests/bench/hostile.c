// SPDX-License-Identifier: MIT
/*
 * CREATE and OPEN beside a member of the device's group that means harm, against the same
 * beside processes that only spin: what is left is not the share of the processors.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/tshare.h>

#include "pair.h"

#define PROCESSES 2
#define USERS	  10000
#define CALLS	  20
#define WAITERS	  5000

static int dev;
static pid_t hostile[PROCESSES], spinning[PROCESSES];

static int create(const char *name)
{
	struct tshare_create args = { .size = 4096, .mode = 0666 };

	strcpy(args.name, name);
	return ioctl(dev, TSHARE_IOCTL_CREATE, &args) ? -1 : args.fd;
}

static int open_name(const char *name)
{
	struct tshare_open args = {};

	strcpy(args.name, name);
	return ioctl(dev, TSHARE_IOCTL_OPEN, &args) ? -1 : args.fd;
}

static void spin(void)
{
}

static void creates(void)
{
	close(create(""));
}

static void opens(void)
{
	close(open_name("bench-victim"));
}

static void lists(void)
{
	static struct tshare_list_entry entries[64];
	struct tshare_list args = {
		.entries = (uintptr_t)entries,
		.count = 64,
		.entry_size = sizeof(entries[0]),
	};

	ioctl(dev, TSHARE_IOCTL_LIST, &args);
}

/* Regions of more than what is left: each is refused by all limits. */
static void overfills(void)
{
	struct tshare_create args = { .size = 1ULL << 50, .mode = 0600 };

	ioctl(dev, TSHARE_IOCTL_CREATE, &args);
}

static pid_t start(void (*act)(void))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	raise(SIGSTOP);
	for (;;)
		act();
}

static void signal_all(const pid_t *pids, int signal)
{
	for (int i = 0; i < PROCESSES; i++)
		kill(pids[i], signal);
}

static void (*victim)(void);

/* The second half of the calls, when the others have begun to run. */
static double beside(const pid_t *pids)
{
	double begin = 0, end;

	signal_all(pids, SIGCONT);
	for (int i = 0; i < CALLS; i++) {
		if (i == CALLS / 2)
			begin = pair_now();
		victim();
	}
	end = pair_now();
	signal_all(pids, SIGSTOP);
	return (end - begin) / (CALLS - CALLS / 2);
}

static double beside_hostile(void)
{
	return beside(hostile);
}

static double beside_spinning(void)
{
	return beside(spinning);
}

static void compare(const char *what, void (*act)(void))
{
	char row[64];

	for (int i = 0; i < PROCESSES; i++)
		hostile[i] = start(act);
	for (int i = 0; i < PROCESSES; i++)
		waitpid(hostile[i], NULL, WUNTRACED);
	victim = creates;
	snprintf(row, sizeof(row), "C: CREATE beside one that %s", what);
	pair_run(row, "that spins", beside_hostile, beside_spinning, 30, 0);
	victim = opens;
	snprintf(row, sizeof(row), "C: OPEN beside one that %s", what);
	pair_run(row, "that spins", beside_hostile, beside_spinning, 30, 0);
	signal_all(hostile, SIGKILL);
	for (int i = 0; i < PROCESSES; i++)
		waitpid(hostile[i], NULL, 0);
}

static double time_of_creates(void)
{
	double begin = pair_now();

	for (int i = 0; i < CALLS; i++)
		creates();
	return (pair_now() - begin) / CALLS;
}

/* Regions of many users, as of one with subordinate ids. Without a stop, so not in turn. */
static void compare_users(void)
{
	struct rlimit limit = { USERS + 100, USERS + 100 };
	double samples[50], times[2];

	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "setrlimit");
	for (int more = 0; more < 2; more++) {
		for (int i = 0; more && i < USERS; i++)
			if (setresuid(100000 + i, 0, 0) || create("") < 0)
				err(1, "region of user %d", i);
		if (setresuid(1, 0, 0))
			err(1, "setresuid");
		for (int i = 0; i < 50; i++)
			samples[i] = time_of_creates();
		times[more] = pair_median(samples, 50);
	}
	printf("C: CREATE beside %d users\tno other user\t%.9f\t%.9f\t%.3f\t-\n", USERS, times[1],
	       times[0], times[1] / times[0]);
}

struct waiter {
	uint32_t *counter;
	unsigned int i;
};

/* Every second one waits for a generation, and the others each for a name. */
static void *waits(void *arg)
{
	const struct waiter *waiter = arg;
	struct tshare_open args = { .deadline_ns = INT64_MAX };

	if (waiter->i % 2)
		syscall(SYS_futex, waiter->counter, FUTEX_WAIT, 0, NULL);
	sprintf(args.name, "bench-awaited-%u", waiter->i);
	ioctl(dev, TSHARE_IOCTL_OPEN, &args);
	return NULL;
}

static void start_waiters(void)
{
	struct tshare_counter args = { .fd = create("") };
	static struct waiter waiters[WAITERS];
	pthread_attr_t attr;
	pthread_t thread;
	uint32_t *counter;

	if (ioctl(dev, TSHARE_IOCTL_COUNTER, &args))
		err(1, "COUNTER");
	counter = mmap(NULL, 4096, PROT_READ, MAP_SHARED, args.counter_fd, 0);
	if (counter == MAP_FAILED)
		err(1, "mmap");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	for (unsigned int i = 0; i < WAITERS; i++) {
		waiters[i] = (struct waiter){ counter, i };
		if (pthread_create(&thread, &attr, waits, &waiters[i]))
			err(1, "waiter %u", i);
	}
	/* Until all sleep. */
	sleep(3);
}

static double time_of_opens(void)
{
	double begin = pair_now();

	for (int i = 0; i < CALLS; i++)
		opens();
	return (pair_now() - begin) / CALLS;
}

/* A member whose threads sleep. They can't be stopped in turn, and so there are none at first. */
static void compare_waiters(void)
{
	double creating[2][50], opening[2][50], times[2][2];
	int request[2], done[2];
	char byte = 0;
	pid_t pid;

	if (pipe(request) || pipe(done))
		err(1, "pipe");
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(request[0], &byte, 1) == 1)
			start_waiters();
		if (write(done[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	for (int more = 0; more < 2; more++) {
		if (more && (write(request[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1))
			err(1, "waiters");
		for (int i = 0; i < 50; i++) {
			creating[more][i] = time_of_creates();
			opening[more][i] = time_of_opens();
		}
		times[0][more] = pair_median(creating[more], 50);
		times[1][more] = pair_median(opening[more], 50);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++)
		printf("C: %s beside %d waiters\tnone\t%.9f\t%.9f\t%.3f\t-\n",
		       i ? "OPEN" : "CREATE", WAITERS, times[i][1], times[i][0],
		       times[i][1] / times[i][0]);
	fflush(stdout);
}

int main(void)
{
	int fd;

	dev = open("/dev/tshare", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		err(1, "/dev/tshare");
	fd = create("bench-victim");
	if (fd < 0)
		err(1, "CREATE");
	for (int i = 0; i < PROCESSES; i++)
		spinning[i] = start(spin);
	for (int i = 0; i < PROCESSES; i++)
		waitpid(spinning[i], NULL, WUNTRACED);
	compare("creates", creates);
	compare("opens", opens);
	compare("lists", lists);
	compare("overfills", overfills);
	compare_waiters();
	compare_users();
	return 0;
}
