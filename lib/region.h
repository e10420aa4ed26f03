/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_REGION_H
#define TSHARE_REGION_H

#include <stdatomic.h>

#include "backend.h"
#include "cuda-import.h"
#include "generation.h"
#include "registration.h"

struct tshare_region {
	atomic_uint refs;
	struct tshare_ctx *ctx;
	const struct backend_ops *backend; /* another one than the context's after an import */
	struct backend_region handle;
	void *data;
	bool readonly;			   /* the mapping, maybe of a writable descriptor */
	bool replaces;			   /* created with TSHARE_REPLACE, for its finish */
	_Atomic(struct desc_list *) descs; /* see region_descs() */
	struct generation generation;
	struct registration registration;
	struct cuda_imports imports;
};

/*
 * The descriptors of a region's tensors, of which there are some. Those that didn't
 * come along when it was opened are read and checked now, by the first thread that asks
 * for them: -EPROTO, -ENOMEM, or what the backend returns.
 */
int region_descs(struct tshare_region *region, struct desc_list **result);

/* Copies what the caller gave, of which members may be missing, or the defaults if it is NULL. */
int options_read(const struct tshare_options *options, struct tshare_options *known);

#endif /* TSHARE_REGION_H */
