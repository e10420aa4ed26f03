// SPDX-License-Identifier: MIT
/* tshare info: which backends are usable, with their limits or the reason why not; and CUDA. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "json.h"
#include "kernel.h"
#include "module.h"
#include "report.h"
#include "table.h"

#define DEVICE "/dev/tshare"

static const char *const backends[] = { "kmod", "shm" };

#define N_BACKENDS (sizeof(backends) / sizeof(backends[0]))

struct backend_report {
	const char *name;
	bool usable;
	bool used;	  /* the backend that tshare_ctx_new() takes */
	char reason[256]; /* why it isn't usable */
	struct tshare_limits limits;
};

struct module_report {
	const char *state;
	bool loaded;
	char version[32]; /* of the loaded module */
	char srcversion[32];
	struct module_file file;
	bool wants_signature;
};

struct cuda_report {
	bool usable;
	char reason[256];
	struct tshare_cuda_driver driver;
};

struct report {
	struct utsname kernel;
	struct module_report module;
	struct stat device;
	bool has_device;
	char error[256]; /* why no backend is used */
	struct backend_report backends[N_BACKENDS];
	struct cuda_report cuda;
};

static void examine_module(struct module_report *report)
{
	report->state = module_state();
	report->loaded = kernel_read_module("version", report->version, sizeof(report->version));
	kernel_read_module("srcversion", report->srcversion, sizeof(report->srcversion));
	module_examine_file(&report->file);
	report->wants_signature = kernel_wants_signatures();
}

/* Whether the installed module is the loaded one. */
static bool is_current(const struct module_report *report)
{
	return !strcmp(report->version, report->file.version) &&
	       !strcmp(report->srcversion, report->file.srcversion);
}

static void examine_backend(struct backend_report *report, const char *name, const char *used)
{
	struct tshare_ctx_options options = { .size = sizeof(options), .backend = name };
	struct tshare_ctx *ctx;

	report->name = name;
	report->limits.size = sizeof(report->limits);
	report->used = used && !strcmp(used, name);
	if (!tshare_ctx_new(&options, &ctx)) {
		report->usable = !tshare_ctx_get_limits(ctx, &report->limits);
		tshare_ctx_unref(ctx);
	}
	if (!report->usable)
		snprintf(report->reason, sizeof(report->reason), "%s", tshare_error_get());
}

static void examine_cuda(struct cuda_report *report)
{
	report->driver.size = sizeof(report->driver);
	report->usable = !tshare_cuda_get_driver(&report->driver);
	if (!report->usable)
		snprintf(report->reason, sizeof(report->reason), "%s", tshare_error_get());
}

static void examine(struct report *report)
{
	const char *used = NULL;
	struct tshare_ctx *ctx;
	size_t i;

	memset(report, 0, sizeof(*report));
	uname(&report->kernel);
	examine_module(&report->module);
	report->has_device = !stat(DEVICE, &report->device);
	if (!tshare_ctx_new(NULL, &ctx)) {
		used = tshare_ctx_get_backend(ctx);
		tshare_ctx_unref(ctx);
	} else {
		snprintf(report->error, sizeof(report->error), "%s", tshare_error_get());
	}
	for (i = 0; i < N_BACKENDS; i++)
		examine_backend(&report->backends[i], backends[i], used);
	examine_cuda(&report->cuda);
}

static void backend_json(const struct backend_report *report)
{
	const struct tshare_limits *limits = &report->limits;

	json_open(report->name, '{');
	json_bool("usable", report->usable);
	json_bool("used", report->used);
	if (report->usable) {
		json_uint("abi_version", limits->abi_version);
		json_uint("page_size", limits->page_size);
		json_uint("huge_page_size", limits->huge_page_size);
		json_uint("bytes_limit", limits->bytes_limit);
		json_uint("bytes_used", limits->bytes_used);
		json_uint("region_bytes_max", limits->region_bytes_max);
		json_bool("contiguous", limits->contiguous);
		json_bool("dmabuf", limits->dmabuf);
	} else {
		json_string("reason", report->reason);
	}
	json_close('}');
}

static void module_json(const struct module_report *report)
{
	const struct module_file *file = &report->file;

	json_string("module", report->state);
	if (report->loaded)
		json_string("module_version", report->version);
	else
		json_null("module_version");
	if (file->exists) {
		json_open("module_installed", '{');
		json_bool("damaged", file->is_damaged);
		json_string("version", file->version);
		json_bool("signed", file->is_signed);
		json_string("signer", file->signer);
		if (report->loaded)
			json_bool("loaded", is_current(report));
		else
			json_null("loaded");
		json_close('}');
	} else {
		json_null("module_installed");
	}
	json_bool("module_signature_required", report->wants_signature);
}

static void cuda_json(const struct cuda_report *report)
{
	json_open("cuda", '{');
	json_bool("usable", report->usable);
	if (report->usable) {
		json_int("driver_version", report->driver.version);
		json_int("device_count", report->driver.device_count);
	} else {
		json_string("reason", report->reason);
	}
	json_close('}');
}

