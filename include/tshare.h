/* SPDX-License-Identifier: MIT */
/**
 * DOC: overview
 *
 * Shared memory for tensors.
 *
 * A program opens a context (struct tshare_ctx), its session with a backend: the
 * kernel module behind /dev/tshare or, as the fallback, POSIX shared memory. In a
 * context it creates regions and opens those of others. A region (struct
 * tshare_region) is memory that is mapped into the process, and holds one tensor
 * or many (struct tshare_tensor)::
 *
 *	struct tshare_ctx *ctx;
 *	struct tshare_tensor *t;
 *	int64_t shape[] = { 480, 640, 3 };
 *
 *	if (tshare_ctx_new(NULL, &ctx) < 0 ||
 *	    tshare_tensor_create(ctx, "frame", TSHARE_UINT8, 3, shape, NULL, &t) < 0)
 *		errx(1, "%s", tshare_error_get());
 *	memset(tshare_tensor_get_data(t), 0x7f, tshare_tensor_get_nbytes(t));
 *
 * Objects are opaque and reference counted. A function that stores a new object
 * stores a reference. _ref() returns its argument; _unref() returns NULL and accepts
 * NULL. A tensor holds a reference to its region, a region to its context.
 *
 * Ownership. Strings, arrays and addresses that an object's functions return belong
 * to the object: they stay valid and unchanged until its last unref, and must not be
 * freed. Arguments are copied and stay the caller's, file descriptors too. The only
 * exception is the data of a log function, which isn't copied.
 *
 * Threads. Any function may be called from any thread, and objects may be shared
 * between threads, as long as each thread that uses an object holds a reference or is
 * lent one. The text of tshare_error_get() is each thread's own. The library doesn't
 * order the threads' reads and writes of a region's memory.
 *
 * fork(). The child has the objects of its parent, with references of its own to
 * drop, and the same memory: regions are shared mappings, not copies. It may use
 * them at once, whatever the parent's other threads were doing. A name ends with its
 * context, when the last process that has the context exits or drops it. execve()
 * ends all objects: all descriptors are close-on-exec. CUDA is the exception: a child
 * whose parent uses CUDA can't. Its CUDA calls return -EOPNOTSUPP, and its last unref
 * of a pin leaves the parent's registration alone.
 *
 * Signals. No function may be called in a signal handler; a handler may read and
 * write a region's memory. Calls that wait say so, and may end with -EINTR. Other
 * calls go on after a handler has run. If a handler forks during a call, the child may
 * only call execve() or _exit(); if it calls exit(), what atexit() has registered must
 * not call the library, and names may stay until another process looks for what the
 * dead have left.
 *
 * pthread_cancel(). Functions that wait, publish or read files are no cancellation points. A
 * thread that may be cancelled must call other functions with PTHREAD_CANCEL_DISABLE: they
 * open and close files, and would leak what they hold. Asynchronous cancellation is
 * unsupported.
 *
 * errno. No function reports an error in errno, and a call may leave any value
 * there. Only the _unref() functions preserve it, since error paths call them.
 *
 * Functions that can fail return 0 or a negative errno, and store their result
 * through their last argument only when they succeed. Each errno means
 * the same on both backends:
 *
 * -EACCES        the region's mode denies the access, or it was opened read-only; or
 *                the call is for the other side of the stream
 * -EAGAIN        the thread behind an event descriptor can't be started; or the
 *                name still leads to the region in other_than
 * -EBADF         fd is not open
 * -EBUSY         another user of CUDA has registered some of the region's memory; or
 *                another thread waits through the watcher
 * -ECANCELED     the wait was cancelled, or the program's callback has ended the call
 * -EDQUOT        RLIMIT_MEMLOCK, a limit of the module or one of the cgroup's is reached:
 *                dmem.max or, for a region of up to 2 MiB, memory.max
 * -EEXIST        the name is taken, by a draft or, without TSHARE_REPLACE, by
 *                another region; or the pool has an entry of that key
 * -EFBIG         RLIMIT_FSIZE is reached (shm); or an entry is larger than the pool
 * -EINVAL        an argument is malformed; tshare_error_get() names it
 * -EINPROGRESS   the region is a draft: its maker hasn't finished it yet
 * -EINTR         a signal handler ran while the call waited
 * -EIO           CUDA's driver fails, or a disk does
 * -ENAMETOOLONG  a region's name of more than TSHARE_NAME_MAX bytes, or a tensor's
 *                of more than TSHARE_TENSOR_NAME_MAX
 * -ENOBUFS       the consumer holds as many frames as it may
 * -ENODATA       a file ends before the part to read does; or the stream is closed
 * -ENODEV        the backend is unavailable (no module, no /dev/shm), or /proc is not
 *                mounted, which named regions need on shm
 * -ENOENT        no region of that name, or no tensor, field, frame or entry; or the
 *                region has lost its name
 * -ENOMEM        the memory is unavailable: contiguous, in the system, in the
 *                caller's memory cgroup (version 2), or CUDA's; or the directory
 *                of named regions has no room for another file (shm)
 * -EOPNOTSUPP    this backend can't do that: contiguous memory, NUMA nodes,
 *                addresses below 4 GiB, a part's descriptor or a dma-buf's name on
 *                shm, a part of a foreign dma-buf, generations on a module that
 *                is too old; a DLPack tensor is of an unsupported kind; or CUDA is
 *                unavailable, or can't do that
 * -EPERM         the caller is neither owner of the name nor privileged; or a draft
 *                was created in another context
 * -EPROTO        a peer's shared memory is damaged (shm), or its DLPack is of
 *                another major version
 * -EOWNERDEAD    all other publishers have exited, the stream's producer has, or the maker of
 *                a device's memory
 * -ERANGE        a tensor is not wholly inside its region or its memory, or a part
 *                not inside its region
 * -ESTALE        the consumer was evicted; or an observed frame was overwritten
 * -ETIMEDOUT     nothing was published, no slot became free, or the name could not be
 *                opened, in time
 * -EUSERS        the stream or pool has TSHARE_STREAM_CONSUMERS users
 *
 * and what open(2) and mmap(2) may return besides.
 *
 * Structs that a caller allocates are extensible: they begin with their size, which
 * the caller sets to the struct's sizeof. So a program works with a library that is
 * older or newer than the header it was compiled with. A member that is zero has its
 * default. Bytes beyond the library's version of the struct must be zero, else
 * -EINVAL. In a struct that the library fills, it sets such bytes to zero and leaves
 * the size as it is::
 *
 *	struct tshare_options options = { .size = sizeof(options) };
 *
 * Sizes are in bytes, shapes and strides in elements. All functions exist since
 * version 0.1.
 */
#ifndef TSHARE_H
#define TSHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; tshare_version() is that of the library. */
#define TSHARE_VERSION_MAJOR 0
#define TSHARE_VERSION_MINOR 1
#define TSHARE_VERSION_PATCH 0
#define TSHARE_VERSION	     "0.1.0"

/**
 * tshare_version() - return the version of the library that the program runs with
 *
 * It may differ from TSHARE_VERSION, with which the program was compiled.
 *
 * Return: "MAJOR.MINOR.PATCH", a constant.
 */
const char *tshare_version(void);

/* Bytes of a region's name, and of a tensor's, without the terminating NUL. */
#define TSHARE_NAME_MAX	       127
#define TSHARE_TENSOR_NAME_MAX 1023

/* The longest text that tshare_ctx_get_host_id() stores, in bytes without the terminating NUL. */
#define TSHARE_HOST_ID_MAX 127

/* The most dimensions of a tensor, and tensors in a region. */
#define TSHARE_NDIM_LIMIT   32
#define TSHARE_TENSOR_LIMIT 1048576

struct tshare_ctx;     /* a session with a backend */
struct tshare_entry;   /* tensors of a pool, under a key */
struct tshare_frame;   /* what a stream's producer fills, or a consumer has taken */
struct tshare_pin;     /* a region whose memory is page-locked for CUDA */
struct tshare_pool;    /* entries that processes make and get by key; see DOC: pools */
struct tshare_region;  /* shared memory that is mapped into this process, with its tensors */
struct tshare_stream;  /* frames in the slots of a region; see DOC: streams */
struct tshare_tensor;  /* a tensor in a region, or a view of one */
struct tshare_waiter;  /* a reader's own event descriptor for a region */
struct tshare_watcher; /* waits until a name leads to another region */

/* Data types */

/**
 * struct tshare_dtype - type of a tensor's elements, as in DLPack
 * @code: type code: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, ...
 * @bits: bits of one lane; below 8, elements are packed, low bits first
 * @lanes: lanes of one element, usually 1
 */
struct tshare_dtype {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
};

/*
 * A type of one lane, as an initialiser and as an expression. In C a static object takes only
 * the initialiser::
 *
 *	static const struct tshare_spec spec = { .size = sizeof(spec), .dtype = TSHARE_INT8_INIT };
 */
#define TSHARE_DTYPE_INIT(code, bits) \
	{                             \
		code, bits, 1         \
	}
#ifdef __cplusplus
#define TSHARE_DTYPE(code, bits) (tshare_dtype TSHARE_DTYPE_INIT(code, bits))
#else
#define TSHARE_DTYPE(code, bits) ((struct tshare_dtype)TSHARE_DTYPE_INIT(code, bits))
#endif

#define TSHARE_BOOL	  TSHARE_DTYPE(6, 8)
#define TSHARE_INT8	  TSHARE_DTYPE(0, 8)
#define TSHARE_INT16	  TSHARE_DTYPE(0, 16)
#define TSHARE_INT32	  TSHARE_DTYPE(0, 32)
#define TSHARE_INT64	  TSHARE_DTYPE(0, 64)
#define TSHARE_UINT8	  TSHARE_DTYPE(1, 8)
#define TSHARE_UINT16	  TSHARE_DTYPE(1, 16)
#define TSHARE_UINT32	  TSHARE_DTYPE(1, 32)
#define TSHARE_UINT64	  TSHARE_DTYPE(1, 64)
#define TSHARE_FLOAT16	  TSHARE_DTYPE(2, 16)
#define TSHARE_FLOAT32	  TSHARE_DTYPE(2, 32)
#define TSHARE_FLOAT64	  TSHARE_DTYPE(2, 64)
#define TSHARE_BFLOAT16	  TSHARE_DTYPE(4, 16)
#define TSHARE_COMPLEX64  TSHARE_DTYPE(5, 64)
#define TSHARE_COMPLEX128 TSHARE_DTYPE(5, 128)

#define TSHARE_BOOL_INIT       TSHARE_DTYPE_INIT(6, 8)
#define TSHARE_INT8_INIT       TSHARE_DTYPE_INIT(0, 8)
#define TSHARE_INT16_INIT      TSHARE_DTYPE_INIT(0, 16)
#define TSHARE_INT32_INIT      TSHARE_DTYPE_INIT(0, 32)
#define TSHARE_INT64_INIT      TSHARE_DTYPE_INIT(0, 64)
#define TSHARE_UINT8_INIT      TSHARE_DTYPE_INIT(1, 8)
#define TSHARE_UINT16_INIT     TSHARE_DTYPE_INIT(1, 16)
#define TSHARE_UINT32_INIT     TSHARE_DTYPE_INIT(1, 32)
#define TSHARE_UINT64_INIT     TSHARE_DTYPE_INIT(1, 64)
#define TSHARE_FLOAT16_INIT    TSHARE_DTYPE_INIT(2, 16)
#define TSHARE_FLOAT32_INIT    TSHARE_DTYPE_INIT(2, 32)
#define TSHARE_FLOAT64_INIT    TSHARE_DTYPE_INIT(2, 64)
#define TSHARE_BFLOAT16_INIT   TSHARE_DTYPE_INIT(4, 16)
#define TSHARE_COMPLEX64_INIT  TSHARE_DTYPE_INIT(5, 64)
#define TSHARE_COMPLEX128_INIT TSHARE_DTYPE_INIT(5, 128)

/* Bytes that hold the longest name of a type, the terminating NUL included. */
#define TSHARE_DTYPE_NAME_LEN 32

/**
 * tshare_dtype_parse() - find the type of a name
 * @name: "bool", "int8" to "int64", "uint8" to "uint64", "float16" to
 *        "float64", "complex64", "complex128", "bfloat16", "float8_e4m3fn" and
 *        the other DLPack names, with "x2" and so on behind it for lanes
 * @dtype: where to store it
 *
 * Return: 0, or -EINVAL if no type has that name.
 */
int tshare_dtype_parse(const char *name, struct tshare_dtype *dtype);

/**
 * tshare_dtype_get_name() - store the name of a type, which tshare_dtype_parse() takes
 * @dtype: the type
 * @name: where to store it, TSHARE_DTYPE_NAME_LEN bytes
 *
 * Return: 0, or -EINVAL for a type that has no name.
 */
int tshare_dtype_get_name(struct tshare_dtype dtype, char *name);

/**
 * tshare_dtype_get_itemsize() - return the bytes of an element
 * @dtype: the type
 *
 * Return: the bytes of all its lanes; 0 if they aren't whole bytes, as elements then
 * are packed.
 */
uint32_t tshare_dtype_get_itemsize(struct tshare_dtype dtype);

/* Context */

/**
 * typedef tshare_log_fn - a program's own log function
 * @data: what was passed together with the function
 * @priority: as for syslog(3), LOG_ERR to LOG_DEBUG
 * @text: one line without newline, valid during the call
 *
 * Called in the thread that logs the message, with no lock of the library held. It
 * may call the library, except for functions that wait for another thread that logs.
 */
typedef void (*tshare_log_fn)(void *data, int priority, const char *text);

/**
 * struct tshare_ctx_options - how to open a session
 * @size: sizeof(struct tshare_ctx_options)
 * @backend: "kmod" or "shm"; NULL for the best one that can be used
 * @log_fn: where messages go, those about the choice of the backend too; NULL for
 *          standard error
 * @log_data: passed to @log_fn
 * @log_priority: the least urgent messages that are passed on, LOG_ERR to
 *                LOG_DEBUG; 0 for the value of TSHARE_LOG in the environment, or
 *                LOG_WARNING without it
 * @flags: 0
 */
struct tshare_ctx_options {
	size_t size;
	const char *backend;
	tshare_log_fn log_fn;
	void *log_data;
	int log_priority;
	uint32_t flags;
};

/**
 * tshare_ctx_new() - open a session with a backend
 * @options: or NULL for the best backend that is available, and messages on standard error
 * @ctx: where to store it
 *
 * If @options name no backend, TSHARE_BACKEND=kmod or shm in the environment selects
 * one. Without that, /dev/tshare is tried, then POSIX shared memory. A message reports
 * why the fallback is used: LOG_INFO if /dev/tshare is missing; LOG_WARNING, once in a
 * process, if it can't be opened. If TSHARE_SHM_DIR, an absolute path, is in the
 * environment, shm keeps named regions there instead of in /dev/shm.
 *
 * The names of regions created in a context end with the context: at the last
 * unref (of the context and of all that was made in it), at exit, and when the
 * process is killed. A region with another lifetime keeps its name. After fork() the
 * child holds the context too.
 *
 * Return: 0; -ENODEV if the backend is unavailable; -EACCES if it may not be
 * used; -EINVAL for an unknown backend, or malformed options; what open(2) returns.
 */
int tshare_ctx_new(const struct tshare_ctx_options *options, struct tshare_ctx **ctx);

/**
 * tshare_ctx_ref() - take a reference to a context
 * @ctx: the context
 *
 * Return: @ctx.
 */
struct tshare_ctx *tshare_ctx_ref(struct tshare_ctx *ctx);

/**
 * tshare_ctx_unref() - drop a reference to a context
 * @ctx: the context, or NULL
 *
 * The last unref, those of its regions included, ends the session, and with it the
 * names of TSHARE_LIFETIME_MAKER that were made in it.
 *
 * Return: NULL.
 */
struct tshare_ctx *tshare_ctx_unref(struct tshare_ctx *ctx);

/**
 * tshare_ctx_get_backend() - return the name of a context's backend
 * @ctx: the context
 *
 * Return: "kmod" or "shm".
 */
const char *tshare_ctx_get_backend(const struct tshare_ctx *ctx);

/**
 * struct tshare_limits - what a context's backend is and allows
 * @size: sizeof(struct tshare_limits), set by the caller
 * @abi_version: version of the module's ABI; 0 on shm
 * @page_size: bytes; sizes of regions are multiples of it
 * @huge_page_size: bytes of the largest page that regions are mapped with;
 *                  equals @page_size where there are no larger ones
 * @bytes_limit: bytes that all regions together may have
 * @bytes_used: bytes that all regions together have, with descriptors that take more
 *              than a page; on shm all named ones, with their headers
 * @region_bytes_max: bytes that one region of this caller may have now; on kmod the
 *                    caller's cgroup may allow less
 * @contiguous: regions are physically contiguous
 * @dmabuf: a region's descriptor is a dma-buf
 */
