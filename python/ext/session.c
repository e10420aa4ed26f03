// SPDX-License-Identifier: MIT
/*
 * The process's context.
 *
 * Opened at the first call that needs it, and kept until the interpreter is
 * finalised, as the names of its regions are. The GIL makes the opening happen
 * once. A child of fork() shares it, until it ends it and so gets its own.
 */
#include "ext.h"

static struct tshare_ctx *session;

/* After the last Python object: what is still alive then holds it until exit. */
static void end_session(void)
{
	session = tshare_ctx_unref(session);
}

/* Live regions keep it; what is made from here on is another session's. */
PyObject *ts_end_session(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	end_session();
	Py_RETURN_NONE;
}

struct tshare_ctx *ts_session(void)
{
	static bool registered;
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
	if (!registered)
		Py_AtExit(end_session);
	registered = true;
	return session;
}
