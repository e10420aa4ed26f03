// SPDX-License-Identifier: MIT
/* The backend that is the kernel module: a session is an open /dev/tshare. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/kmod/describe.h"
#include "backend/kmod/device.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "format/desc-list.h"

/* The module takes the namespace of the thread that opens the device. */
static int kmod_name_space(void *session, char *text)
{
	static const char file[] = "/proc/thread-self/ns/ipc";
	struct stat st;

	(void)session;
	if (stat(file, &st) < 0)
		return fail(-errno, "%s: %s", file, strerror(errno));
	snprintf(text, BACKEND_NAME_SPACE_LEN, "%ju", (uintmax_t)st.st_ino);
	return 0;
}

static int kmod_open(void **session, uint32_t *page_size, uint32_t *huge_page_size)
{
	struct tshare_query answer;
	int fd, err;

	fd = kmod_device_open();
	if (fd < 0)
		return fd;
	err = kmod_query(fd, &answer);
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
	close(kmod_session_fd(session));
}

static int kmod_limits(void *session, struct tshare_limits *limits)
{
	struct tshare_query answer;
	int err;

	err = kmod_query(kmod_session_fd(session), &answer);
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

/* Room for the descriptors of a few dozen tensors, which then come with OPEN and INFO. */
#define FIRST_DESCS_SIZE 4096

static bool name_is_drafts(void *session, const char *name)
{
	struct tshare_open request = { 0 };
	int err;

	memcpy(request.name, name, sizeof(request.name));
	err = kmod_ioctl(kmod_session_fd(session), TSHARE_IOCTL_OPEN, &request);
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
	err = kmod_ioctl(kmod_session_fd(session), TSHARE_IOCTL_CREATE, &create);
	if (err == -EEXIST)
		return fail_name_taken(session, request);
	if (err)
		return request->dmabuf ? fail_create_dmabuf(err, request) :
					 fail_create(err, request);
	fd = kmod_keep_fd(create.fd, "region");
	if (fd < 0) {
		gone.id = create.id;
		kmod_ioctl(kmod_session_fd(session), TSHARE_IOCTL_UNLINK, &gone);
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
static int kmod_read_descs(void *session, const struct backend_region *region, void *descs)
{
	struct tshare_info info = {
		.fd = region->fd,
		.id = region->id,
		.descs = (uintptr_t)descs,
		.descs_size = region->descs_size,
	};

	return kmod_ask_info(session, &info);
}

static int export_range(int device, int fd, uint64_t offset, uint64_t size, bool readonly)
{
	struct tshare_export export = {
		.fd = fd,
		.flags = readonly ? 0 : TSHARE_EXPORT_WRITE,
		.offset = offset,
		.size = size,
	};
	int err = kmod_ioctl(device, TSHARE_IOCTL_EXPORT, &export);

	if (err)
		return err;
	err = fd_move_up(export.export_fd);
	return err < 0 ? -errno : err;
}

/* A signal handler ends a wait: no restart. @how->check is called between two parts of a wait. */
static int open_and_wait(int device, struct tshare_open *request, const struct backend_find *how)
{
	int64_t deadline = request->deadline_ns, part;
	int err;

	for (;;) {
		part = how->check_ns ? clock_deadline(how->check_ns, clock_ns()) : INT64_MAX;
		request->deadline_ns = part < deadline ? part : deadline;
		err = kmod_ioctl_once(device, TSHARE_IOCTL_OPEN, request);
		if (!how->check ||
		    (err != -EINTR && (err != -ETIMEDOUT || request->deadline_ns == deadline)))
			return err;
		/* @request has the draft that the wait goes on for. */
		if (how->check(how->data))
			return -ECANCELED;
	}
}

static int kmod_lookup(void *session, const char *name, const struct backend_find *how,
		       struct backend_region *region)
{
	const int device = kmod_session_fd(session);
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
	err = how->timeout_ns ? open_and_wait(device, &request, how) :
				kmod_ioctl(device, TSHARE_IOCTL_OPEN, &request);
	if (err)
		return fail_name(err, name);
	found.fd = kmod_keep_fd(request.fd, "name");
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
	err = kmod_ioctl(kmod_session_fd(session), TSHARE_IOCTL_WATCH, &request);
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
	new->fd = kmod_keep_fd(request.fd, "name");
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

	err = kmod_ioctl(device, TSHARE_IOCTL_INFO, &info);
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
	int device = kmod_device_of(session, &own);

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

static int kmod_finish(void *session, const struct backend_finish *drafts, size_t count)
{
	struct tshare_finish request = { 0 };
	_cleanup_close_ int own = -1;
	int device = kmod_device_of(session, &own), err = 0;
	size_t i;

	if (device < 0)
		return device;
	for (i = 0; !err && i < count; i++) {
		request.fd = drafts[i].region->fd;
		request.id = drafts[i].region->id;
		request.flags = drafts[i].replace ? TSHARE_FINISH_REPLACE : 0;
		err = fail_finish(kmod_ioctl(device, TSHARE_IOCTL_FINISH, &request),
				  drafts[i].region->name);
	}
	return err;
}

static int kmod_unlink_region(void *session, int fd, uint64_t id, const char *name)
{
	struct tshare_unlink request = { .id = id };
	_cleanup_close_ int own = -1;
	int device = kmod_device_of(session, &own);

	(void)fd;
	(void)name;
	return device < 0 ? device : kmod_ioctl(device, TSHARE_IOCTL_UNLINK, &request);
}

static int kmod_unlink(void *session, const char *name)
{
	struct tshare_unlink request = { 0 };
	int err;

	memcpy(request.name, name, sizeof(request.name));
	err = kmod_ioctl(kmod_session_fd(session), TSHARE_IOCTL_UNLINK, &request);
	return err ? fail_name(err, name) : 0;
}

static int kmod_unlink_id(void *session, uint64_t id)
{
	struct tshare_unlink request = { .id = id };
	int err = kmod_ioctl(kmod_session_fd(session), TSHARE_IOCTL_UNLINK, &request);

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

static int kmod_counter(void *session, const struct backend_region *region, enum counter_use use,
			struct backend_counter *counter)
{
	struct tshare_counter request = { .fd = region->fd, .id = region->id };
	_cleanup_close_ int own_device = -1;
	int device = kmod_device_of(session, &own_device), fd, err;

	(void)use; /* each description is the caller's own, and as writable as the region */
	if (device < 0)
		return device;
	err = kmod_ioctl(device, TSHARE_IOCTL_COUNTER, &request);
	if (err == -ENOTTY)
		return fail(-EOPNOTSUPP, DEVICE ": the module is too old for generations");
	if (err)
		return kmod_fail_ask(err, "counter");
	fd = kmod_keep_fd(request.counter_fd, "region");
	if (fd < 0)
		return fd;
	*counter = (struct backend_counter){ .fd = fd };
	return 0;
}

static int kmod_export(void *session, const struct backend_region *region, uint64_t offset,
		       uint64_t size, bool readonly, int *fd)
{
	_cleanup_close_ int own = -1;
	int device = kmod_device_of(session, &own), ret;

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

const struct backend_ops backend_kmod = {
	.name = "kmod",
	.has_dmabufs = true,
	.open = kmod_open,
	.close = kmod_close,
	.name_space = kmod_name_space,
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
