/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module is removed, and loaded again as the guest has it: tests that run later need the
 * same device.
 */
#ifndef TSHARE_KSELFTEST_MODULE_H
#define TSHARE_KSELFTEST_MODULE_H

#include <sys/stat.h>
#include <sys/syscall.h>

#include "util.h"

static inline bool module_is_found(void)
{
	return !system("modinfo tshare > /dev/null 2>&1");
}

/* 0, or a negative errno: it stays while it is in use. */
static inline int remove_module(void)
{
	return syscall(SYS_delete_module, "tshare", O_NONBLOCK) ? -errno : 0;
}

static inline int load_module(const char *parameters)
{
	char command[128];

	snprintf(command, sizeof(command), "modprobe -q tshare %s", parameters);
	return system(command);
}

/* With the owner and the mode that the device had before. */
static inline bool restore_module(const struct stat *device)
{
	return !load_module("") && !chown(DEVICE, device->st_uid, device->st_gid) &&
	       !chmod(DEVICE, device->st_mode & 0777);
}

#endif /* TSHARE_KSELFTEST_MODULE_H */
