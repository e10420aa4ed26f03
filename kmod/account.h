/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may have how much: RLIMIT_MEMLOCK, and limits of the module's own for
 * itself, each namespace and each user, since a module can't charge memory
 * cgroups.
 */
#ifndef TSHARE_ACCOUNT_H
#define TSHARE_ACCOUNT_H

#include <linux/types.h>

struct cred;
struct tshare_ns;
struct tshare_account;

/**
 * struct tshare_charge - what a region counts against
 * @nr_pages: its pages
 * @ns: its namespace
 * @account: its creator's account
 * @memlock: whose user's locked memory it is, a reference; NULL if the creator was exempt
 */
struct tshare_charge {
	unsigned long nr_pages;
	struct tshare_ns *ns;
	struct tshare_account *account;
	const struct cred *memlock;
};

int tshare_charge(struct tshare_charge *charge, struct tshare_ns *ns, unsigned long nr_pages);
void tshare_uncharge(struct tshare_charge *charge);
unsigned long tshare_pages_used(void);
unsigned long tshare_pages_limit(void);
unsigned long tshare_pages_left(struct tshare_ns *ns);

#endif /* TSHARE_ACCOUNT_H */
