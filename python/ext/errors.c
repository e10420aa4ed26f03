// SPDX-License-Identifier: MIT
/* The library's errors as Python's. */
#include "errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

PyObject *ts_text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, strlen(text), "surrogateescape");
}

/* Words of the library's texts, and what a caller in Python calls them. */
struct words {
	const char *library;
	const char *python;
};

static const struct words *find_start(const char *text, const struct words *words)
{
	for (; words->library; words++)
		if (!strncmp(text, words->library, strlen(words->library)))
			return words;
	return NULL;
}

static const struct words *find_end(const char *text)
{
	static const struct words ends[] = {
		{ "the name over (TSHARE_REPLACE)", "the name over (exist_ok=True)" },
		{ "(TSHARE_REPLACE)", "(exist_ok=True; replace=True in finish())" },
		{ "use TSHARE_LIFETIME_PERSIST", "use 'persist'" },
		{ "set TSHARE_LIFETIME_MAKER", "pass 'maker'" },
		{ "set TSHARE_READONLY", "pass readonly=True" },
		{ "doesn't allow TSHARE_KEEP_ALL", "doesn't allow it" },
		{ "(TSHARE_OBSERVE)", "(observe=True)" },
		{ "(options.hold)", "(hold=)" },
	};
	size_t i, length = strlen(text);

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (length >= strlen(ends[i].library) &&
		    !strcmp(text + length - strlen(ends[i].library), ends[i].library))
			return &ends[i];
	return NULL;
}

/* The text with its start and its end replaced: new reference. */
static PyObject *translate(const char *text, const struct words *start)
{
	const struct words *end = find_end(text);
	size_t skipped = start ? strlen(start->library) : 0;
	size_t length = strlen(text) - skipped - (end ? strlen(end->library) : 0);
	PyObject *rest, *result;

	rest = PyUnicode_DecodeUTF8(text + skipped, length, "surrogateescape");
	if (!rest)
		return NULL;
	result = PyUnicode_FromFormat("%s%U%s", start ? start->python : "", rest,
				      end ? end->python : "");
	Py_DECREF(rest);
	return result;
}

/*
 * Translates the members of structures and the flags in a text of the library to arguments:
 * "options.flags: TSHARE_DMA32 is not supported" becomes "dma32: is not supported". New reference.
 */
static PyObject *in_words_of_python(const char *text)
{
	static const struct words arguments[] = {
		{ "options.flags: TSHARE_CONTIGUOUS", "contiguous:" },
		{ "options.flags: TSHARE_DMA32", "dma32:" },
		{ "options.flags: TSHARE_DRAFT", "draft:" },
		{ "options.flags: TSHARE_NODE", "node:" },
		{ "options.flags: TSHARE_REPLACE", "exist_ok:" },
		{ "options.flags: an observer", "keep_all: an observer" },
		{ "options.flags: the producer", "keep_all: the producer" },
		{ "options.", "" },
		{ "byte_offset:", "offset:" },
		{ "flags: the region is read-only;", "readonly: the region is read-only;" },
		{ NULL, NULL },
	};

	return translate(text, find_start(text, arguments));
}

/* Appends the limit that was reached to the text. Takes over the reference. */
static PyObject *say_how_many_files(PyObject *text)
{
	PyObject *longer;
	struct rlimit limit;

	if (!text || getrlimit(RLIMIT_NOFILE, &limit))
		return text;
	longer = PyUnicode_FromFormat("%U: all that RLIMIT_NOFILE allows, %llu, are in use", text,
				      (unsigned long long)limit.rlim_cur);
	Py_DECREF(text);
	return longer;
}

