// SPDX-License-Identifier: MIT
/* The backend that is the kernel module: a session is an open /dev/tshare. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "format/desc-list.h"

#define DEVICE "/dev/tshare"

/* Regions asked for in one ioctl when listing. */
#define LIST_BATCH 64

/* A session pointer holds the descriptor plus one, and so is never NULL. */
static int session_fd(void *session)
{
	return (intptr_t)session - 1;
}

static int once_ioctl(int fd, unsigned long command, void *argument)
{
	return ioctl(fd, command, argument) < 0 ? -errno : 0;
}

static int device_ioctl(int fd, unsigned long command, void *argument)
{
	int err;

	do
		err = once_ioctl(fd, command, argument);
	while (err == -EINTR);
	return err;
}

/* In a container /sys shows the loaded module, but /dev may lack the device. */
static int fail_missing_device(void)
{
	if (!access("/sys/module/tshare", F_OK))
		return fail(-ENODEV, DEVICE ": no such device, but the module is loaded; "
					    "a container needs --device " DEVICE);
	return fail(-ENODEV, DEVICE ": no such device; load the module tshare");
}

static int fail_open_device(int err)
{
	switch (err) {
	case -EACCES:
	case -EPERM:
		return fail(-EACCES, DEVICE ": permission denied; join group tshare");
	case -ENOENT:
	case -ENODEV:
	case -ENXIO:
		return fail_missing_device();
	default:
		return fail(err, DEVICE ": %s", strerror(-err));
	}
}

static int open_device(void)
{
	int fd;

	fd = fd_open(DEVICE, O_RDWR);
	return fd < 0 ? fail_open_device(-errno) : fd;
}

static int query(int fd, struct tshare_query *query)
{
	int err;

	memset(query, 0, sizeof(*query));
	err = device_ioctl(fd, TSHARE_IOCTL_QUERY, query);
	if (err)
		return fail(err, DEVICE ": query: %s", strerror(-err));
	if (query->version != TSHARE_ABI_VERSION)
		return fail(-ENODEV, DEVICE ": the module has ABI version %u, not %u",
			    query->version, TSHARE_ABI_VERSION);
	return 0;
}

/*
 * Returns the session's device. Without a session it opens a device in @own, and checks the ABI:
 * answers of another ABI's module, or of another driver, would mean nothing.
 */
static int device_of(void *session, int *own)
{
	struct tshare_query answer;
	int err;

	if (session)
		return session_fd(session);
	*own = open_device();
	if (*own < 0)
		return *own;
	err = query(*own, &answer);
	return err ? err : *own;
}

static int kmod_open(void **session, uint32_t *page_size, uint32_t *huge_page_size)
{
	struct tshare_query answer;
	int fd, err;

	fd = open_device();
	if (fd < 0)
		return fd;
	err = query(fd, &answer);
	if (err) {
		close(fd);
		return err;
	}
	*page_size = answer.page_size;
	*huge_page_size = answer.huge_page_size;
	*session = (void *)(intptr_t)(fd + 1);
	return 0;
}

static void kmod_close(void *session)
{
	close(session_fd(session));
}

static int kmod_limits(void *session, struct tshare_limits *limits)
{
	struct tshare_query answer;
	int err;

	err = query(session_fd(session), &answer);
	if (err)
		return err;
	*limits = (struct tshare_limits){
		.abi_version = answer.version,
		.page_size = answer.page_size,
		.huge_page_size = answer.huge_page_size,
		.bytes_limit = answer.bytes_limit,
		.bytes_used = answer.bytes_used,
		.region_bytes_max = answer.region_bytes_max,
		.contiguous = true,
	};
	return 0;
}

/* Moves a descriptor that an ioctl has returned above 2: see fd.h. */
static int keep_fd(int32_t fd, const char *what)
{
	int kept = fd_move_up(fd);

	return kept < 0 ? fail(-errno, "%s: %s", what, strerror(errno)) : kept;
}

/* Room for the descriptors of a few dozen tensors, which then come with OPEN and INFO. */
#define FIRST_DESCS_SIZE 4096

