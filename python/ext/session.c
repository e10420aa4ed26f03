// SPDX-License-Identifier: MIT
/*
 * The process's context.
 *
 * Opened at the first call that needs it, and kept until the interpreter is
 * finalised, as the names of its regions are. The GIL makes the opening happen
 * once. A child of fork() opens one of its own: the names that it makes are to
 * go with it, and not with the last of those that have its parent's.
 */
#include "ext.h"

#include <pthread.h>

static struct tshare_ctx *session;
static bool inherited;

static void after_fork(void)
{
	inherited = true;
}

/* After the last Python object; objects that are still alive hold it until exit. */
static void end_session(void)
{
	session = tshare_ctx_unref(session);
}

struct tshare_ctx *ts_session(void)
{
	static bool registered;
	struct tshare_ctx *ctx;
	int err;

	if (session && !inherited)
		return session;
	err = tshare_ctx_new(NULL, &ctx);
	if (err < 0) {
		ts_raise(err, NULL);
		return NULL;
	}
	/* Inherited regions, too, keep the context that they were made in. */
	tshare_ctx_unref(session);
	session = ctx;
	inherited = false;
	if (!registered) {
		/* If the handler can't be registered, the kernel ends the session a little later. */
		Py_AtExit(end_session);
		pthread_atfork(NULL, NULL, after_fork);
	}
	registered = true;
	return session;
}
