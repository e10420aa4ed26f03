// SPDX-License-Identifier: MIT
/*
 * Streams that publish: by a host function, because a device's store would wake no sleeper.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "base/error.h"
#include "base/export.h"
#include "base/process.h"
#include "cuda/driver.h"
#include "cuda/reaper.h"
#include "cuda/scope.h"
#include "cuda/wait.h"
#include "generation/publisher.h"
#include "region/object.h"

struct stream_publish {
	struct reaped reaped;
	struct tshare_region *region;
};

static void drop_publish(struct reaped *reaped)
{
	struct stream_publish *publish = container_of(reaped, struct stream_publish, reaped);

	tshare_region_unref(publish->region);
	free(publish);
}

/* Runs in a thread of the driver. put_publish() has done what can fail. */
static void publish_now(void *data)
{
	struct stream_publish *publish = data;

	tshare_region_publish(publish->region, NULL);
	process_lock();
	reaper_add(&publish->reaped);
	process_unlock();
}

static int put_publish(struct stream_publish *publish, struct CUstream_st *stream)
{
	int err;

	stream_watch_exit();
	process_lock();
	err = publisher_start(publish->region);
	if (!err)
		err = reaper_start();
	process_unlock();
	if (err)
		return err;
	err = cuda_stream_call(stream, publish_now, publish);
	return err ? cuda_fail(err, "stream") : 0;
}

TSHARE_EXPORT
int tshare_region_publish_on(struct tshare_region *region,
			     const struct tshare_cuda_options *options, struct CUstream_st *stream)
{
	_cleanup_free_ struct stream_publish *publish = NULL;
	struct cuda_scope scope;
	int err;

	if (region->readonly)
		return fail(-EACCES, "region: is read-only");
	publish = malloc(sizeof(*publish));
	if (!publish)
		return fail(-ENOMEM, "region: out of memory");
	err = stream_enter(&scope, options, stream);
	if (err)
		return err;
	*publish = (struct stream_publish){
		.reaped.drop = drop_publish,
		.region = tshare_region_ref(region),
	};
	err = put_publish(publish, stream);
	cuda_leave(&scope);
	if (err)
		tshare_region_unref(region);
	else
		(void)no_cleanup(publish); /* now the stream's */
	return err;
}
