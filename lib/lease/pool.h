/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LEASE_POOL_H
#define TSHARE_LEASE_POOL_H

#include "lease/pool-object.h"

/* 0; -EOPNOTSUPP in a child of fork(). */
int pool_check(const struct tshare_pool *pool);

/* Lets tensors be made of memory of the pool's entries, which keep their entry: see owners.h. */
void pool_entries_begin(struct tshare_pool *pool);

#endif /* TSHARE_LEASE_POOL_H */
