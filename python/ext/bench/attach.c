// SPDX-License-Identifier: MIT
/*
 * tshare.bench._attach: the system calls that attach to a file of shared memory, made
 * from C, as the least that any library can take.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile unsigned char sink;

/* False with errno set. */
static int attach(int directory, const char *path, Py_ssize_t size)
{
	unsigned char *data;
	struct stat st;
	int fd;

	fd = openat(directory, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	/* The last bytes: a region's file begins with a header. */
	data = fstat(fd, &st) ?
		       MAP_FAILED :
		       mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, st.st_size - size);
	if (data != MAP_FAILED) {
		sink = *data;
		munmap(data, size);
	}
	close(fd);
	return data != MAP_FAILED;
}

PyDoc_STRVAR(bare_doc, "bare(directory, path, size, /)\n--\n\n"
		       "Open a file, map its last bytes, read one, unmap and close.\n\n"
		       ":param directory: Descriptor of a directory.\n"
		       ":param path: Path of the file from there.\n"
		       ":param size: Bytes to map, a multiple of the page size.\n"
		       ":raises OSError: A system call failed.");

static PyObject *bare(PyObject *Py_UNUSED(module), PyObject *args)
{
	const char *path;
	Py_ssize_t size;
	int directory;

	if (!PyArg_ParseTuple(args, "isn", &directory, &path, &size))
		return NULL;
	if (!attach(directory, path, size))
		return PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "bare", bare, METH_VARARGS, bare_doc },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "tshare.bench._attach",
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit__attach(void)
{
	return PyModuleDef_Init(&module);
}
