/* SPDX-License-Identifier: GPL-2.0-only */
/* DRM devices: their GEM objects as dma-bufs. */
#ifndef TSHARE_KSELFTEST_DRM_H
#define TSHARE_KSELFTEST_DRM_H

#include <drm/drm.h>

#include "util.h"

static inline int open_drm(const char *driver)
{
	char path[32], name[16] = "";
	int fd, minor;

	for (minor = 0; minor < 16; minor++) {
		struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };

		sprintf(path, "/dev/dri/card%d", minor);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!ioctl(fd, DRM_IOCTL_VERSION, &version) && !strcmp(name, driver))
			return fd;
		close(fd);
	}
	return -1;
}

/* The GEM handle of a dma-buf. */
static inline int import_gem(int drm, int fd, __u32 *handle)
{
	struct drm_prime_handle args = { .fd = fd };
	int err = xioctl(drm, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);

	*handle = args.handle;
	return err;
}

static inline int export_gem(int drm, __u32 handle)
{
	struct drm_prime_handle args = { .handle = handle, .flags = DRM_CLOEXEC | DRM_RDWR };
	int err = xioctl(drm, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);

	return err ? err : args.fd;
}

static inline int close_gem(int drm, __u32 handle)
{
	struct drm_gem_close args = { .handle = handle };

	return xioctl(drm, DRM_IOCTL_GEM_CLOSE, &args);
}

/* A dma-buf of the driver's own memory, with the access of @flags; a negative errno. */
static inline int create_gem(int drm, __u32 pages, __u32 flags)
{
	struct drm_mode_create_dumb dumb = { .width = PAGE / 4, .height = pages, .bpp = 32 };
	struct drm_prime_handle args = { .flags = DRM_CLOEXEC | flags };
	int err = xioctl(drm, DRM_IOCTL_MODE_CREATE_DUMB, &dumb);

	if (err)
		return err;
	args.handle = dumb.handle;
	err = xioctl(drm, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);
	close_gem(drm, dumb.handle);
	return err ? err : args.fd;
}

#endif /* TSHARE_KSELFTEST_DRM_H */
