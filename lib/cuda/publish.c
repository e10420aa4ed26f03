// SPDX-License-Identifier: MIT
/* Streams that publish. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "base/error.h"
#include "base/export.h"
#include "base/process.h"
#include "cuda/scope.h"
#include "cuda/task.h"
#include "generation/publisher.h"
#include "region/object.h"

struct stream_publish {
	struct task task;
	struct tshare_region *region;
};

static void drop_publish(struct reaped *reaped)
{
	struct stream_publish *publish = container_of(reaped, struct stream_publish, task.reaped);

	tshare_region_unref(publish->region);
	free(publish);
}

static void publish_now(struct task *task)
{
	tshare_region_publish(container_of(task, struct stream_publish, task)->region, NULL);
}

static int put_publish(struct stream_publish *publish, struct CUstream_st *stream)
{
	int err;

	process_lock();
	err = publisher_start(publish->region);
	process_unlock();
	return err ? err : task_put(&publish->task, stream);
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
		.task = { .run = publish_now, .reaped.drop = drop_publish },
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
