// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/process.h"
#include "base/thread.h"

/* A call of the function of @log, on the stack of the thread that makes it. */
struct call {
	LIST_ENTRY(call) entry;
	struct call *outer; /* the thread has logged this message in its function */
	const struct log *log;
};

/* The calls of all threads, under the process's lock; and this thread's innermost one. */
static LIST_HEAD(, call) calls = LIST_HEAD_INITIALIZER(calls);
static _Thread_local struct call *own_call;
static pthread_cond_t calls_ended = PTHREAD_COND_INITIALIZER;

/* A child has only the calls of the thread that forked. */
static void after_fork_in_child(void)
{
	struct call *call;

	LIST_INIT(&calls);
	for (call = own_call; call; call = call->outer)
		LIST_INSERT_HEAD(&calls, call, entry);
	calls_ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

static const struct process_hooks hooks = { .in_child = after_fork_in_child };

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
		return fail(-EINVAL, "%s: %d is not 0 to LOG_DEBUG", argument, priority);
	return 0;
}

void log_init(struct log *log, tshare_log_fn fn, void *data, int priority)
{
	log->fn = fn;
	log->data = data;
	log->priority = priority ? priority : priority_from_environment();
}

/* With the process's lock held. */
static void call_begin(struct call *call)
{
	process_join(PROCESS_LOG, &hooks);
	call->outer = own_call;
	own_call = call;
	LIST_INSERT_HEAD(&calls, call, entry);
}

/* A thread that was cancelled in @fn would count as being in it for ever. */
static void call_run(struct call *call, tshare_log_fn fn, void *data, int priority,
		     const char *text)
{
	no_cancellation();
	fn(data, priority, text);
	process_lock();
	own_call = call->outer;
	LIST_REMOVE(call, entry);
	pthread_cond_broadcast(&calls_ended);
	process_unlock();
}

/* Whether a thread is in a function of @log. With the process's lock held. */
static bool is_called(const struct log *log)
{
	const struct call *call;

	LIST_FOREACH(call, &calls, entry)
	if (call->log == log)
		break;
	return call;
}

void log_message(struct log *log, int priority, const char *format, ...)
{
	struct call call = { .log = log };
	char text[512];
	tshare_log_fn fn;
	va_list args;
	bool wanted;
	void *data;

	/* The function is called without the lock: it may well replace itself. */
	process_lock();
	wanted = priority <= log->priority;
	fn = log->fn;
	data = log->data;
	if (wanted && fn)
		call_begin(&call);
	process_unlock();
	if (!wanted)
		return;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	make_printable(text);
	if (fn)
		call_run(&call, fn, data, priority, text);
	else
		fprintf(stderr, "tshare: %s\n", text);
}

void log_replace(struct log *log, tshare_log_fn fn, void *data, int priority)
{
	process_lock();
	log_init(log, fn, data, priority);
	/* A log function that replaces itself doesn't wait. */
	while (is_called(log) && !own_call)
		process_lock_wait(&calls_ended);
	process_unlock();
}
