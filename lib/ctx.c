// SPDX-License-Identifier: MIT
/* Contexts: a session with one of the backends. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/fd.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "ctx.h"
#include "format/region-name.h"

const struct backend_ops *const backends[] = {
	&backend_kmod,
	&backend_shm,
	NULL,
};

static int open_session(struct tshare_ctx *ctx, const struct backend_ops *backend)
{
	int err;

	err = backend->open(&ctx->session, &ctx->page_size, &ctx->huge_page_size);
	if (err)
		return err;
	ctx->backend = backend;
	/* Now, as the thread may move to another namespace. A program that asks gets the error. */
	if (backend->name_space(ctx->session, ctx->name_space)) {
		*ctx->name_space = '\0';
		error_clear();
	}
	return 0;
}

static int open_named_session(struct tshare_ctx *ctx, const char *name, const char *source)
{
	size_t i;

	for (i = 0; backends[i]; i++)
		if (!strcmp(backends[i]->name, name))
			return open_session(ctx, backends[i]);
	return fail(-EINVAL, "%s: '%s' is neither \"kmod\" nor \"shm\"", source, name);
}

/*
 * A missing backend is normal. If a backend exists but can't be used, warn: the fallback
 * can't find its regions. A process warns once.
 */
static int refusal_priority(int err)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;

	if (err == -ENODEV)
		return LOG_INFO;
	return atomic_flag_test_and_set(&warned) ? LOG_NOTICE : LOG_WARNING;
}

/* Logs why each better backend is unavailable; the caller reports the last one's error. */
static int open_best_session(struct tshare_ctx *ctx)
{
	int err = -ENODEV;
	size_t i;

	for (i = 0; backends[i]; i++) {
		err = open_session(ctx, backends[i]);
		if (!err) {
			error_clear();
			return 0;
		}
		log_message(&ctx->log, refusal_priority(err), "%s is not used: %s",
			    backends[i]->name, tshare_error_get());
	}
	return err;
}

static int open_any_session(struct tshare_ctx *ctx, const char *backend)
{
	const char *forced = secure_getenv("TSHARE_BACKEND");

	if (backend)
		return open_named_session(ctx, backend, "options.backend");
	if (forced && *forced)
		return open_named_session(ctx, forced, "TSHARE_BACKEND");
	return open_best_session(ctx);
}

static int read_options(const struct tshare_ctx_options *options, struct tshare_ctx_options *known)
{
	int err;

	*known = (struct tshare_ctx_options){ .size = sizeof(*known) };
	if (!options)
		return 0;
	err = sized_read(options, "options.", SIZED_UPTO(struct tshare_ctx_options, backend), known,
			 sizeof(*known));
	if (err)
		return err;
	if (known->flags)
		return fail(-EINVAL, "options.flags: unknown flag in %#" PRIx32, known->flags);
	return log_check_priority(known->log_priority, "options.log_priority");
}

TSHARE_EXPORT
int tshare_ctx_new(const struct tshare_ctx_options *options, struct tshare_ctx **ctx)
{
	_cleanup_free_ struct tshare_ctx *new = NULL;
	struct tshare_ctx_options known;
	int err;

	err = read_options(options, &known);
	if (err)
		return err;
	new = calloc(1, sizeof(*new));
	if (!new)
		return fail(-ENOMEM, "ctx: out of memory");
	atomic_init(&new->refs, 1);
	/* First, since opening a session logs through it. */
	log_init(&new->log, known.log_fn, known.log_data, known.log_priority);
	err = open_any_session(new, known.backend);
	if (err)
		return err;
	*ctx = no_cleanup(new);
	return 0;
}

TSHARE_EXPORT
int tshare_ctx_set_log_fn(struct tshare_ctx *ctx, tshare_log_fn fn, void *data, int priority)
{
	int err = log_check_priority(priority, "priority");

	if (!err)
		log_replace(&ctx->log, fn, data, priority);
	return err;
}

TSHARE_EXPORT
struct tshare_ctx *tshare_ctx_ref(struct tshare_ctx *ctx)
{
	refcount_get(&ctx->refs);
	return ctx;
}

TSHARE_EXPORT
struct tshare_ctx *tshare_ctx_unref(struct tshare_ctx *ctx)
{
	keep_errno();

	if (!ctx || !refcount_put(&ctx->refs))
		return NULL;
	ctx->backend->close(ctx->session);
	free(ctx);
	return NULL;
}

TSHARE_EXPORT
const char *tshare_ctx_get_backend(const struct tshare_ctx *ctx)
{
	return ctx->backend->name;
}

TSHARE_EXPORT
int tshare_ctx_get_limits(struct tshare_ctx *ctx, struct tshare_limits *limits)
{
	struct tshare_limits known;
	int err;

	err = sized_check(limits, "limits.", SIZED_UPTO(struct tshare_limits, region_bytes_max));
	if (!err)
		err = ctx->backend->limits(ctx->session, &known);
	if (err)
		return err;
	known.dmabuf = ctx->backend->has_dmabufs;
	sized_fill(limits, &known, sizeof(known));
	return 0;
}

/* Stores the kernel's name of this boot, the first line of a file. */
static int read_boot_id(char *id, int size)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	_cleanup_fclose_ FILE *file = fd_fopen(path);

	if (!file)
		return fail(-errno, "%s: %s", path, strerror(errno));
	if (!fgets(id, size, file))
		return fail(-EIO, "%s: can't be read", path);
	id[strcspn(id, "\n")] = '\0';
	return 0;
}

TSHARE_EXPORT
int tshare_ctx_get_host_id(struct tshare_ctx *ctx, char *id)
{
	char boot[40];
	int err;

	if (!*ctx->name_space)
		return fail(-ENOENT,
			    "ctx: the namespace of its names is unknown (is /proc there?)");
	err = read_boot_id(boot, sizeof(boot));
	if (err)
		return err;
	snprintf(id, TSHARE_HOST_ID_MAX + 1, "%s/%s:%s", boot, ctx->backend->name, ctx->name_space);
	return 0;
}

int ctx_fail_name(const struct tshare_ctx *ctx, int err, const char *name)
{
	if (err != -ENOENT)
		return err;
	return fail(err, "name: there is no region '%s' on %s", name, ctx->backend->name);
}

TSHARE_EXPORT
int tshare_ctx_unlink(struct tshare_ctx *ctx, const char *name)
{
	char checked[TSHARE_NAME_LEN];
	int err;

	err = region_name_copy(checked, name);
	if (err)
		return err;
	return ctx_fail_name(ctx, ctx->backend->unlink(ctx->session, checked), checked);
}

TSHARE_EXPORT
int tshare_ctx_list(struct tshare_ctx *ctx,
		    int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	return ctx->backend->list(ctx->session, fn, data);
}

TSHARE_EXPORT
int tshare_ctx_list_all(struct tshare_ctx *ctx,
			int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	if (!ctx->backend->list_all)
		return fail(-EOPNOTSUPP, "regions on %s belong to no IPC namespace",
			    ctx->backend->name);
	return ctx->backend->list_all(ctx->session, fn, data);
}

TSHARE_EXPORT
int tshare_ctx_unlink_id(struct tshare_ctx *ctx, uint64_t id)
{
	if (!ctx->backend->unlink_id)
		return fail(-EOPNOTSUPP, "regions on %s are not found by an id",
			    ctx->backend->name);
	if (!id)
		return fail(-EINVAL, "id: is 0");
	return ctx->backend->unlink_id(ctx->session, id);
}
