// SPDX-License-Identifier: MIT
/*
 * A stub of NVIDIA's driver, libcuda.so.1, for tests on machines that have none. It has
 * neither a device nor device memory: what it calls a device address is one of this
 * process. It keeps books of contexts, registrations and imports, and is stricter than the
 * driver: see stub.h for how tests control it.
 *
 * The environment controls it where a test can't call it. TSHARE_STUB_CUDA is a list such
 * as "cuInit=999,version=10020,devices=0,hide=cuMemHostRegister": a function that fails,
 * the driver's version, the number of devices, a function that isn't there.
 *
 * STUB_GET_PROC_ADDRESS is the CUDA version whose form of cuGetProcAddress() is there: 12
 * has both, 11 the older one, 10 none.
 */
#define _GNU_SOURCE 1
#include "stub.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef STUB_GET_PROC_ADDRESS
#define STUB_GET_PROC_ADDRESS 12
#endif

#define STUB_NAME "tshare's stub, no real device"

enum result {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	NOT_FOUND = 500,
	CONTEXT_IS_DESTROYED = 709,
	ALREADY_REGISTERED = 712,
	NOT_REGISTERED = 713,
	NOT_SUPPORTED = 801,
};

static const struct {
	int result;
	const char *name;
} result_names[] = {
	{ SUCCESS, "CUDA_SUCCESS" },
	{ INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
	{ OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
	{ NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED" },
	{ 4, "CUDA_ERROR_DEINITIALIZED" },
	{ 34, "CUDA_ERROR_STUB_LIBRARY" },
	{ NO_DEVICE, "CUDA_ERROR_NO_DEVICE" },
	{ INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE" },
	{ INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT" },
	{ 304, "CUDA_ERROR_OPERATING_SYSTEM" },
	{ INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE" },
	{ NOT_FOUND, "CUDA_ERROR_NOT_FOUND" },
	{ 700, "CUDA_ERROR_ILLEGAL_ADDRESS" },
	{ CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED" },
	{ ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" },
	{ NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED" },
	{ 800, "CUDA_ERROR_NOT_PERMITTED" },
	{ NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED" },
	{ 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" },
	{ 999, "CUDA_ERROR_UNKNOWN" },
};

#define PORTABLE   1U
#define DEVICE_MAP 2U
#define READ_ONLY  8U

#define ATTRIBUTE_SAME_ADDRESS	     91
#define ATTRIBUTE_READ_ONLY_REGISTER 113

/* Attributes of pointers */
enum {
	POINTER_CONTEXT = 1,
	POINTER_TYPE = 2, /* 1 host, 2 device */
	POINTER_DEVICE_ADDRESS = 3,
	POINTER_HOST_ADDRESS = 4,
	POINTER_ID = 7,
	POINTER_DEVICE = 9,
	POINTER_RANGE_START = 11,
	POINTER_RANGE_SIZE = 12,
};

#define DMABUF_FD 9

/* Device addresses of registered memory lie from here on where they differ from the host's. */
#define DEVICE_OFFSET (1ULL << 47)

#define MAX_DEVICES    8
#define MAX_ATTRIBUTES 256
#define MAX_CONTEXTS   256
#define MAX_RECORDS    256
#define MAX_STACK      16

/* From this size on newer drivers refuse to register memory in one call. */
#define REGISTER_LIMIT (512ULL << 30)

/* Name, symbol, and the version since which cuGetProcAddress() finds that symbol by the name. */
#define FUNCTIONS(X)                                                               \
	X(cuInit, cuInit, 2000)                                                    \
	X(cuDriverGetVersion, cuDriverGetVersion, 2020)                            \
	X(cuGetErrorName, cuGetErrorName, 6000)                                    \
	X(cuDeviceGet, cuDeviceGet, 2000)                                          \
	X(cuDeviceGetCount, cuDeviceGetCount, 2000)                                \
	X(cuDeviceGetName, cuDeviceGetName, 2000)                                  \
	X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)                        \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)                \
	X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000)          \
	X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000)              \
	X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000)            \
	X(cuCtxCreate, cuCtxCreate_v2, 3020)                                       \
	X(cuCtxDestroy, cuCtxDestroy_v2, 4000)                                     \
	X(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000)                             \
	X(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000)                               \
	X(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                                  \
	X(cuCtxGetCurrent, cuCtxGetCurrent, 4000)                                  \
	X(cuCtxGetDevice, cuCtxGetDevice, 2000)                                    \
	X(cuMemHostRegister, cuMemHostRegister_v2, 6050)                           \
	X(cuMemHostUnregister, cuMemHostUnregister, 4000)                          \
	X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020)           \
	X(cuMemHostGetFlags, cuMemHostGetFlags, 2030)                              \
	X(cuPointerGetAttribute, cuPointerGetAttribute, 4000)                      \
	X(cuImportExternalMemory, cuImportExternalMemory, 10000)                   \
	X(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer, 10000) \
	X(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000)                 \
	X(cuMemFree, cuMemFree_v2, 3020)

#define ENUMERATE(base, symbol, version) F_##base,

enum { FUNCTIONS(ENUMERATE) N_FUNCTIONS };

struct function {
	const char *name;
	atomic_uint calls;
	unsigned int fail_in; /* calls until it fails; 0 for none */
	bool fail_always;
	bool hidden;
	int result;
	void (*hook)(void *data);
	void *hook_data;
};

#define NAME(base, symbol, version) { .name = #base },

static struct function functions[] = { FUNCTIONS(NAME) };

struct context {
	int device;
	bool primary;
	bool alive;
};

struct registration {
	uintptr_t start;
	size_t bytes;
	unsigned int flags;
	struct context *context; /* NULL for an unused record */
	uint64_t id;
};

/* What cuImportExternalMemory() has made, and the buffer that is mapped of it. */
struct external {
	int fd;
	uint64_t bytes;
	struct context *context; /* NULL for an unused record */
	uint64_t id;
	void *mapped;
	size_t mapped_bytes;
};

/* Under the lock, but for the fields that are atomic. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int initialised_by; /* the process that called cuInit() */
static int driver_version = 13000, device_count = 1;
static int attributes[MAX_DEVICES][MAX_ATTRIBUTES];
static bool takes_dmabufs = true, takes_inaccessible, has_ids = true;
static struct context primaries[MAX_DEVICES], created[MAX_CONTEXTS];
static unsigned int references[MAX_DEVICES], created_count;
static struct registration registrations[MAX_RECORDS];
static struct external externals[MAX_RECORDS];
static size_t unpopulated;
static uint64_t last_id; /* of a registration or import: none is used twice */
static char complaint[256];

static struct function any; /* for failures: one of those that make something */

static _Thread_local struct context *stack[MAX_STACK];
static _Thread_local unsigned int depth;

/* Control */

static struct function *function_of(const char *name)
{
	int i;

	for (i = 0; i < N_FUNCTIONS; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	fprintf(stderr, "stub: there is no function %s\n", name);
	abort();
}

static void set_defaults(void)
{
	static const int supported[] = { 19, 41, 91, 99, 113, 122, 124 };
	size_t i, device;

	driver_version = 13000;
	device_count = 1;
	takes_dmabufs = true;
	takes_inaccessible = false;
	has_ids = true;
	memset(attributes, 0, sizeof(attributes));
	for (device = 0; device < MAX_DEVICES; device++)
		for (i = 0; i < sizeof(supported) / sizeof(supported[0]); i++)
			attributes[device][supported[i]] = 1;
}

static void release_external(struct external *external)
{
	if (external->mapped)
		munmap(external->mapped, external->mapped_bytes);
	close(external->fd);
	*external = (struct external){ 0 };
}

void stub_reset(void)
{
	int i;

	pthread_mutex_lock(&lock);
	set_defaults();
	for (i = 0; i < N_FUNCTIONS; i++) {
		atomic_store(&functions[i].calls, 0);
		functions[i].fail_in = 0;
		functions[i].fail_always = false;
		functions[i].hidden = false;
		functions[i].hook = NULL;
	}
	for (i = 0; i < MAX_RECORDS; i++)
		if (externals[i].context)
			release_external(&externals[i]);
	memset(registrations, 0, sizeof(registrations));
	memset(references, 0, sizeof(references));
	memset(primaries, 0, sizeof(primaries));
	memset(created, 0, sizeof(created));
	any = (struct function){ 0 };
	created_count = 0;
	unpopulated = 0;
	complaint[0] = '\0';
	depth = 0;
	pthread_mutex_unlock(&lock);
}

void stub_set_version(int version)
{
	driver_version = version;
}

void stub_set_devices(int count)
{
	device_count = count;
}

void stub_set_attribute(int device, int attribute, int value)
{
	int i;

	for (i = 0; i < MAX_DEVICES; i++)
		if (device < 0 || device == i)
			attributes[i][attribute] = value;
}

void stub_set_dmabuf(bool supported)
{
	takes_dmabufs = supported;
}

void stub_set_ids(bool supported)
{
	has_ids = supported;
}

void stub_allow_inaccessible(bool allowed)
{
	takes_inaccessible = allowed;
}

void stub_hide(const char *function)
{
	function_of(function)->hidden = true;
}

void stub_fail(const char *function, unsigned int nth, int result)
{
	struct function *failing = function ? function_of(function) : &any;

	pthread_mutex_lock(&lock);
	failing->fail_in = nth;
	failing->fail_always = !nth;
	failing->result = result;
	pthread_mutex_unlock(&lock);
}

void stub_set_hook(const char *function, void (*hook)(void *data), void *data)
{
	struct function *hooked = function_of(function);

	pthread_mutex_lock(&lock);
	hooked->hook = hook;
	hooked->hook_data = data;
	pthread_mutex_unlock(&lock);
}

unsigned int stub_calls(const char *function)
{
	unsigned int calls = 0;
	int i;

	if (function)
		return atomic_load(&function_of(function)->calls);
	for (i = 0; i < N_FUNCTIONS; i++)
		calls += atomic_load(&functions[i].calls);
	return calls;
}

unsigned int stub_registrations(void)
{
	unsigned int count = 0;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_RECORDS; i++)
		count += !!registrations[i].context;
	pthread_mutex_unlock(&lock);
	return count;
}

bool stub_is_registered(const void *start, size_t bytes)
{
	bool found = false;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_RECORDS; i++)
		if (registrations[i].context && registrations[i].start == (uintptr_t)start)
			found = registrations[i].bytes == bytes;
	pthread_mutex_unlock(&lock);
	return found;
}

static struct registration *find_registration(uintptr_t address)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (registrations[i].context &&
		    address - registrations[i].start < registrations[i].bytes)
			return &registrations[i];
	return NULL;
}

unsigned int stub_flags(const void *address)
{
	struct registration *found;
	unsigned int flags;

	pthread_mutex_lock(&lock);
	found = find_registration((uintptr_t)address);
	flags = found ? found->flags : 0;
	pthread_mutex_unlock(&lock);
	return flags;
}

size_t stub_unpopulated(void)
{
	return unpopulated;
}

unsigned int stub_references(int device)
{
	return references[device];
}

const char *stub_left(void)
{
	static char text[128];
	unsigned int count = stub_registrations();
	int i;

	text[0] = '\0';
	if (count)
		snprintf(text, sizeof(text), "%u registrations", count);
	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_RECORDS; i++)
		if (externals[i].context)
			snprintf(text, sizeof(text), "external memory of %" PRIu64 " bytes",
				 externals[i].bytes);
	for (i = 0; i < MAX_DEVICES; i++)
		if (references[i])
			snprintf(text, sizeof(text), "%u references to device %d's primary context",
				 references[i], i);
	if (depth)
		snprintf(text, sizeof(text), "%u contexts on the thread's stack", depth);
	pthread_mutex_unlock(&lock);
	return text[0] ? text : NULL;
}

const char *stub_complaint(void)
{
	return complaint[0] ? complaint : NULL;
}

__attribute__((constructor)) static void read_environment(void)
{
	char *list = strdup(getenv("TSHARE_STUB_CUDA") ?: ""), *item, *value, *rest;

	set_defaults();
	for (item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
		value = strchr(item, '=');
		if (!value)
			abort();
		*value++ = '\0';
		if (!strcmp(item, "version"))
			stub_set_version(atoi(value));
		else if (!strcmp(item, "devices"))
			stub_set_devices(atoi(value));
		else if (!strcmp(item, "hide"))
			stub_hide(value);
		else
			stub_fail(item, 0, atoi(value));
	}
	free(list);
}

/* Calls */

#define complain(...)                                                        \
	do {                                                                 \
		if (!complaint[0])                                           \
			snprintf(complaint, sizeof(complaint), __VA_ARGS__); \
	} while (0)

static struct context *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static int device_exists(int device)
{
	return device >= 0 && device < device_count;
}

enum needs { NOTHING, INIT, CONTEXT };

static bool undoes(const struct function *function)
{
	switch (function - functions) {
	case F_cuDevicePrimaryCtxRelease:
	case F_cuCtxPopCurrent:
	case F_cuMemHostUnregister:
	case F_cuDestroyExternalMemory:
	case F_cuMemFree:
		return true;
	default:
		return false;
	}
}

static bool fails(struct function *function)
{
	return function->fail_always || (function->fail_in && !--function->fail_in);
}

static int check(struct function *function, enum needs needs)
{
	int process = atomic_load(&initialised_by);

	if (fails(function))
		return function->result;
	if (!undoes(function) && fails(&any))
		return any.result;
	if (needs != NOTHING && !process) {
		complain("%s: before cuInit", function->name);
		return NOT_INITIALIZED;
	}
	if (needs != CONTEXT)
		return SUCCESS;
	if (!current())
		return INVALID_CONTEXT;
	return current()->alive ? SUCCESS : CONTEXT_IS_DESTROYED;
}

/* Counts the call and, unless it returns an error, leaves with the lock held. */
static int begin(struct function *function, enum needs needs)
{
	int process = atomic_load(&initialised_by), result;

	atomic_fetch_add(&function->calls, 1);
	/* The lock may be held by a thread that the child doesn't have. */
	if (process && process != getpid())
		return NOT_INITIALIZED;
	if (function->hook)
		function->hook(function->hook_data);
	pthread_mutex_lock(&lock);
	result = check(function, needs);
	if (result)
		pthread_mutex_unlock(&lock);
	return result;
}

static int end(int result)
{
	pthread_mutex_unlock(&lock);
	return result;
}

#define BEGIN(name, needs)                                       \
	do {                                                     \
		int begin_ = begin(&functions[F_##name], needs); \
                                                                 \
		if (begin_)                                      \
			return begin_;                           \
	} while (0)

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned int flags)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	BEGIN(cuInit, NOTHING);
	if (flags)
		return end(INVALID_VALUE);
	if (!device_count || (visible && (!*visible || !strcmp(visible, "-1"))))
		return end(NO_DEVICE);
	atomic_store(&initialised_by, getpid());
	return end(SUCCESS);
}

EXPORT int cuDriverGetVersion(int *version)
{
	BEGIN(cuDriverGetVersion, NOTHING);
	*version = driver_version;
	return end(SUCCESS);
}

EXPORT int cuGetErrorName(int result, const char **name)
{
	size_t i;

	BEGIN(cuGetErrorName, NOTHING);
	for (i = 0; i < sizeof(result_names) / sizeof(result_names[0]); i++) {
		if (result_names[i].result != result)
			continue;
		*name = result_names[i].name;
		return end(SUCCESS);
	}
	*name = NULL;
	return end(INVALID_VALUE);
}

/* Devices */

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	BEGIN(cuDeviceGet, INIT);
	if (!device_exists(ordinal))
		return end(INVALID_DEVICE);
	*device = ordinal;
	return end(SUCCESS);
}

EXPORT int cuDeviceGetCount(int *count)
{
	BEGIN(cuDeviceGetCount, INIT);
	*count = device_count;
	return end(SUCCESS);
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
	BEGIN(cuDeviceGetName, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	snprintf(name, size, "%s", STUB_NAME);
	return end(SUCCESS);
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	BEGIN(cuDeviceGetAttribute, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	if (attribute <= 0 || attribute >= MAX_ATTRIBUTES)
		return end(INVALID_VALUE);
	*value = attributes[device][attribute];
	return end(SUCCESS);
}

/* Contexts */

/* What was made in a context goes with it. */
static void context_end(struct context *context)
{
	int i;

	context->alive = false;
	for (i = 0; i < MAX_RECORDS; i++) {
		if (registrations[i].context == context)
			registrations[i].context = NULL;
		if (externals[i].context == context)
			release_external(&externals[i]);
	}
}

EXPORT int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
	BEGIN(cuDevicePrimaryCtxRetain, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	references[device]++;
	primaries[device] = (struct context){ .device = device, .primary = true, .alive = true };
	*context = &primaries[device];
	return end(SUCCESS);
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	BEGIN(cuDevicePrimaryCtxRelease, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	if (!references[device]) {
		complain("cuDevicePrimaryCtxRelease: device %d's was not retained", device);
		return end(INVALID_CONTEXT);
	}
	if (!--references[device])
		context_end(&primaries[device]);
	return end(SUCCESS);
}

EXPORT int cuDevicePrimaryCtxReset_v2(int device)
{
	BEGIN(cuDevicePrimaryCtxReset, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	references[device] = 0;
	context_end(&primaries[device]);
	return end(SUCCESS);
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active)
{
	BEGIN(cuDevicePrimaryCtxGetState, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	*flags = 0;
	*active = references[device] > 0;
	return end(SUCCESS);
}

static int push(struct context *context)
{
	if (!context->alive) {
		complain("a context that is gone was made current");
		return CONTEXT_IS_DESTROYED;
	}
	if (depth == MAX_STACK)
		return INVALID_VALUE;
	stack[depth++] = context;
	return SUCCESS;
}

EXPORT int cuCtxCreate_v2(struct context **context, unsigned int flags, int device)
{
	BEGIN(cuCtxCreate, INIT);
	if (flags || !device_exists(device))
		return end(flags ? INVALID_VALUE : INVALID_DEVICE);
	if (created_count == MAX_CONTEXTS)
		return end(OUT_OF_MEMORY);
	*context = &created[created_count++];
	**context = (struct context){ .device = device, .alive = true };
	return end(push(*context));
}

EXPORT int cuCtxDestroy_v2(struct context *context)
{
	BEGIN(cuCtxDestroy, INIT);
	if (!context || context->primary || !context->alive)
		return end(INVALID_CONTEXT);
	context_end(context);
	if (current() == context)
		depth--;
	return end(SUCCESS);
}

EXPORT int cuCtxPushCurrent_v2(struct context *context)
{
	BEGIN(cuCtxPushCurrent, INIT);
	return end(context ? push(context) : INVALID_CONTEXT);
}

EXPORT int cuCtxPopCurrent_v2(struct context **context)
{
	BEGIN(cuCtxPopCurrent, INIT);
	if (!depth) {
		complain("cuCtxPopCurrent: the stack is empty");
		return end(INVALID_CONTEXT);
	}
	if (context)
		*context = current();
	depth--;
	return end(SUCCESS);
}

EXPORT int cuCtxSetCurrent(struct context *context)
{
	BEGIN(cuCtxSetCurrent, INIT);
	if (depth)
		depth--;
	return end(context ? push(context) : SUCCESS);
}

EXPORT int cuCtxGetCurrent(struct context **context)
{
	BEGIN(cuCtxGetCurrent, INIT);
	*context = current();
	return end(SUCCESS);
}

EXPORT int cuCtxGetDevice(int *device)
{
	BEGIN(cuCtxGetDevice, CONTEXT);
	*device = current()->device;
	return end(SUCCESS);
}

/* Registered memory */

/* Whether all of the range is mapped, and may be written if @writable. */
static bool is_mapped(uintptr_t start, size_t bytes, bool writable)
{
	uintptr_t from, to, position = start, stop = start + bytes;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], access[5];

	if (!maps)
		return false;
	while (position < stop && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, access) != 3)
			continue;
		if (from > position)
			break;
		if (to <= position)
			continue;
		if (!takes_inaccessible && (access[0] != 'r' || (writable && access[1] != 'w')))
			break;
		position = to;
	}
	fclose(maps);
	return position >= stop;
}

static size_t count_unpopulated(uintptr_t start, size_t bytes)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t page = sysconf(_SC_PAGESIZE), i, count = 0;
	uint64_t entry;

	for (i = 0; fd >= 0 && !takes_inaccessible && i < bytes / page; i++)
		if (pread(fd, &entry, sizeof(entry), (start / page + i) * sizeof(entry)) ==
		    sizeof(entry))
			count += !(entry >> 63);
	close(fd);
	return count;
}

static int register_range(uintptr_t start, size_t bytes, unsigned int flags)
{
	struct registration *unused = NULL;
	int i;

	if (!start || !bytes || bytes > UINTPTR_MAX - start)
		return INVALID_VALUE;
	if (flags & ~(PORTABLE | DEVICE_MAP | READ_ONLY)) {
		complain("cuMemHostRegister: flags %#x", flags);
		return INVALID_VALUE;
	}
	if (bytes >= REGISTER_LIMIT)
		return OUT_OF_MEMORY;
	if (flags & READ_ONLY && !attributes[current()->device][ATTRIBUTE_READ_ONLY_REGISTER])
		return NOT_SUPPORTED;
	for (i = 0; i < MAX_RECORDS; i++) {
		if (!registrations[i].context)
			unused = &registrations[i];
		else if (start < registrations[i].start + registrations[i].bytes &&
			 registrations[i].start < start + bytes)
			return ALREADY_REGISTERED;
	}
	if (!is_mapped(start, bytes, !(flags & READ_ONLY)))
		return INVALID_VALUE;
	if (!unused)
		return OUT_OF_MEMORY;
	unpopulated += count_unpopulated(start, bytes);
	*unused = (struct registration){ start, bytes, flags, current(), ++last_id };
	return SUCCESS;
}

EXPORT int cuMemHostRegister_v2(void *start, size_t bytes, unsigned int flags)
{
	BEGIN(cuMemHostRegister, CONTEXT);
	return end(register_range((uintptr_t)start, bytes, flags));
}

EXPORT int cuMemHostUnregister(void *start)
{
	struct registration *found;

	BEGIN(cuMemHostUnregister, CONTEXT);
	found = find_registration((uintptr_t)start);
	if (!found || found->start != (uintptr_t)start) {
		complain("cuMemHostUnregister: %p is not registered", start);
		return end(NOT_REGISTERED);
	}
	if (!is_mapped(found->start, found->bytes, false))
		complain("cuMemHostUnregister: %p is not mapped any more", start);
	found->context = NULL;
	return end(SUCCESS);
}

/* Those that differ are contiguous for no two registrations. */
static uint64_t device_address(const struct registration *found, uintptr_t host)
{
	if (attributes[found->context->device][ATTRIBUTE_SAME_ADDRESS])
		return host;
	return host + DEVICE_OFFSET + (found - registrations) * REGISTER_LIMIT;
}

static struct registration *find_registration_by_device(uint64_t address)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (registrations[i].context &&
		    address - device_address(&registrations[i], registrations[i].start) <
			    registrations[i].bytes)
			return &registrations[i];
	return NULL;
}

EXPORT int cuMemHostGetDevicePointer_v2(unsigned long long *address, void *host, unsigned int flags)
{
	struct registration *found;

	BEGIN(cuMemHostGetDevicePointer, CONTEXT);
	found = find_registration((uintptr_t)host);
	if (flags || !found || !(found->flags & DEVICE_MAP) ||
	    (!(found->flags & PORTABLE) && found->context != current()))
		return end(INVALID_VALUE);
	*address = device_address(found, (uintptr_t)host);
	return end(SUCCESS);
}

EXPORT int cuMemHostGetFlags(unsigned int *flags, void *host)
{
	struct registration *found;

	BEGIN(cuMemHostGetFlags, CONTEXT);
	found = find_registration((uintptr_t)host);
	if (!found)
		return end(INVALID_VALUE);
	*flags = found->flags;
	return end(SUCCESS);
}

static struct external *find_mapped(uintptr_t address)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (externals[i].mapped &&
		    address - (uintptr_t)externals[i].mapped < externals[i].mapped_bytes)
			return &externals[i];
	return NULL;
}

static int registration_attribute(void *data, int attribute, const struct registration *found,
				  uintptr_t host)
{
	switch (attribute) {
	case POINTER_CONTEXT:
		*(struct context **)data = found->context;
		return SUCCESS;
	case POINTER_TYPE:
		*(unsigned int *)data = 1;
		return SUCCESS;
	case POINTER_DEVICE_ADDRESS:
		*(uint64_t *)data = device_address(found, host);
		return SUCCESS;
	case POINTER_HOST_ADDRESS:
		*(uintptr_t *)data = host;
		return SUCCESS;
	case POINTER_ID:
		*(uint64_t *)data = found->id;
		return SUCCESS;
	case POINTER_DEVICE:
		*(int *)data = found->context->device;
		return SUCCESS;
	case POINTER_RANGE_START:
		*(uint64_t *)data = device_address(found, found->start);
		return SUCCESS;
	case POINTER_RANGE_SIZE:
		*(size_t *)data = found->bytes;
		return SUCCESS;
	default:
		return INVALID_VALUE;
	}
}

static int external_attribute(void *data, int attribute, const struct external *found,
			      uint64_t address)
{
	switch (attribute) {
	case POINTER_CONTEXT:
		*(struct context **)data = found->context;
		return SUCCESS;
	case POINTER_TYPE:
		*(unsigned int *)data = 2;
		return SUCCESS;
	case POINTER_DEVICE_ADDRESS:
		*(uint64_t *)data = address;
		return SUCCESS;
	case POINTER_ID:
		*(uint64_t *)data = found->id;
		return SUCCESS;
	case POINTER_DEVICE:
		*(int *)data = found->context->device;
		return SUCCESS;
	case POINTER_RANGE_START:
		*(uint64_t *)data = (uintptr_t)found->mapped;
		return SUCCESS;
	case POINTER_RANGE_SIZE:
		*(size_t *)data = found->mapped_bytes;
		return SUCCESS;
	default:
		return INVALID_VALUE;
	}
}

static int pointer_attribute(void *data, int attribute, uint64_t address)
{
	const struct registration *host = find_registration(address), *device;
	const struct external *external = find_mapped(address);

	if (attribute == POINTER_ID && !has_ids)
		return INVALID_VALUE;
	if (host)
		return registration_attribute(data, attribute, host, address);
	if (external)
		return external_attribute(data, attribute, external, address);
	device = find_registration_by_device(address);
	if (!device)
		return INVALID_VALUE;
	address -= device_address(device, device->start);
	return registration_attribute(data, attribute, device, device->start + address);
}

EXPORT int cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
	BEGIN(cuPointerGetAttribute, INIT);
	return end(pointer_attribute(data, attribute, address));
}

