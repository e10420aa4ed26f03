// SPDX-License-Identifier: GPL-2.0-only
/* Resizes the pools, and runs the workers that zero the blocks that come back. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <uapi/linux/sched/types.h>

#include "account.h"
#include "alloc.h"
#include "pool.h"

static ulong pool_mib[MAX_NUMNODES];
static unsigned int pool_mib_count;
module_param_array(pool_mib, ulong, &pool_mib_count, 0444);
MODULE_PARM_DESC(pool_mib, "MiB to keep for large regions, on NUMA node 0, 1, ...");

/*
 * Held while a pool grows or shrinks, which may take long. Creating and closing regions never
 * takes it.
 */
static DEFINE_MUTEX(resize_lock);

/* Runs when no other task wants the processor, and sleeps when there is nothing to do. */
static int pool_worker(void *data)
{
	struct tshare_pool *pool = data;
	static const struct sched_attr idle = {
		.size = sizeof(idle),
		.sched_policy = SCHED_IDLE,
	};

	sched_setattr_nocheck(current, &idle);
	set_freezable();
	while (!kthread_should_stop()) {
		wait_event_freezable(pool->wait, READ_ONCE(pool->work) || kthread_should_stop());
		while (!kthread_should_stop() && tshare_pool_zero_page(pool)) {
			cond_resched();
			try_to_freeze();
		}
	}
	return 0;
}

static int pool_start_worker(struct tshare_pool *pool)
{
	struct task_struct *worker;

	if (pool->worker)
		return 0;
	worker =
		kthread_create_on_node(pool_worker, pool, pool->node, "tshare_pool/%d", pool->node);
	if (IS_ERR(worker))
		return PTR_ERR(worker);
	set_cpus_allowed_ptr(worker, cpumask_of_node(pool->node));
	pool->worker = worker;
	wake_up_process(worker);
	return 0;
}

/* Takes a run out of the system; frees blocks of it that the pool can't have. */
static int pool_grow_by(struct tshare_pool *pool, unsigned long nr_blocks)
{
	struct tshare_request req = {
		.nr_pages = nr_blocks * TSHARE_BLOCK_PAGES,
		.node = pool->node,
		.interruptible = true,
	};
	unsigned long pfn, i;
	int err = tshare_allocator_contig.alloc(&req, &pfn);

	if (err)
		return err;
	for (i = 0; i < req.nr_pages; i += TSHARE_BLOCK_PAGES) {
		if (!tshare_pool_add_block(pool, pfn + i)) {
			tshare_run_free(pfn + i, req.nr_pages - i);
			return -ENOMEM;
		}
		cond_resched();
	}
	return 0;
}

/* Blocks that the pool lacks; negative if it has too many. Broken ones leave it at any time. */
static long pool_missing(struct tshare_pool *pool)
{
	long nr_blocks;

	spin_lock(&pool->lock);
	nr_blocks = pool->target - pool->size;
	spin_unlock(&pool->lock);
	return nr_blocks;
}

/* Grows in one piece if there is such a run, else in ever smaller pieces. */
static int pool_grow(struct tshare_pool *pool)
{
	long piece = LONG_MAX, missing;
	int err;

	while ((missing = pool_missing(pool)) > 0) {
		piece = min(piece, missing);
		err = pool_grow_by(pool, piece);
		if (err == -ENOMEM && piece > 1)
			piece /= 2;
		else if (err)
			return err;
	}
	return 0;
}

/* Drops free blocks; the others are freed as regions return them. */
static void pool_shrink(struct tshare_pool *pool)
{
	while (pool_missing(pool) < 0 && tshare_pool_drop_block(pool))
		cond_resched();
}

static void pool_set_target(struct tshare_pool *pool, unsigned long nr_blocks)
{
	spin_lock(&pool->lock);
	pool->target = nr_blocks;
	spin_unlock(&pool->lock);
}

/* Whether all pools together stay within the limit on regions, which couldn't use more. */
static bool pool_is_within_limit(const struct tshare_pool *pool, unsigned long nr_blocks)
{
	unsigned long limit = tshare_pages_limit() / TSHARE_BLOCK_PAGES;
	int node;

	for_each_node_state(node, N_MEMORY)
		if (tshare_pools[node] && tshare_pools[node] != pool)
			limit -= min(limit, tshare_pools[node]->target);
	return nr_blocks <= limit;
}

