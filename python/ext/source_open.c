// SPDX-License-Identifier: MIT
/* Tensors of other libraries: tries the ways to open one in turn. */
#include "source_open.h"

#include "source.h"
#include "source_buffer.h"
#include "source_dlpack.h"
#include "source_interface.h"
#include "source_numpy.h"

static int has_dlpack(PyObject *x)
{
	return PyObject_HasAttrString(x, "__dlpack__");
}

static int has_interface(PyObject *x)
{
	return PyObject_HasAttrString(x, "__array_interface__");
}

/* Protocols in order of preference. A protocol that @x doesn't offer is skipped. */
static const struct {
	int (*offered)(PyObject *x); /* NULL: always */
	int (*open)(PyObject *x, struct ts_source *source);
} ways[] = {
	{ has_dlpack, ts_source_from_dlpack },
	{ PyObject_CheckBuffer, ts_source_from_buffer },
	{ has_interface, ts_source_from_interface },
	{ NULL, ts_source_from_numpy },
};

int ts_source_open(PyObject *x, struct ts_source *source)
{
	PyObject *type = NULL, *value = NULL, *traceback = NULL;
	int err = -1;
	size_t i;

	if (ts_source_check_numpy(x) < 0 || ts_source_check_device(x) < 0)
		return -1;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]) && err == -1; i++) {
		if (ways[i].offered && !ways[i].offered(x))
			continue;
		err = ways[i].open(x, source);
		if (err == -1 && !ts_source_is_unsuited())
			err = TS_SOURCE_FINAL;
		/* Raises the error of the first way, which is the best. */
		if (err == -1 && !type)
			PyErr_Fetch(&type, &value, &traceback);
		else if (err == -1)
			PyErr_Clear();
	}
	if (err == -1) {
		PyErr_Restore(type, value, traceback);
		return -1;
	}
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	return err ? -1 : 0;
}