static bool name_is_drafts(void *session, const char *name)
{
	struct tshare_open request = { 0 };
	int err;

	memcpy(request.name, name, sizeof(request.name));
	err = device_ioctl(session_fd(session), TSHARE_IOCTL_OPEN, &request);
	if (!err)
		close(request.fd);
	return err == -EINPROGRESS;
}

/* TSHARE_REPLACE takes over the name of a finished region, but never a draft's. */
static int fail_name_taken(void *session, const struct backend_request *request)
{
	return fail_taken(request->name, request->flags & TSHARE_REPLACE ||
						 name_is_drafts(session, request->name));
}

static int fail_create_dmabuf(int err, const struct backend_request *request)
{
	switch (err) {
	case -EBADF:
		return fail(err, "fd: %d is not open", *request->dmabuf);
	case -EINVAL:
		return fail(err, "fd: %d is not another driver's dma-buf", *request->dmabuf);
	case -EOPNOTSUPP:
		return fail(err, "options.lifetime: the last user of another driver's "
				 "dma-buf is unknown; use TSHARE_LIFETIME_PERSIST");
	default:
		return fail_name(err, request->name);
	}
}

static int fail_create(int err, const struct backend_request *request)
{
	switch (err) {
	case -EDQUOT:
		return fail(err,
			    "size: %" PRIu64 " bytes exceed RLIMIT_MEMLOCK, a limit of "
			    "the module, or one of the cgroup",
			    request->size);
	case -ENOMEM:
		if (request->descs_size > FIRST_DESCS_SIZE)
			return fail(err,
				    "size: no contiguous run of %" PRIu64
				    " bytes, or no %zu bytes to describe %zu tensors",
				    request->size, request->descs_size, request->desc_count);
		return fail(err, "size: no contiguous run of %" PRIu64 " bytes", request->size);
	case -EINVAL:
		if (request->flags & TSHARE_NODE)
			return fail(err, "options.node: %" PRId32 " is not online", request->node);
		return fail(err, DEVICE ": create: the module refused the arguments");
	default:
		return fail_name(err, request->name);
	}
}

static int kmod_create(void *session, const struct backend_request *request,
		       struct backend_region *region)
{
	struct tshare_create create = {
		.size = request->size,
		.mode = request->mode,
		.descs = (uintptr_t)request->descs,
		.descs_size = request->descs_size,
		.desc_count = request->desc_count,
	};
	struct tshare_unlink gone = { 0 };
	int fd, err;

	if (request->lifetime == TSHARE_LIFETIME_PERSIST)
		create.flags |= TSHARE_CREATE_PERSIST;
	if (request->lifetime == TSHARE_LIFETIME_USERS)
		create.flags |= TSHARE_CREATE_USERS;
	if (request->flags & TSHARE_DRAFT)
		create.flags |= TSHARE_CREATE_DRAFT;
	if (request->flags & TSHARE_REPLACE)
		create.flags |= TSHARE_CREATE_REPLACE;
	if (request->flags & TSHARE_DMA32)
		create.flags |= TSHARE_CREATE_DMA32;
	if (request->flags & TSHARE_NODE) {
		create.flags |= TSHARE_CREATE_NODE;
		create.node = request->node;
	}
	if (request->dmabuf) {
		create.flags |= TSHARE_CREATE_DMABUF;
		create.fd = *request->dmabuf;
	}
	memcpy(create.name, request->name, sizeof(create.name));
	err = device_ioctl(session_fd(session), TSHARE_IOCTL_CREATE, &create);
	if (err == -EEXIST)
		return fail_name_taken(session, request);
	if (err)
		return request->dmabuf ? fail_create_dmabuf(err, request) :
					 fail_create(err, request);
	fd = keep_fd(create.fd, "region");
	if (fd < 0) {
		gone.id = create.id;
		device_ioctl(session_fd(session), TSHARE_IOCTL_UNLINK, &gone);
		return fd;
	}
	region->readonly = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
	region->fd = fd;
	region->id = create.id;
	return 0;
}