static void print_json(const struct report *report)
{
	char mode[8];
	size_t i;

	json_open(NULL, '{');
	json_string("version", tshare_version());
	json_string("kernel", report->kernel.release);
	module_json(&report->module);
	if (report->has_device) {
		snprintf(mode, sizeof(mode), "%04o", report->device.st_mode & 07777);
		json_open("device", '{');
		json_string("path", DEVICE);
		json_string("mode", mode);
		json_uint("uid", report->device.st_uid);
		json_uint("gid", report->device.st_gid);
		json_close('}');
	} else {
		json_null("device");
	}
	json_open("backends", '{');
	for (i = 0; i < N_BACKENDS; i++)
		backend_json(&report->backends[i]);
	json_close('}');
	cuda_json(&report->cuda);
	json_close('}');
}

static void add_bytes(struct table *facts, const char *name, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		facts_add(facts, name, "none");
	else
		facts_add_bytes(facts, name, bytes, false);
}

static void add_signature(struct table *facts, const struct module_report *report)
{
	const struct module_file *file = &report->file;
	bool refused = report->wants_signature && !report->loaded;

	if (!file->is_signed)
		facts_add(facts, "  signed", "no%s",
			  refused ? "; the kernel accepts only signed modules: " MODULE_SIGN : "");
	else
		facts_add(facts, "  signed", "%s%s%s", file->signer[0] ? "by " : "yes",
			  file->signer,
			  refused ? "; if the kernel does not accept that key, run " MODULE_ENROL :
				    "");
}

#define REPLACE "; to use it, run 'tshare unload' and 'tshare load' as root, or restart the machine"

/* After an upgrade the kernel keeps the old module until it is reloaded. */
static const char *compare_installed(const struct module_report *report)
{
	if (!report->loaded || is_current(report))
		return "";
	return strcmp(report->version, report->file.version) ? REPLACE : ", another build" REPLACE;
}

static void add_module(struct table *facts, const struct module_report *report)
{
	facts_add(facts, "module", "%s", report->state);
	if (report->loaded)
		facts_add(facts, "  version", "%s", report->version);
	if (report->file.is_damaged) {
		facts_add(facts, "  installed",
			  "its file is cut off or damaged; " MODULE_REINSTALL);
	} else if (report->file.exists) {
		facts_add(facts, "  installed", "%s%s", report->file.version,
			  compare_installed(report));
		add_signature(facts, report);
	}
}

static void add_backend(struct table *facts, const struct backend_report *report)
{
	const struct tshare_limits *limits = &report->limits;

	if (!report->usable) {
		facts_add(facts, report->name, "not usable: %s", report->reason);
		return;
	}
	facts_add(facts, report->name, "%s", report->used ? "used" : "usable, but not used");
	if (limits->abi_version)
		facts_add(facts, "  ABI version", "%" PRIu32, limits->abi_version);
	facts_add(facts, "  pages", "%" PRIu32 " bytes, up to %" PRIu32, limits->page_size,
		  limits->huge_page_size);
	add_bytes(facts, "  limit", limits->bytes_limit);
	add_bytes(facts, "  in use", limits->bytes_used);
	add_bytes(facts, "  largest region", limits->region_bytes_max);
	facts_add(facts, "  contiguous", "%s", limits->contiguous ? "yes" : "no");
	facts_add(facts, "  dma-buf", "%s", limits->dmabuf ? "yes" : "no");
}

/* The library's reasons may begin with "CUDA: ", the fact's name. */
static void add_cuda(struct table *facts, const struct cuda_report *report)
{
	const struct tshare_cuda_driver *driver = &report->driver;

	if (report->usable)
		facts_add(facts, "CUDA", "usable: driver for CUDA %d.%d, devices: %d",
			  driver->version / 1000, driver->version % 1000 / 10,
			  driver->device_count);
	else
		facts_add(facts, "CUDA", "not usable: %s",
			  report->reason + (strncmp(report->reason, "CUDA: ", 6) ? 0 : 6));
}

static int print_text(const struct report *report)
{
	char user[REPORT_USER_LEN], group[REPORT_USER_LEN];
	struct table facts;
	size_t i;

	facts_init(&facts);
	facts_add(&facts, "tshare", "%s", tshare_version());
	facts_add(&facts, "kernel", "%s", report->kernel.release);
	add_module(&facts, &report->module);
	if (report->has_device) {
		report_user(report->device.st_uid, user);
		report_group(report->device.st_gid, group);
		facts_add(&facts, "device", DEVICE ", owner %s, group %s, mode %04o", user, group,
			  report->device.st_mode & 07777);
	} else {
		facts_add(&facts, "device", DEVICE " does not exist");
	}
	for (i = 0; i < N_BACKENDS; i++)
		add_backend(&facts, &report->backends[i]);
	add_cuda(&facts, &report->cuda);
	return table_print(&facts);
}

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *json)
{
	(void)verb;
	(void)option;
	*(bool *)json = true;
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	int status = EXIT_OK;
	struct report report;
	bool json = false;

	if (!parse_options(verb, argc, argv, &json, &status))
		return status;
	if (optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	examine(&report);
	if (json)
		print_json(&report);
	else
		status = print_text(&report);
	return report.error[0] ? failure("%s", report.error) : status;
}

const struct verb verb_info = {
	.name = "info",
	.arguments = "[--json]",
	.summary = "show the module, the backends with their limits, and CUDA",
	.help = REPORTING_HELP("object"),
	.options = options,
	.take = take,
	.run = run,
};
