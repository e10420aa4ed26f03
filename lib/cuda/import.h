/* SPDX-License-Identifier: MIT */
/* A region's imports: how CUDA devices reach it until it is unmapped. */
#ifndef TSHARE_CUDA_IMPORT_H
#define TSHARE_CUDA_IMPORT_H

#include <sys/queue.h>

struct cuda_import;
struct tshare_region;

/* Protected by registration_lock(). */
SLIST_HEAD(cuda_imports, cuda_import);

/* Undoes the imports of a region that is being freed, before it is unmapped. */
void cuda_imports_release(struct tshare_region *region);

#endif /* TSHARE_CUDA_IMPORT_H */
