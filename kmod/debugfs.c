// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/tshare: all regions, for root.
 *
 * The reader holds a reference to the region that is shown, but no lock of the module while
 * text is copied to user space. So regions come and go meanwhile.
 */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/user_namespace.h>

#include "device.h"
#include "maps.h"
#include "names.h"
#include "region.h"

static struct dentry *debugfs_dir;

static const char regions_head[] =
	"id size uid pid users references mappings attachments rung node flags name\n";

/* The position is 0 for the head, and else the least id that is still to be shown. */
static void *regions_from(u64 id)
{
	u64 cursor = id - 1;

	return tshare_region_next(&cursor);
}

static void *regions_start(struct seq_file *m, loff_t *pos)
{
	return *pos ? regions_from(*pos) : SEQ_START_TOKEN;
}

static void *regions_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct tshare_region *region = v;

	if (v == SEQ_START_TOKEN) {
		*pos = 1;
	} else {
		*pos = region->id + 1;
		tshare_region_put(region);
	}
	return regions_from(*pos);
}

static void regions_stop(struct seq_file *m, void *v)
{
	if (v && v != SEQ_START_TOKEN)
		tshare_region_put(v);
}

/* In the reader's PID namespace; 0 if the process has ended or isn't visible there. */
static pid_t region_creator(const struct tshare_region *region)
{
	struct task_struct *task;
	struct pid *pid;
	pid_t nr = 0;

	rcu_read_lock();
	pid = find_pid_ns(region->creator, &init_pid_ns);
	task = pid_task(pid, PIDTYPE_TGID);
	if (task && task->start_time == region->creator_started)
		nr = pid_vnr(pid);
	rcu_read_unlock();
	return nr;
}

static void regions_show_flags(struct seq_file *m, u32 flags)
{
	static const struct {
		u32 flag;
		const char *name;
	} names[] = {
		{ TSHARE_REGION_PERSIST, "persist" }, { TSHARE_REGION_USERS, "users" },
		{ TSHARE_REGION_DRAFT, "draft" },     { TSHARE_REGION_DMA32, "dma32" },
		{ TSHARE_REGION_FOREIGN, "dmabuf" },
	};
	const char *before = " ";
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!(flags & names[i].flag))
			continue;
		seq_printf(m, "%s%s", before, names[i].name);
		before = ",";
	}
	if (*before == ' ')
		seq_puts(m, " -");
}

static int regions_show(struct seq_file *m, void *v)
{
	struct tshare_attachment *attachment;
	struct tshare_region *region = v;
	unsigned int attached = 0;
	char name[TSHARE_NAME_LEN];
	u32 flags;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, regions_head);
		return 0;
	}
	flags = tshare_region_get_state(region, name);
	tshare_name_mask(name);
	mutex_lock(&region->maps.lock);
	list_for_each_entry(attachment, &region->maps.attachments, node)
		attached++;
	/* Without the reference through which the region is shown. */
	seq_printf(m, "%llu %llu %u %d %lu %u %d %u %s %d", region->id, tshare_region_bytes(region),
		   from_kuid_munged(seq_user_ns(m), region->uid), region_creator(region),
		   READ_ONCE(region->users), kref_read(&region->ref) - 1,
		   atomic_read(&region->mappings), attached, region->rung,
		   tshare_region_node(region));
	regions_show_flags(m, flags);
	seq_printf(m, " %s\n", name);
	list_for_each_entry(attachment, &region->maps.attachments, node)
		seq_printf(m, "\t%s\n", dev_name(attachment->dev));
	mutex_unlock(&region->maps.lock);
	return 0;
}

static const struct seq_operations regions_sops = {
	.start = regions_start,
	.next = regions_next,
	.stop = regions_stop,
	.show = regions_show,
};
DEFINE_SEQ_ATTRIBUTE(regions);

void __init tshare_debugfs_init(void)
{
	debugfs_dir = debugfs_create_dir("tshare", NULL);
	debugfs_create_file("regions", 0400, debugfs_dir, NULL, &regions_fops);
}

void tshare_debugfs_exit(void)
{
	debugfs_remove_recursive(debugfs_dir);
}
