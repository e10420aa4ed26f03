/* SPDX-License-Identifier: MIT */
/* Facts of a region that both list and show print. */
#ifndef TSHARE_CLI_REPORT_H
#define TSHARE_CLI_REPORT_H

#include "cli.h"

/* Prints the members of a region's JSON object. */
void report_region_json(const struct tshare_region_info *info);

/* "maker", "users" or "persist" */
const char *report_lifetime(const struct tshare_region_info *info);

/* "persist,readonly" or "-" */
#define REPORT_FLAGS_LEN 64
void report_flags(const struct tshare_region_info *info, char text[REPORT_FLAGS_LEN]);

/* The name of a user or a group, or the number if it has no name. */
#define REPORT_USER_LEN 64
void report_user(uid_t uid, char text[REPORT_USER_LEN]);
void report_group(gid_t gid, char text[REPORT_USER_LEN]);

#endif /* TSHARE_CLI_REPORT_H */
