// SPDX-License-Identifier: MIT
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "partner.h"

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (1000 * MS) + now.tv_nsec;
}

void sleep_ns(int64_t ns)
{
	const struct timespec pause = { ns / (1000 * MS), ns % (1000 * MS) };

	nanosleep(&pause, NULL);
}

uint64_t generation_of(struct tshare_region *region)
{
	uint64_t generation;

	CHECK(!tshare_region_get_generation(region, &generation));
	return generation;
}

void publish(struct tshare_region *region)
{
	CHECK(!tshare_region_publish(region, NULL));
}

int wait_beyond(struct tshare_region *region, uint64_t seen, int64_t timeout_ns, uint64_t expected)
{
	uint64_t generation = UINT64_MAX;
	int err;

	err = tshare_region_wait(region, seen, timeout_ns, 0, &generation);
	if (err)
		return generation == UINT64_MAX ? err : -EBADMSG;
	return generation == expected ? 0 : -EBADMSG;
}

bool forbid_waitv(int err)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex_waitv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

struct tshare_region *another(struct tshare_region *region, uint32_t flags)
{
	struct tshare_region *other;

	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), flags, &other));
	return other;
}

struct tshare_region *open_as_partner(const struct partner *partner)
{
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.flags = partner->flags,
	};
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!partner->name)
		return partner->region;
	if (tshare_ctx_new(NULL, &own) || tshare_region_open(own, partner->name, &options, &region))
		_exit(9);
	tshare_ctx_unref(own);
	return region;
}

pid_t start_partner(int (*fn)(struct partner *partner), struct partner *partner)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(fn(partner));
	return pid;
}

int publish_later(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);

	sleep_ns(partner->delay_ns);
	strcpy(tshare_region_get_data(region), "published");
	return tshare_region_publish(region, NULL) ? 1 : 0;
}

static int publish_and_stay(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);

	if (tshare_region_publish(region, NULL))
		return 1;
	send_byte(partner->steps.ends[0]);
	await_byte(partner->steps.ends[0]);
	tshare_region_unref(region);
	send_byte(partner->steps.ends[0]);
	await_byte(partner->steps.ends[0]);
	return 0;
}

pid_t start_publisher(struct partner *partner)
{
	pid_t pid;

	CHECK(steps_open(&partner->steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(partner->steps.ends[1]);
		_exit(publish_and_stay(partner));
	}
	close(partner->steps.ends[0]);
	CHECK(await_byte(partner->steps.ends[1]));
	return pid;
}

int end_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void kill_and_reap(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL));
	CHECK(end_of(pid) == -1);
}