/* Sets the descriptors of @region. @first holds all of them if they fit. */
static int adopt_descs(struct backend_region *region, const void *first, size_t size, size_t count)
{
	if (count && size <= FIRST_DESCS_SIZE) {
		region->descs = desc_list_copy(count, first, size);
		if (!region->descs)
			return fail(-ENOMEM, "region: out of memory");
	}
	region->descs_size = size;
	region->desc_count = count;
	return 0;
}

/* -ENOENT: the region has ended. Only one of a foreign dma-buf ends with its name. */
static int fail_ask(int err, const char *what)
{
	if (err == -ENOENT)
		return fail(err, "region: it is gone with its name, since another driver "
				 "has its dma-buf");
	return fail(err, DEVICE ": %s: %s", what, strerror(-err));
}

/* Asks the kernel about the region whose descriptor and id @info has. */
static int ask_info(void *session, struct tshare_info *info)
{
	_cleanup_close_ int own = -1;
	int device = device_of(session, &own), err;

	if (device < 0)
		return device;
	err = device_ioctl(device, TSHARE_IOCTL_INFO, info);
	return err ? fail_ask(err, "info") : 0;
}

static int kmod_read_descs(void *session, const struct backend_region *region, void *descs)
{
	struct tshare_info info = {
		.fd = region->fd,
		.id = region->id,
		.descs = (uintptr_t)descs,
		.descs_size = region->descs_size,
	};

	return ask_info(session, &info);
}

static int export_range(int device, int fd, uint64_t offset, uint64_t size, bool readonly)
{
	struct tshare_export export = {
		.fd = fd,
		.flags = readonly ? 0 : TSHARE_EXPORT_WRITE,
		.offset = offset,
		.size = size,
	};
	int err = device_ioctl(device, TSHARE_IOCTL_EXPORT, &export);

	if (err)
		return err;
	err = fd_move_up(export.export_fd);
	return err < 0 ? -errno : err;
}

static int kmod_lookup(void *session, const char *name, const struct backend_find *how,
		       struct backend_region *region)
{
	_Alignas(struct tshare_desc) char descs[FIRST_DESCS_SIZE];
	struct tshare_open request = {
		.flags = how->readonly ? 0 : TSHARE_OPEN_WRITE,
		.deadline_ns = how->timeout_ns ? clock_deadline(how->timeout_ns, clock_ns()) : 0,
		.other_than = how->other_than,
		.descs = (uintptr_t)descs,
		.descs_size = sizeof(descs),
	};
	struct backend_region found = { .readonly = how->readonly };
	int err;

	memcpy(request.name, name, sizeof(request.name));
	/* A signal handler ends a wait: no restart. */
	err = (how->timeout_ns ? once_ioctl : device_ioctl)(session_fd(session), TSHARE_IOCTL_OPEN,
							    &request);
	if (err)
		return fail_name(err, name);
	found.fd = keep_fd(request.fd, "name");
	if (found.fd < 0)
		return found.fd;
	found.id = request.id;
	found.size = request.size;
	memcpy(found.name, name, sizeof(found.name));
	err = adopt_descs(&found, descs, request.descs_size, request.desc_count);
	if (err) {
		close(found.fd);
		return err;
	}
	*region = found;
	return 0;
}

/* The kernel's watch of a name, and the id that was read last. */
struct name_watch {
	int fd;
	uint64_t id;
};

static void kmod_unwatch(void *data)
{
	struct name_watch *watch = data;

	close(watch->fd);
	free(watch);
}

