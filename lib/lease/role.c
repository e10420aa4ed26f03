// SPDX-License-Identifier: MIT
#include "lease/role.h"

#include <errno.h>

#include "base/error.h"

int role_fail_child(void)
{
	return fail(-EOPNOTSUPP, "stream: belongs to the parent of this process; open it anew");
}

int role_fail_wait(int err)
{
	switch (err) {
	case -ECANCELED:
		return fail(err, "stream: the wait was cancelled");
	case -EOWNERDEAD:
		return fail(err, "stream: the producer has exited");
	default:
		return err;
	}
}

static int check(const struct tshare_stream *stream, bool producer)
{
	static const char *const names[] = { "producer", "consumer", "observer" };

	if (producer != (stream->role == STREAM_PRODUCER))
		return fail(-EACCES, "stream: this object is the stream's %s", names[stream->role]);
	return seats_is_child(&stream->seats) ? role_fail_child() : 0;
}

int role_check_producer(const struct tshare_stream *stream)
{
	return check(stream, true);
}

int role_check_reader(const struct tshare_stream *stream)
{
	return check(stream, false);
}