/* External memory */

struct handle_desc {
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
	} handle;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
};

struct buffer_desc {
	unsigned long long offset;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
};

static bool all_zero(const unsigned int reserved[16])
{
	static const unsigned int zero[16];

	return !memcmp(reserved, zero, sizeof(zero));
}

static bool is_writable_dmabuf(int fd)
{
	char path[32], target[64] = "";
	int flags = fcntl(fd, F_GETFL);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR &&
	       readlink(path, target, sizeof(target) - 1) > 0 && !strncmp(target, "/dmabuf:", 8);
}

static int import_external(struct external **result, const struct handle_desc *desc)
{
	int i;

	if (desc->flags || !all_zero(desc->reserved)) {
		complain("cuImportExternalMemory: flags or reserved fields are set");
		return INVALID_VALUE;
	}
	if (desc->type != DMABUF_FD || !takes_dmabufs)
		return NOT_SUPPORTED;
	if (!desc->size || !is_writable_dmabuf(desc->handle.fd) ||
	    (off_t)desc->size > lseek(desc->handle.fd, 0, SEEK_END))
		return INVALID_VALUE;
	for (i = 0; i < MAX_RECORDS && externals[i].context; i++)
		;
	if (i == MAX_RECORDS)
		return OUT_OF_MEMORY;
	externals[i] = (struct external){
		.fd = fcntl(desc->handle.fd, F_DUPFD_CLOEXEC, 0),
		.bytes = desc->size,
		.context = current(),
		.id = ++last_id,
	};
	*result = &externals[i];
	return SUCCESS;
}

