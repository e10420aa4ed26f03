/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_REGION_H
#define TSHARE_REGION_H

#include <stdatomic.h>

#include "backend.h"
#include "generation.h"

struct tshare_region {
	atomic_uint refs;
	struct tshare_ctx *ctx;
	const struct backend_ops *backend; /* another one than the context's after an import */
	struct backend_region handle;
	void *data;
	bool readonly;		   /* the mapping, maybe of a writable descriptor */
	_Atomic(uint32_t *) index; /* see names.h; made when first needed */
	struct generation generation;
};

#endif /* TSHARE_REGION_H */
