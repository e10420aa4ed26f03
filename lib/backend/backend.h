/* SPDX-License-Identifier: MIT */
/*
 * The whole contract of a backend.
 *
 * A backend creates memory, finds it by name and describes it. It depends neither on
 * the meaning of tensors nor on another backend. For every operation:
 *
 * - The caller (ctx.c, region.c) has checked the arguments: names by
 *   tshare_name_check(), descriptors by tshare_desc_check() against a size that
 *   is a whole number of pages, flags against what the API knows, mode against
 *   0666. A backend refuses with -EOPNOTSUPP what it doesn't support.
 * - Results go through the last argument and are stored on success only. A
 *   failed operation leaves nothing behind: no name, no descriptor, no memory.
 * - Any thread may call at any time; a backend locks for itself.
 * - Errors are negative errno values with the meaning of tshare.h; the text for
 *   tshare_error_get() is set where the cause is known (see error.h).
 */
#ifndef TSHARE_BACKEND_BACKEND_H
#define TSHARE_BACKEND_BACKEND_H

#include <linux/tshare.h>

#include "tshare.h"

struct desc_list;

/* The API's request for a new region. */
struct backend_request {
	const char *name; /* "" for none */
	uint64_t size;	  /* whole pages, from one */
	uint32_t flags;	  /* TSHARE_DRAFT, _REPLACE, _DMA32, _CONTIGUOUS, _NODE */
	uint32_t mode;
	int32_t node;	   /* with TSHARE_NODE */
	uint32_t lifetime; /* TSHARE_LIFETIME_*; MAKER for a region without a name */
	const int *dmabuf; /* the region's memory, @size bytes, which stays the caller's;
			    * NULL for new memory */
	const void *descs; /* packed, as struct tshare_desc has it */
	size_t descs_size;
	size_t desc_count;
};

/* How a region is to be found by its name. */
struct backend_find {
	bool readonly;
	int64_t timeout_ns;	  /* 0: doesn't wait; negative: waits for ever */
	uint64_t other_than;	  /* the id of a region that is not to be opened, or 0 */
	int (*check)(void *data); /* see struct tshare_open_options; NULL for none */
	int64_t check_ns;
	void *data;
};

/* A draft whose name is to lead to it. */
struct backend_finish {
	struct backend_region *region;
	bool replace; /* whether the name may be another region's */
};

/* The most drafts that finish() takes. */
#define BACKEND_FINISH_MAX 2

/*
 * A region of a backend. The caller owns @fd and @descs, and
 * releases them with close() and desc_list_free(). lookup() and import() set @size,
 * @descs, the two members behind it, and @name. create() leaves these alone: its caller
 * has them already, and other threads may be reading @size.
 */
struct backend_region {
	int fd;	       /* what another process can import; O_CLOEXEC */
	bool readonly; /* whether @fd can't be mapped writable */
	uint64_t id;
	uint64_t size;		 /* bytes that can be mapped from @map_offset on: the
				  * region's, or those of @fd's part */
	uint64_t map_offset;	 /* where in @fd the region's first byte is */
	struct desc_list *descs; /* unchecked; NULL if they aren't read yet */
	size_t descs_size;	 /* bytes that read_descs() reads */
	size_t desc_count;
	char name[TSHARE_NAME_LEN];
	void *user; /* the backend's, until release(); NULL at first */
};

/*
 * Where a region's counter is: TSHARE_COUNTER_BYTES in one page of a file, zero when
 * the region is made. The caller owns @fd.
 */
#define TSHARE_COUNTER_BYTES 64

/* The first of TSHARE_STREAM_CONSUMERS bytes of the file that a stream's consumers lock. */
#define TSHARE_COUNTER_SEATS 64

/*
 * The use of the counter's file. To lock, it is an open file description that nobody else has:
 * -EACCES if that is unavailable.
 */
enum counter_use { COUNTER_TO_MAP, COUNTER_TO_READ_LOCK, COUNTER_TO_WRITE_LOCK };

struct backend_counter {
	int fd;		 /* O_CLOEXEC; to map, as writable as the region's */
	uint64_t offset; /* of the counter, a multiple of TSHARE_COUNTER_BYTES */
	uint64_t lock;	 /* a byte of the file that publishers lock, and nothing else does */
};

/* Bytes of what name_space() stores, with the end. */
#define BACKEND_NAME_SPACE_LEN 48

struct backend_ops {
	const char *name; /* "kmod", "shm" */
	bool has_dmabufs; /* a region's descriptor is a dma-buf */

	/*
	 * Opens a session and stores the sizes of pages as limits() has them.
	 * Fails with -ENODEV, -EACCES, or what open() returned.
	 */
	int (*open)(void **session, uint32_t *page_size, uint32_t *huge_page_size);