struct tshare_limits {
	size_t size;
	uint32_t abi_version;
	uint32_t page_size;
	uint32_t huge_page_size;
	uint64_t bytes_limit;
	uint64_t bytes_used;
	uint64_t region_bytes_max;
	bool contiguous;
	bool dmabuf;
};

/**
 * tshare_ctx_get_limits() - return what a context's backend is and allows
 * @ctx: the context
 * @limits: what to fill, with its size set
 *
 * Return: 0; -EINVAL for an invalid size; what ioctl(2), fstatvfs(3) or open(2) return.
 */
int tshare_ctx_get_limits(struct tshare_ctx *ctx, struct tshare_limits *limits);

/**
 * tshare_ctx_get_host_id() - return what tells whose names a context sees
 * @ctx: the context
 * @id: where to store it, TSHARE_HOST_ID_MAX + 1 bytes
 *
 * Two contexts with the same one see the same names, also in different processes; with
 * different ones, they see different names. It consists of the machine's boot id, the backend, and
 * the IPC namespace or directory of the names. So programs that run on several machines, or in
 * several containers of one, find out which of them share memory. A machine that was restored from
 * a snapshot has the boot id of the machine that the snapshot is of.
 *
 * Return: 0, or
 * * -ENOENT: /proc is not mounted
 * * -EIO, or what open(2) returns, for /proc/sys/kernel/random/boot_id
 */
int tshare_ctx_get_host_id(struct tshare_ctx *ctx, char *id);

/**
 * tshare_ctx_set_log_fn() - change where a context's messages go
 * @ctx: the context
 * @fn: the function; NULL for standard error
 * @data: passed to @fn
 * @priority: as in struct tshare_ctx_options
 *
 * The call waits until no thread is in the previous function, so what that function
 * uses may be freed on return. The caller must not hold a lock that the function
 * takes. Called from a log function, it doesn't wait.
 *
 * Return: 0; -EINVAL if @priority is not 0 to LOG_DEBUG.
 */
int tshare_ctx_set_log_fn(struct tshare_ctx *ctx, tshare_log_fn fn, void *data, int priority);

/**
 * tshare_error_get() - return what went wrong in this thread's last failed call
 *
 * Return: one line that names the argument and the reason, without newline;
 * valid until the thread's next call into the library; "" if none failed.
 */
const char *tshare_error_get(void);

/* Regions */

/* struct tshare_options.flags, and flags of the calls that name them */
#define TSHARE_DMA32	  (1U << 1) /* create: physical addresses below 4 GiB */
#define TSHARE_CONTIGUOUS (1U << 2) /* create: physically contiguous or -EOPNOTSUPP */
#define TSHARE_READONLY	  (1U << 3) /* open: read-only, enforced by the MMU */
#define TSHARE_NODE	  (1U << 4) /* create: on the NUMA node in the options */
#define TSHARE_DRAFT	  (1U << 5) /* create: can't be opened before it is finished */
#define TSHARE_REPLACE	  (1U << 6) /* create, finish: the name may be another region's */
#define TSHARE_FOREIGN	  (1U << 7) /* info: it consists of another driver's dma-buf */
#define TSHARE_POOL	  (1U << 8) /* info: its memory is from the module's pool */

/* struct tshare_options.lifetime: how long a region's name stays, unless it is unlinked */
#define TSHARE_LIFETIME_MAKER	0 /* until the context that it was made in is closed */
#define TSHARE_LIFETIME_USERS	1 /* while any process has the region open */
#define TSHARE_LIFETIME_PERSIST 2 /* until it is unlinked */

/* struct tshare_options.mode: no permissions, not even for the owner. */
#define TSHARE_MODE_NONE UINT32_MAX

/* struct tshare_region_info.node: the backend doesn't report the NUMA node. */
#define TSHARE_ANY_NODE (-1)

/**
 * struct tshare_options - how to create a region
 * @size: sizeof(struct tshare_options)
 * @flags: TSHARE_DRAFT, TSHARE_REPLACE, TSHARE_DMA32, TSHARE_CONTIGUOUS, TSHARE_NODE
 * @mode: permission bits of the region, to read and to write, in 0666; 0 means 0600, and
 *        TSHARE_MODE_NONE means none. The umask does not apply
 * @node: NUMA node that the memory must be on, if @flags has TSHARE_NODE;
 *        else 0
 * @lifetime: how long the name stays, TSHARE_LIFETIME_*; without a name only
 *            TSHARE_LIFETIME_MAKER
 *
 * Members that are zero have their defaults, and NULL stands for all defaults:
 * mode 0600, memory of any node, no flags, TSHARE_LIFETIME_MAKER::
 *
 *	struct tshare_options options = { .size = sizeof(options) };
 */
struct tshare_options {
	size_t size;
	uint32_t flags;
	uint32_t mode;
	int32_t node;
	uint32_t lifetime;
};

/*
 * struct tshare_spec.byte_offset: behind the previous tensor, aligned to 64 bytes;
 * and the region's first byte.
 */
#define TSHARE_OFFSET_AUTO  0
#define TSHARE_OFFSET_START UINT64_MAX

/**
 * struct tshare_spec - a tensor of a new region, or a view
 * @size: sizeof(struct tshare_spec); the same in all elements of an array
 * @name: its name in the region, unique there, of up to TSHARE_TENSOR_NAME_MAX
 *        bytes of any value but NUL, '/' among them; NULL or "" for none, which
 *        one tensor may have
 * @dtype: type of the elements
 * @ndim: number of dimensions, 0 (a scalar) to TSHARE_NDIM_LIMIT
 * @shape: elements along each dimension; may be NULL if @ndim is 0
 * @strides: elements from one index to the next along each dimension, or NULL
 *           for C-contiguous
 * @byte_offset: bytes from the region's start to element [0, 0, ...];
 *               TSHARE_OFFSET_START for 0 bytes; 0 is TSHARE_OFFSET_AUTO
 */
struct tshare_spec {
	size_t size;
	const char *name;
	struct tshare_dtype dtype;
	int32_t ndim;
	const int64_t *shape;
	const int64_t *strides;
	uint64_t byte_offset;
};

/**
 * tshare_spec_check() - check that a tensor's elements lie in memory
 * @spec: type, shape and strides; the name and byte_offset are ignored
 * @data: address of element [0, 0, ...]; may be NULL if there are no elements
 * @memory: first byte of the memory that all elements must be in, or NULL if
 *          only the address space bounds them
 * @size: bytes of @memory
 *
 * Call it for tensors of unknown origin, before you compute an address from their
 * strides. It doesn't read the memory.
 *
 * Return: 0; -EINVAL if @spec is malformed, has too many elements to count, or has
 * elements and @data is NULL; -ERANGE if an element is outside.
 */
int tshare_spec_check(const struct tshare_spec *spec, const void *data, const void *memory,
		      size_t size);

/**
 * tshare_region_compute_layout() - compute where a new region's tensors would lie
 * @specs: the tensors
 * @count: number of tensors, 0 to TSHARE_TENSOR_LIMIT
 * @offsets: where to store for each the bytes from the region's start to its
 *           element [0, 0, ...], as tshare_region_create() would choose them
 * @size: where to store the bytes that they need together; may be NULL
 *
 * Return: 0; -EINVAL, -ENAMETOOLONG, -ERANGE, -ENOMEM.
 */
int tshare_region_compute_layout(const struct tshare_spec *specs, size_t count, uint64_t *offsets,
				 uint64_t *size);

/**
 * tshare_region_create() - create a region
 * @ctx: the context
 * @name: its name: 1 to TSHARE_NAME_MAX bytes without '/', not "." or "..";
 *        NULL for none
 * @size: bytes, or 0 for as many as the tensors need
 * @specs: the tensors in it; may be NULL if @count is 0
 * @count: number of tensors, 0 to TSHARE_TENSOR_LIMIT; their dimensions and names
 *         together take at most 256 MiB
 * @options: or NULL
 * @region: where to store it: mapped, writable, zeroed
 *
 * With TSHARE_DRAFT the region is a draft: its name is taken, but no process can open
 * it before tshare_region_finish(), or see it half filled. Until then the name ends
 * with the context, whatever its lifetime, or earlier, with the last object that has
 * the region open. The maker may pass the descriptor to another process.
 *
 * With TSHARE_REPLACE the name may be that of a finished region, which the caller
 * must be allowed to unlink. The new region takes the name over in one step, a draft
 * when it is finished. The old region stays with its users.
 *
 * Return: 0; -EINVAL, -ENAMETOOLONG, -ERANGE, -EEXIST, -ENOMEM, -EDQUOT,
 * -EFBIG, -EOPNOTSUPP; -EPERM if the region that has the name is another user's.
 */
int tshare_region_create(struct tshare_ctx *ctx, const char *name, uint64_t size,
			 const struct tshare_spec *specs, size_t count,
			 const struct tshare_options *options, struct tshare_region **region);

/**
 * tshare_region_create_dmabuf() - create a region of another driver's dma-buf
 * @ctx: the context
 * @name: its name, which it must have
 * @fd: descriptor of the dma-buf: a camera's, a GPU's, a heap's; the caller keeps it
 * @specs: as for tshare_region_create(); the tensors must lie in the dma-buf
 * @count: likewise
 * @options: likewise; without TSHARE_DMA32, TSHARE_NODE and TSHARE_CONTIGUOUS
 * @region: where to store it: mapped, writable if the dma-buf is
 *
 * Gives the dma-buf a name, a mode, tensors and a generation. The memory is unchanged.
 * Every opener of the name gets the dma-buf itself, whose one file is either writable
 * or not. Opening a writable dma-buf needs permission to write, also with TSHARE_READONLY,
 * which then makes the mapping read-only. A read-only dma-buf prevents writes by mmap(),
 * but not by a device whose driver ignores the mode of a dma-buf that it imports.
 *
 * The module's limits don't count the dma-buf's memory, but the region as one page.
 *
 * The region ends with its name: after that no process can begin to publish or wait, and
 * calls such as tshare_region_get_info() are -ENOENT. Mappings stay. A dma-buf may have
 * several regions, each with a name, tensors and a generation of its own, so
 * tshare_region_import() of the dma-buf is -EOPNOTSUPP.
 *
 * Return: 0; -EBADF, -EINVAL if @fd is not a dma-buf or is one of tshare's own, -EOPNOTSUPP
 * on shm, what mmap() of the dma-buf returns, and what tshare_region_create() does.
 */
int tshare_region_create_dmabuf(struct tshare_ctx *ctx, const char *name, int fd,
				const struct tshare_spec *specs, size_t count,
				const struct tshare_options *options,
				struct tshare_region **region);

/**
 * tshare_region_finish() - let others open a draft
 * @region: what tshare_region_create() made with TSHARE_DRAFT, in the same context
 * @flags: TSHARE_REPLACE or 0; a draft that was created with it doesn't need it again
 *
 * In one step the name leads to the region. Openers then see what was written before.
 * TSHARE_REPLACE takes the name over if it leads to another region, which the caller
 * must be allowed to unlink. An object that was imported needs the flag, however the
 * draft was created. After an error the region is still a draft.
 *
 * Return: 0; -EINVAL if it is no draft; -ENOENT if its name was removed; -EEXIST if
 * another region has the name and TSHARE_REPLACE is missing; -EPERM if that region is
 * another user's, or the draft was made in another context; -EFBIG if RLIMIT_FSIZE lets the
 * process write to no file (shm); -ENOMEM.
 */
int tshare_region_finish(struct tshare_region *region, uint32_t flags);

/**
 * tshare_region_unlink() - remove a region's own name
 * @region: the region
 *
 * Unlike tshare_ctx_unlink(), this never removes a name that meanwhile leads to
 * another region. The memory stays with its users.
 *
 * Return: 0; -ENOENT if the region has no name, or has lost it; -EPERM.
 */
int tshare_region_unlink(struct tshare_region *region);

/**
 * struct tshare_open_options - how to open a region
 * @size: sizeof(struct tshare_open_options)
 * @flags: TSHARE_READONLY or 0
 * @reserved: must be 0
 * @timeout_ns: how long to wait for the name, in nanoseconds: 0 not at all, negative
 *              for ever
 * @other_than: a region that is not to be opened, though the name may lead to it; may
 *              be NULL
 * @check: called in the caller's thread, while the call waits, after a signal handler and
 *         every @check_ns; NULL for none. A nonzero result ends the call with -ECANCELED,
 *         and a signal handler alone doesn't end it. It may call the library and fork(), and
 *         must return: longjmp(), exceptions and pthread_exit() would leak what the call holds
 * @check_ns: time between two calls of @check, in nanoseconds; 0 for signal handlers alone
 * @data: passed to @check
 */
struct tshare_open_options {
	size_t size;
	uint32_t flags;
	uint32_t reserved;
	int64_t timeout_ns;
	const struct tshare_region *other_than;
	int (*check)(void *data);
	int64_t check_ns;
	void *data;
};

/**
 * tshare_region_open() - open a region by its name
 * @ctx: the context
 * @name: its name
 * @options: or NULL: writable, without waiting
 * @region: where to store it, mapped
 *
 * With a timeout the call sleeps until the name leads to a finished region other than
 * @options->other_than. A draft that is finished and unlinked before the call looks again
 * doesn't end the wait. On the module it does, with -ENOENT, if the region is also gone when
 * @options->check returns.
 *
 * On shm a thread of the library, in which all signals are blocked, wakes a process's waits,
 * with one instance of inotify(7). The thread starts with the first wait and ends some 100 ms
 * after the last. If inotify is unavailable, because a limit of the user's is reached or the
 * directory may not be read, a wait polls, and ends up to 100 ms late.
 *
 * Return: 0; -EINVAL, -ENAMETOOLONG, -EACCES, -EPROTO; without waiting -ENOENT,
 * -EINPROGRESS if the region is a draft, -EAGAIN if it is @options->other_than; having
 * waited -ETIMEDOUT, -EINTR if a signal handler ran, -ECANCELED, -ENOENT if a draft's maker
 * exited before it was finished.
 */
int tshare_region_open(struct tshare_ctx *ctx, const char *name,
		       const struct tshare_open_options *options, struct tshare_region **region);

/**
 * tshare_region_import() - open a region by its descriptor
 * @ctx: the context
 * @fd: from tshare_region_get_fd() of any process, by SCM_RIGHTS or inheritance;
 *      duplicated, the caller keeps its own
 * @flags: TSHARE_READONLY or 0
 * @region: where to store it, mapped
 *
 * A read-only descriptor makes a read-only region, whatever @flags are. Descriptors of
 * either backend are accepted in either context.
 *
 * On shm a sender that truncates the file would end this process with SIGBUS. So the
 * file must be sealed, as those of unnamed regions are; or be in the directory of
 * named regions, and there have its region's name or belong to the caller. The owner
 * of a named region can still truncate its file later: from untrusted users, import
 * unnamed regions only. A file with less memory than its region is refused, as this process
 * would allocate each missing page. A sender that may write can still punch holes later, so
 * a process that imports from untrusted users needs room for all of the region.
 *
 * A descriptor of a part (tshare_region_export()) makes a region of the part's size. The
 * region has no tensors, since their offsets are from the start of the whole region.
 *
 * Return: 0; -EBADF, -EINVAL if @fd is not a region's, -EPROTO; -EOPNOTSUPP if it is another
 * driver's dma-buf, -ENODEV or -EACCES if it is a dma-buf, and the module can't be asked
 * about it.
 */
int tshare_region_import(struct tshare_ctx *ctx, int fd, uint32_t flags,
			 struct tshare_region **region);

/* struct tshare_read_options.flags: past the page cache */
#define TSHARE_DIRECT (1U << 0)

/**
 * struct tshare_read_options - how to read a file into a region
 * @size: sizeof(struct tshare_read_options)
 * @flags: TSHARE_DIRECT or 0
 * @threads: threads that read at a time, the caller's among them, up to 64; 0 for the
 *           library's choice
 * @progress: called between two reads in the caller's thread, and once more when all is read,
 *            with the bytes that all threads have read so far; NULL for none. A nonzero result
 *            ends the call with -ECANCELED
 * @data: passed to @progress
 */
struct tshare_read_options {
	size_t size;
	uint32_t flags;
	uint32_t threads;
	int (*progress)(void *data, uint64_t done);
	void *data;
};