/* Takes over the reference to the text; NULL if that couldn't be made. Returns NULL. */
static PyObject *raise_text(int err, PyObject *text, PyObject *filename)
{
	PyObject *error;

	if (err == -EMFILE)
		text = say_how_many_files(text);
	if (!text)
		return NULL;
	switch (-err) {
	case EINVAL:
	case ENAMETOOLONG:
	case ERANGE:
		PyErr_SetObject(PyExc_ValueError, text);
		break;
	default:
		/* OSError picks its subclass by errno: FileNotFoundError and so on. */
		error = PyObject_CallFunction(PyExc_OSError, filename ? "iOO" : "iO", -err, text,
					      filename);
		if (error) {
			PyErr_SetObject((PyObject *)Py_TYPE(error), error);
			Py_DECREF(error);
		}
	}
	Py_DECREF(text);
	return NULL;
}

/* As in_words_of_python(), for one tensor of @argument. */
static PyObject *in_words_of_tensor(const char *text, const char *argument,
				    const struct tshare_spec *spec)
{
	PyObject *what, *key, *result = NULL;

	what = in_words_of_python(text);
	key = ts_text(spec->name);
	if (what && key)
		result = PyUnicode_FromFormat("%s: %R: %U", argument, key, what);
	Py_XDECREF(what);
	Py_XDECREF(key);
	return result;
}

static PyObject *in_words_of_create(const char *text, const char *argument,
				    const struct tshare_spec *specs, size_t count)
{
	char named[32];
	const struct words arguments[] = {
		{ "fd: ", "dmabuf: " },
		{ "count: ", named },
		{ "fields: ", named },
		{ "specs: ", named },
		{ "name: is NULL", "name: is None" },
		{ NULL, NULL },
	};
	const struct words *start;
	int length = 0;
	size_t i;

	snprintf(named, sizeof(named), "%s: ", argument);
	if ((sscanf(text, "specs[%zu].%n", &i, &length) == 1 ||
	     sscanf(text, "fields[%zu].%n", &i, &length) == 1) &&
	    length && i < count)
		return in_words_of_tensor(text + length, argument, &specs[i]);
	start = find_start(text, arguments);
	return start ? translate(text, start) : in_words_of_python(text);
}

/* The library's text; it has none if it ran out of memory. */
static const char *reason_of(int err)
{
	const char *reason = tshare_error_get();

	return *reason ? reason : strerror(-err);
}

PyObject *ts_raise(int err, PyObject *filename)
{
	return raise_text(err, in_words_of_python(reason_of(err)), filename);
}

PyObject *ts_raise_as(PyObject *type)
{
	PyObject *text = ts_text(tshare_error_get());

	if (text)
		PyErr_SetObject(type, text);
	Py_XDECREF(text);
	return NULL;
}

PyObject *ts_raise_of_create(int err, PyObject *filename, const char *argument,
			     const struct tshare_spec *specs, size_t count)
{
	return raise_text(err, in_words_of_create(reason_of(err), argument, specs, count),
			  filename);
}

/* Drops the "x: " of an array that is an argument. Takes over the reference to the text. */
static PyObject *without_x(PyObject *text)
{
	PyObject *x = text ? PyUnicode_FromString("x: ") : NULL, *rest;
	Py_ssize_t found = x ? PyUnicode_Tailmatch(text, x, 0, PY_SSIZE_T_MAX, -1) : -1;

	Py_XDECREF(x);
	if (!found)
		return text;
	rest = found > 0 ? PyUnicode_Substring(text, strlen("x: "), PY_SSIZE_T_MAX) : NULL;
	Py_XDECREF(text);
	return rest;
}

void ts_raise_within(const char *format, ...)
{
	PyObject *type, *value, *traceback, *prefix, *text;
	va_list args;

	PyErr_Fetch(&type, &value, &traceback);
	/* Other exceptions may have more than a text, or another origin. */
	if (type != PyExc_BufferError && type != PyExc_TypeError && type != PyExc_ValueError) {
		PyErr_Restore(type, value, traceback);
		return;
	}
	va_start(args, format);
	prefix = PyUnicode_FromFormatV(format, args);
	va_end(args);
	text = without_x(prefix ? PyObject_Str(value ? value : type) : NULL);
	if (text)
		PyErr_Format(type, "%U%U", prefix, text);
	Py_XDECREF(prefix);
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
}
