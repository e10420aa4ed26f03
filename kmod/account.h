/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits on pages: RLIMIT_MEMLOCK, the module's own for all regions, a namespace and a user,
 * and those of cgroups. A charge ends when its memory is freed, which may be long after its
 * region: see tshare_charge_release().
 */
#ifndef TSHARE_ACCOUNT_H
#define TSHARE_ACCOUNT_H

#include <linux/list.h>
#include <linux/types.h>

#include "cgroup.h"

struct tshare_ns;
struct tshare_account;

/**
 * struct tshare_charge - what a region counts against
 * @nr_pages: pages that still count; under tshare_lock
 * @ns: its namespace, a reference
 * @account: its creator's account
 * @cgroup: the charge to its creator's cgroup; whole until @nr_pages is zero, since the kernel
 *          can't undo a part of it
 * @pinned: the folios that outlive the region, linked by lru
 * @node: in pinned_charges, if it outlives its region
 */
struct tshare_charge {
	unsigned long nr_pages;
	struct tshare_ns *ns;
	struct tshare_account *account;
	struct tshare_cgroup_charge cgroup;
	struct list_head pinned;
	struct list_head node;
};

struct tshare_charge *tshare_charge_create(struct tshare_ns *ns, unsigned long nr_pages);
void tshare_charge_release(struct tshare_charge *charge, unsigned long pfn, unsigned long nr_pages);
void tshare_account_exit(void);

unsigned long tshare_pages_used(void);
unsigned long tshare_pages_limit(void);
unsigned long tshare_pages_query(struct tshare_ns *ns, unsigned long *used);

#endif /* TSHARE_ACCOUNT_H */