/**
 * tshare_region_read() - read a part of a file into a region
 * @region: the region, which must be writable
 * @fd: the file, open for reading; its position neither matters nor changes
 * @file_offset: bytes of the file before the part
 * @offset: bytes of the region before the place where the part is to be
 * @length: bytes to read
 * @options: or NULL: through the page cache, and without reports
 *
 * Several threads read pieces of the file at a time. With TSHARE_DIRECT they read by
 * O_DIRECT, so that the disk writes into the region and the page cache doesn't grow. O_DIRECT
 * needs a @file_offset and a place in memory that agree modulo 4,096. Other parts are read
 * through the page cache, and dropped from it at once. A piece that the page cache has
 * already is copied from there, and stays in it. The library can detect such pieces only in a
 * file that the caller owns or may write.
 *
 * On shm, memory that no process has touched yet is written through the region's file, from a
 * buffer of each thread: a first touch of each page would take longer.
 *
 * After an error any part of the place may have been written. A signal handler doesn't end the
 * call; @options->progress can check a flag that the handler sets.
 *
 * Return: 0; -EACCES for a read-only region; -EBADF, -ESPIPE or -EISDIR if @fd is no file that
 * is open for reading; -EINVAL; -ERANGE for a place that is not inside the region; -ENODATA if
 * the file is shorter; -ECANCELED; -EIO and what else pread(2) may return.
 */
int tshare_region_read(struct tshare_region *region, int fd, uint64_t file_offset, uint64_t offset,
		       uint64_t length, const struct tshare_read_options *options);

/**
 * tshare_region_export() - make a descriptor of a region or of a part of it
 * @region: the region
 * @offset: bytes before the part, whole pages
 * @size: bytes of it, whole pages; 0 for all from @offset on
 * @flags: TSHARE_READONLY or 0
 * @fd: where to store it: O_CLOEXEC, and the caller's to close
 *
 * On kmod this is a dma-buf of its own over these pages, through which neither a
 * process nor a device reaches other pages. It serves a driver that takes no offset,
 * such as V4L2's, which needs one descriptor a frame, and a process that may see only
 * part of a region. A read-only descriptor can't be made writable. Dma-bufs over the
 * same pages share their implicit fences. Dma-bufs that only overlap don't.
 *
 * On shm only a whole region has a descriptor: -EOPNOTSUPP for a part.
 *
 * Return: 0; -EACCES without TSHARE_READONLY of a read-only region, -EINVAL, -ERANGE,
 * -EOPNOTSUPP, -EMFILE, -ENFILE, -ENOMEM.
 */
int tshare_region_export(const struct tshare_region *region, uint64_t offset, uint64_t size,
			 uint32_t flags, int *fd);

/**
 * tshare_region_ref() - take a reference to a region
 * @region: the region
 *
 * Return: @region.
 */
struct tshare_region *tshare_region_ref(struct tshare_region *region);

/**
 * tshare_region_unref() - drop a reference to a region
 * @region: the region, or NULL
 *
 * The last unref, those of its tensors and waiters included, unmaps the memory and closes
 * the descriptors, and the object stops being a publisher. The region's name stays,
 * unless its lifetime is TSHARE_LIFETIME_USERS and this was the last user.
 *
 * Return: NULL.
 */
struct tshare_region *tshare_region_unref(struct tshare_region *region);

/**
 * tshare_region_get_fd() - return the descriptor that other processes can import
 * @region: the region
 *
 * Return: the descriptor, a dma-buf on kmod, which belongs to the region.
 */
int tshare_region_get_fd(const struct tshare_region *region);

/**
 * tshare_region_get_data() - return where a region's memory is mapped
 * @region: the region
 *
 * Return: the address of the first byte, aligned to limits.huge_page_size where the
 * region is that large. A write to a read-only region ends in SIGSEGV.
 */
void *tshare_region_get_data(const struct tshare_region *region);

/**
 * tshare_region_get_size() - return the size of a region
 * @region: the region
 *
 * Return: bytes, a multiple of the page size.
 */
uint64_t tshare_region_get_size(const struct tshare_region *region);

/**
 * tshare_region_get_name() - return the name by which a region was made or opened
 * @region: the region
 *
 * Return: the name, "" for none. It may have been removed since;
 * tshare_region_get_info() reports whether.
 */
const char *tshare_region_get_name(const struct tshare_region *region);

/**
 * tshare_region_get_id() - return a region's id
 * @region: the region
 *
 * Return: a number that no other region of the backend has while this one exists.
 */
uint64_t tshare_region_get_id(const struct tshare_region *region);

/**
 * tshare_region_is_readonly() - return whether a region's memory is mapped read-only
 * @region: the region
 *
 * Return: whether it was opened so, or imported from a read-only descriptor.
 */
bool tshare_region_is_readonly(const struct tshare_region *region);

/**
 * tshare_region_get_backend() - return the name of the backend that a region is from
 * @region: the region
 *
 * Return: "kmod" or "shm"; after an import it may differ from the context's.
 */
const char *tshare_region_get_backend(const struct tshare_region *region);

/**
 * struct tshare_region_info - what the backend reports of a region
 * @size: sizeof(struct tshare_region_info), set by the caller, or by
 *        tshare_ctx_list()
 * @id: its id
 * @region_size: bytes of its memory, a multiple of the page size
 * @uid: owner
 * @gid: group
 * @mode: permission bits
 * @node: NUMA node, or TSHARE_ANY_NODE if the backend doesn't report it
 * @flags: TSHARE_DRAFT, TSHARE_DMA32, TSHARE_CONTIGUOUS, TSHARE_FOREIGN, TSHARE_POOL as
 *         they apply, and TSHARE_READONLY if the caller may not write
 * @lifetime: how long its name stays, or would have: TSHARE_LIFETIME_*
 * @segments: physically contiguous segments; 0 if the backend doesn't report them
 * @phys_addr: physical address, for CAP_SYS_RAWIO on kmod; else 0
 * @offset: for a part (tshare_region_export()), bytes of the region before it; else 0
 * @length: for a part, its bytes; else @region_size
 * @tensor_count: number of tensors
 * @name: its name; "" if it has none or has lost it
 */
struct tshare_region_info {
	size_t size;
	uint64_t id;
	uint64_t region_size;
	uid_t uid;
	gid_t gid;
	uint32_t mode;
	int32_t node;
	uint32_t flags;
	uint32_t lifetime;
	uint32_t segments;
	uint64_t phys_addr;
	uint64_t offset;
	uint64_t length;
	uint32_t tensor_count;
	char name[TSHARE_NAME_MAX + 1];
};

/**
 * tshare_region_get_info() - return what the backend reports of a region
 * @region: the region
 * @info: what to fill, with its size set
 *
 * Return: 0; -EINVAL for an invalid size; -EPROTO if a peer has damaged it (shm).
 */
int tshare_region_get_info(struct tshare_region *region, struct tshare_region_info *info);

/**
 * tshare_region_get_tensor_count() - return the number of tensors in a region
 * @region: the region
 *
 * Return: the number; views that were made of the region don't count.
 */
size_t tshare_region_get_tensor_count(const struct tshare_region *region);

/**
 * tshare_region_get_tensor() - create the object of a tensor by its place
 * @region: the region
 * @index: 0 to tshare_region_get_tensor_count() - 1, in the order of creation
 * @tensor: where to store it
 *
 * If a region was opened or imported, and has more than a few tensors, the first call of
 * one of these three functions reads and checks the list. The first search for a name
 * indexes the names. Any thread may be the first.
 *
 * Return: 0; -ENOENT if there is no such place, -ENOMEM, -EPROTO if a peer has
 * damaged the list (shm).
 */
int tshare_region_get_tensor(struct tshare_region *region, size_t index,
			     struct tshare_tensor **tensor);

/**
 * tshare_region_find_tensor() - create the object of a tensor by its name
 * @region: the region
 * @name: its name in the region
 * @tensor: where to store it
 *
 * Return: 0; -ENOENT if there is none of that name, -ENOMEM, -EPROTO as
 * tshare_region_get_tensor().
 */
int tshare_region_find_tensor(struct tshare_region *region, const char *name,
			      struct tshare_tensor **tensor);

/**
 * tshare_region_get_tensor_name() - look up the name of a tensor by its place
 * @region: the region
 * @index: 0 to tshare_region_get_tensor_count() - 1, in the order of creation
 * @name: where to store a pointer to it, valid until the region's last unref; ""
 *        for none
 *
 * Return: 0; -ENOENT, -ENOMEM, -EPROTO as tshare_region_get_tensor().
 */
int tshare_region_get_tensor_name(struct tshare_region *region, size_t index, const char **name);

/**
 * DOC: generations
 *
 * A region has a number, its generation, which is 0 at first. A process that may
 * write the region can publish, which adds one and wakes all waiters. A process
 * that has seen a generation sees what was written before its publish::
 *
 *	tshare_region_publish(region, NULL);			// a producer
 *
 *	uint64_t seen = 0;					// a consumer
 *	while (!tshare_region_wait(region, seen, -1, 0, &seen))
 *		look_at(tshare_region_get_data(region));
 *
 * Publishers. With its first publish, or by tshare_region_announce(), an object becomes a
 * publisher, and is one until its last unref, or until its process has ended in whatever way.
 * tshare_region_publish_once() doesn't make it one.
 *
 * Signals. None of these functions may be called in a signal handler. A handler
 * that was installed without SA_RESTART ends a wait of its thread with -EINTR; after
 * any other the wait goes on. (If futex_waitv(2) is missing, as before Linux
 * 5.16, or a seccomp filter forbids it, any handler ends a wait.)
 *
 * Threads. Any number of threads may publish and wait through one object. They are
 * one publisher, and are cancelled together. To cancel them separately, see struct tshare_waiter.
 *
 * pthread_cancel(). These functions are no cancellation points: a thread that is
 * cancelled in a wait sleeps on until the wait ends. tshare_region_cancel() ends it.
 *
 * fork(). In the child an object is no publisher until it publishes there, and has no
 * event descriptor until it is asked for one there. Waits of the parent's other
 * threads are the parent's alone.
 */

/**
 * tshare_region_get_generation() - read the number of publishes so far
 * @region: the region
 * @generation: where to store it
 *
 * Return: 0; -EMFILE, -ENFILE, -ENOMEM; -EOPNOTSUPP if the module is too old; -EPROTO if a
 * process whose library counts in another way shares the region.
 */
int tshare_region_get_generation(struct tshare_region *region, uint64_t *generation);

/**
 * tshare_region_announce() - become a publisher without publishing
 * @region: the region
 *
 * From now on other objects' waits notice the end of this publisher, even if it publishes
 * nothing: a server announces itself before it begins its first answer. Does nothing for a
 * publisher. After fork() the child isn't one until it calls this or publishes.
 *
 * Return: as tshare_region_publish().
 */
int tshare_region_announce(struct tshare_region *region);

/**
 * tshare_region_publish() - add one to the generation, and wake all waiters
 * @region: the region
 * @generation: where to store the new generation, or NULL
 *
 * The first publish of an object opens a descriptor, which it keeps.
 *
 * Return: 0; -EACCES for a read-only region, or for one on shm that was passed
 * to a process that may not open it; and as tshare_region_get_generation().
 */
int tshare_region_publish(struct tshare_region *region, uint64_t *generation);

/**
 * tshare_region_publish_once() - publish without becoming a publisher
 * @region: the region
 * @generation: where to store the new generation, or NULL
 *
 * Adds one to the generation and wakes all waiters. For a process that publishes and exits, such
 * as a command: no wait ends with -EOWNERDEAD because of its exit. An object that is a publisher
 * stays one.
 *
 * Return: 0; -EACCES for a read-only region; and as tshare_region_get_generation().
 */
int tshare_region_publish_once(struct tshare_region *region, uint64_t *generation);

/**
 * tshare_region_has_publishers() - check whether another object is a publisher
 * @region: the region, which may be read-only
 * @has: where to store the answer: false if no other object has ever become one
 *
 * Return: 0; -EOWNERDEAD if there were others, and all have exited; and as
 * tshare_region_get_generation().
 */
int tshare_region_has_publishers(struct tshare_region *region, bool *has);

/**
 * tshare_region_wait() - wait for a generation that is new to the caller
 * @region: the region, which may be read-only
 * @seen: the newest generation that the caller knows
 * @timeout_ns: how long, in nanoseconds; 0 only looks; negative for ever
 * @spin_ns: how much of that to spin before sleeping, which saves the time of a
 *           wake-up and occupies a processor; usually 0
 * @generation: where to store the newest generation, which is above @seen
 *
 * Sleeps until a process publishes. The wait ends with -EOWNERDEAD when other objects
 * have become publishers of the region and all of them have exited. It notices that at
 * once if a publisher dropped its last reference or called exit(), and within about
 * 100 ms if it was killed. As long as there has been no other publisher, the wait goes on.
 * An object doesn't count itself, whichever thread has published through it: threads
 * that wait for one another must have an object each.
 *
 * A new generation takes precedence over every reason to end the wait. After
 * tshare_region_cancel() no wait begins, whatever is new.
 *
 * Return: 0; -ETIMEDOUT; -EINTR; -ECANCELED after tshare_region_cancel();
 * -EOWNERDEAD; and as tshare_region_get_generation().
 */
int tshare_region_wait(struct tshare_region *region, uint64_t seen, int64_t timeout_ns,
		       int64_t spin_ns, uint64_t *generation);

/**
 * tshare_region_cancel() - end all waits through this object, for good
 * @region: the region
 *
 * Each wait through @region, under way or to come, ends with -ECANCELED, but for a wait
 * under way that finds a new generation. Other objects of the region, waiters and
 * publishes aren't affected. On return the waits may not have ended yet, so each thread
 * must hold its own reference.
 */
void tshare_region_cancel(struct tshare_region *region);

/**
 * tshare_region_get_event_fd() - get a descriptor that is readable when there is news
 * @region: the region, which may be read-only
 * @fd: where to store an eventfd(2), for poll(), select() and epoll. It belongs to
 *      the object, whose last unref closes it; it is the same each time
 *
 * It becomes readable
 *
 * - when a generation is published, and at first if any was published before;
 * - when all publishers have exited, as tshare_region_wait() defines that;
 * - when tshare_region_cancel() is called.
 *
 * It stays so until it is acknowledged by reading its 8 bytes, which never blocks:
 * -1 with EAGAIN if there is no news. Acknowledge before looking, so that nothing
 * that happens in between is missed::
 *
 *	eventfd_read(fd, &ignored);
 *	err = tshare_region_wait(region, seen, 0, 0, &seen);
 *
 * tshare_region_wait() with a timeout of 0 returns the news: 0 and the generation,
 * -EOWNERDEAD or -ECANCELED, or -ETIMEDOUT if there is none. No other call
 * acknowledges. Several readers of one descriptor take the news from one another:
 * each needs a struct tshare_waiter of its own.
 *
 * One thread of the library, in which all signals are blocked, writes to up to 127
 * descriptors of the process. It starts with the first descriptor and ends some 100 ms
 * after the last. (Without futex_waitv(2) there is a thread for each region.) After fork()
 * the child has no descriptor; it gets another one by calling this function.
 *
 * Return: 0; -EAGAIN if the thread can't be started; and as tshare_region_get_generation().
 */
int tshare_region_get_event_fd(struct tshare_region *region, int *fd);

/*
 * A waiter is one of several consumers of a region in a process that share an object.
 * It is cancelled by itself, and has an event descriptor of its own. To its waiters,
 * too, the object doesn't count as another publisher.
 */

/**
 * tshare_waiter_new() - make a waiter
 * @region: the region, to which it keeps a reference
 * @waiter: where to store it
 *
 * Return: 0 or -ENOMEM.
 */
int tshare_waiter_new(struct tshare_region *region, struct tshare_waiter **waiter);

/**
 * tshare_waiter_ref() - take a reference to a waiter
 * @waiter: the waiter
 *
 * Return: @waiter.
 */
struct tshare_waiter *tshare_waiter_ref(struct tshare_waiter *waiter);

/**
 * tshare_waiter_unref() - drop a reference to a waiter
 * @waiter: the waiter, or NULL
 *
 * The last unref closes its event descriptor.
 *
 * Return: NULL.
 */
struct tshare_waiter *tshare_waiter_unref(struct tshare_waiter *waiter);

/**
 * tshare_waiter_wait() - wait for a generation, until tshare_waiter_cancel()
 * @waiter: the waiter
 * @seen: as for tshare_region_wait()
 * @timeout_ns: as for tshare_region_wait()
 * @spin_ns: as for tshare_region_wait()
 * @generation: as for tshare_region_wait()
 *
 * Return: as tshare_region_wait().
 */
int tshare_waiter_wait(struct tshare_waiter *waiter, uint64_t seen, int64_t timeout_ns,
		       int64_t spin_ns, uint64_t *generation);

/**
 * tshare_waiter_cancel() - end all waits through this waiter, for good
 * @waiter: the waiter
 *
 * As tshare_region_cancel(), which doesn't affect waiters.
 */
void tshare_waiter_cancel(struct tshare_waiter *waiter);

/**
 * tshare_waiter_get_event_fd() - get a descriptor that is readable when there is news
 * @waiter: the waiter
 * @fd: where to store it: the waiter's own, as tshare_region_get_event_fd() has it
 *
 * Return: as tshare_region_get_event_fd().
 */
