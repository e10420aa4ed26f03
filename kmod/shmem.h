/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of shared memory that the module makes and keeps. */
#ifndef TSHARE_SHMEM_H
#define TSHARE_SHMEM_H

#include <linux/types.h>

struct path;

struct path *tshare_shmem_new(const char *name, loff_t size);
void tshare_shmem_free(struct path *path);

#endif /* TSHARE_SHMEM_H */
