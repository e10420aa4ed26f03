/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory that a zone can spare, and its reclaim. */
#ifndef TSHARE_ZONE_H
#define TSHARE_ZONE_H

#include <linux/mmzone.h>
#include <linux/types.h>

struct tshare_request;

bool tshare_zone_can_spare(struct zone *zone, enum zone_type class, unsigned long free);
unsigned long tshare_zone_room(struct zone *zone, enum zone_type class, unsigned long nr);
void tshare_zone_reclaim(const struct tshare_request *req, struct zone *zone, unsigned long nr);

#endif /* TSHARE_ZONE_H */