int tshare_waiter_get_event_fd(struct tshare_waiter *waiter, int *fd);

/**
 * tshare_region_view() - create a tensor over a region's memory
 * @region: the region
 * @spec: the tensor. @spec->byte_offset is from the region's start;
 *        TSHARE_OFFSET_AUTO is as near to that as the strides allow
 * @flags: TSHARE_READONLY or 0
 * @tensor: where to store it
 *
 * The region's own list of tensors stays as it is. TSHARE_READONLY only marks the
 * tensor for its consumers; the mapping keeps the region's access.
 *
 * Return: 0; -EINVAL; -ERANGE if it is not wholly inside; -ENOMEM.
 */
int tshare_region_view(struct tshare_region *region, const struct tshare_spec *spec, uint32_t flags,
		       struct tshare_tensor **tensor);

/**
 * tshare_ctx_unlink() - remove a region's name
 * @ctx: the context
 * @name: the name
 *
 * The memory stays with its users.
 *
 * Return: 0; -EINVAL, -ENAMETOOLONG, -ENOENT, -EPERM.
 */
int tshare_ctx_unlink(struct tshare_ctx *ctx, const char *name);

/**
 * tshare_ctx_list() - walk through the named regions that the caller may read, or owns
 * @ctx: the context
 * @fn: called for each; a nonzero result ends the walk
 * @data: passed to @fn
 *
 * The owner of a region can unlink it even if the mode lets nobody open it.
 *
 * Return: 0, what @fn returned, or -ENOMEM.
 */
int tshare_ctx_list(struct tshare_ctx *ctx,
		    int (*fn)(const struct tshare_region_info *info, void *data), void *data);

/**
 * tshare_ctx_list_all() - walk through the named regions of all IPC namespaces
 * @ctx: the context
 * @fn: called for each; a nonzero result ends the walk
 * @data: passed to @fn
 *
 * Several regions may have the same name. Needs CAP_SYS_ADMIN in the initial user namespace.
 *
 * Return: 0, what @fn returned, -EPERM, or -ENOMEM; -EOPNOTSUPP for shared memory.
 */
int tshare_ctx_list_all(struct tshare_ctx *ctx,
			int (*fn)(const struct tshare_region_info *info, void *data), void *data);

/**
 * tshare_ctx_unlink_id() - remove the name of the region that has an id
 * @ctx: the context
 * @id: the region's id, see struct tshare_region_info
 *
 * As tshare_ctx_unlink(), in the context's IPC namespace, and in all others for a caller that may
 * list them.
 *
 * Return: 0; -EINVAL if @id is 0; -ENOENT if the caller can't see such a region, or it has no
 * name; -EPERM; -EOPNOTSUPP for shared memory.
 */
int tshare_ctx_unlink_id(struct tshare_ctx *ctx, uint64_t id);

/**
 * tshare_ctx_watch() - watch a name
 * @ctx: the context, to which the watcher keeps a reference
 * @name: the name
 * @watcher: where to store it; tshare_watcher_wait() waits with it until the name leads to
 *           another region, or to none
 *
 * For a reader that has to notice a new region of that name, such as the next version of a
 * model, and the end of its region, such as when a server was killed before it published
 * anything::
 *
 *	while (!tshare_watcher_wait(watcher, seen, -1, &seen))
 *		seen ? use_region(ctx, name) : wait_for_server();
 *
 * Return: 0; -EINVAL or -ENAMETOOLONG for a malformed name; -EMFILE; -ENFILE; -ENOMEM; -EDQUOT
 * if the IPC namespace has TSHARE_WATCH_MAX watches (kmod).
 */
int tshare_ctx_watch(struct tshare_ctx *ctx, const char *name, struct tshare_watcher **watcher);

/**
 * tshare_watcher_ref() - take a reference to a watcher
 * @watcher: the watcher
 *
 * Return: @watcher.
 */
struct tshare_watcher *tshare_watcher_ref(struct tshare_watcher *watcher);

/**
 * tshare_watcher_unref() - drop a reference to a watcher
 * @watcher: the watcher, or NULL
 *
 * The last unref closes its event descriptor.
 *
 * Return: NULL.
 */
struct tshare_watcher *tshare_watcher_unref(struct tshare_watcher *watcher);

/**
 * tshare_watcher_wait() - wait until a name leads to another region
 * @watcher: the watcher
 * @seen: id of the region that the caller knows of, or 0 for none
 * @timeout_ns: how long to wait at most, in nanoseconds; 0 to look, negative to wait for ever
 * @id: where to store the id of the region that the name leads to now, other than @seen; or 0
 *      if it leads to none, or to a draft
 *
 * Changes that undo one another before the call looks are missed. On /dev/tshare the call
 * returns when the name's lifetime ends; on shared memory up to a second after the process that
 * kept the region was killed.
 *
 * Return: 0; -ETIMEDOUT; -ECANCELED; -EINTR if a signal handler ran; -EBUSY if another
 * thread waits through @watcher; -EOPNOTSUPP in a child of fork(), which needs its own;
 * -EACCES if the name leads to a region that the caller may not read (shm).
 */
int tshare_watcher_wait(struct tshare_watcher *watcher, uint64_t seen, int64_t timeout_ns,
			uint64_t *id);

/**
 * tshare_watcher_cancel() - end all waits through this watcher, for good
 * @watcher: the watcher
 *
 * May be called by any thread, and by a signal handler.
 */
void tshare_watcher_cancel(struct tshare_watcher *watcher);

/**
 * tshare_watcher_get_event_fd() - return a descriptor that is readable when there may be news
 * @watcher: the watcher
 *
 * For poll(), epoll and event loops. Don't read it: when it is readable, call
 * tshare_watcher_wait() with a timeout of 0, which makes it unreadable until something else
 * happens. It may be readable without news. It is readable at first, and always after
 * tshare_watcher_cancel().
 *
 * Return: the descriptor, the watcher's own.
 */
int tshare_watcher_get_event_fd(const struct tshare_watcher *watcher);

/**
 * DOC: streams
 *
 * A stream hands frames from one producer to up to TSHARE_STREAM_CONSUMERS consumers, in place.
 * It is two regions. NAME has a tensor for each field of a frame, whose first dimension is the
 * slot, and only the producer writes it. NAME.seats has what consumers write: who holds which
 * slot. On the module, whoever may read NAME may be a consumer. On shm a consumer needs permission
 * to write NAME, since a process that may write a file may truncate it, too; others can observe::
 *
 *	tshare_stream_loan(stream, -1, &frame);			// a producer
 *	tshare_frame_get_tensor(frame, 0, &image);
 *	capture(tshare_tensor_get_data(image));
 *	tshare_tensor_unref(image);
 *	tshare_frame_publish(frame);
 *	tshare_frame_unref(frame);
 *
 *	while (!tshare_stream_take(stream, -1, &frame)) {	// a consumer
 *		tshare_frame_get_tensor(frame, 0, &image);
 *		look_at(tshare_tensor_get_data(image));
 *		tshare_tensor_unref(image);
 *		tshare_frame_unref(frame);
 *	}
 *
 * A frame that a consumer has taken stays whole until the consumer drops the frame and its
 * tensors, or until the consumer's process ends, in whatever way. The producer meanwhile fills
 * other slots. If all are held, or are history, a loan waits. Taking and dropping a frame makes
 * no system call, unless the producer waits for a slot.
 *
 * Numbers. The first frame has the number 1, and each publish adds one. The newest number is the
 * generation of NAME (tshare_region_wait()).
 *
 * Losing frames. A consumer that is slower than the producer misses frames, and nobody waits for
 * it; tshare_frame_info.lost counts them. With TSHARE_KEEP_ALL it misses none: the producer waits
 * for it. An observer, which may only read, delays nobody either. It has no seat, and copies a
 * frame before it asks with tshare_frame_check() whether the frame was whole.
 *
 * The end. After tshare_stream_close() consumers take the frames that are left, then get
 * -ENODATA. If the producer dies the frames that it published stay readable, and then the error
 * is -EOWNERDEAD. A consumer that stops without dying keeps its frames: a loan that times out
 * names it, and tshare_stream_evict() takes them away.
 *
 * Following. With TSHARE_FOLLOW a consumer or observer outlives its producer. When the name leads
 * to another stream, calls that take frames take first what is left of the old one, then move over
 * to the new one, from its oldest frame on. When the producer has died they wait for the name's
 * next stream. After tshare_stream_close() they do not: they fail with -ENODATA unless the name
 * leads to another stream by then. tshare_frame_info.epoch counts the streams; numbers and
 * tshare_frame_info.lost begin anew with each. The fields must be the same, in the same order. A
 * replaced producer that lives is left within about 100 ms. Frames of an old stream stay valid
 * until they are dropped, and count among those that may be held. Calls that don't take are about
 * the stream that the object is at.
 *
 * Threads. Any number of threads may use one stream object; a frame goes to one of them.
 *
 * fork(). A child has neither its parent's role nor its parent's frames: calls that need them are
 * -EOPNOTSUPP there. It opens the stream anew.
 *
 * A consumer can damage what others read from slots that it was never lent, by writing NAME.seats.
 * It can't write frames, nor let a process crash or read beyond the stream.
 */

/* The most consumers of a stream, slots, and fields of a frame. */
#define TSHARE_STREAM_CONSUMERS 62
#define TSHARE_STREAM_SLOTS	256
#define TSHARE_STREAM_FIELDS	64

/* Bytes of a stream's name: NAME.seats is a region's name, too. */
#define TSHARE_STREAM_NAME_MAX 120

/* flags of struct tshare_stream_options and of struct tshare_stream_open_options */
#define TSHARE_KEEP_ALL (1U << 0) /* create: consumers may keep all; open: this consumer does */
#define TSHARE_OBSERVE	(1U << 1) /* open: copies frames, and takes none */
#define TSHARE_FOLLOW	(1U << 2) /* open: moves over when a producer was restarted */

/**
 * struct tshare_stream_options - how to create a stream
 * @size: sizeof(struct tshare_stream_options)
 * @slots: frames that there is memory for, up to TSHARE_STREAM_SLOTS; 0 for 8
 * @history: newest frames that stay until newer ones replace them, below @slots; 0 for 1
 * @flags: TSHARE_KEEP_ALL or 0
 * @reserved: must be 0
 * @region: how to create the region NAME, or NULL. Flags may be TSHARE_REPLACE, which a
 *          restarted producer needs, TSHARE_DMA32, TSHARE_CONTIGUOUS and TSHARE_NODE. A producer
 *          that is replaced and lives goes on, alone with its consumers
 */
struct tshare_stream_options {
	size_t size;
	uint32_t slots;
	uint32_t history;
	uint32_t flags;
	uint32_t reserved;
	const struct tshare_options *region;
};

/**
 * tshare_stream_create() - create a stream, and become its producer
 * @ctx: the context
 * @name: its name, as a region's, of up to TSHARE_STREAM_NAME_MAX bytes
 * @fields: the fields of a frame: name, type and the largest shape. strides must be NULL and
 *          byte_offset 0; names don't begin with '.'
 * @count: number of fields, 1 to TSHARE_STREAM_FIELDS
 * @options: or NULL
 * @stream: where to store it
 *
 * Each field of each slot begins on a page of its own, so that tshare_region_export() can make a
 * descriptor of it.
 *
 * Return: 0; -EINVAL, -ENAMETOOLONG, and as tshare_region_create().
 */
int tshare_stream_create(struct tshare_ctx *ctx, const char *name, const struct tshare_spec *fields,
			 size_t count, const struct tshare_stream_options *options,
			 struct tshare_stream **stream);

/**
 * struct tshare_stream_open_options - how to open a stream
 * @size: sizeof(struct tshare_stream_open_options)
 * @flags: TSHARE_KEEP_ALL, TSHARE_OBSERVE, TSHARE_FOLLOW or 0
 * @history: begin with up to that many frames that were published before; 0: with the next one.
 *           The producer keeps as many as its own history says
 * @hold: frames that may be held at a time; 0 for a quarter of the slots, at least 2
 * @reserved: must be 0
 * @timeout_ns: how long to wait for the name, in nanoseconds: 0 not at all, negative for ever
 * @check: called during the wait, as that of struct tshare_open_options; NULL for none
 * @check_ns: time between two calls of @check, in nanoseconds; 0 for signal handlers alone
 * @data: passed to @check
 */
struct tshare_stream_open_options {
	size_t size;
	uint32_t flags;
	uint32_t history;
	uint32_t hold;
	uint32_t reserved;
	int64_t timeout_ns;
	int (*check)(void *data);
	int64_t check_ns;
	void *data;
};

/**
 * tshare_stream_open() - open a stream, and become its consumer or observer
 * @ctx: the context
 * @name: its name
 * @options: or NULL: a consumer, without waiting
 * @stream: where to store it
 *
 * Return: 0; -EUSERS if there are TSHARE_STREAM_CONSUMERS others; -EPERM for TSHARE_KEEP_ALL if the
 * producer doesn't allow it; -EPROTO if NAME is no stream, or was made by an incompatible library;
 * -EACCES; and as tshare_region_open().
 */
int tshare_stream_open(struct tshare_ctx *ctx, const char *name,
		       const struct tshare_stream_open_options *options,
		       struct tshare_stream **stream);

/**
 * tshare_stream_ref() - take a reference to a stream
 * @stream: the stream
 *
 * Return: @stream.
 */
struct tshare_stream *tshare_stream_ref(struct tshare_stream *stream);

/**
 * tshare_stream_unref() - drop a reference to a stream
 * @stream: the stream, or NULL
 *
 * The last unref, those of its frames included, ends the role: a consumer's seat is free; a
 * producer's names are removed, and its consumers get -EOWNERDEAD unless tshare_stream_close() was
 * called.
 *
 * Return: NULL.
 */
struct tshare_stream *tshare_stream_unref(struct tshare_stream *stream);

/**
 * tshare_stream_get_region() - return the region NAME
 * @stream: the stream
 *
 * To pin it once for all slots, to export a slot.
 *
 * Return: the region, without a reference: the stream has one. It is read-only but for the
 * producer. With TSHARE_FOLLOW it may go when any thread takes a frame.
 */
struct tshare_region *tshare_stream_get_region(const struct tshare_stream *stream);

/**
 * tshare_stream_ref_region() - return the region NAME, with a reference
 * @stream: the stream
 *
 * Return: the region, as tshare_stream_get_region(), which stays until its unref.
 */
struct tshare_region *tshare_stream_ref_region(struct tshare_stream *stream);

/**
 * struct tshare_stream_info - what a stream is
 * @size: sizeof(struct tshare_stream_info), set by the caller
 * @slots: as it was created
 * @history: as it was created
 * @flags: TSHARE_KEEP_ALL if consumers may keep all
 * @field_count: number of fields
 * @newest: number of the newest frame, 0 for none yet
 * @seat: this consumer's seat, 0 to TSHARE_STREAM_CONSUMERS - 1; -1 for a producer or observer
 * @ended: the producer has closed the stream
 */
struct tshare_stream_info {
	size_t size;
	uint32_t slots;
	uint32_t history;
	uint32_t flags;
	uint32_t field_count;
	uint64_t newest;
	int32_t seat;
	bool ended;
};

/**
 * tshare_stream_get_info() - return what a stream is
 * @stream: the stream
 * @info: what to fill, with its size set
 *
 * Return: 0; -EINVAL for an invalid size; and as tshare_region_get_generation().
 */
int tshare_stream_get_info(struct tshare_stream *stream, struct tshare_stream_info *info);

/**
 * struct tshare_stream_seat - a consumer, as it describes itself
 * @size: sizeof(struct tshare_stream_seat), set by tshare_stream_list_seats()
 * @seat: 0 to TSHARE_STREAM_CONSUMERS - 1
 * @pid: its process, in its own PID namespace; 0 until the consumer is ready
 * @held: slots that it holds, also for frames that it keeps and hasn't taken yet
 * @keeps_all: it opened the stream with TSHARE_KEEP_ALL
 * @evicted: its frames were taken away
 * @command: its program's name; control characters are replaced
 */
struct tshare_stream_seat {
	size_t size;
	int32_t seat;
	int32_t pid;
	uint32_t held;
	bool keeps_all;
	bool evicted;
	char command[16];
};

/**
 * tshare_stream_list_seats() - walk through a stream's consumers
 * @stream: the stream
 * @fn: called for each; a nonzero result ends the walk
 * @data: passed to @fn
 *
 * Return: 0, or what @fn returned; -EOPNOTSUPP in a child of fork(). For an observer, whose first
 * call opens NAME.seats for reading: -ENOENT if the producer has exited; -ESTALE if another stream
 * has the name; and as tshare_region_open().
 */
int tshare_stream_list_seats(struct tshare_stream *stream,
			     int (*fn)(const struct tshare_stream_seat *seat, void *data),
			     void *data);

