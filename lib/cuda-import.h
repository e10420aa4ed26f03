/* SPDX-License-Identifier: MIT */
/* What CUDA's devices have been given of a region, until it is unmapped. */
#ifndef TSHARE_CUDA_IMPORT_H
#define TSHARE_CUDA_IMPORT_H

#include <sys/queue.h>

struct cuda_import;
struct tshare_region;

/* Of the thread that has the region's registration locked. */
SLIST_HEAD(cuda_imports, cuda_import);

/* For a region that nobody uses any more, before it is unmapped. */
void cuda_imports_release(struct tshare_region *region);

#endif /* TSHARE_CUDA_IMPORT_H */
