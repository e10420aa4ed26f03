/* SPDX-License-Identifier: MIT */
/* For tshare create --from: a region that holds the array of a .npy file. */
#ifndef TSHARE_CLI_FROM_H
#define TSHARE_CLI_FROM_H

#include "layout.h"

/*
 * Creates the region that @layout names, as a draft until the elements are in it. Returns NULL
 * after printing the error. @path: - is standard input
 */
struct tshare_region *from_file(struct layout *layout, struct tshare_ctx *ctx, const char *path);

#endif /* TSHARE_CLI_FROM_H */