static int kmod_watch(void *session, const char *name, int epoll, void **watch)
{
	struct tshare_watch request = { 0 };
	struct epoll_event event = { .events = EPOLLIN };
	struct name_watch *new;
	int err;

	memcpy(request.name, name, sizeof(request.name));
	err = device_ioctl(session_fd(session), TSHARE_IOCTL_WATCH, &request);
	if (err == -EDQUOT)
		return fail(err,
			    "name: '%s': the IPC namespace has %d watches, and can "
			    "have no more",
			    name, TSHARE_WATCH_MAX);
	if (err)
		return fail_name(err, name);
	new = calloc(1, sizeof(*new));
	if (!new) {
		close(request.fd);
		return fail(-ENOMEM, "watcher: out of memory");
	}
	new->fd = keep_fd(request.fd, "name");
	err = new->fd < 0 ? new->fd : 0;
	if (!err && (fcntl(new->fd, F_SETFL, O_NONBLOCK) ||
		     epoll_ctl(epoll, EPOLL_CTL_ADD, new->fd, &event)))
		err = fail_name(-errno, name);
	if (!err)
		*watch = new;
	else if (new->fd >= 0)
		kmod_unwatch(new);
	else
		free(new);
	return err;
}

static int kmod_watch_look(void *data, uint64_t *id)
{
	struct name_watch *watch = data;

	if (read(watch->fd, &watch->id, sizeof(watch->id)) < 0 && errno != EAGAIN)
		return fail(-errno, "watcher: read: %s", strerror(errno));
	*id = watch->id;
	return 0;
}

/*
 * Checks the name first: the server of a FUSE file may never answer fstatfs(). The name alone
 * proves nothing, as a file in the root directory may have it.
 */
static bool is_dmabuf(int fd)
{
	static const char prefix[] = "/dmabuf:";
	char path[32], name[sizeof(prefix)];
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name)) >= (ssize_t)strlen(prefix) &&
	       !strncmp(name, prefix, strlen(prefix)) && !fstatfs(fd, &fs) &&
	       fs.f_type == DMA_BUF_MAGIC;
}

static int import_from(int device, int fd, bool readonly, struct backend_region *region)
{
	_Alignas(struct tshare_desc) char descs[FIRST_DESCS_SIZE];
	struct tshare_info info = {
		.fd = fd,
		.descs = (uintptr_t)descs,
		.descs_size = sizeof(descs),
	};
	struct backend_region found = { .fd = fd };
	int err, reader = -EOPNOTSUPP;

	err = device_ioctl(device, TSHARE_IOCTL_INFO, &info);
	if (err == -EINVAL && is_dmabuf(fd))
		return fail(-EOPNOTSUPP, "fd: is another driver's dma-buf; open its region "
					 "by the name");
	if (err)
		return fail(err, "fd: %s", strerror(-err));
	found.readonly = !(info.region_flags & TSHARE_REGION_WRITABLE);
	found.id = info.id;
	found.size = info.length;
	memcpy(found.name, info.name, sizeof(found.name));
	err = adopt_descs(&found, descs, info.descs_size, info.desc_count);
	if (err)
		return err;
	if (readonly && !found.readonly)
		reader = export_range(device, fd, 0, 0, true);
	/* A foreign dma-buf can't be made read-only, but its mapping can. */
	if (reader < 0 && reader != -EOPNOTSUPP) {
		desc_list_free(found.descs);
		return fail(reader, "fd: a read-only one of it: %s", strerror(-reader));
	}
	if (reader >= 0) {
		close(fd);
		found.fd = reader;
		found.readonly = true;
	}
	*region = found;
	return 0;
}

/* @err: why the module can't be asked whether it is a region's */
static int fail_dmabuf(int err)
{
	char why[256];

	snprintf(why, sizeof(why), "%s", tshare_error_get());
	return fail(err, "fd: is a dma-buf, which only the module knows: %s", why);
}

static int kmod_import(void *session, int fd, bool readonly, struct backend_region *region)
{
	_cleanup_close_ int own = -1;
	int device = device_of(session, &own);

	if (device >= 0)
		return import_from(device, fd, readonly, region);
	return is_dmabuf(fd) ? fail_dmabuf(device) : -EINVAL;
}

