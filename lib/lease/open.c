// SPDX-License-Identifier: MIT
/* Opening a stream. */
#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "base/thread.h"
#include "lease/follow.h"
#include "lease/join.h"

static int read_open_options(const struct tshare_stream_open_options *options,
			     struct tshare_stream_open_options *known)
{
	int err = 0;

	*known = (struct tshare_stream_open_options){ 0 };
	if (options)
		err = sized_read(options, "options.",
				 SIZED_UPTO(struct tshare_stream_open_options, timeout_ns), known,
				 sizeof(*known));
	if (err)
		return err;
	if (known->flags & ~(TSHARE_KEEP_ALL | TSHARE_OBSERVE | TSHARE_FOLLOW))
		return fail(-EINVAL, "options.flags: unknown flag in %#" PRIx32, known->flags);
	if (known->flags & TSHARE_KEEP_ALL && known->flags & TSHARE_OBSERVE)
		return fail(-EINVAL, "options.flags: an observer can't keep frames");
	if (known->reserved)
		return fail(-EINVAL, "options.reserved: is not 0");
	return 0;
}

TSHARE_EXPORT
int tshare_stream_open(struct tshare_ctx *ctx, const char *name,
		       const struct tshare_stream_open_options *options,
		       struct tshare_stream **stream)
{
	struct tshare_stream_open_options known;
	struct tshare_stream *new;
	int err;

	no_cancellation();
	err = read_open_options(options, &known);
	if (!err)
		err = join_stream(ctx, name, &known, NULL, &new);
	if (!err && known.flags & TSHARE_FOLLOW)
		err = follow_new(ctx, name, &known, &new);
	if (!err)
		*stream = new;
	return err;
}
