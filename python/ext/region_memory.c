// SPDX-License-Identifier: MIT
/* The memory of a Region as a whole: its bytes, and files that are read into it. */
#include "region_memory.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "errors.h"
#include "gil.h"
#include "region.h"
#include "tensor.h"

/* The buffer holds a reference to the memory, and doesn't prevent close(). */
int ts_region_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	struct tshare_region *handle;

	view->obj = NULL;
	handle = ts_region_handle(self);
	if (!handle)
		return -1;
	if (PyBuffer_FillInfo(view, self, tshare_region_get_data(handle),
			      tshare_region_get_size(handle), tshare_region_is_readonly(handle),
			      flags) < 0)
		return -1;
	view->internal = tshare_region_ref(handle);
	return 0;
}

void ts_region_releasebuffer(PyObject *Py_UNUSED(self), Py_buffer *view)
{
	ts_region_unref(view->internal);
}

/* The argument of the library's progress function, whose caller has released the GIL. */
struct progress {
	PyThreadState *state;
	PyObject *function; /* or NULL */
};

static int report(void *data, uint64_t done)
{
	struct progress *progress = data;
	PyObject *result;
	int err;

	PyEval_RestoreThread(progress->state);
	err = PyErr_CheckSignals();
	if (!err && progress->function) {
		result = PyObject_CallFunction(progress->function, "K", (unsigned long long)done);
		err = result ? 0 : -1;
		Py_XDECREF(result);
	}
	progress->state = PyEval_SaveThread();
	return err;
}

struct part {
	int fd;
	int64_t file_offset;
	int64_t offset;
	int64_t length;
};

/* The end of the region's last tensor or, without tensors, the start of its last page. */
static int find_end(struct tshare_region *handle, int64_t *end)
{
	size_t count = tshare_region_get_tensor_count(handle), i;
	int64_t first, last;

	*end = count ? 0 : tshare_region_get_size(handle) - sysconf(_SC_PAGESIZE);
	for (i = 0; i < count; i++) {
		struct tshare_tensor *tensor;
		int err = tshare_region_get_tensor(handle, i, &tensor);

		if (err < 0) {
			ts_raise(err, NULL);
			return -1;
		}
		if (tshare_tensor_get_nbytes(tensor)) {
			ts_tensor_extent(tensor, &first, &last);
			*end = last > *end ? last : *end;
		}
		ts_tensor_unref(tensor);
	}
	return 0;
}

/*
 * The length up to the region's end; or to the file's end, if no tensor has bytes beyond it. A
 * region is whole pages, and a file seldom is.
 */
static int find_length(struct tshare_region *handle, struct part *part)
{
	struct stat file;
	int64_t end, left;

	part->length = tshare_region_get_size(handle) - part->offset;
	if (fstat(part->fd, &file) || !S_ISREG(file.st_mode))
		return 0;
	left = file.st_size - part->file_offset;
	if (left <= 0 || left >= part->length)
		return 0;
	if (find_end(handle, &end) < 0)
		return -1;
	if (part->offset + left >= end)
		part->length = left;
	return 0;
}

static int parse_part(struct tshare_region *handle, PyObject *const *given, struct part *part)
{
	int64_t size = tshare_region_get_size(handle);

	*part = (struct part){ 0 };
	if (ts_need_arg(given[0], "read", "fd") < 0)
		return -1;
	part->fd = ts_fd_arg(given[0], "fd");
	if (part->fd < 0)
		return -1;
	if ((given[1] &&
	     ts_int_arg(given[1], "file_offset", 0, INT64_MAX, &part->file_offset) < 0) ||
	    (given[2] && ts_int_arg(given[2], "offset", 0, size, &part->offset) < 0))
		return -1;
	if (ts_none(given[3]))
		return find_length(handle, part);
	return ts_int_arg(given[3], "length", 0, INT64_MAX, &part->length);
}

static int parse_options(PyObject *const *given, struct tshare_read_options *options,
			 struct progress *progress)
{
	int64_t threads = 0;
	bool direct;

	if ((!ts_none(given[0]) && ts_int_arg(given[0], "threads", 1, 64, &threads) < 0) ||
	    ts_bool_arg(given[1], "direct", &direct) < 0)
		return -1;
	if (!ts_none(given[2])) {
		if (!PyCallable_Check(given[2])) {
			PyErr_Format(PyExc_TypeError, "progress: must be callable, not %R",
				     Py_TYPE(given[2]));
			return -1;
		}
		progress->function = given[2];
	}
	options->threads = threads;
	options->flags = direct ? TSHARE_DIRECT : 0;
	return 0;
}

PyObject *ts_region_read(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	static const char *const names[] = { "fd",	"file_offset", "offset",  "length",
					     "threads", "direct",      "progress" };
	struct tshare_region *handle = ts_region_handle(self);
	struct progress progress = { 0 };
	struct tshare_read_options options = {
		.size = sizeof(options),
		.progress = report,
		.data = &progress,
	};
	PyObject *given[7];
	struct part part;
	int err;

	if (!handle)
		return NULL;
	/* close() may come from an argument, from progress, and while the GIL is released. */
	tshare_region_ref(handle);
	if (ts_parse("read", args, nargs, kwnames, names, 4, 7, given) < 0 ||
	    parse_part(handle, given, &part) < 0 ||
	    parse_options(given + 4, &options, &progress) < 0) {
		ts_region_unref(handle);
		return NULL;
	}
	progress.state = PyEval_SaveThread();
	err = tshare_region_read(handle, part.fd, part.file_offset, part.offset, part.length,
				 &options);
	tshare_region_unref(handle);
	PyEval_RestoreThread(progress.state);
	/* A signal handler or progress has raised an exception. */
	if (err == -ECANCELED)
		return NULL;
	if (err < 0)
		return ts_raise(err, NULL);
	Py_RETURN_NONE;
}