EXPORT int cuImportExternalMemory(struct external **memory, const struct handle_desc *desc)
{
	BEGIN(cuImportExternalMemory, CONTEXT);
	return end(import_external(memory, desc));
}

static int map_external(unsigned long long *address, struct external *memory,
			const struct buffer_desc *desc)
{
	void *mapped;

	if (desc->flags || !all_zero(desc->reserved)) {
		complain("cuExternalMemoryGetMappedBuffer: flags or reserved fields are set");
		return INVALID_VALUE;
	}
	if (!memory->context || memory->mapped)
		return INVALID_HANDLE;
	if (!desc->size || desc->offset > memory->bytes ||
	    desc->size > memory->bytes - desc->offset)
		return INVALID_VALUE;
	mapped = mmap(NULL, desc->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd,
		      desc->offset);
	if (mapped == MAP_FAILED)
		return OUT_OF_MEMORY;
	memory->mapped = mapped;
	memory->mapped_bytes = desc->size;
	*address = (uintptr_t)mapped;
	return SUCCESS;
}

EXPORT int cuExternalMemoryGetMappedBuffer(unsigned long long *address, struct external *memory,
					   const struct buffer_desc *desc)
{
	BEGIN(cuExternalMemoryGetMappedBuffer, CONTEXT);
	return end(map_external(address, memory, desc));
}