/**
 * tshare_stream_loan() - claim a slot for the next frame
 * @stream: the stream, whose producer the caller is
 * @timeout_ns: how long to wait for a free slot, in nanoseconds; 0 not at all, negative for ever
 * @frame: where to store it. Its tensors are writable, and have the contents of an older frame
 *
 * Several frames may be claimed at a time. Their numbers are those of their publishes. The last
 * unref of a frame that wasn't published gives its slot back.
 *
 * A slot that a dead process held is free within about 100 ms.
 *
 * Return: 0; -ETIMEDOUT, whose text names who holds the slots; -EACCES for a consumer;
 * -ENODATA after tshare_stream_close(); -EINTR; -ECANCELED; -ENOMEM; -EOPNOTSUPP in a child of
 * fork().
 */
int tshare_stream_loan(struct tshare_stream *stream, int64_t timeout_ns,
		       struct tshare_frame **frame);

/**
 * tshare_stream_take() - take the next frame
 * @stream: the stream
 * @timeout_ns: how long to wait for it, in nanoseconds; 0 not at all, negative for ever
 * @frame: where to store it: the oldest one that is newer than the last, and still there
 *
 * Return: 0; -ETIMEDOUT; -ENODATA if the producer has closed the stream and no frame is left;
 * -EOWNERDEAD if it has died and no frame is left, and TSHARE_FOLLOW isn't set; -EPROTO if the
 * stream to move over to has other fields, and -EPERM if it doesn't allow TSHARE_KEEP_ALL; -ENOBUFS if the consumer holds as many frames
 * as it may; -ESTALE if the consumer was evicted; -EACCES for the producer; -EINTR; -ECANCELED;
 * -ENOMEM; -EOPNOTSUPP in a child of fork().
 */
int tshare_stream_take(struct tshare_stream *stream, int64_t timeout_ns,
		       struct tshare_frame **frame);

/**
 * tshare_stream_take_latest() - take the newest frame, and pass over older ones
 * @stream: the stream; not one that was opened with TSHARE_KEEP_ALL
 * @timeout_ns: as for tshare_stream_take()
 * @frame: where to store it
 *
 * A frame that was published before tshare_stream_open() counts as taken already, unless that was
 * called with history.
 *
 * Return: as tshare_stream_take(); -EINVAL with TSHARE_KEEP_ALL.
 */
int tshare_stream_take_latest(struct tshare_stream *stream, int64_t timeout_ns,
			      struct tshare_frame **frame);

/**
 * tshare_stream_get() - take a frame by its number
 * @stream: the stream
 * @number: its number
 * @frame: where to store it
 *
 * tshare_stream_take() goes on where it was.
 *
 * Return: 0; -ENOENT if the frame isn't there any more, or not yet; and as tshare_stream_take().
 */
int tshare_stream_get(struct tshare_stream *stream, uint64_t number, struct tshare_frame **frame);

/**
 * tshare_stream_is_ready() - check whether a take would return at once
 * @stream: the stream
 * @ready: where to store it: true if there is a frame to take, or an error; see below
 *
 * The stream is ready, too, if tshare_stream_take() would fail, unless that were -ETIMEDOUT: after
 * the producer's end or death, or when this object is cancelled or was evicted.
 *
 * Return: 0; -EACCES for the producer; -EOPNOTSUPP in a child of fork().
 */
int tshare_stream_is_ready(struct tshare_stream *stream, bool *ready);

/**
 * tshare_stream_get_event_fd() - get a descriptor that is readable when there may be a frame
 * @stream: the stream
 * @fd: where to store it: the stream's own
 *
 * For poll(), epoll and event loops, and so for several streams at a time. Don't read it: when it
 * is readable, take frames, with a timeout of 0, until that fails with -ETIMEDOUT, which makes it
 * unreadable until something else happens; so does tshare_stream_is_ready(). It may be readable
 * without a frame. It stays readable when tshare_stream_take() fails with another error. Any number
 * of threads may poll one stream's::
 *
 *	while (poll(fds, count, -1) > 0)
 *		for (i = 0; i < count; i++)
 *			if (fds[i].revents && !tshare_stream_take(streams[i], 0, &frame))
 *				use(frame);
 *
 * A thread of the library, that of tshare_region_get_event_fd(), makes it readable.
 *
 * Return: 0; -EACCES for the producer; -EMFILE; -ENFILE; -ENOMEM; -EOPNOTSUPP in a child of
 * fork(); -EAGAIN if the thread can't be started; with TSHARE_FOLLOW also as tshare_ctx_watch().
 */
int tshare_stream_get_event_fd(struct tshare_stream *stream, int *fd);

/**
 * tshare_stream_cancel() - end all waits through this object, for good
 * @stream: the stream
 *
 * As tshare_region_cancel().
 */
void tshare_stream_cancel(struct tshare_stream *stream);

/**
 * tshare_stream_close() - end a stream
 * @stream: the stream, whose producer the caller is
 * @drain_ns: how long to wait until the consumers hold no frame any more, in nanoseconds; 0 not
 *            at all, negative for ever
 *
 * Consumers take what is left, then get -ENODATA. Frames that are claimed can't be published any
 * more. The stream ends first, also if the wait fails or is interrupted then. A second call only
 * drains.
 *
 * Return: 0; -ETIMEDOUT if a consumer still holds frames: the text names it; -EACCES for a
 * consumer; -EINTR; -ECANCELED; -EOPNOTSUPP in a child of fork().
 */
int tshare_stream_close(struct tshare_stream *stream, int64_t drain_ns);

/**
 * tshare_stream_evict() - take a consumer's frames away
 * @stream: the stream, whose producer the caller is
 * @seat: the consumer's seat
 * @pid: the consumer's process, as struct tshare_stream_seat has it, so that nobody else who took
 *       the seat meanwhile is evicted; 0 for whoever has it
 *
 * For a consumer that doesn't move any more. It may read torn frames from now on, and gets
 * -ESTALE from its next call; a call that sleeps already ends with the next frame. Its seat is free
 * for others when it has gone and the producer claims another slot.
 *
 * Return: 0; -EINVAL for a seat that can't be; -ENOENT if nobody has the seat, or another process;
 * -EACCES for a consumer; -EOPNOTSUPP in a child of fork().
 */
int tshare_stream_evict(struct tshare_stream *stream, int32_t seat, int32_t pid);

/**
 * struct tshare_frame_info - what is known of a frame
 * @size: sizeof(struct tshare_frame_info), set by the caller
 * @number: its number; 0 before it is published
 * @lost: frames between the last one that was taken in order and this one
 * @captured_ns: when it was captured, by CLOCK_MONOTONIC; 0 if the producer doesn't say
 * @published_ns: when it was published, by CLOCK_MONOTONIC
 * @sequence: the device's own number, if the producer says
 * @flags: the producer's own
 * @slot: the slot that it is in
 * @epoch: how many streams its object had followed before, see TSHARE_FOLLOW
 */
struct tshare_frame_info {
	size_t size;
	uint64_t number;
	uint64_t lost;
	int64_t captured_ns;
	int64_t published_ns;
	uint64_t sequence;
	uint64_t flags;
	uint32_t slot;
	uint32_t epoch;
};

/**
 * tshare_frame_ref() - take a reference to a frame
 * @frame: the frame
 *
 * Return: @frame.
 */
struct tshare_frame *tshare_frame_ref(struct tshare_frame *frame);

/**
 * tshare_frame_unref() - drop a reference to a frame
 * @frame: the frame, or NULL
 *
 * The last unref, those of its tensors, of their views and DLPack objects included, gives the slot
 * back.
 *
 * Return: NULL.
 */
struct tshare_frame *tshare_frame_unref(struct tshare_frame *frame);

/**
 * tshare_frame_get_info() - return what is known of a frame
 * @frame: the frame
 * @info: what to fill, with its size set
 *
 * Return: 0; -EINVAL for an invalid size.
 */
int tshare_frame_get_info(const struct tshare_frame *frame, struct tshare_frame_info *info);

/**
 * tshare_frame_set_info() - describe a frame that is to be published
 * @frame: the frame, claimed by tshare_stream_loan()
 * @info: captured_ns, sequence and flags count, other members are ignored
 *
 * Return: 0; -EINVAL; -EACCES if the frame is a consumer's, or published already.
 */
int tshare_frame_set_info(struct tshare_frame *frame, const struct tshare_frame_info *info);

/**
 * tshare_frame_set_shape() - use less than a field's largest shape
 * @frame: the frame, claimed by tshare_stream_loan()
 * @field: 0 to the number of fields - 1
 * @shape: as many numbers as the field has dimensions, none above the field's own
 *
 * The elements keep their places: the tensor gets strides of the largest shape. At first all of the
 * largest shape is in use.
 *
 * Return: 0; -ENOENT if there is no such field; -ERANGE for a shape that is too large; -EACCES if
 * the frame is a consumer's, or published already.
 */
int tshare_frame_set_shape(struct tshare_frame *frame, size_t field, const int64_t *shape);

/**
 * tshare_frame_get_tensor() - create the object of a field
 * @frame: the frame, to which the tensor keeps a reference
 * @field: 0 to the number of fields - 1
 * @tensor: where to store it, with the shape that is in use; read-only but for the producer
 *
 * Return: 0; -ENOENT if there is no such field; -ENOMEM.
 */
int tshare_frame_get_tensor(struct tshare_frame *frame, size_t field,
			    struct tshare_tensor **tensor);

/**
 * tshare_frame_find_tensor() - create the object of a field by its name
 * @frame: the frame, to which the tensor keeps a reference
 * @name: the field's name
 * @tensor: where to store it, as tshare_frame_get_tensor()
 *
 * Return: 0; -ENOENT if there is no such field; -ENOMEM.
 */
int tshare_frame_find_tensor(struct tshare_frame *frame, const char *name,
			     struct tshare_tensor **tensor);

/**
 * tshare_tensor_get_frame() - return the frame that a tensor is of
 * @tensor: the tensor
 *
 * Return: the frame, without a reference: the tensor has one; NULL if it is of no frame.
 */
struct tshare_frame *tshare_tensor_get_frame(const struct tshare_tensor *tensor);

/**
 * tshare_frame_publish() - give a frame to the consumers
 * @frame: the frame, claimed by tshare_stream_loan()
 *
 * Consumers then see what was written before. The frame is the next number, whatever the order of
 * the loans. The producer must not write to it any more, and keeps its reference.
 *
 * Return: 0; -EACCES if the frame is a consumer's, or published already; -ENODATA after
 * tshare_stream_close(); -EOPNOTSUPP in a child of fork(); and as tshare_region_publish().
 */
int tshare_frame_publish(struct tshare_frame *frame);

/**
 * tshare_frame_check() - check that what was read of a frame was whole
 * @frame: the frame
 *
 * An observer copies first and then checks. A consumer's frame is whole unless the consumer was
 * evicted.
 *
 * Return: 0; -ESTALE if it may have changed meanwhile.
 */
int tshare_frame_check(struct tshare_frame *frame);

/**
 * DOC: pools
 *
 * A pool keeps tensors under keys. Up to TSHARE_STREAM_CONSUMERS processes make entries, and get
 * those of others, in place. It is two regions. NAME has the tensors, and is written by whoever makes
 * entries. NAME.seats has what everybody writes: who holds which entry::
 *
 *	do {
 *		err = tshare_pool_get(pool, key, size, &entry);
 *		if (err != -ENOENT)
 *			break;
 *		err = tshare_pool_make(pool, key, size, specs, count, -1, &entry);
 *		if (!err) {
 *			tshare_entry_get_tensor(entry, 0, &image);
 *			decode(tshare_tensor_get_data(image));
 *			tshare_entry_finish(entry);
 *		}
 *	} while (err == -EEXIST);
 *
 * An entry that somebody holds stays whole until it is dropped with its tensors, or until the
 * process ends, in whatever way. Getting and dropping an entry makes no system call, unless a maker
 * waits. Entries that nobody holds stay until others need their room: those that were last made or
 * got the longest ago go first.
 *
 * Room. An entry has as many slots, side by side, as it needs. If too many are held a call waits, and
 * then names the processes that hold them.
 *
 * Makers. The first one to make a key fills its entry; a second one waits, and then finds it there.
 * An entry whose maker dies, or drops it unfinished, was never there.
 *
 * Threads. Any number of threads may use one pool object, and each process should have one.
 *
 * fork(). A child has neither its parent's seat nor its entries: calls that need them are -EOPNOTSUPP
 * there. It opens the pool anew.
 *
 * A process that may write NAME.seats can let others read entries that change, and makers wait; one
 * that may write NAME can damage it. Neither lets a process crash or read beyond the pool, but for
 * this: on shm a process that may write a file may truncate it, which ends its users with SIGBUS.
 */

/* The most slots of a pool, and bytes of a key. */
#define TSHARE_POOL_SLOTS   1048576
#define TSHARE_POOL_KEY_MAX 120

/**
 * struct tshare_pool_options - how to create a pool
 * @size: sizeof(struct tshare_pool_options)
 * @slots: parts that entries are made of, up to TSHARE_POOL_SLOTS; 0 for 4096, or one for each page
 *         of a pool that has fewer
 * @reserved: 0
 * @region: how to create NAME, or NULL: @flags may have TSHARE_DMA32, TSHARE_CONTIGUOUS and
 *          TSHARE_NODE; @lifetime is that of the pool
 */
struct tshare_pool_options {
	size_t size;
	uint32_t slots;
	uint32_t reserved;
	const struct tshare_options *region;
};

/**
 * tshare_pool_create() - create a pool, and open it
 * @ctx: the context
 * @name: its name, as a region's, of up to TSHARE_STREAM_NAME_MAX bytes
 * @size: bytes for all entries. A slot is a whole number of pages, so that it may be more
 * @options: or NULL
 * @pool: where to store it
 *
 * With TSHARE_LIFETIME_MAKER the names end with this object; processes that have the pool open keep
 * it.
 *
 * Return: 0; -EINVAL, -ENAMETOOLONG, and as tshare_region_create().
 */
int tshare_pool_create(struct tshare_ctx *ctx, const char *name, uint64_t size,
		       const struct tshare_pool_options *options, struct tshare_pool **pool);

/**
 * tshare_pool_open() - open a pool
 * @ctx: the context
 * @name: the name
 * @options: as for tshare_region_open(), or NULL. With TSHARE_READONLY the object gets entries and
 *           makes none
 * @pool: where to store it
 *
 * Return: 0; -EUSERS if TSHARE_STREAM_CONSUMERS others have it open; -EPROTO if NAME is no pool, or
 * was made by an incompatible library; -EACCES, also if the caller may not write NAME.seats; and as
 * tshare_region_open().
 */
int tshare_pool_open(struct tshare_ctx *ctx, const char *name,
		     const struct tshare_open_options *options, struct tshare_pool **pool);

/**
 * tshare_pool_ref() - take a reference to a pool
 * @pool: the pool
 *
 * Return: @pool.
 */
struct tshare_pool *tshare_pool_ref(struct tshare_pool *pool);

/**
 * tshare_pool_unref() - drop a reference to a pool
 * @pool: the pool, or NULL
 *
 * The last unref, those of its entries included, closes it.
 *
 * Return: NULL.
 */
struct tshare_pool *tshare_pool_unref(struct tshare_pool *pool);

/**
 * tshare_pool_get_region() - return the region NAME
 * @pool: the pool
 *
 * To pin its memory for CUDA once for all entries, for instance.
 *
 * Return: the region, without a reference: the pool has one.
 */
struct tshare_region *tshare_pool_get_region(const struct tshare_pool *pool);

/**
 * struct tshare_pool_info - what a pool is, and how full
 * @size: sizeof(struct tshare_pool_info), set by the caller
 * @slots: parts that entries are made of
 * @entries: entries, finished or being made
 * @slot_size: bytes of a slot
 * @used_slots: slots of entries
 * @held_slots: slots of entries that processes hold or make
 * @seat: this object's, 0 to TSHARE_STREAM_CONSUMERS - 1
 */
struct tshare_pool_info {
	size_t size;
	uint32_t slots;
	uint32_t entries;
	uint64_t slot_size;
	uint32_t used_slots;
	uint32_t held_slots;
	int32_t seat;
};

/**
 * tshare_pool_get_info() - return what a pool is
 * @pool: the pool
 * @info: what to fill, with its size set
 *
 * Return: 0; -EINVAL for an invalid size.
 */
int tshare_pool_get_info(struct tshare_pool *pool, struct tshare_pool_info *info);

/**
 * tshare_pool_unlink() - remove a pool's names
 * @pool: the pool
 *
 * After a failure other than -ENOENT the pool has its names, and the call can be repeated.
 *
 * Return: as tshare_region_unlink() for NAME; -EOPNOTSUPP in a child of fork().
 */
