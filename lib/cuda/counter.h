/* SPDX-License-Identifier: MIT */
/* A region's counter, registered for CUDA kernels. */
#ifndef TSHARE_CUDA_COUNTER_H
#define TSHARE_CUDA_COUNTER_H

struct tshare_region;

/* Unregisters the counter of a region that is being freed, before it is unmapped. */
void cuda_counter_release(struct tshare_region *region);

#endif /* TSHARE_CUDA_COUNTER_H */
