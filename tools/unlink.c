// SPDX-License-Identifier: MIT
/* tshare unlink: removes the given names, or those of the caller's regions. */
#include <errno.h>
#include <fnmatch.h>
#include <locale.h>
#include <unistd.h>

#include "details.h"
#include "number.h"
#include "text.h"

struct request {
	const char *pattern; /* NULL: no pattern */
	bool all;
	bool ids; /* the arguments are ids */
	bool dry;
};

/* The status of several removals: a region that is missing matters less than any other failure. */
static void note_status(int *status, int failed)
{
	if (*status != EXIT_FAILED)
		*status = failed;
}

static int unlink_names(struct tshare_ctx *ctx, char **names)
{
	int status = EXIT_OK, err;

	for (; *names; names++) {
		err = tshare_ctx_unlink(ctx, *names);
		if (err)
			note_status(&status, failure_of_name(ctx, *names, err));
	}
	return status;
}

static int unlink_id(struct tshare_ctx *ctx, const char *text)
{
	uint64_t id;
	char *end;
	int err;

	if (!parse_number(text, 10, &id, &end) || *end)
		return failure("'%s' is not a region's id", text);
	err = tshare_ctx_unlink_id(ctx, id);
	if (!err)
		return EXIT_OK;
	failure_of_library(err);
	return err == -ENOENT ? EXIT_MISSING : EXIT_FAILED;
}

static int unlink_ids(struct tshare_ctx *ctx, char **ids)
{
	int status = EXIT_OK, failed;

	for (; *ids; ids++) {
		failed = unlink_id(ctx, *ids);
		if (failed)
			note_status(&status, failed);
	}
	return status;
}

/* The name may lead to another region now, and root could remove that whoever owns it. */
static int unlink_region(struct tshare_ctx *ctx, const struct tshare_region_info *info)
{
	struct tshare_region *region;
	int err;

	err = open_readonly(ctx, info->name, &region);
	/* Nobody can open a draft, or a region whose mode lets nobody read. */
	if (err == -EINPROGRESS || err == -EACCES)
		return tshare_ctx_unlink(ctx, info->name);
	if (err)
		return err;
	err = tshare_region_get_id(region) == info->id ? tshare_region_unlink(region) : -ENOENT;
	tshare_region_unref(region);
	return err;
}

static void print_name(const char *verb, const char *name)
{
	printf("%s ", verb);
	text_put(stdout, name);
	putchar('\n');
}

/* A region that ends meanwhile by itself is no failure. */
static int unlink_own(struct tshare_ctx *ctx, const struct tshare_region_info *info, bool dry)
{
	int err;

	if (dry) {
		print_name("would remove", info->name);
		return EXIT_OK;
	}
	err = unlink_region(ctx, info);
	if (err == -ENOENT)
		return EXIT_OK;
	if (err)
		return failure_of_library(err);
	print_name("removed", info->name);
	return EXIT_OK;
}

static int unlink_matching(struct tshare_ctx *ctx, const struct request *request)
{
	struct details_list list = { 0 };
	bool matched = request->all;
	int status;
	size_t i;

	/* fnmatch() takes characters of the locale's encoding; names are UTF-8 in any locale. */
	setlocale(LC_CTYPE, "C.UTF-8");
	status = details_list(ctx, &list);
	for (i = 0; i < list.count; i++) {
		const struct tshare_region_info *info = &list.regions[i].info;

		if (info->uid != geteuid() ||
		    (request->pattern && fnmatch(request->pattern, info->name, 0)))
			continue;
		matched = true;
		if (unlink_own(ctx, info, request->dry))
			status = EXIT_FAILED;
	}
	details_release(&list);
	if (status || matched)
		return status;
	failure("no region of yours matches '%s'", request->pattern);
	return EXIT_MISSING;
}

static const struct option options[] = {
	{ "all", no_argument, NULL, 'a' },
	{ "glob", required_argument, NULL, 'g' },
	{ "id", no_argument, NULL, 'i' },
	{ "dry-run", no_argument, NULL, 'n' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	(void)verb;
	switch (option) {
	case 'a':
		request->all = true;
		break;
	case 'g':
		request->pattern = optarg;
		break;
	case 'i':
		request->ids = true;
		break;
	case 'n':
		request->dry = true;
		break;
	}
	return EXIT_OK;
}

/* Returns EXIT_OK if the options and the arguments fit together. */
static int check(const struct verb *verb, const struct request *request, char **names)
{
	if (request->all && request->pattern)
		return usage_error(verb, "--all and --glob exclude one another");
	if (request->ids && (request->all || request->pattern))
		return usage_error(verb, "--id excludes --all and --glob");
	if (request->all || request->pattern)
		return *names ? usage_error(verb, "unexpected argument '%s'", *names) : EXIT_OK;
	if (request->dry)
		return usage_error(verb, "--dry-run needs --all or --glob");
	if (*names)
		return EXIT_OK;
	return request->ids ? usage_error(verb, "--id needs an ID") :
			      usage_error(verb, "needs a NAME, --all or --glob");
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { 0 };
	struct tshare_ctx *ctx;
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	status = check(verb, &request, argv + optind);
	if (status)
		return status;
	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	if (request.all || request.pattern)
		status = unlink_matching(ctx, &request);
	else if (request.ids)
		status = unlink_ids(ctx, argv + optind);
	else
		status = unlink_names(ctx, argv + optind);
	tshare_ctx_unref(ctx);
	return status;
}

const struct verb verb_unlink = {
	.name = "unlink",
	.arguments = "NAME... | --all | --glob PATTERN | --id ID...",
	.summary = "remove names; the memory stays until its last user closes it",
	.help = "  -a, --all              remove the names of all of your regions\n"
		"  -g, --glob PATTERN     remove those that match, such as 'frames-*'\n"
		"  -i, --id               remove those of the regions with these ids\n"
		"  -n, --dry-run          only print what --all or --glob would remove\n",
	.options = options,
	.take = take,
	.run = run,
};
