// SPDX-License-Identifier: GPL-2.0-only
/* The device's attributes in sysfs: counts of all namespaces, for root. */
#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/mm.h>
#include <linux/sysfs.h>

#include "account.h"
#include "device.h"
#include "dmabuf.h"
#include "names.h"
#include "region.h"

static ssize_t regions_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&tshare_region_count));
}
static DEVICE_ATTR_ADMIN_RO(regions);

static ssize_t exports_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&tshare_export_count));
}
static DEVICE_ATTR_ADMIN_RO(exports);

static ssize_t names_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", tshare_name_count());
}
static DEVICE_ATTR_ADMIN_RO(names);

static ssize_t bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", (u64)tshare_pages_used() << PAGE_SHIFT);
}
static DEVICE_ATTR_ADMIN_RO(bytes);

static struct attribute *device_attrs[] = {
	&dev_attr_regions.attr,
	&dev_attr_exports.attr,
	&dev_attr_names.attr,
	&dev_attr_bytes.attr,
	NULL,
};

static const struct attribute_group device_group = {
	.attrs = device_attrs,
};

const struct attribute_group *tshare_sysfs_groups[TSHARE_SYSFS_POOLS + MAX_NUMNODES + 1] = {
	&device_group,
};
