// SPDX-License-Identifier: MIT
/*
 * The process's context.
 *
 * Opened at the first call that needs it, and kept until the interpreter is
 * finalised, as the names of its regions are. The GIL makes the opening happen
 * once. A child of fork() shares it.
 */
#include "ext.h"

static struct tshare_ctx *session;

/* After the last Python object: what is still alive then holds it until exit. */
static void end_session(void)
{
	session = tshare_ctx_unref(session);
}

struct tshare_ctx *ts_session(void)
{
	struct tshare_ctx *ctx;
	int err;

	if (session)
		return session;
	err = tshare_ctx_new(&ctx);
	if (err < 0) {
		ts_raise(err, NULL);
		return NULL;
	}
	session = ctx;
	/* If there is no room for one more, the kernel ends it a little later. */
	Py_AtExit(end_session);
	return session;
}