int tshare_pool_unlink(struct tshare_pool *pool);

/**
 * tshare_pool_cancel() - end all waits through this object, for good
 * @pool: the pool
 *
 * Calls that wait, now and later, return -ECANCELED.
 */
void tshare_pool_cancel(struct tshare_pool *pool);

/**
 * tshare_pool_get() - get the entry of a key
 * @pool: the pool
 * @key: the key: any bytes
 * @key_size: 1 to TSHARE_POOL_KEY_MAX
 * @entry: where to store it. Its tensors are read-only
 *
 * Return: 0; -ENOENT if the pool has no finished entry of that key; -EINVAL; -EPROTO if the entry is
 * damaged; -ENOMEM; -EOPNOTSUPP in a child of fork().
 */
int tshare_pool_get(struct tshare_pool *pool, const void *key, size_t key_size,
		    struct tshare_entry **entry);

/**
 * tshare_pool_make() - make room for the entry of a key
 * @pool: the pool
 * @key: the key: any bytes
 * @key_size: 1 to TSHARE_POOL_KEY_MAX
 * @specs: the tensors. Their byte_offset is from the entry's start
 * @count: number of tensors, at least 1
 * @timeout_ns: how long to wait for room, and for another maker of the key, in nanoseconds; negative
 *              for ever, 0 not. For a process that was stopped as it looked for room each call
 *              waits 0.2 seconds
 * @entry: where to store it. Its tensors are writable, and have the contents of older entries
 *
 * Nobody else can get the entry before tshare_entry_finish(). The last unref of one that isn't
 * finished gives its room back.
 *
 * Return: 0; -EEXIST if the pool has a finished entry of that key; -ETIMEDOUT if no room became
 * free: the text names the processes that hold entries; also if another maker of the key did not
 * finish, or one that looked for room; -EFBIG if the tensors need more than the
 * whole pool; -EACCES if the pool was opened read-only; -EINVAL; -EINTR; -ECANCELED; -ENOMEM;
 * -EOPNOTSUPP in a child of fork().
 */
int tshare_pool_make(struct tshare_pool *pool, const void *key, size_t key_size,
		     const struct tshare_spec *specs, size_t count, int64_t timeout_ns,
		     struct tshare_entry **entry);

/**
 * tshare_pool_remove() - remove the entry of a key
 * @pool: the pool
 * @key: the key: any bytes
 * @key_size: 1 to TSHARE_POOL_KEY_MAX
 *
 * Nobody can get it any more, and the key can be made again. Processes that hold the entry keep it,
 * and its room is free afterwards. An entry that is being made stays.
 *
 * Return: 0; -ENOENT if the pool has no finished entry of that key; -EACCES if the pool was opened
 * read-only; -ETIMEDOUT if a stopped process prevents it; -EINVAL; -EINTR; -ECANCELED; -EOPNOTSUPP in
 * a child of fork().
 */
int tshare_pool_remove(struct tshare_pool *pool, const void *key, size_t key_size);

/**
 * tshare_pool_clear() - remove all finished entries
 * @pool: the pool
 *
 * Return: 0, or as tshare_pool_remove().
 */
int tshare_pool_clear(struct tshare_pool *pool);

/**
 * tshare_entry_finish() - let others get an entry
 * @entry: the entry, made by tshare_pool_make()
 *
 * The caller holds it, as if it had got it, and must not write to it any more.
 *
 * Return: 0; -EACCES if it is finished already, or was got; -EOPNOTSUPP in a child of fork().
 */
int tshare_entry_finish(struct tshare_entry *entry);

/**
 * tshare_entry_is_finished() - return whether others can get an entry
 * @entry: the entry
 *
 * Return: whether it was got, or tshare_entry_finish() was called.
 */
bool tshare_entry_is_finished(const struct tshare_entry *entry);

/**
 * tshare_entry_ref() - take a reference to an entry
 * @entry: the entry
 *
 * Return: @entry.
 */
struct tshare_entry *tshare_entry_ref(struct tshare_entry *entry);

/**
 * tshare_entry_unref() - drop a reference to an entry
 * @entry: the entry, or NULL
 *
 * The last unref, those of its tensors, of their views and DLPack objects included, drops the entry.
 *
 * Return: NULL.
 */
struct tshare_entry *tshare_entry_unref(struct tshare_entry *entry);

/**
 * tshare_entry_get_tensor_count() - return how many tensors an entry has
 * @entry: the entry
 *
 * Return: the number.
 */
size_t tshare_entry_get_tensor_count(const struct tshare_entry *entry);

/**
 * tshare_entry_get_tensor_name() - return the name of a tensor
 * @entry: the entry
 * @index: 0 to the number of tensors - 1
 * @name: where to store it: "" if it has none; valid while the entry is
 *
 * Return: 0; -ENOENT if there is no such tensor.
 */
int tshare_entry_get_tensor_name(const struct tshare_entry *entry, size_t index, const char **name);

/**
 * tshare_entry_get_tensor() - create the object of a tensor
 * @entry: the entry, to which the tensor keeps a reference
 * @index: 0 to the number of tensors - 1
 * @tensor: where to store it; read-only but for the entry's maker
 *
 * Return: 0; -ENOENT if there is no such tensor; -ENOMEM.
 */
int tshare_entry_get_tensor(struct tshare_entry *entry, size_t index,
			    struct tshare_tensor **tensor);

/**
 * tshare_entry_find_tensor() - create the object of a tensor by its name
 * @entry: the entry, to which the tensor keeps a reference
 * @name: the tensor's name
 * @tensor: where to store it, as tshare_entry_get_tensor()
 *
 * Return: 0; -ENOENT if there is no such tensor; -ENOMEM.
 */
int tshare_entry_find_tensor(struct tshare_entry *entry, const char *name,
			     struct tshare_tensor **tensor);

/**
 * tshare_tensor_get_entry() - return the entry that a tensor is of
 * @tensor: the tensor
 *
 * Return: the entry, without a reference: the tensor has one; NULL if it is of no entry.
 */
struct tshare_entry *tshare_tensor_get_entry(const struct tshare_tensor *tensor);

/* CUDA: a region's memory, used in place; see Documentation/cuda.rst */

/**
 * struct tshare_cuda_driver - which driver of NVIDIA's the process uses
 * @size: sizeof(struct tshare_cuda_driver), set by the caller
 * @version: the CUDA version that it supports, 1000 * major + 10 * minor
 * @device_count: devices that the process may use, at least one
 */
struct tshare_cuda_driver {
	size_t size;
	int32_t version;
	int32_t device_count;
};

/**
 * tshare_cuda_get_driver() - load NVIDIA's driver, and report which one it is
 * @driver: what to fill, with its size set
 *
 * The first call that needs the driver loads and initialises libcuda.so.1, which is never
 * unloaded. This takes the driver's start-up time, once in each process. After a failure,
 * the next call tries again.
 *
 * Return: 0; -EOPNOTSUPP if there is no driver or no device, if the driver is too old, or
 * in a child that was forked when its parent used CUDA already; -EINVAL for an invalid size.
 */
int tshare_cuda_get_driver(struct tshare_cuda_driver *driver);

/* struct tshare_cuda_options.flags */
#define TSHARE_CUDA_DEVICE (1U << 0) /* on the device in the options */

/* How a device reaches a region's memory: struct tshare_cuda_options.path, tshare_cuda_info.path */
#define TSHARE_CUDA_ANY	       0 /* the first path below that works; REGISTERED if pinned */
#define TSHARE_CUDA_DMABUF     1 /* external memory, imported from the region's dma-buf */
#define TSHARE_CUDA_REGISTERED 2 /* registered, that is page-locked, host memory */
#define TSHARE_CUDA_PAGEABLE   3 /* the process's own address */
#define TSHARE_CUDA_PATHS      4 /* one more than the last path */
#define TSHARE_CUDA_PATH_LIMIT 8 /* room for paths of later versions */

/**
 * struct tshare_cuda_options - which device, and how it shall reach the memory
 * @size: sizeof(struct tshare_cuda_options)
 * @flags: TSHARE_CUDA_DEVICE or 0
 * @device: number of the CUDA device, from 0, with TSHARE_CUDA_DEVICE. Without it the
 *          device of the calling thread's current context, or 0 if it has none
 * @path: TSHARE_CUDA_*, for tshare_cuda_import() alone
 * @reserved: must be 0
 */
struct tshare_cuda_options {
	size_t size;
	uint32_t flags;
	int32_t device;
	uint32_t path;
	uint32_t reserved;
};

/**
 * tshare_region_pin() - page-lock a region's memory for CUDA
 * @region: the region, to which the pin holds a reference
 * @options: which device, or NULL
 * @pin: where to store it
 *
 * Registers the memory where it is mapped (cuMemHostRegister). Copies between it and any
 * device are then asynchronous and need no staging buffer, in every library that the
 * process uses, as the driver knows memory by its address. Nothing is copied or moved. The
 * region is registered once, however many pins it has, at least until the last pin is
 * dropped.
 *
 * A read-only region is registered as read-only memory, if the device supports that, and
 * else not at all.
 *
 * Uses the caller's current context if it is of the device, else the device's primary
 * context, which stays retained as long as the registration. On return the previous context
 * is current again. A reset of the device ends the registration, and the next pin makes a
 * new one.
 *
 * Return: 0; -EOPNOTSUPP as tshare_cuda_get_driver(), or for a read-only region if the
 * device doesn't support it; -EBUSY if somebody else has registered some of the memory;
 * -ENOMEM; -EINVAL for malformed options, or a device that doesn't exist; -EIO for any
 * other failure of CUDA's, which tshare_error_get() names.
 */
int tshare_region_pin(struct tshare_region *region, const struct tshare_cuda_options *options,
		      struct tshare_pin **pin);

/**
 * tshare_region_is_pinned() - whether a region has a pin
 * @region: the region
 *
 * Another thread may drop its pin at any time: a caller that relies on the answer makes a pin
 * of its own.
 *
 * Return: true from the first tshare_region_pin() until the last pin is dropped, and the last
 * copy (tshare_cuda_copy_new()) that was made meanwhile; false in a child of fork(), whose
 * parent has the pins.
 */
bool tshare_region_is_pinned(const struct tshare_region *region);

/**
 * tshare_pin_ref() - take a reference to a pin
 * @pin: the pin
 *
 * Return: @pin.
 */
struct tshare_pin *tshare_pin_ref(struct tshare_pin *pin);

/**
 * tshare_pin_unref() - drop a reference to a pin
 * @pin: the pin, or NULL
 *
 * The last unref unregisters the region's memory, unless another pin, a tshare_cuda_copy or
 * an import needs the registration. Copies must have ended by then. In a child of fork() the
 * parent's registration stays.
 *
 * Return: NULL.
 */
struct tshare_pin *tshare_pin_unref(struct tshare_pin *pin);

/**
 * tshare_pin_get_region() - return the region that a pin is of
 * @pin: the pin
 *
 * Return: the region, without a reference: the pin has one.
 */
struct tshare_region *tshare_pin_get_region(const struct tshare_pin *pin);

/**
 * struct tshare_pin_info - how a region is pinned
 * @size: sizeof(struct tshare_pin_info), set by the caller
 * @piece_bytes: one copy can't cross a multiple of it, counted from the region's start: 64
 *               GiB for regions of 512 GiB or more, the region's size for others
 * @device: number of the device that the pin was made for
 * @driver_version: as in struct tshare_cuda_driver
 * @context_created: this pin has created the device's primary context
 * @readonly: devices can't write to the memory
 */
struct tshare_pin_info {
	size_t size;
	uint64_t piece_bytes;
	int32_t device;
	int32_t driver_version;
	bool context_created;
	bool readonly;
};

/**
 * tshare_pin_get_info() - return how a region is pinned
 * @pin: the pin
 * @info: what to fill, with its size set
 *
 * Return: 0; -EINVAL for an invalid size.
 */
int tshare_pin_get_info(const struct tshare_pin *pin, struct tshare_pin_info *info);

/**
 * struct tshare_cuda_info - how a CUDA device reaches a region
 * @size: sizeof(struct tshare_cuda_info), set by the caller
 * @address: device address of the region's first byte
 * @path: TSHARE_CUDA_DMABUF, TSHARE_CUDA_REGISTERED or TSHARE_CUDA_PAGEABLE
 * @device: number of the device
 * @driver_version: as in struct tshare_cuda_driver
 * @results: the result of each path when the region was imported: 0 if it works or was not
 *           tried; CUDA's error (CUresult), which is positive; or a negative errno of the
 *           library: -EOPNOTSUPP if there is no dma-buf or the device lacks support, -EACCES
 *           for the dma-buf of a read-only region, -EFBIG for a dma-buf of 4 GiB or more,
 *           and for registered pieces without contiguous addresses. Results from
 *           TSHARE_CUDA_PATHS on are 0
 * @context_created: this call has created the device's primary context
 * @readonly: the device can't write to the memory
 */
struct tshare_cuda_info {
	size_t size;
	uint64_t address;
	uint32_t path;
	int32_t device;
	int32_t driver_version;
	int32_t results[TSHARE_CUDA_PATH_LIMIT];
	bool context_created;
	bool readonly;
};

/**
 * tshare_cuda_import() - let a CUDA device reach a region's memory
 * @region: the region; or NULL, which imports nothing and stores only the device and the
 *          driver's version, for a tensor without elements
 * @options: which device, and by which path; or NULL
 * @info: what to fill, with its size set
 *
 * The device reads and writes the very bytes; nothing is copied. The call tries the paths
 * in their order until one works, or only the path that @options name.
 *
 * The address is valid until the last unref of @region, which undoes the import, or until
 * the context ends in which it was made: see tshare_region_pin(). The caller keeps a
 * reference until the device has finished its work. A second call for the same device and
 * path returns what the first call found, or imports anew if somebody has reset the device.
 *
 * Return: 0; -EOPNOTSUPP as tshare_cuda_get_driver(), or if no path works:
 * tshare_error_get() then has the reason for each; -EBUSY, -ENOMEM, -EINVAL and -EIO as
 * tshare_region_pin(); -EINVAL for an invalid size of @info.
 */
int tshare_cuda_import(struct tshare_region *region, const struct tshare_cuda_options *options,
		       struct tshare_cuda_info *info);

/**
 * tshare_cuda_import_counter() - let a CUDA device reach a region's generation
 * @region: the region, writable
 * @options: which device; or NULL
 * @info: what to fill, with its size set: the address is that of the generation, 64 bits,
 *        and the path TSHARE_CUDA_REGISTERED
 *
 * For kernels that run while others publish. A kernel reads the generation by a load with
 * acquire order at system scope (ld.acquire.sys.u64), and then sees what was written before
 * that publish. A kernel publishes by a store of the generation that it has read plus one,
 * with release order at system scope (st.release.sys.u64). It must be the only one that
 * publishes: nothing keeps others from storing the same number. It must not use atomic
 * read-modify-write instructions: not every device has them for the host's memory.
 *
 * A device's store wakes nobody. If another object is a publisher, waiting threads look every
 * 100 ms. So a process whose kernels publish first calls tshare_region_publish() once, which
 * makes its object a publisher. To wake waiters it calls this again, or
 * tshare_region_publish_on().
 *
 * The address is valid as long as an address from tshare_cuda_import().
 *
 * Return: 0; -EACCES for a read-only region; -EOPNOTSUPP as tshare_cuda_get_driver(); -ENOMEM,
 * -EINVAL and -EIO as tshare_region_pin(); -EINVAL for an invalid size of @info; and as
 * tshare_region_get_generation().
 */
int tshare_cuda_import_counter(struct tshare_region *region,
			       const struct tshare_cuda_options *options,
			       struct tshare_cuda_info *info);

/**
 * DOC: CUDA's streams
 *
 * Work that a program puts on a stream ends later than the call does. So that devices and
 * processes can take turns, a stream publishes after its earlier work, and waits for a
 * generation before its later work::
 *
 *	launch_producer(stream, info.address);				// a producer
 *	tshare_region_publish_on(region, NULL, stream);
 *
 *	tshare_region_wait_on(region, NULL, stream, seen, -1, NULL);	// a consumer
 *	launch_consumer(stream, info.address);
 *
 * A stream is a handle of the driver (CUstream) or of CUDA's runtime (cudaStream_t), in this
 * process. The default streams are CU_STREAM_LEGACY, 1, and CU_STREAM_PER_THREAD, 2, of the
 * device in the options, which must have a context. NULL is refused, since it may be either
 * of them. A stream whose work is captured into a graph is refused, too.
 */
struct CUstream_st;

