// SPDX-License-Identifier: MIT
/* How the driver is loaded, and what its results mean. */
#include "cuda/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/process.h"
#include "cuda/functions.h"

#define LIBRARY "libcuda.so.1"

/* The oldest driver whose functions all have the form that is declared here. */
#define OLDEST_VERSION 11000

struct libcuda libcuda;

/* The state of @libcuda, which changes under the process's lock. */
enum { STOPPED, STARTING, STARTED, FORKED };
static atomic_int state;
static pthread_cond_t start_ended = PTHREAD_COND_INITIALIZER;

/*
 * A child can't use its parent's driver, even one that was only being started. It lacks the
 * threads that waited for the start.
 */
static void after_fork_in_child(void)
{
	if (atomic_load(&state) != STOPPED)
		atomic_store(&state, FORKED);
	start_ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

static const struct process_hooks hooks = { .in_child = after_fork_in_child };

bool cuda_is_forked(void)
{
	return atomic_load(&state) == FORKED;
}

struct function {
	const char *name;
	const char *symbol;
	int since;
	bool newer;
	void *address; /* of the member of @libcuda */
};

#define ENTRY(name, symbol, since, parameters)	     { #name, #symbol, since, false, &libcuda.name },
#define NEWER_ENTRY(name, symbol, since, parameters) { #name, #symbol, since, true, &libcuda.name },

static const struct function functions[] = { CUDA_FUNCTIONS(ENTRY)
						     CUDA_NEWER_FUNCTIONS(NEWER_ENTRY) };

/* Finds a driver's functions: by @find in CUDA 12, @find_11 from 11.3 on, or else dlsym(). */
struct finder {
	void *library;
	CUresult (*find)(const char *name, void **address, int version, uint64_t flags,
			 int *status);
	CUresult (*find_11)(const char *name, void **address, int version, uint64_t flags);
};

static void finder_init(struct finder *finder, void *library)
{
	finder->library = library;
	*(void **)&finder->find = dlsym(library, "cuGetProcAddress_v2");
	*(void **)&finder->find_11 = dlsym(library, "cuGetProcAddress");
}

static void *find_function(const struct finder *finder, const struct function *function)
{
	void *address = NULL;
	CUresult result;
	int status;

	if (finder->find)
		result = finder->find(function->name, &address, function->since, 0, &status);
	else if (finder->find_11)
		result = finder->find_11(function->name, &address, function->since, 0);
	else
		return dlsym(finder->library, function->symbol);
	return result ? NULL : address;
}

const char *cuda_result_name(int result)
{
	static _Thread_local char number[32];
	const char *name;

	if (result < 0)
		return strerror(-result);
	if (libcuda.cuGetErrorName && !libcuda.cuGetErrorName(result, &name) && name)
		return name;
	snprintf(number, sizeof(number), "CUDA error %d", result);
	return number;
}

int cuda_errno(int result)
{
	if (result < 0)
		return result;
	switch (result) {
	case CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
		return -EBUSY;
	default:
		return -EIO;
	}
}

int cuda_fail(int result, const char *what)
{
	return fail(cuda_errno(result), "%s: %s", what, cuda_result_name(result));
}

/* The very first call may already return any of these. */
static int fail_start(CUresult result)
{
	switch (result) {
	case CUDA_ERROR_STUB_LIBRARY:
		return fail(-EOPNOTSUPP, "CUDA: " LIBRARY " is the toolkit's stub for linking, "
					 "not NVIDIA's driver");
	case CUDA_ERROR_NOT_INITIALIZED:
		return fail(-EOPNOTSUPP, "CUDA: this process was forked from one that uses it; "
					 "start it by exec, or by spawn in Python");
	case CUDA_ERROR_NO_DEVICE:
		return fail(-EOPNOTSUPP, "CUDA: the driver has no device, or "
					 "CUDA_VISIBLE_DEVICES hides them all");
	default:
		return fail(-EOPNOTSUPP, "CUDA: the driver can't be started: %s",
			    cuda_result_name(result));
	}
}

static int check_version(void *library)
{
	CUresult (*get_version)(int *version), result;

	*(void **)&get_version = dlsym(library, "cuDriverGetVersion");
	if (!get_version)
		return fail(-EOPNOTSUPP, "CUDA: " LIBRARY " lacks cuDriverGetVersion");
	result = get_version(&libcuda.version);
	if (result)
		return fail_start(result);
	if (libcuda.version < OLDEST_VERSION)
		return fail(-EOPNOTSUPP,
			    "CUDA: the driver supports CUDA %d.%d, which is older than %d.%d",
			    libcuda.version / 1000, libcuda.version % 1000 / 10,
			    OLDEST_VERSION / 1000, OLDEST_VERSION % 1000 / 10);
	return 0;
}

static int find_functions(void *library)
{
	struct finder finder;
	void *address;
	size_t i;

	finder_init(&finder, library);
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		address = find_function(&finder, &functions[i]);
		if (!address && !functions[i].newer)
			return fail(-EOPNOTSUPP, "CUDA: " LIBRARY " lacks %s", functions[i].name);
		*(void **)functions[i].address = address;
	}
	return 0;
}

static int initialise(void)
{
	CUresult result = libcuda.cuInit(0);
	int count = 0;

	if (!result)
		result = libcuda.cuDeviceGetCount(&count);
	if (!result && !count)
		result = CUDA_ERROR_NO_DEVICE;
	return result ? fail_start(result) : 0;
}

/* A library whose initialisation failed stays loaded, as it may have threads. */
static int load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int err;

	if (!library)
		return fail(-EOPNOTSUPP, "CUDA: no NVIDIA driver: %s", dlerror());
	err = check_version(library);
	if (!err)
		err = find_functions(library);
	if (err) {
		/* A later failure must not call functions of this library. */
		memset(&libcuda, 0, sizeof(libcuda));
		dlclose(library);
		return err;
	}
	return initialise();
}

static int fail_forked(void)
{
	return fail(-EOPNOTSUPP, "CUDA: a forked child can't use it, since its parent does");
}

int cuda_start(void)
{
	int err = 0;

	if (atomic_load_explicit(&state, memory_order_acquire) == STARTED)
		return 0;
	process_lock();
	process_join(PROCESS_CUDA, &hooks);
	while (atomic_load(&state) == STARTING)
		process_lock_wait(&start_ended);
	if (atomic_load(&state) == STOPPED) {
		atomic_store(&state, STARTING);
		/* Loading may take seconds, and fork() would wait for the lock. */
		process_unlock();
		err = load();
		process_lock();
		atomic_store(&state, err ? STOPPED : STARTED);
		pthread_cond_broadcast(&start_ended);
	} else if (atomic_load(&state) == FORKED) {
		err = fail_forked();
	}
	process_unlock();
	return err;
}

int cuda_driver_version(void)
{
	return libcuda.version;
}
