// SPDX-License-Identifier: MIT
/*
 * Releases the GIL while references to regions are dropped.
 *
 * Dropping the last reference unregisters the memory with CUDA, and the driver may take long.
 * Without pin() or cuda() no memory is registered, and the rest is faster than a release of the
 * GIL.
 */
#define _GNU_SOURCE 1
#include "gil.h"

#include <dlfcn.h>

atomic_bool ts_cuda_used;
static PyThreadState *(*get_current)(void);

/*
 * Python keeps a state for each thread that it knows, and which state is current. This thread holds
 * the GIL if both are the same. After the interpreter's end it has no state.
 */
static bool is_held(void)
{
	PyThreadState *own = PyGILState_GetThisThreadState();

	return own && get_current && get_current() == own;
}

PyThreadState *ts_gil_release_if_held(void)
{
	return is_held() ? PyEval_SaveThread() : NULL;
}

void ts_tensor_unref(struct tshare_tensor *handle)
{
	PyThreadState *state = ts_gil_release();

	tshare_tensor_unref(handle);
	ts_gil_restore(state);
}

void ts_region_unref(struct tshare_region *handle)
{
	PyThreadState *state = ts_gil_release();

	tshare_region_unref(handle);
	ts_gil_restore(state);
}

void ts_pin_unref(struct tshare_pin *handle)
{
	PyThreadState *state = ts_gil_release();

	tshare_pin_unref(handle);
	ts_gil_restore(state);
}

void ts_cuda_copy_unref(struct tshare_cuda_copy *handle)
{
	PyThreadState *state = ts_gil_release();

	tshare_cuda_copy_unref(handle);
	ts_gil_restore(state);
}

void ts_frame_unref(struct tshare_frame *handle)
{
	PyThreadState *state = ts_gil_release();

	tshare_frame_unref(handle);
	ts_gil_restore(state);
}

void ts_stream_unref(struct tshare_stream *handle)
{
	PyThreadState *state = ts_gil_release();

	tshare_stream_unref(handle);
	ts_gil_restore(state);
}

void ts_entry_unref(struct tshare_entry *handle)
{
	PyThreadState *state = ts_gil_release();

	tshare_entry_unref(handle);
	ts_gil_restore(state);
}

void ts_pool_unref(struct tshare_pool *handle)
{
	PyThreadState *state = ts_gil_release();

	tshare_pool_unref(handle);
	ts_gil_restore(state);
}

/* The limited API lacks this function, which is public since Python 3.13. */
void ts_gil_init(void)
{
	*(void **)&get_current = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
	if (!get_current)
		*(void **)&get_current = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
}
