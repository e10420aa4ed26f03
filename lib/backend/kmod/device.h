/* SPDX-License-Identifier: MIT */
/* The module's device, and its ioctls. */
#ifndef TSHARE_BACKEND_KMOD_DEVICE_H
#define TSHARE_BACKEND_KMOD_DEVICE_H

#include <stdint.h>

#include <linux/tshare.h>

#define DEVICE "/dev/tshare"

/* A session pointer holds the device's descriptor plus one, and so is never NULL. */
int kmod_session_fd(void *session);

/* Opens the device: its descriptor, or a negative errno with a text. */
int kmod_device_open(void);

/*
 * Returns the session's device. Without a session it opens a device in @own, and checks the ABI:
 * answers of another ABI's module, or of another driver, would mean nothing.
 */
int kmod_device_of(void *session, int *own);

/* 0, or a negative errno without a text. Signals interrupt only the first. */
int kmod_ioctl_once(int fd, unsigned long command, void *argument);
int kmod_ioctl(int fd, unsigned long command, void *argument);

/* Asks for the ABI's version, which it checks, and for limits. */
int kmod_query(int fd, struct tshare_query *query);

/* Asks about the region whose descriptor and id @info has. */
int kmod_ask_info(void *session, struct tshare_info *info);

/* The text of a question about a region that failed. */
int kmod_fail_ask(int err, const char *what);

/* Moves a descriptor that an ioctl has returned above 2: see base/fd.h. */
int kmod_keep_fd(int32_t fd, const char *what);

#endif /* TSHARE_BACKEND_KMOD_DEVICE_H */
