/* SPDX-License-Identifier: MIT */
/* The descriptors of a region's tensors. */
#ifndef TSHARE_REGION_DESCS_H
#define TSHARE_REGION_DESCS_H

struct desc_list;
struct tshare_region;

/* Takes over the descriptors that the backend has read already, if any. */
int region_adopt_descs(struct tshare_region *region);

/*
 * Stores the descriptors of a region that has tensors. The first thread that calls this
 * reads and checks them, unless the region was opened with them: -EPROTO, -ENOMEM, or
 * what the backend returns.
 */
int region_descs(struct tshare_region *region, struct desc_list **result);

#endif /* TSHARE_REGION_DESCS_H */
