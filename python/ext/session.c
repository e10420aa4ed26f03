// SPDX-License-Identifier: MIT
/*
 * The process's context.
 *
 * It is opened by the first call that needs it, once, as the GIL is held. It lives until the
 * interpreter is finalised, and so do the names of its regions. A child of fork() opens a context
 * of its own: names that the child makes end with the child, and not with the last process that has
 * its parent's context.
 */
#include "session.h"

#include <pthread.h>

#include "errors.h"

static struct tshare_ctx *session;
static bool inherited;

static void after_fork(void)
{
	inherited = true;
}

/* Runs after the last Python object ended; objects that are still alive hold it until exit. */
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

struct tshare_ctx *ts_hold_session(void)
{
	struct tshare_ctx *ctx = ts_session();

	return ctx ? tshare_ctx_ref(ctx) : NULL;
}
