/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CTX_H
#define TSHARE_CTX_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "log.h"

struct tshare_ctx {
	atomic_uint refs;
	const struct backend_ops *backend;
	void *session;
	uint32_t page_size;
	uint32_t huge_page_size;
	char name_space[BACKEND_NAME_SPACE_LEN]; /* "" if the backend couldn't tell */
	struct log log;
};

/* Returns the session of @ctx, or NULL if it is with another backend. */
static inline void *ctx_session(const struct tshare_ctx *ctx, const struct backend_ops *backend)
{
	return ctx->backend == backend ? ctx->session : NULL;
}

/*
 * Removes what dead processes have left, if a sweep is due: sooner if one has just @died.
 * Returns when the next sweep is due.
 */
static inline int64_t ctx_sweep(const struct tshare_ctx *ctx, bool died)
{
	return ctx->backend->sweep ? ctx->backend->sweep(ctx->session, died) : INT64_MAX;
}

/*
 * Returns @err of an operation on a name. The text of -ENOENT names the backend, since the
 * name may be on the other one.
 */
int ctx_fail_name(const struct tshare_ctx *ctx, int err, const char *name);

/* All backends, best first; NULL ends the list. */
extern const struct backend_ops *const backends[];

#endif /* TSHARE_CTX_H */
