// SPDX-License-Identifier: MIT
#include "backend/kmod/device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"

int kmod_session_fd(void *session)
{
	return (intptr_t)session - 1;
}

int kmod_ioctl_once(int fd, unsigned long command, void *argument)
{
	return ioctl(fd, command, argument) < 0 ? -errno : 0;
}

int kmod_ioctl(int fd, unsigned long command, void *argument)
{
	int err;

	do
		err = kmod_ioctl_once(fd, command, argument);
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

int kmod_device_open(void)
{
	int fd;

	fd = fd_open(DEVICE, O_RDWR);
	return fd < 0 ? fail_open_device(-errno) : fd;
}

int kmod_query(int fd, struct tshare_query *query)
{
	int err;

	memset(query, 0, sizeof(*query));
	err = kmod_ioctl(fd, TSHARE_IOCTL_QUERY, query);
	if (err)
		return fail(err, DEVICE ": query: %s", strerror(-err));
	if (query->version != TSHARE_ABI_VERSION)
		return fail(-ENODEV, DEVICE ": the module has ABI version %u, not %u",
			    query->version, TSHARE_ABI_VERSION);
	return 0;
}

int kmod_device_of(void *session, int *own)
{
	struct tshare_query answer;
	int err;

	if (session)
		return kmod_session_fd(session);
	*own = kmod_device_open();
	if (*own < 0)
		return *own;
	err = kmod_query(*own, &answer);
	return err ? err : *own;
}

int kmod_keep_fd(int32_t fd, const char *what)
{
	int kept = fd_move_up(fd);

	return kept < 0 ? fail(-errno, "%s: %s", what, strerror(errno)) : kept;
}

int kmod_fail_ask(int err, const char *what)
{
	if (err == -ENOENT)
		return fail(err, "region: it is gone with its name, since another driver "
				 "has its dma-buf");
	return fail(err, DEVICE ": %s: %s", what, strerror(-err));
}

int kmod_ask_info(void *session, struct tshare_info *info)
{
	_cleanup_close_ int own = -1;
	int device = kmod_device_of(session, &own), err;

	if (device < 0)
		return device;
	err = kmod_ioctl(device, TSHARE_IOCTL_INFO, info);
	return err ? kmod_fail_ask(err, "info") : 0;
}
