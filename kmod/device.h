/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of the device that main.c registers. */
#ifndef TSHARE_DEVICE_H
#define TSHARE_DEVICE_H

struct attribute_group;
struct file;

/* ioctl.c */
long tshare_fops_ioctl(struct file *file, unsigned int cmd, unsigned long uarg);

/* sysfs.c; from TSHARE_SYSFS_POOLS on there is room for the groups of pools. */
#define TSHARE_SYSFS_POOLS 1
extern const struct attribute_group *tshare_sysfs_groups[];

/* debugfs.c */
#ifdef CONFIG_DEBUG_FS
void tshare_debugfs_init(void);
void tshare_debugfs_exit(void);
#else
static inline void tshare_debugfs_init(void)
{
}

static inline void tshare_debugfs_exit(void)
{
}
#endif

#endif /* TSHARE_DEVICE_H */
