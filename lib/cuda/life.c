// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "cuda/life.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/error.h"
#include "base/ofd-lock.h"
#include "base/process.h"
#include "generation/counter.h"

/* The lives of this process, under its lock. */
static LIST_HEAD(, life) lives = LIST_HEAD_INITIALIZER(lives);

/* With its parent's description a child would keep a dead parent alive. */
static void after_fork_in_child(void)
{
	struct life *life;

	for (life = LIST_FIRST(&lives); life; life = LIST_NEXT(life, entry)) {
		close(life->fd);
		life->fd = -1;
	}
	LIST_INIT(&lives);
}

static const struct process_hooks hooks = { .in_child = after_fork_in_child };

int life_begin(struct life *life, struct tshare_region *region, enum life_role role)
{
	const bool maker = role == LIFE_MAKER;
	struct backend_counter own;
	int err;

	process_lock();
	err = counter_find(region, maker ? COUNTER_TO_WRITE_LOCK : COUNTER_TO_READ_LOCK, &own);
	if (!err) {
		err = ofd_lock_set(own.fd, maker ? F_WRLCK : F_RDLCK, TSHARE_COUNTER_SEATS + role);
		if (err)
			close(own.fd);
		if (err)
			err = fail(err, "region: lock: %s", strerror(-err));
	}
	if (!err) {
		life->fd = own.fd;
		process_join(PROCESS_CUDA_MEMORY, &hooks);
		LIST_INSERT_HEAD(&lives, life, entry);
	}
	process_unlock();
	return err;
}

void life_end(struct life *life)
{
	process_lock();
	if (life->fd >= 0) {
		LIST_REMOVE(life, entry);
		close(life->fd);
		life->fd = -1;
	}
	process_unlock();
}

void life_resign(const struct life *life, enum life_role role)
{
	process_lock();
	if (life->fd >= 0)
		ofd_lock_set(life->fd, F_UNLCK, TSHARE_COUNTER_SEATS + role);
	process_unlock();
}

bool life_is_there(const struct life *life, enum life_role role)
{
	bool there = false;

	process_lock();
	if (life->fd >= 0)
		ofd_lock_test(life->fd, F_WRLCK, TSHARE_COUNTER_SEATS + role, &there);
	process_unlock();
	return there;
}
