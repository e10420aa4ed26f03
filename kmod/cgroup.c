// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits for cgroups, by the dmem controller: dmem.max, dmem.current and the like, under the
 * name "tshare".
 *
 * The controller calls all memory of one kind a region, such as a graphics card's.
 */
#include <linux/cgroup_dmem.h>
#include <linux/err.h>
#include <linux/mm.h>

#include "cgroup.h"
#include "compat.h"

static struct dmem_cgroup_region *memory;

/**
 * tshare_cgroup_init() - let cgroups have limits
 *
 * The size is shown in dmem.capacity and limits nothing. Unlike max_mib it can't change later.
 * So it is the size of the memory, which regions can't exceed.
 *
 * Return: 0, -ENOMEM.
 */
int __init tshare_cgroup_init(void)
{
	memory = tshare_dmem_register("tshare", (u64)totalram_pages() << PAGE_SHIFT);
	return PTR_ERR_OR_ZERO(memory);
}

/**
 * tshare_cgroup_exit() - end tshare_cgroup_init()
 *
 * No charge may be left: 6.14 frees what charges point to.
 */
void tshare_cgroup_exit(void)
{
	dmem_cgroup_unregister_region(memory);
}

/**
 * tshare_cgroup_charge() - charge pages to the caller's cgroup and those above it
 * @charge: where to store what tshare_cgroup_uncharge() needs
 * @nr_pages: the pages
 *
 * Return: 0, -EDQUOT if one of the cgroups would pass its limit, -ENOMEM.
 */
int tshare_cgroup_charge(struct tshare_cgroup_charge *charge, unsigned long nr_pages)
{
	int err;

	charge->size = (u64)nr_pages << PAGE_SHIFT;
	err = dmem_cgroup_try_charge(memory, charge->size, &charge->pool, NULL);
	return err == -EAGAIN ? -EDQUOT : err;
}

/**
 * tshare_cgroup_uncharge() - undo a charge, whatever cgroup the caller is in
 * @charge: the charge
 */
void tshare_cgroup_uncharge(const struct tshare_cgroup_charge *charge)
{
	dmem_cgroup_uncharge(charge->pool, charge->size);
}
