// SPDX-License-Identifier: MIT
/* A context's messages. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctx.h"
#include "error.h"
#include "export.h"
#include "lock.h"
#include "log.h"

/*
 * Calls of log functions that are going on, under the process's lock, and those
 * of them that this thread is in.
 */
static unsigned int calls;
static _Thread_local unsigned int own_calls;
static pthread_cond_t calls_ended = PTHREAD_COND_INITIALIZER;

/* Of the threads that were in a log function, a child has its own alone. */
static void after_fork_in_child(void)
{
	calls = own_calls;
	calls_ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

static int priority_from_environment(void)
{
	static const char *const names[] = {
		[LOG_ERR] = "error", [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
		[LOG_INFO] = "info", [LOG_DEBUG] = "debug",
	};
	const char *value = secure_getenv("TSHARE_LOG");
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

/* A thread that was cancelled in @fn would count as being in it for ever. */
static void call(tshare_log_fn fn, void *data, int priority, const char *text)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	own_calls++;
	fn(data, priority, text);
	own_calls--;
	tshare_lock();
	if (!--calls)
		pthread_cond_broadcast(&calls_ended);
	tshare_unlock();
	pthread_setcancelstate(state, &state);
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
	calls += !!fn;
	tshare_unlock();
	if (!fn && priority > ctx->log_priority)
		return;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tshare_make_printable(text);
	if (fn)
		call(fn, data, priority, text);
	else
		fprintf(stderr, "tshare: %s\n", text);
}

TSHARE_EXPORT
void tshare_ctx_set_log_fn(struct tshare_ctx *ctx, tshare_log_fn fn, void *data)
{
	tshare_lock();
	ctx->log_fn = fn;
	ctx->log_data = data;
	/* It may be such a function that replaces itself. */
	while (calls && !own_calls)
		tshare_lock_wait(&calls_ended);
	tshare_unlock();
}
