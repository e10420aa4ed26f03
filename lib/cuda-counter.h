/* SPDX-License-Identifier: MIT */
/* A region's counter as CUDA's kernels see it. */
#ifndef TSHARE_CUDA_COUNTER_H
#define TSHARE_CUDA_COUNTER_H

struct tshare_region;

/* For a region that nobody uses any more, before its counter is unmapped. */
void cuda_counter_release(struct tshare_region *region);

#endif /* TSHARE_CUDA_COUNTER_H */
