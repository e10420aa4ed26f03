// SPDX-License-Identifier: MIT
/* A context's messages. */
#define _GNU_SOURCE 1
#include <errno.h>
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

int log_check_priority(int priority, const char *argument)
{
	if (priority < 0 || priority > LOG_DEBUG)
		return tshare_fail(-EINVAL, "%s: %d is not 0 to LOG_DEBUG", argument, priority);
	return 0;
}

void log_set_fn(struct tshare_ctx *ctx, tshare_log_fn fn, void *data, int priority)
{
	ctx->log_fn = fn;
	ctx->log_data = data;
	ctx->log_priority = priority ? priority : priority_from_environment();
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
	bool wanted;
	void *data;

	/* The function is called without the lock: it may well replace itself. */
	tshare_lock();
	wanted = priority <= ctx->log_priority;
	fn = ctx->log_fn;
	data = ctx->log_data;
	calls += wanted && fn;
	tshare_unlock();
	if (!wanted)
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
int tshare_ctx_set_log_fn(struct tshare_ctx *ctx, tshare_log_fn fn, void *data, int priority)
{
	int err = log_check_priority(priority, "priority");

	if (err)
		return err;
	tshare_lock();
	log_set_fn(ctx, fn, data, priority);
	/* It may be such a function that replaces itself. */
	while (calls && !own_calls)
		tshare_lock_wait(&calls_ended);
	tshare_unlock();
	return 0;
}
