/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_FORMAT_REGION_NAME_H
#define TSHARE_FORMAT_REGION_NAME_H

#include <stddef.h>
#include <stdint.h>

#include <linux/tshare.h>

/*
 * Copies a region's name, padded with zeros. -EINVAL or -ENAMETOOLONG if it
 * isn't valid.
 */
int region_name_copy(char copy[TSHARE_NAME_LEN], const char *name);

#endif /* TSHARE_FORMAT_REGION_NAME_H */