EXPORT int cuMemFree_v2(unsigned long long address)
{
	struct external *mapped;

	BEGIN(cuMemFree, CONTEXT);
	mapped = find_mapped(address);
	if (!mapped || (uintptr_t)mapped->mapped != address)
		return end(INVALID_VALUE);
	munmap(mapped->mapped, mapped->mapped_bytes);
	mapped->mapped = NULL;
	return end(SUCCESS);
}

EXPORT int cuDestroyExternalMemory(struct external *memory)
{
	BEGIN(cuDestroyExternalMemory, CONTEXT);
	if (!memory->context) {
		complain("cuDestroyExternalMemory: it is gone");
		return end(INVALID_HANDLE);
	}
	if (memory->mapped)
		complain("cuDestroyExternalMemory: its buffer is still mapped");
	release_external(memory);
	return end(SUCCESS);
}

/* Symbols */

#if STUB_GET_PROC_ADDRESS > 10

static int find_symbol(const char *name, void **address, int version)
{
#define ENTRY(base, symbol, since) { since, symbol },
	static const struct {
		int since;
		void *address;
	} entries[] = { FUNCTIONS(ENTRY) };
	int i;

	*address = NULL;
	for (i = 0; i < N_FUNCTIONS; i++) {
		if (strcmp(functions[i].name, name))
			continue;
		if (functions[i].hidden || driver_version < entries[i].since)
			return NOT_FOUND;
		if (version < entries[i].since) {
			complain("cuGetProcAddress: %s is an older one in %d", name, version);
			return NOT_FOUND;
		}
		*address = entries[i].address;
		return SUCCESS;
	}
	return NOT_FOUND;
}

EXPORT int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags)
{
	return flags ? INVALID_VALUE : find_symbol(name, address, version);
}

#if STUB_GET_PROC_ADDRESS > 11
EXPORT int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags,
			       int *status)
{
	int result = flags ? INVALID_VALUE : find_symbol(name, address, version);

	if (status)
		*status = result == SUCCESS ? 0 : 1;
	return result;
}
#endif

#endif