/**
 * tshare_region_publish_on() - make a stream publish after its earlier work
 * @region: the region, to which the stream has a reference until then
 * @options: which device, for a default stream; or NULL
 * @stream: the stream
 *
 * When all earlier work of the stream has ended, its writes are visible, and a thread of the
 * driver publishes as tshare_region_publish() does. Later work of the stream begins after
 * that. The object becomes a publisher at once, also if CUDA then refuses the call.
 *
 * After a CUDA error that ends its context, a stream stops: nothing is published then, and
 * the reference stays until the process ends. At exit the library drops no reference of a
 * stream, since the driver ends then.
 *
 * Return: 0; -EACCES for a read-only region; -EINVAL for a NULL stream, malformed options, a
 * device that doesn't exist, or is not the stream's; -EOPNOTSUPP as tshare_cuda_get_driver(),
 * or if the stream is being captured; -ENOMEM; -EAGAIN if a thread can't be started; -EIO for
 * any other failure of CUDA's; and as tshare_region_publish().
 */
int tshare_region_publish_on(struct tshare_region *region,
			     const struct tshare_cuda_options *options, struct CUstream_st *stream);

/**
 * tshare_frame_publish_on() - make a stream publish a frame after its earlier work
 * @frame: the frame, claimed by tshare_stream_loan()
 * @options: which device, for a default stream; or NULL
 * @stream: the stream of CUDA's
 *
 * For a frame that a device fills. When all earlier work of the stream has ended, its writes are
 * visible, and a thread of the driver publishes the frame as tshare_frame_publish() does. The
 * frame's number is that of the moment: frames of several streams are numbered as they end. Later
 * work of the stream begins after that. The call itself doesn't wait.
 *
 * The caller may drop its reference at once. Until the frame is published its number is 0, the
 * device may write to it, and calls that need a loaned frame are -EACCES. If
 * tshare_stream_close() comes first the frame is never published, and is loaned again: the caller
 * synchronises with CUDA's stream before it closes the stream of frames. Nor is it published if
 * the process ends first, or the context of CUDA's stream does, or has an error that stops its
 * streams. In a lost context the frame is loaned again, or abandoned if nobody has a reference,
 * once a tshare_stream_loan() finds no slot.
 *
 * Return: 0; as tshare_frame_publish(); -EINVAL, -EOPNOTSUPP, -ENOMEM, -EAGAIN and -EIO as
 * tshare_region_publish_on(). After an error the frame is still loaned.
 */
int tshare_frame_publish_on(struct tshare_frame *frame, const struct tshare_cuda_options *options,
			    struct CUstream_st *stream);

/**
 * tshare_frame_release_on() - make a stream drop a reference to a frame after its earlier work
 * @frame: the frame, a consumer's, or one that is to be abandoned
 * @options: which device, for a default stream; or NULL
 * @stream: the stream of CUDA's
 *
 * For a frame that a device reads. The call takes the caller's reference over, and doesn't wait.
 * When all earlier work of the stream has ended, a thread of the driver drops it as
 * tshare_frame_unref() does. The slot goes back then, unless a tensor or other reference keeps
 * it. Until then the frame counts as held by this consumer. In a context that has ended, or has an
 * error that stops its streams, that lasts until a call for a frame of this object would be
 * -ENOBUFS, or has waited for some 100 ms; or, of a loaned frame, until a tshare_stream_loan() finds
 * no slot.
 *
 * Return: 0; -EOPNOTSUPP in a child of fork(); -EINVAL, -EOPNOTSUPP, -ENOMEM, -EAGAIN and -EIO as
 * tshare_region_publish_on(). After an error the reference is still the caller's.
 */
int tshare_frame_release_on(struct tshare_frame *frame, const struct tshare_cuda_options *options,
			    struct CUstream_st *stream);

/**
 * tshare_entry_finish_on() - make a stream finish an entry after its earlier work
 * @entry: the entry, made by tshare_pool_make()
 * @options: which device, for a default stream; or NULL
 * @stream: the stream of CUDA's
 *
 * For an entry that a device fills, as a cache of blocks on the host: as
 * tshare_frame_publish_on(). Others that want the key wait meanwhile, as for any maker. In a lost
 * context the entry is unfinished again, or given up if nobody has a reference, once a
 * tshare_pool_make() finds no room.
 *
 * Return: 0; as tshare_entry_finish(); -EINVAL, -EOPNOTSUPP, -ENOMEM, -EAGAIN and -EIO as
 * tshare_region_publish_on(). After an error the entry is still unfinished.
 */
int tshare_entry_finish_on(struct tshare_entry *entry, const struct tshare_cuda_options *options,
			   struct CUstream_st *stream);

/**
 * tshare_entry_release_on() - make a stream drop a reference to an entry after its earlier work
 * @entry: the entry
 * @options: which device, for a default stream; or NULL
 * @stream: the stream of CUDA's
 *
 * For an entry that a device reads: as tshare_frame_release_on(). In a lost context this process
 * holds the entry until its tshare_pool_make() finds no room.
 *
 * Return: 0; -EOPNOTSUPP in a child of fork(); -EINVAL, -EOPNOTSUPP, -ENOMEM, -EAGAIN and -EIO as
 * tshare_region_publish_on(). After an error the reference is still the caller's.
 */
int tshare_entry_release_on(struct tshare_entry *entry, const struct tshare_cuda_options *options,
			    struct CUstream_st *stream);

struct tshare_cuda_wait; /* a stream's wait for a generation */

/**
 * tshare_region_wait_on() - make a stream wait for a generation that is new to the caller
 * @region: the region, which may be read-only, and to which the wait has a reference
 * @options: which device, for a default stream; or NULL
 * @stream: the stream
 * @seen: as for tshare_region_wait()
 * @timeout_ns: as for tshare_region_wait(), from this call on
 * @wait: where to store a handle of the wait, or NULL
 *
 * Later work of the stream begins when a process has published a generation above @seen,
 * and sees what was written before that publish. The call itself doesn't wait.
 *
 * The wait ends for every reason that ends a tshare_region_wait() (the timeout, the exit of
 * all publishers, tshare_region_cancel()), and when this process exits. The stream then goes
 * on, too, because a device whose stream waits for ever can't be synchronised. A program
 * that must know why synchronises with the stream and looks at the result of @wait.
 *
 * The stream waits for a word of page-locked memory (cuStreamWaitValue64), which a thread of
 * the library writes to. The page of these words stays registered until its context ends.
 *
 * Return: 0, also if the wait is over already; -ECANCELED after tshare_region_cancel(), and
 * when the process has begun to exit; -EINVAL, -ENOMEM, -EIO and -EOPNOTSUPP as
 * tshare_region_publish_on(); -EOPNOTSUPP also if the device or the driver can't make a
 * stream wait, which takes CUDA 11.7; and as tshare_region_get_event_fd().
 */
int tshare_region_wait_on(struct tshare_region *region, const struct tshare_cuda_options *options,
			  struct CUstream_st *stream, uint64_t seen, int64_t timeout_ns,
			  struct tshare_cuda_wait **wait);

/**
 * tshare_waiter_wait_on() - make a stream wait, until tshare_waiter_cancel()
 * @waiter: the waiter, to which the wait has a reference
 * @options: as for tshare_region_wait_on()
 * @stream: as for tshare_region_wait_on()
 * @seen: as for tshare_region_wait_on()
 * @timeout_ns: as for tshare_region_wait_on()
 * @wait: as for tshare_region_wait_on()
 *
 * Return: as tshare_region_wait_on().
 */
int tshare_waiter_wait_on(struct tshare_waiter *waiter, const struct tshare_cuda_options *options,
			  struct CUstream_st *stream, uint64_t seen, int64_t timeout_ns,
			  struct tshare_cuda_wait **wait);

/**
 * tshare_cuda_wait_ref() - take a reference to a stream's wait
 * @wait: the wait
 *
 * Return: @wait.
 */
struct tshare_cuda_wait *tshare_cuda_wait_ref(struct tshare_cuda_wait *wait);

/**
 * tshare_cuda_wait_unref() - drop a reference to a stream's wait
 * @wait: the wait, or NULL
 *
 * The wait itself goes on until it ends.
 *
 * Return: NULL.
 */
struct tshare_cuda_wait *tshare_cuda_wait_unref(struct tshare_cuda_wait *wait);

/**
 * tshare_cuda_wait_cancel() - end a stream's wait
 * @wait: the wait
 *
 * Its result is -ECANCELED, unless it has ended already or what it waits for is published.
 */
void tshare_cuda_wait_cancel(struct tshare_cuda_wait *wait);

/**
 * tshare_cuda_wait_get_result() - return what has ended a stream's wait
 * @wait: the wait
 * @generation: where to store the generation that was found
 *
 * The result is there before the stream goes on.
 *
 * Return: 0; -EINPROGRESS while it waits; -ETIMEDOUT; -EOWNERDEAD; -ECANCELED if it was
 * cancelled or the process exits; -EOPNOTSUPP in a child of fork(), if it was under way: the
 * stream is the parent's.
 */
int tshare_cuda_wait_get_result(const struct tshare_cuda_wait *wait, uint64_t *generation);

/**
 * tshare_cuda_wait_shutdown() - end all waits of streams, for good
 *
 * exit() does it. A language's runtime that drops its objects before that calls it first: a
 * device's resources, whichever library made them, may go only when its streams are idle.
 *
 * Each wait under way ends with -ECANCELED, unless what it waits for is published. A later
 * wait fails with -ECANCELED. Publishes go on.
 */
void tshare_cuda_wait_shutdown(void);

/* Copies in a device's memory */

struct tshare_cuda_copy; /* a copy of a tensor in a device's memory */

/**
 * tshare_cuda_copy_new() - make a stream copy a tensor into the device's own memory
 * @tensor: the tensor, which may be read-only, and to which the copy holds a reference
 * @options: which device, for a default stream; or NULL
 * @stream: the stream
 * @copy: where to store it
 *
 * Allocates memory on the stream's device, and puts the copy on the stream, behind its earlier
 * work. Later work of the stream finds the elements in place. Other streams wait by
 * tshare_cuda_copy_wait_on(). The caller may write to the memory.
 *
 * The stream copies the bytes from the tensor's first element to its last, in one piece, so
 * that the strides of the copy are the tensor's. Gaps between elements are copied, too.
 *
 * If the region is pinned, the call doesn't wait for the copy, and the device reads the region when
 * the stream gets there: nothing may write to the tensor before the copy has ended. The region
 * stays pinned as long as the copy exists, whatever becomes of the caller's pins. If the region is
 * not pinned, the driver copies through a staging buffer, and the call may wait for that. The call
 * doesn't pin the region.
 *
 * The copy is made in the stream's context, or for a default stream in the context that
 * tshare_region_pin() would use, and ends with it. An empty tensor takes neither memory nor a
 * context.
 *
 * Return: 0; -ENOMEM if the device has too little memory left, or the process has; -EINVAL for
 * a NULL stream, malformed options, a device that doesn't exist, or is not the stream's;
 * -EOPNOTSUPP as tshare_cuda_get_driver(), or if the stream is being captured; -EIO for any
 * other failure of CUDA's. A call that fails leaves nothing behind.
 */
int tshare_cuda_copy_new(struct tshare_tensor *tensor, const struct tshare_cuda_options *options,
			 struct CUstream_st *stream, struct tshare_cuda_copy **copy);

/**
 * tshare_cuda_copy_ref() - take a reference to a copy
 * @copy: the copy
 *
 * Return: @copy.
 */
struct tshare_cuda_copy *tshare_cuda_copy_ref(struct tshare_cuda_copy *copy);

/**
 * tshare_cuda_copy_unref() - drop a reference to a copy
 * @copy: the copy, or NULL
 *
 * The last unref frees the device's memory. If the stream hasn't made the copy yet, a thread of
 * the library frees it later, and the call doesn't wait. Kernels and copies that use the memory
 * must have ended by then. In a child of fork() the parent's copy stays.
 *
 * Return: NULL.
 */
struct tshare_cuda_copy *tshare_cuda_copy_unref(struct tshare_cuda_copy *copy);

/**
 * tshare_cuda_copy_get_tensor() - return the tensor that was copied
 * @copy: the copy
 *
 * Return: the tensor, without a reference: the copy has one.
 */
struct tshare_tensor *tshare_cuda_copy_get_tensor(const struct tshare_cuda_copy *copy);

/**
 * struct tshare_cuda_copy_info - where a copy is
 * @size: sizeof(struct tshare_cuda_copy_info), set by the caller
 * @address: device address of element [0, 0, ...]; 0 for an empty tensor
 * @memory_bytes: bytes of the device's memory that the copy takes: those from the tensor's
 *                first element to its last
 * @device: number of the device
 * @driver_version: as in struct tshare_cuda_driver
 * @context_created: this copy has created the device's primary context
 */
struct tshare_cuda_copy_info {
	size_t size;
	uint64_t address;
	uint64_t memory_bytes;
	int32_t device;
	int32_t driver_version;
	bool context_created;
};

/**
 * tshare_cuda_copy_get_info() - return where a copy is
 * @copy: the copy
 * @info: what to fill, with its size set
 *
 * Return: 0; -EINVAL for an invalid size.
 */
int tshare_cuda_copy_get_info(const struct tshare_cuda_copy *copy,
			      struct tshare_cuda_copy_info *info);

/**
 * tshare_cuda_copy_wait_on() - make a stream wait until a copy has ended
 * @copy: the copy
 * @stream: the stream: any one of the process; a default one is that of the copy's device
 *
 * Later work of the stream finds the elements in place. The call itself doesn't wait.
 *
 * Return: 0; -EINVAL for a NULL stream; -EOPNOTSUPP in a child of fork(), or if the stream is
 * being captured; -EIO for any other failure of CUDA's, and if the copy has gone with its
 * context.
 */
int tshare_cuda_copy_wait_on(const struct tshare_cuda_copy *copy, struct CUstream_st *stream);

/* Memory of a device that other processes open by name */

struct tshare_cuda_memory; /* a tensor whose memory is on a device */

/**
 * tshare_cuda_memory_create() - create a tensor in a device's own memory, with a name
 * @ctx: the context
 * @name: the name of the region that describes the memory
 * @dtype: type of the elements
 * @ndim: number of dimensions
 * @shape: elements along each dimension
 * @options: or NULL: TSHARE_DRAFT and TSHARE_REPLACE, and a mode that lets each write who may
 *           read; no other lifetime than TSHARE_LIFETIME_MAKER
 * @cuda: which device, or NULL
 * @memory: where to store it: zeroed
 *
 * Allocates whole blocks of 2 MiB of the device's memory, which CUDA opens in other processes
 * (CUDA IPC). A small region of that name describes them, and is listed, waited for, published
 * and unlinked like any other. It is tshare_cuda_memory_get_region(), by which a draft is finished.
 *
 * The memory is the maker's: it goes when the process ends, and what others have open then must
 * not be used any more. If the maker drops its last reference, its name goes. The device's memory
 * stays while others have it open, and until the maker creates or drops such memory again.
 *
 * Return: 0; -EINVAL; -EOPNOTSUPP as tshare_cuda_get_driver(), for a driver before CUDA 11.4, for
 * a mode that CUDA can't enforce, and while the thread's default stream, which clears the memory,
 * is being captured; -ENOMEM; -EIO for any other failure of CUDA's; and
 * what tshare_region_create() returns. A call that fails leaves nothing behind.
 */
int tshare_cuda_memory_create(struct tshare_ctx *ctx, const char *name, struct tshare_dtype dtype,
			      int32_t ndim, const int64_t *shape,
			      const struct tshare_options *options,
			      const struct tshare_cuda_options *cuda,
			      struct tshare_cuda_memory **memory);

/**
 * tshare_cuda_memory_is() - whether a region describes a device's memory
 * @region: the region
 *
 * Return: true for the region of a tshare_cuda_memory_create(), in any process.
 */
bool tshare_cuda_memory_is(struct tshare_region *region);

/**
 * tshare_cuda_memory_open() - open the device's memory that a region describes
 * @region: the region, from tshare_region_open()
 * @options: which device it must be on, or NULL
 * @memory: where to store it
 *
 * All users in a process share one object, in the context of the first, and the maker's process has
 * the maker's.
 *
 * Return: 0; -ENOENT if the region describes none; -EOWNERDEAD if the maker has ended or dropped
 * the memory; -EOPNOTSUPP as tshare_cuda_get_driver(), if the process doesn't see the maker's
 * device, and for a region that was opened read-only; -EINVAL for another device than the
 * maker's; -EPROTO for a damaged description; -ENOMEM; -EIO if the maker's has gone with its
 * context, and for any other failure of CUDA's.
 */
int tshare_cuda_memory_open(struct tshare_region *region, const struct tshare_cuda_options *options,
			    struct tshare_cuda_memory **memory);

/**
 * tshare_cuda_memory_ref() - take a reference to a device's memory
 * @memory: the memory
 *
 * Return: @memory.
 */
struct tshare_cuda_memory *tshare_cuda_memory_ref(struct tshare_cuda_memory *memory);

