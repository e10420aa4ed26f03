/* SPDX-License-Identifier: MIT */
/* Descriptions of the module's regions: backend_ops' list, list_all and info. */
#ifndef TSHARE_BACKEND_KMOD_DESCRIBE_H
#define TSHARE_BACKEND_KMOD_DESCRIBE_H

struct backend_region;
struct tshare_region_info;

int kmod_list(void *session, int (*fn)(const struct tshare_region_info *info, void *data),
	      void *data);
int kmod_list_all(void *session, int (*fn)(const struct tshare_region_info *info, void *data),
		  void *data);
int kmod_info(void *session, const struct backend_region *region, struct tshare_region_info *info);

#endif /* TSHARE_BACKEND_KMOD_DESCRIBE_H */