static int fail_finish(int err, const char *name)
{
	switch (err) {
	case 0:
		return 0;
	case -EINVAL:
		return fail(err, "region: is not a draft");
	case -ENOENT:
		return fail(err, "region: the draft's name was removed");
	case -EEXIST:
		return fail_taken(name, false);
	case -EPERM:
		return fail(err, "region: the draft was made in another context, or its "
				 "name belongs to another user");
	default:
		return fail(err, DEVICE ": finish: %s", strerror(-err));
	}
}

static int kmod_finish(void *session, struct backend_region *region, bool replace)
{
	struct tshare_finish request = {
		.fd = region->fd,
		.id = region->id,
		.flags = replace ? TSHARE_FINISH_REPLACE : 0,
	};
	_cleanup_close_ int own = -1;
	int device = device_of(session, &own);

	if (device < 0)
		return device;
	return fail_finish(device_ioctl(device, TSHARE_IOCTL_FINISH, &request), region->name);
}

static int kmod_unlink_region(void *session, int fd, uint64_t id, const char *name)
{
	struct tshare_unlink request = { .id = id };
	_cleanup_close_ int own = -1;
	int device = device_of(session, &own);

	(void)fd;
	(void)name;
	return device < 0 ? device : device_ioctl(device, TSHARE_IOCTL_UNLINK, &request);
}

static int kmod_unlink(void *session, const char *name)
{
	struct tshare_unlink request = { 0 };
	int err;

	memcpy(request.name, name, sizeof(request.name));
	err = device_ioctl(session_fd(session), TSHARE_IOCTL_UNLINK, &request);
	return err ? fail_name(err, name) : 0;
}

static int kmod_unlink_id(void *session, uint64_t id)
{
	struct tshare_unlink request = { .id = id };
	int err = device_ioctl(session_fd(session), TSHARE_IOCTL_UNLINK, &request);

	switch (err) {
	case 0:
		return 0;
	case -ENOENT:
		return fail(err, "id: there is no named region with the id %" PRIu64, id);
	case -EPERM:
		return fail(err, "id: the region %" PRIu64 " belongs to another user", id);
	default:
		return fail(err, DEVICE ": unlink: %s", strerror(-err));
	}
}

/* The module's own memory is always contiguous. */
static uint32_t api_flags(uint32_t region_flags)
{
	uint32_t flags = region_flags & TSHARE_REGION_FOREIGN ? TSHARE_FOREIGN : TSHARE_CONTIGUOUS;

	if (region_flags & TSHARE_REGION_DMA32)
		flags |= TSHARE_DMA32;
	if (region_flags & TSHARE_REGION_POOL)
		flags |= TSHARE_POOL;
	if (region_flags & TSHARE_REGION_DRAFT)
		flags |= TSHARE_DRAFT;
	if (!(region_flags & TSHARE_REGION_WRITABLE))
		flags |= TSHARE_READONLY;
	return flags;
}

static uint32_t api_lifetime(uint32_t region_flags)
{
	if (region_flags & TSHARE_REGION_PERSIST)
		return TSHARE_LIFETIME_PERSIST;
	return region_flags & TSHARE_REGION_USERS ? TSHARE_LIFETIME_USERS : TSHARE_LIFETIME_MAKER;
}

static int report_entry(const struct tshare_list_entry *entry,
			int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	struct tshare_region_info info = {
		.size = sizeof(info),
		.id = entry->id,
		.region_size = entry->size,
		.uid = entry->uid,
		.gid = entry->gid,
		.mode = entry->mode,
		.node = entry->node,
		.flags = api_flags(entry->region_flags),
		.lifetime = api_lifetime(entry->region_flags),
		.segments = !(entry->region_flags & TSHARE_REGION_FOREIGN),
		.length = entry->size,
		.tensor_count = entry->desc_count,
	};

	memcpy(info.name, entry->name, sizeof(info.name));
	return fn(&info, data);
}

