// SPDX-License-Identifier: MIT
/* A context's messages. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctx.h"
#include "export.h"
#include "lock.h"
#include "log.h"

static int priority_from_environment(void)
{
	static const char *const names[] = {
		[LOG_ERR] = "error", [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
		[LOG_INFO] = "info", [LOG_DEBUG] = "debug",
	};
	const char *value = getenv("TSHARE_LOG");
	int i;

	for (i = LOG_ERR; value && i <= LOG_DEBUG; i++)
		if (!strcmp(value, names[i]))
			return i;
	return LOG_WARNING;
}

void tshare_log_init(struct tshare_ctx *ctx)
{
	ctx->log_priority = priority_from_environment();
}

void tshare_log(struct tshare_ctx *ctx, int priority, const char *format, ...)
{
	char text[512];
	tshare_log_fn fn;
	va_list args;
	void *data;

	/* The function is called without the lock: it may well replace itself. */
	tshare_lock();
	fn = ctx->log_fn;
	data = ctx->log_data;
	tshare_unlock();
	if (!fn && priority > ctx->log_priority)
		return;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (fn)
		fn(data, priority, text);
	else
		fprintf(stderr, "tshare: %s\n", text);
}

TSHARE_EXPORT
void tshare_ctx_set_log_fn(struct tshare_ctx *ctx, tshare_log_fn fn, void *data)
{
	tshare_lock();
	ctx->log_fn = fn;
	ctx->log_data = data;
	tshare_unlock();
}