static int pool_resize(struct tshare_pool *pool, u64 bytes)
{
	unsigned long nr_blocks = DIV_ROUND_UP_ULL(bytes, TSHARE_BLOCK_BYTES);
	int err;

	if (nr_blocks > pool->target) {
		if (!pool_is_within_limit(pool, nr_blocks))
			return -EDQUOT;
		err = pool_start_worker(pool);
		if (err)
			return err;
	}
	pool_set_target(pool, nr_blocks);
	pool_shrink(pool);
	err = pool_grow(pool);
	/* The pool doesn't go on growing by itself. */
	if (err)
		pool_set_target(pool, nr_blocks - pool_missing(pool));
	return err;
}

/**
 * tshare_pool_resize() - make a pool larger or smaller
 * @pool: the pool
 * @bytes: its size, rounded up to whole blocks
 *
 * A pool that can't get all blocks keeps those that it gets. If regions have more than @bytes,
 * the pool shrinks further as they return blocks.
 *
 * Return: 0; -EDQUOT if all pools together would have more than regions may, and nothing
 * has changed; -ENOMEM or, after a signal, -EINTR, and the pool has less than @bytes.
 */
int tshare_pool_resize(struct tshare_pool *pool, u64 bytes)
{
	int err;

	if (bytes > U64_MAX - TSHARE_BLOCK_BYTES)
		return -EDQUOT;
	if (mutex_lock_interruptible(&resize_lock))
		return -EINTR;
	err = pool_resize(pool, bytes);
	mutex_unlock(&resize_lock);
	return err;
}

static int __init pool_create(int node)
{
	unsigned long first = node_start_pfn(node) / TSHARE_BLOCK_PAGES;
	unsigned long end = DIV_ROUND_UP(node_end_pfn(node), TSHARE_BLOCK_PAGES);

	tshare_pools[node] = tshare_pool_new(node, first, end - first);
	return tshare_pools[node] ? 0 : -ENOMEM;
}

/* Reserves what pool_mib asks for. A part of it is better than no module. */
static int __init pool_reserve(int node)
{
	struct tshare_pool *pool = tshare_pools[node];
	u64 bytes = (u64)pool_mib[node] << 20;
	int err;

	if (!pool_mib[node])
		return 0;
	if (!pool) {
		pr_err("pool_mib: node %d has no memory\n", node);
		return -EINVAL;
	}
	err = pool_mib[node] > U64_MAX >> 20 ? -EDQUOT : tshare_pool_resize(pool, bytes);
	if (err == -EDQUOT) {
		pr_err("pool_mib: regions may have %lu MiB together (see max_mib)\n",
		       tshare_pages_limit() >> (20 - PAGE_SHIFT));
		return -EINVAL;
	}
	if (err != -ENOMEM)
		return err;
	pr_warn("pool_mib: node %d has %lu MiB of %lu\n", node,
		pool->size * TSHARE_BLOCK_BYTES >> 20, pool_mib[node]);
	return 0;
}

/* Called before the device is registered, and so before any region. */
int __init tshare_pool_init(void)
{
	int node, err = 0;

	for_each_node_state(node, N_MEMORY) {
		err = err ?: pool_create(node);
	}
	for (node = 0; node < pool_mib_count && !err; node++)
		err = pool_reserve(node);
	if (err) {
		tshare_pool_close();
		tshare_pool_exit();
	}
	return err;
}

/*
 * Called when the module has no regions any more. The pools free their free blocks, and pinned
 * ones when they come back.
 */
void tshare_pool_close(void)
{
	int node;

	for (node = 0; node < MAX_NUMNODES; node++) {
		struct tshare_pool *pool = tshare_pools[node];

		if (!pool)
			continue;
		if (pool->worker) {
			/* As SCHED_IDLE it may have to wait for a processor. */
			sched_set_normal(pool->worker, 0);
			kthread_stop(pool->worker);
		}
		pool_set_target(pool, 0);
		pool_shrink(pool);
	}
}

/* Called when all blocks have come back. */
void tshare_pool_exit(void)
{
	int node;

	for (node = 0; node < MAX_NUMNODES; node++) {
		if (!tshare_pools[node])
			continue;
		tshare_pool_free(tshare_pools[node]);
		tshare_pools[node] = NULL;
	}
}
