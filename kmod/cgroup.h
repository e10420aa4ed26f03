/* SPDX-License-Identifier: GPL-2.0-only */
/* Limits for cgroups, where the kernel has the dmem controller. */
#ifndef TSHARE_CGROUP_H
#define TSHARE_CGROUP_H

#include <linux/types.h>

#ifdef CONFIG_CGROUP_DMEM

struct dmem_cgroup_pool_state;

/**
 * struct tshare_cgroup_charge - what a cgroup is charged for one region
 * @pool: the cgroup's count, which keeps the cgroup alive
 * @size: bytes
 */
struct tshare_cgroup_charge {
	struct dmem_cgroup_pool_state *pool;
	u64 size;
};

int tshare_cgroup_init(void);
void tshare_cgroup_exit(void);
int tshare_cgroup_charge(struct tshare_cgroup_charge *charge, unsigned long nr_pages);
void tshare_cgroup_uncharge(const struct tshare_cgroup_charge *charge);

#else

struct tshare_cgroup_charge {};

static inline int tshare_cgroup_init(void)
{
	return 0;
}

static inline void tshare_cgroup_exit(void)
{
}

static inline int tshare_cgroup_charge(struct tshare_cgroup_charge *charge, unsigned long nr_pages)
{
	return 0;
}

static inline void tshare_cgroup_uncharge(const struct tshare_cgroup_charge *charge)
{
}

#endif /* CONFIG_CGROUP_DMEM */

#endif /* TSHARE_CGROUP_H */
