/* SPDX-License-Identifier: GPL-2.0-only */
/* Names and users of regions, and the open files that names belong to. */
#ifndef TSHARE_NAMES_H
#define TSHARE_NAMES_H

#include <linux/list.h>
#include <linux/types.h>

struct rb_root;
struct tshare_ns;
struct tshare_region;

/**
 * struct tshare_file - an open /dev/tshare
 * @ns: the namespace it was opened in
 * @names: regions whose names are removed with it; under tshare_lock
 */
struct tshare_file {
	struct tshare_ns *ns;
	struct list_head names;
};

int tshare_name_check_free(struct tshare_ns *ns, const char *name, bool replace);
struct tshare_region *tshare_name_find(const struct rb_root *names, const char *name);
int tshare_name_unlink(struct tshare_file *tf, const char *name, u64 id);
unsigned long tshare_name_count(void);

int tshare_region_register(struct tshare_file *tf, struct tshare_region *region, bool replace);
void tshare_region_use(struct tshare_region *region);
void tshare_region_use_locked(struct tshare_region *region);
void tshare_region_unuse(struct tshare_region *region);
int tshare_region_finish(struct tshare_file *tf, struct tshare_region *region, bool replace);
u32 tshare_region_get_state(struct tshare_region *region, char *name);

void tshare_file_close(struct tshare_file *tf);
void tshare_names_exit(void);

#endif /* TSHARE_NAMES_H */
