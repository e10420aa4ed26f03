/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Validation of tensor descriptors, one implementation for kernel and library. */
#ifndef TSHARE_DESC_H
#define TSHARE_DESC_H

#include <linux/tshare.h>

int tshare_name_check(const char name[TSHARE_NAME_LEN], const char **why);
int tshare_desc_check(const struct tshare_desc *desc, __u64 region_size, const char **why);

#endif /* TSHARE_DESC_H */
