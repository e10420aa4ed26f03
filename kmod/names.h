/* SPDX-License-Identifier: GPL-2.0-only */
/* Names, and lookup of regions by name or id with the caller's permissions. */
#ifndef TSHARE_NAMES_H
#define TSHARE_NAMES_H

#include <linux/list.h>
#include <linux/tshare.h>
#include <linux/types.h>

struct tshare_ns;
struct tshare_region;
struct tshare_waiter;

/**
 * struct tshare_file - an open /dev/tshare
 * @ns: the namespace it was opened in
 * @names: regions whose names are removed with it; under tshare_lock
 */
struct tshare_file {
	struct tshare_ns *ns;
	struct list_head names;
};

/* Access to a region, as in the mode's bits. */
#define TSHARE_MAY_WRITE 2
#define TSHARE_MAY_READ	 4

int tshare_name_check_free(struct tshare_ns *ns, const char *name, bool replace);
int tshare_name_unlink(struct tshare_file *tf, const char *name, u64 id);
unsigned long tshare_name_count(void);

bool tshare_name_read(const struct tshare_file *tf, const char *name, struct tshare_waiter *waiter,
		      u64 *id);

int tshare_region_register(struct tshare_file *tf, struct tshare_region *region, bool replace);
struct tshare_region *tshare_region_lookup(struct tshare_file *tf, struct tshare_open *req,
					   int access);
struct tshare_region *tshare_region_find_id(struct tshare_file *tf, u64 id);
void tshare_region_use(struct tshare_region *region);
void tshare_region_unuse(struct tshare_region *region);
int tshare_region_finish(struct tshare_file *tf, struct tshare_region *region, bool replace);
u32 tshare_region_get_state(struct tshare_region *region, char *name);

void tshare_file_close(struct tshare_file *tf);
void tshare_names_exit(void);
int tshare_list_next(struct tshare_file *tf, bool all, u64 *cursor,
		     struct tshare_list_entry *entry);

#endif /* TSHARE_NAMES_H */
