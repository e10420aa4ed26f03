/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_REGION_CREATE_H
#define TSHARE_REGION_CREATE_H

struct tshare_options;

/* Copies the caller's options, with zeros for missing members, or the defaults for NULL. */
int options_read(const struct tshare_options *options, struct tshare_options *known);

#endif /* TSHARE_REGION_CREATE_H */
