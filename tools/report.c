// SPDX-License-Identifier: MIT
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "json.h"
#include "report.h"

static const struct {
	uint32_t flag;
	const char *name;
} flag_names[] = {
	{ TSHARE_DRAFT, "draft" },	     { TSHARE_DMA32, "dma32" },
	{ TSHARE_CONTIGUOUS, "contiguous" }, { TSHARE_READONLY, "readonly" },
	{ TSHARE_FOREIGN, "foreign" },	     { TSHARE_POOL, "pool" },
};

static const char *const lifetime_names[] = {
	[TSHARE_LIFETIME_MAKER] = "maker",
	[TSHARE_LIFETIME_USERS] = "users",
	[TSHARE_LIFETIME_PERSIST] = "persist",
};

#define N_FLAGS (sizeof(flag_names) / sizeof(flag_names[0]))

const char *report_lifetime(const struct tshare_region_info *info)
{
	return lifetime_names[info->lifetime];
}

void report_region_json(const struct tshare_region_info *info)
{
	char mode[8];
	size_t i;

	snprintf(mode, sizeof(mode), "%04o", info->mode);
	json_string("name", info->name);
	json_uint("id", info->id);
	json_uint("size", info->region_size);
	json_uint("tensor_count", info->tensor_count);
	json_uint("uid", info->uid);
	json_uint("gid", info->gid);
	json_string("mode", mode);
	if (info->node == TSHARE_ANY_NODE)
		json_null("node");
	else
		json_int("node", info->node);
	json_string("lifetime", report_lifetime(info));
	for (i = 0; i < N_FLAGS; i++)
		json_bool(flag_names[i].name, info->flags & flag_names[i].flag);
}

static void add_flag(char text[REPORT_FLAGS_LEN], const char *name)
{
	if (text[0])
		strcat(text, ",");
	strcat(text, name);
}

void report_flags(const struct tshare_region_info *info, char text[REPORT_FLAGS_LEN])
{
	size_t i;

	text[0] = '\0';
	if (info->lifetime != TSHARE_LIFETIME_MAKER)
		add_flag(text, report_lifetime(info));
	for (i = 0; i < N_FLAGS; i++)
		if (info->flags & flag_names[i].flag)
			add_flag(text, flag_names[i].name);
	if (!text[0])
		strcpy(text, "-");
}

void report_user(uid_t uid, char text[REPORT_USER_LEN])
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(text, REPORT_USER_LEN, "%s", user->pw_name);
	else
		snprintf(text, REPORT_USER_LEN, "%u", uid);
}

void report_group(gid_t gid, char text[REPORT_USER_LEN])
{
	const struct group *group = getgrgid(gid);

	if (group)
		snprintf(text, REPORT_USER_LEN, "%s", group->gr_name);
	else
		snprintf(text, REPORT_USER_LEN, "%u", gid);
}