/**
 * tshare_cuda_memory_unref() - drop a reference to a device's memory
 * @memory: the memory, or NULL
 *
 * Kernels and copies that use it must have ended by the last unref. In a child of fork() the
 * parent's memory stays, and so does its name.
 *
 * Return: NULL.
 */
struct tshare_cuda_memory *tshare_cuda_memory_unref(struct tshare_cuda_memory *memory);

/**
 * tshare_cuda_memory_check() - check that a device's memory may be used
 * @memory: the memory
 *
 * Call it before work that uses the memory of another process. It asks neither the device nor
 * the maker. A maker that is killed right after it isn't noticed.
 *
 * Return: 0; -EOWNERDEAD if the maker has ended or dropped the memory; -EIO if it has gone with
 * its context; -EOPNOTSUPP in a child of fork().
 */
int tshare_cuda_memory_check(const struct tshare_cuda_memory *memory);

/**
 * tshare_cuda_memory_get_region() - return the region that describes a device's memory
 * @memory: the memory
 *
 * Return: the region, without a reference: the memory has one.
 */
struct tshare_region *tshare_cuda_memory_get_region(const struct tshare_cuda_memory *memory);

/**
 * tshare_cuda_memory_get_tensor() - return the tensor in a device's memory
 * @memory: the memory, to which the tensor and its views hold a reference
 * @tensor: where to store it
 *
 * Its address on the device is that of the memory plus its tshare_tensor_get_byte_offset(). The
 * host has no address of it: tshare_tensor_get_data() returns NULL, and calls that would read or
 * write the elements return -EOPNOTSUPP, as those for its region do: use that of
 * tshare_cuda_memory_get_region(). tshare_tensor_to_dlpack() exports it as the device's.
 *
 * Return: 0; -ENOMEM.
 */
int tshare_cuda_memory_get_tensor(struct tshare_cuda_memory *memory, struct tshare_tensor **tensor);

/**
 * struct tshare_cuda_memory_info - where a device's memory is
 * @size: sizeof(struct tshare_cuda_memory_info), set by the caller
 * @address: device address in this process
 * @memory_bytes: bytes of the device's memory that it takes
 * @device: number of the device in this process
 * @driver_version: as in struct tshare_cuda_driver
 * @context_created: making or opening it has created the device's primary context
 * @maker: this process has made it
 */
struct tshare_cuda_memory_info {
	size_t size;
	uint64_t address;
	uint64_t memory_bytes;
	int32_t device;
	int32_t driver_version;
	bool context_created;
	bool maker;
};

/**
 * tshare_cuda_memory_get_info() - return where a device's memory is
 * @memory: the memory
 * @info: what to fill, with its size set
 *
 * Return: 0; -EINVAL for an invalid size.
 */
int tshare_cuda_memory_get_info(const struct tshare_cuda_memory *memory,
				struct tshare_cuda_memory_info *info);

/* Tensors */

/**
 * tshare_tensor_create() - create a region that holds one C-contiguous tensor
 * @ctx: the context
 * @name: the region's name, or NULL for none
 * @dtype: type of the elements
 * @ndim: number of dimensions
 * @shape: elements along each dimension
 * @options: or NULL
 * @tensor: where to store it: zeroed, writable
 *
 * Return: as tshare_region_create().
 */
int tshare_tensor_create(struct tshare_ctx *ctx, const char *name, struct tshare_dtype dtype,
			 int32_t ndim, const int64_t *shape, const struct tshare_options *options,
			 struct tshare_tensor **tensor);

/**
 * tshare_tensor_open() - open the tensor of a region that holds one
 * @ctx: the context
 * @name: the region's name
 * @options: or NULL
 * @tensor: where to store it
 *
 * Return: as tshare_region_open(); -EINVAL if the region holds none, or more
 * than one.
 */
int tshare_tensor_open(struct tshare_ctx *ctx, const char *name,
		       const struct tshare_open_options *options, struct tshare_tensor **tensor);

/**
 * tshare_tensor_copy() - create a region that holds a copy of a tensor elsewhere
 * @ctx: the context
 * @name: the region's name, or NULL for none
 * @data: address of the tensor's element [0, 0, ...]; not read if it is empty
 * @spec: its type, shape and strides; its name and byte_offset are ignored
 * @options: or NULL
 * @tensor: where to store the copy: C-contiguous, writable
 *
 * Return: as tshare_region_create(); -EINVAL for strides of packed elements;
 * -EINVAL, -ERANGE as tshare_spec_check().
 */
int tshare_tensor_copy(struct tshare_ctx *ctx, const char *name, const void *data,
		       const struct tshare_spec *spec, const struct tshare_options *options,
		       struct tshare_tensor **tensor);

/**
 * tshare_tensor_wrap() - create a tensor over memory that this process has mapped
 * @data: address of element [0, 0, ...], as another library has it
 * @spec: its type, shape, strides and name; byte_offset is ignored
 * @flags: TSHARE_READONLY or 0; see tshare_region_view()
 * @tensor: where to store it; it keeps the region, and the frame of a stream, whichever library
 *          @data is from
 *
 * Return: 0; -ENOENT if @data is in no region that this process has mapped, or in a slot of a
 * stream whose frame nobody holds; -ERANGE if the tensor is not wholly inside; -EINVAL, -ENOMEM.
 */
int tshare_tensor_wrap(const void *data, const struct tshare_spec *spec, uint32_t flags,
		       struct tshare_tensor **tensor);

/**
 * tshare_tensor_ref() - take a reference to a tensor
 * @tensor: the tensor
 *
 * Return: @tensor.
 */
struct tshare_tensor *tshare_tensor_ref(struct tshare_tensor *tensor);

/**
 * tshare_tensor_unref() - drop a reference to a tensor
 * @tensor: the tensor, or NULL
 *
 * The last unref drops the tensor's reference to the region.
 *
 * Return: NULL.
 */
struct tshare_tensor *tshare_tensor_unref(struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_region() - return the region that a tensor is in
 * @tensor: the tensor
 *
 * Return: the region, without a reference: the tensor has one.
 */
struct tshare_region *tshare_tensor_get_region(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_name() - return a tensor's name in its region
 * @tensor: the tensor
 *
 * Return: the name, "" for none.
 */
const char *tshare_tensor_get_name(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_data() - return where a tensor's elements are
 * @tensor: the tensor
 *
 * Return: the address of element [0, 0, ...]. With negative strides others lie before it.
 */
void *tshare_tensor_get_data(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_dtype() - return the type of a tensor's elements
 * @tensor: the tensor
 *
 * Return: the type.
 */
struct tshare_dtype tshare_tensor_get_dtype(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_ndim() - return the number of a tensor's dimensions
 * @tensor: the tensor
 *
 * Return: 0 for a scalar, to TSHARE_NDIM_LIMIT.
 */
int32_t tshare_tensor_get_ndim(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_shape() - return the elements along each dimension
 * @tensor: the tensor
 *
 * Return: an array with a number for each dimension.
 */
const int64_t *tshare_tensor_get_shape(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_strides() - return the elements from one index to the next
 * @tensor: the tensor
 *
 * Return: an array with a number of elements, not bytes, for each dimension; never NULL.
 */
const int64_t *tshare_tensor_get_strides(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_byte_offset() - return where in its region a tensor begins
 * @tensor: the tensor
 *
 * Return: bytes from the region's start to element [0, 0, ...].
 */
uint64_t tshare_tensor_get_byte_offset(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_get_nbytes() - return the bytes of a tensor's elements
 * @tensor: the tensor
 *
 * Return: what a contiguous copy would take.
 */
uint64_t tshare_tensor_get_nbytes(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_is_readonly() - return whether a tensor's elements may not be written
 * @tensor: the tensor
 *
 * Return: whether its region is read-only, or it is a view that was made so.
 */
bool tshare_tensor_is_readonly(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_is_contiguous() - return whether a tensor's elements are in C order, without gaps
 * @tensor: the tensor
 *
 * Return: whether they are; always for a tensor without elements.
 */
bool tshare_tensor_is_contiguous(const struct tshare_tensor *tensor);

/**
 * tshare_tensor_view() - create a view of a tensor by its shape and strides
 * @tensor: the tensor, of which the view keeps the region and the frame
 * @spec: the view. @spec->byte_offset is from the region's start, as for tshare_region_view()
 * @flags: TSHARE_READONLY or 0
 * @view: where to store it, read-only if @tensor is
 *
 * For views that the functions below can't make in one step. As tshare_region_view(), but a view
 * of a frame's tensor keeps the frame.
 *
 * Return: 0; -EINVAL; -ERANGE if it is not wholly inside the region; -ENOMEM.
 */
int tshare_tensor_view(struct tshare_tensor *tensor, const struct tshare_spec *spec, uint32_t flags,
		       struct tshare_tensor **view);

/**
 * tshare_tensor_select() - create a view of one index of a dimension
 * @tensor: the tensor, of which the view keeps the region
 * @dim: the dimension, which the view lacks
 * @index: 0 to shape[@dim] - 1
 * @view: where to store it: the same elements, without a name, read-only if @tensor is
 *
 * In Python this is an index::
 *
 *	tshare_tensor_select(frames, 0, 3, &frame);	// frames[3]
 *
 * Return: 0; -EINVAL for a @dim that @tensor doesn't have, or if packed elements would
 * begin within a byte; -ERANGE for another @index; -ENOMEM.
 */
int tshare_tensor_select(struct tshare_tensor *tensor, int32_t dim, int64_t index,
			 struct tshare_tensor **view);

/**
 * tshare_tensor_slice() - create a view of every step-th index of a dimension
 * @tensor: the tensor, of which the view keeps the region
 * @dim: the dimension
 * @start: the first index
 * @stop: the index before which the slice ends
 * @step: from one index to the next; negative to go back
 * @view: where to store it, as for tshare_tensor_select()
 *
 * With a positive @step, @start and @stop are 0 to shape[@dim]; with a negative one, -1
 * to shape[@dim] - 1. Unlike in Python, they never count from the end. If @stop is not
 * behind @start, the view has no elements::
 *
 *	tshare_tensor_slice(t, 0, 0, 10, 2, &even);	// t[0:10:2]
 *	tshare_tensor_slice(t, 0, 9, -1, -1, &back);	// of ten, t[::-1]
 *
 * Return: 0; -EINVAL as tshare_tensor_select(), or if @step is 0; -ERANGE for another
 * @start or @stop; -ENOMEM.
 */
int tshare_tensor_slice(struct tshare_tensor *tensor, int32_t dim, int64_t start, int64_t stop,
			int64_t step, struct tshare_tensor **view);

/**
 * tshare_tensor_permute() - create a view with the dimensions in another order
 * @tensor: the tensor, of which the view keeps the region
 * @dims: for each dimension of the view, which one of @tensor it is; NULL for the
 *        reverse order, which transposes a matrix
 * @view: where to store it, as for tshare_tensor_select()
 *
 * Return: 0; -EINVAL if @dims hasn't each dimension once; -ENOMEM.
 */
int tshare_tensor_permute(struct tshare_tensor *tensor, const int32_t *dims,
			  struct tshare_tensor **view);

/**
 * tshare_tensor_reshape() - create a view with another shape
 * @tensor: the tensor, of which the view keeps the region
 * @ndim: number of dimensions
 * @shape: elements along each dimension, together as many as @tensor has
 * @view: where to store it, as for tshare_tensor_select(): the elements in the same
 *        order, C's
 *
 * Works on every contiguous tensor, and on others where strides can express the shape.
 * It never copies; tshare_tensor_read() into a tensor of that shape does.
 *
 * Return: 0; -EINVAL for a malformed shape, another number of elements, or if it needs
 * a copy; -ENOMEM.
 */
int tshare_tensor_reshape(struct tshare_tensor *tensor, int32_t ndim, const int64_t *shape,
			  struct tshare_tensor **view);

/**
 * tshare_tensor_read() - copy a tensor's elements out
 * @tensor: the tensor
 * @buffer: where to: tshare_tensor_get_nbytes() bytes, in C order without gaps
 *
 * Return: 0; -EINVAL for a strided tensor of packed elements.
 */
int tshare_tensor_read(const struct tshare_tensor *tensor, void *buffer);

/**
 * tshare_tensor_write() - copy a tensor's elements in
 * @tensor: the tensor
 * @data: address of element [0, 0, ...] of a tensor of the same type and shape,
 *        which doesn't overlap @tensor
 * @strides: elements from one index to the next, or NULL for C-contiguous
 *
 * Return: 0; -EACCES for a read-only tensor; -EINVAL for strides of packed
 * elements; -EINVAL, -ERANGE as tshare_spec_check().
 */
int tshare_tensor_write(struct tshare_tensor *tensor, const void *data, const int64_t *strides);

/* DLPack; for the structures see tshare-dlpack.h, or a dlpack.h of your own, or both. */

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/**
 * tshare_tensor_to_dlpack() - export as DLPack, versioned form
 * @tensor: the tensor; kept until the result's deleter was called
 * @managed: where to store it; the caller calls managed->deleter(managed) when done,
 *           from any thread
 *
 * DLPACK_FLAG_BITMASK_READ_ONLY is set if the tensor is read-only. Strides are set
 * unless ndim is 0. byte_offset is 0. data is NULL if there are no elements.
 *
 * Return: 0; -ENOMEM.
 */
int tshare_tensor_to_dlpack(struct tshare_tensor *tensor,
			    struct DLManagedTensorVersioned **managed);

/**
 * tshare_tensor_to_dlpack_legacy() - export as DLPack, the form before 1.0
 * @tensor: the tensor; kept until the result's deleter was called
 * @managed: where to store it
 *
 * Return: 0; -ENOMEM; -EACCES for a read-only tensor, since this form can't mark
 * it.
 */
int tshare_tensor_to_dlpack_legacy(struct tshare_tensor *tensor, struct DLManagedTensor **managed);

/**
 * tshare_spec_from_dlpack() - check another library's tensor and describe it
 * @managed: the tensor; stays the caller's, on failure too
 * @spec: where to store its type, shape and strides, without a name and with
 *        byte_offset TSHARE_OFFSET_AUTO; its size is set by the caller. The arrays
 *        are @managed's own, and strides is NULL where @managed has none
 * @data: where to store the address of element [0, 0, ...], to which @managed's
 *        byte_offset is added; NULL where @managed has no data
 * @flags: where to store TSHARE_READONLY if the tensor may not be written, or 0
 *
 * Checks all that tshare_tensor_from_dlpack() does, so that neither a shape nor
 * an address of the result can overflow: tshare_spec_check() accepts it. Flags of
 * DLPack that don't concern the layout, such as IS_COPIED, are ignored.
 *
 * Return: 0; -EPROTO for another major version of DLPack, which keeps only the
 * deleter in its place; -EOPNOTSUPP for memory that the CPU can't reach, and
 * for packed types that are padded to bytes; -ERANGE, -EINVAL as
 * tshare_spec_check().
 */
int tshare_spec_from_dlpack(const struct DLManagedTensorVersioned *managed,
			    struct tshare_spec *spec, const void **data, uint32_t *flags);

/**
 * tshare_spec_from_dlpack_legacy() - check a tensor in DLPack's form before 1.0, and describe it
 * @managed: the tensor; stays the caller's, on failure too
 * @spec: as for tshare_spec_from_dlpack()
 * @data: as for tshare_spec_from_dlpack()
 *
 * Return: as tshare_spec_from_dlpack(), but never -EPROTO.
 */
int tshare_spec_from_dlpack_legacy(const struct DLManagedTensor *managed, struct tshare_spec *spec,
				   const void **data);

/**
 * tshare_tensor_from_dlpack() - take another library's tensor into a region
 * @ctx: the context
 * @name: the new region's name, or NULL for none
 * @managed: the tensor; stays the caller's, and may be deleted afterwards
 * @options: or NULL
 * @tensor: where to store the copy; or, with neither name nor options, the
 *          tensor itself where it lies in a region of this process already
 *
 * Return: as tshare_tensor_copy(), and as tshare_spec_from_dlpack().
 */
int tshare_tensor_from_dlpack(struct tshare_ctx *ctx, const char *name,
			      const struct DLManagedTensorVersioned *managed,
			      const struct tshare_options *options, struct tshare_tensor **tensor);

/**
 * tshare_tensor_from_dlpack_legacy() - take a tensor in DLPack's form before 1.0 into a region
 * @ctx: the context
 * @name: the new region's name, or NULL for none
 * @managed: the tensor; stays the caller's
 * @options: or NULL
 * @tensor: where to store it
 *
 * Return: as tshare_tensor_from_dlpack().
 */
int tshare_tensor_from_dlpack_legacy(struct tshare_ctx *ctx, const char *name,
				     const struct DLManagedTensor *managed,
				     const struct tshare_options *options,
				     struct tshare_tensor **tensor);

#ifdef __cplusplus
}
#endif

#endif /* TSHARE_H */
