// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pools' attributes in sysfs: a folder for each node. The target is what the administrator
 * has set. The others depend on regions of all namespaces, so they are for root.
 */
#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "pool.h"

enum { POOL_SIZE, POOL_TARGET, POOL_FREE, POOL_ZEROED, POOL_ATTRS };

/**
 * struct pool_folder - the folder of a pool
 * @name: its name
 * @attrs: the attributes, which point to the pool
 * @list: pointers to them, for @group
 * @group: the folder
 */
struct pool_folder {
	char name[32];
	struct dev_ext_attribute attrs[POOL_ATTRS];
	struct attribute *list[POOL_ATTRS + 1];
	struct attribute_group group;
};

static struct pool_folder *pool_folders[MAX_NUMNODES];

static struct tshare_pool *attr_pool(struct device_attribute *attr)
{
	return container_of(attr, struct dev_ext_attribute, attr)->var;
}

static ssize_t emit_blocks(char *buf, u64 nr_blocks)
{
	return sysfs_emit(buf, "%llu\n", nr_blocks * TSHARE_BLOCK_BYTES);
}

static ssize_t size_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return emit_blocks(buf, READ_ONCE(attr_pool(attr)->size));
}

static ssize_t target_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return emit_blocks(buf, READ_ONCE(attr_pool(attr)->target));
}

static ssize_t free_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return emit_blocks(buf, tshare_pool_count_free(attr_pool(attr), false));
}

static ssize_t zeroed_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return emit_blocks(buf, tshare_pool_count_free(attr_pool(attr), true));
}

static ssize_t size_store(struct device *dev, struct device_attribute *attr, const char *buf,
			  size_t count)
{
	u64 bytes;
	int err = kstrtou64(buf, 0, &bytes);

	if (!err)
		err = tshare_pool_resize(attr_pool(attr), bytes);
	return err ?: count;
}

static const struct device_attribute pool_attrs[POOL_ATTRS] = {
	[POOL_SIZE] = __ATTR_RW_MODE(size, 0600),
	[POOL_TARGET] = __ATTR_RO(target),
	[POOL_FREE] = __ATTR_RO_MODE(free, 0400),
	[POOL_ZEROED] = __ATTR_RO_MODE(zeroed, 0400),
};

static struct pool_folder *__init pool_folder_create(struct tshare_pool *pool)
{
	struct pool_folder *folder = kzalloc(sizeof(*folder), GFP_KERNEL);
	int i;

	if (!folder)
		return NULL;
	snprintf(folder->name, sizeof(folder->name), "pool_node%d", pool->node);
	for (i = 0; i < POOL_ATTRS; i++) {
		folder->attrs[i] = (struct dev_ext_attribute){
			.attr = pool_attrs[i],
			.var = pool,
		};
		sysfs_attr_init(&folder->attrs[i].attr.attr);
		folder->list[i] = &folder->attrs[i].attr.attr;
	}
	folder->group.name = folder->name;
	folder->group.attrs = folder->list;
	return folder;
}

/**
 * tshare_pool_sysfs_init() - make the pools' attributes, before the device has them
 * @groups: where to store the groups, which live until tshare_pool_sysfs_exit()
 *
 * Return: 0, -ENOMEM.
 */
int __init tshare_pool_sysfs_init(const struct attribute_group **groups)
{
	int node;

	for (node = 0; node < MAX_NUMNODES; node++) {
		if (!tshare_pools[node])
			continue;
		pool_folders[node] = pool_folder_create(tshare_pools[node]);
		if (!pool_folders[node]) {
			tshare_pool_sysfs_exit();
			return -ENOMEM;
		}
		*groups++ = &pool_folders[node]->group;
	}
	return 0;
}

void tshare_pool_sysfs_exit(void)
{
	int node;

	for (node = 0; node < MAX_NUMNODES; node++)
		kfree(pool_folders[node]);
}
