/* SPDX-License-Identifier: GPL-2.0-only */
/* Fences: the work of a device, here vgem, that others wait for. */
#ifndef TSHARE_KSELFTEST_FENCE_H
#define TSHARE_KSELFTEST_FENCE_H

#include <linux/dma-buf.h>
#include <poll.h>

#include <drm/vgem_drm.h>

#include "drm.h"

/* The events of @events that are ready now. */
static inline int ready(int fd, short events)
{
	struct pollfd polled = { .fd = fd, .events = events };

	return poll(&polled, 1, 0) < 0 ? -errno : polled.revents;
}

static inline int export_fences(int fd, __u32 flags)
{
	struct dma_buf_export_sync_file args = { .flags = flags };
	int err = xioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &args);

	return err ? err : args.fd;
}

static inline int import_fences(int fd, int sync_file, __u32 flags)
{
	struct dma_buf_import_sync_file args = { .fd = sync_file, .flags = flags };

	return xioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &args);
}

/* Lets vgem use the dma-buf @fd until signal_fence(), with the access of @attach's flags. */
static inline int attach_fence(int drm, int fd, struct drm_vgem_fence_attach *attach)
{
	int err = import_gem(drm, fd, &attach->handle);

	return err ? err : xioctl(drm, DRM_IOCTL_VGEM_FENCE_ATTACH, attach);
}

static inline int signal_fence(int drm, const struct drm_vgem_fence_attach *attach)
{
	struct drm_vgem_fence_signal args = { .fence = attach->out_fence };

	return xioctl(drm, DRM_IOCTL_VGEM_FENCE_SIGNAL, &args);
}

#endif /* TSHARE_KSELFTEST_FENCE_H */
