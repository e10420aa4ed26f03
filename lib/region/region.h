/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_REGION_REGION_H
#define TSHARE_REGION_REGION_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "cuda/import.h"
#include "cuda/registration.h"
#include "generation/generation.h"

struct tshare_region {
	atomic_uint refs;
	struct tshare_ctx *ctx;
	const struct backend_ops *backend; /* may differ from the context's after an import */
	struct backend_region handle;
	void *data;
	bool readonly;			   /* the mapping is, maybe not the descriptor */
	bool replaces;			   /* created with TSHARE_REPLACE, for its finish */
	_Atomic(struct desc_list *) descs; /* see region_descs() */
	struct generation generation;
	struct registration registration;
	struct cuda_imports imports;
};

/*
 * Stores the descriptors of a region that has tensors. The first thread that calls this
 * reads and checks them, unless the region was opened with them: -EPROTO, -ENOMEM, or
 * what the backend returns.
 */
int region_descs(struct tshare_region *region, struct desc_list **result);

/* Copies the caller's options, with zeros for missing members, or the defaults for NULL. */
int options_read(const struct tshare_options *options, struct tshare_options *known);

#endif /* TSHARE_REGION_REGION_H */