	/*
	 * Ends a session. Its names with TSHARE_LIFETIME_MAKER are gone on return, unless
	 * another process holds the session too, by fork().
	 */
	void (*close)(void *session);

	/*
	 * Stores what tells the namespace of the session's names from others of this backend on
	 * this machine, as text without spaces. The thread that has opened the session calls it,
	 * right after that.
	 */
	int (*name_space)(void *session, char *text);

	/*
	 * Removes what dead processes have left, if a sweep is due, and returns when the next
	 * one is. Cheap to call often: it only reads the clock until then. @now: another process
	 * has just died. NULL if the kernel does it.
	 */
	int64_t (*sweep)(void *session, bool now);

	/* Fills all but @limits->dmabuf. */
	int (*limits)(void *session, struct tshare_limits *limits);

	int (*create)(void *session, const struct backend_request *request,
		      struct backend_region *region);

	/*
	 * Finds the region that a name leads to. Without a timeout: -ENOENT, -EINPROGRESS
	 * for a draft, -EAGAIN for @how->other_than. With a timeout it sleeps until the
	 * name leads to another region; -ETIMEDOUT, -EINTR, -ECANCELED, or -ENOENT if the
	 * maker of a draft exits before it has finished it. The wait goes on for the same
	 * draft after @how->check.
	 */
	int (*lookup)(void *session, const char *name, const struct backend_find *how,
		      struct backend_region *region);

	/*
	 * Watches a name until unwatch(). Adds a descriptor to @epoll that is readable if the
	 * name may lead elsewhere since the last watch_look().
	 */
	int (*watch)(void *session, const char *name, int epoll, void **watch);
	void (*unwatch)(void *watch);

	/* Stores the id of the region that the name leads to, 0 for none or a draft. */
	int (*watch_look)(void *watch, uint64_t *id);

	/*
	 * Opens a region by a descriptor. @fd is the library's own duplicate, which no
	 * other thread can replace between its check and its use. On success it belongs to
	 * the region, on failure to the caller. -EINVAL if it isn't this backend's: the API
	 * then asks the next backend. @session may be NULL; then -ENODEV or -EACCES if
	 * @fd may be a region's, but the backend can't be used.
	 */
	int (*import)(void *session, int fd, bool readonly, struct backend_region *region);

	/*
	 * Reads the descriptors of a region that was found, @region->descs_size bytes,
	 * which the caller checks. @session may be NULL, as for import().
	 */
	int (*read_descs)(void *session, const struct backend_region *region, void *descs);

	/*
	 * Ends the use of a region whose descriptor and mapping are closed. Removes the
	 * name of a draft that no process has open any more: nobody could finish it. NULL
	 * if closing the descriptor does all that. @session may be NULL, as for import().
	 */
	void (*release)(void *session, struct backend_region *region);

	/*
	 * Makes the names of drafts, made in this session, lead to them, one after the other.
	 * Whatever needs memory or descriptors comes before the first name: if it fails all stay
	 * drafts. @session may be NULL, as for import().
	 */
	int (*finish)(void *session, const struct backend_finish *drafts, size_t count);

	int (*unlink)(void *session, const char *name);

	/*
	 * Removes the name of the region behind @fd; -ENOENT if the region has lost it.
	 * @session may be NULL, as for import().
	 */
	int (*unlink_region)(void *session, int fd, uint64_t id, const char *name);

	/*
	 * Removes the name of a region, also one of another namespace. NULL if the
	 * backend can't find a region by its id.
	 */
	int (*unlink_id)(void *session, uint64_t id);

	int (*list)(void *session, int (*fn)(const struct tshare_region_info *info, void *data),
		    void *data);

	/* As list(), for all namespaces. NULL if the backend's names belong to none. */
	int (*list_all)(void *session, int (*fn)(const struct tshare_region_info *info, void *data),
			void *data);

	/* Finds the counter of a region. @session may be NULL, as for import(). */
	int (*counter)(void *session, const struct backend_region *region, enum counter_use use,
		       struct backend_counter *counter);

	/*
	 * Makes a descriptor, which can be imported, of @size bytes of @region from @offset
	 * on: whole pages inside it. It is O_CLOEXEC and the caller's. @region must be
	 * writable unless @readonly is set. @session may be NULL, as for import().
	 */
	int (*export)(void *session, const struct backend_region *region, uint64_t offset,
		      uint64_t size, bool readonly, int *fd);

	/* Describes a region. @session may be NULL, as for import(). */
	int (*info)(void *session, const struct backend_region *region,
		    struct tshare_region_info *info);
};

extern const struct backend_ops backend_kmod;
extern const struct backend_ops backend_shm;

#endif /* TSHARE_BACKEND_BACKEND_H */