static int list_regions(void *session, uint32_t flags,
			int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	struct tshare_list_entry entries[LIST_BATCH];
	struct tshare_list request = { .entry_size = sizeof(entries[0]), .flags = flags };
	uint32_t i;
	int ret;

	request.entries = (uintptr_t)entries;
	do {
		request.count = LIST_BATCH;
		ret = device_ioctl(session_fd(session), TSHARE_IOCTL_LIST, &request);
		if (ret == -EPERM)
			return fail(ret, "regions of all IPC namespaces are listed for the "
					 "machine's administrator only (CAP_SYS_ADMIN)");
		if (ret)
			return fail(ret, DEVICE ": list: %s", strerror(-ret));
		for (i = 0; i < request.count; i++) {
			if (entries[i].name[0])
				ret = report_entry(&entries[i], fn, data);
			if (ret)
				return ret;
		}
	} while (request.count == LIST_BATCH);
	return 0;
}

static int kmod_list(void *session, int (*fn)(const struct tshare_region_info *info, void *data),
		     void *data)
{
	return list_regions(session, 0, fn, data);
}

static int kmod_list_all(void *session,
			 int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	return list_regions(session, TSHARE_LIST_ALL, fn, data);
}

static int kmod_counter(void *session, const struct backend_region *region, bool own,
			struct backend_counter *counter)
{
	struct tshare_counter request = { .fd = region->fd, .id = region->id };
	_cleanup_close_ int own_device = -1;
	int device = device_of(session, &own_device), fd, err;

	(void)own; /* always so */
	if (device < 0)
		return device;
	err = device_ioctl(device, TSHARE_IOCTL_COUNTER, &request);
	if (err == -ENOTTY)
		return fail(-EOPNOTSUPP, DEVICE ": the module is too old for generations");
	if (err)
		return fail_ask(err, "counter");
	fd = keep_fd(request.counter_fd, "region");
	if (fd < 0)
		return fd;
	*counter = (struct backend_counter){ .fd = fd };
	return 0;
}

static int kmod_export(void *session, const struct backend_region *region, uint64_t offset,
		       uint64_t size, bool readonly, int *fd)
{
	_cleanup_close_ int own = -1;
	int device = device_of(session, &own), ret;

	if (device < 0)
		return device;
	ret = export_range(device, region->fd, offset, size, readonly);
	if (ret == -EOPNOTSUPP)
		return fail(ret, "region: parts and read-only descriptors of another "
				 "driver's dma-buf are not supported");
	if (ret < 0)
		return fail(ret, DEVICE ": export: %s", strerror(-ret));
	*fd = ret;
	return 0;
}

static int kmod_info(void *session, const struct backend_region *region,
		     struct tshare_region_info *info)
{
	struct tshare_info answer = { .fd = region->fd, .id = region->id };
	int err = ask_info(session, &answer);

	if (err)
		return err;
	*info = (struct tshare_region_info){
		.size = sizeof(*info),
		.id = answer.id,
		.region_size = answer.size,
		.uid = answer.uid,
		.gid = answer.gid,
		.mode = answer.mode,
		.node = answer.node,
		.flags = api_flags(answer.region_flags),
		.lifetime = api_lifetime(answer.region_flags),
		.segments = !(answer.region_flags & TSHARE_REGION_FOREIGN),
		.phys_addr = answer.phys_addr,
		.offset = answer.offset,
		.length = answer.length,
		.tensor_count = answer.desc_count,
	};
	memcpy(info->name, answer.name, sizeof(info->name));
	return 0;
}

const struct backend_ops backend_kmod = {
	.name = "kmod",
	.has_dmabufs = true,
	.open = kmod_open,
	.close = kmod_close,
	.limits = kmod_limits,
	.create = kmod_create,
	.lookup = kmod_lookup,
	.watch = kmod_watch,
	.unwatch = kmod_unwatch,
	.watch_look = kmod_watch_look,
	.import = kmod_import,
	.read_descs = kmod_read_descs,
	.finish = kmod_finish,
	.unlink = kmod_unlink,
	.unlink_region = kmod_unlink_region,
	.unlink_id = kmod_unlink_id,
	.list = kmod_list,
	.list_all = kmod_list_all,
	.counter = kmod_counter,
	.export = kmod_export,
	.info = kmod_info,
};
