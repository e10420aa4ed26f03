// SPDX-License-Identifier: MIT
/* Contexts and their limits, the choice of a backend, and log functions. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <syslog.h>
#include <unistd.h>

#include "../util.h"

TEST(context_reports_its_backend)
{
	const char *forced = getenv("TSHARE_BACKEND");
	const char *backend = tshare_ctx_get_backend(ctx);

	CHECK(!strcmp(backend, "kmod") || !strcmp(backend, "shm"));
	CHECK(!forced || !strcmp(backend, forced));
}

/* Returns the host id of a new context, which is the test's until the next call. */
static const char *host_id_of_another(void)
{
	static char id[TSHARE_HOST_ID_MAX + 1];
	struct tshare_ctx *other;

	CHECK(!tshare_ctx_new(NULL, &other));
	CHECK(!tshare_ctx_get_host_id(other, id));
	tshare_ctx_unref(other);
	return id;
}

TEST(contexts_that_see_the_same_names_have_the_same_host_id)
{
	char id[TSHARE_HOST_ID_MAX + 1];

	CHECK(!tshare_ctx_get_host_id(ctx, id));
	CHECK(!strcmp(id, host_id_of_another()));
}

TEST(host_id_names_boot_and_backend)
{
	char id[TSHARE_HOST_ID_MAX + 1], boot[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	const char *rest;

	CHECK(file && fgets(boot, sizeof(boot), file));
	fclose(file);
	CHECK(!tshare_ctx_get_host_id(ctx, id));
	rest = strchr(id, '/');
	CHECK(rest && !strncmp(id, boot, rest - id) && boot[rest - id] == '\n');
	CHECK(!strncmp(rest + 1, tshare_ctx_get_backend(ctx), strlen(tshare_ctx_get_backend(ctx))));
	CHECK(strchr(rest, ':')[1]);
}

static int compare_from_another_namespace(void *data)
{
	bool kmod = !strcmp(tshare_ctx_get_backend(ctx), "kmod");
	char id[TSHARE_HOST_ID_MAX + 1];

	(void)data;
	if (unshare(CLONE_NEWIPC))
		return 77;
	/* The module goes by the namespace, shared memory by the directory. */
	if (!strcmp(host_id_of_another(), tshare_ctx_get_host_id(ctx, id) ? "" : id) == kmod)
		return 1;
	return 0;
}

TEST(host_id_is_of_the_namespace_in_which_the_context_was_opened)
{
	int status = in_child(compare_from_another_namespace, NULL);

	if (status == 77)
		SKIP("may not make namespaces");
	CHECK(!status);
}

TEST(context_rejects_an_unknown_backend)
{
	struct tshare_ctx *other;

	CHECK(ctx_new("nfs", &other) == -EINVAL);
	CHECK(error_says("options.backend: 'nfs'"));
}

/* Opens a context as if the variable had that value, and then restores it. */
static int ctx_new_with(const char *variable)
{
	char *before = strdup(getenv("TSHARE_BACKEND") ?: "");
	struct tshare_ctx *other;
	int err;

	CHECK(!(variable ? setenv("TSHARE_BACKEND", variable, 1) : unsetenv("TSHARE_BACKEND")));
	err = tshare_ctx_new(NULL, &other);
	if (!err)
		tshare_ctx_unref(other);
	CHECK(!(*before ? setenv("TSHARE_BACKEND", before, 1) : unsetenv("TSHARE_BACKEND")));
	free(before);
	return err;
}

TEST(an_empty_variable_chooses_no_backend)
{
	CHECK(!ctx_new_with(""));
}

TEST(the_variable_is_named_where_its_backend_is_unknown)
{
	CHECK(ctx_new_with("nfs") == -EINVAL);
	CHECK(error_says("TSHARE_BACKEND: 'nfs'"));
}

/* The backends before the one that is chosen have failed, which the caller didn't see. */
TEST(the_choice_of_a_backend_leaves_no_error)
{
	CHECK(!ctx_new_with(NULL));
	CHECK(!*tshare_error_get());
}

TEST(limits_are_whole_pages)
{
	struct tshare_limits limits = limits_of(ctx);

	CHECK(limits.page_size == (uint32_t)sysconf(_SC_PAGESIZE));
	CHECK(limits.huge_page_size >= limits.page_size);
	CHECK(limits.huge_page_size % limits.page_size == 0);
	CHECK(limits.region_bytes_max > 0);
	CHECK(limits.bytes_used <= limits.bytes_limit);
}

TEST(limits_differ_between_the_backends)
{
	struct tshare_limits limits = limits_of(ctx);
	bool kmod = !strcmp(tshare_ctx_get_backend(ctx), "kmod");

	CHECK(limits.contiguous == kmod);
	CHECK(limits.dmabuf == kmod);
	CHECK(!!limits.abi_version == kmod);
}

TEST(unref_takes_null_and_returns_it)
{
	CHECK(!tshare_ctx_unref(NULL));
	CHECK(!tshare_region_unref(NULL));
	CHECK(!tshare_tensor_unref(NULL));
}

static void count_messages(void *data, int priority, const char *text)
{
	int *count = data;

	(void)priority;
	if (!strchr(text, '\n'))
		(*count)++;
}

TEST(messages_go_where_they_are_sent)
{
	int count = 0;

	tshare_ctx_set_log_fn(ctx, count_messages, &count, LOG_DEBUG);
	tshare_region_unref(new_region(NULL));
	CHECK(count == 1);
}

static struct {
	struct steps steps;
	atomic_bool left;
} logging;

/* Sends a byte when it runs, and waits for one before it ends. */
static void linger(void *data, int priority, const char *text)
{
	(void)data;
	(void)priority;
	(void)text;
	send_byte(logging.steps.ends[1]);
	await_byte(logging.steps.ends[1]);
	usleep(100000);
	atomic_store(&logging.left, true);
}

static void *create_and_log(void *unused)
{
	tshare_region_unref(new_region(NULL));
	return unused;
}

static pthread_t start_lingering(void)
{
	pthread_t thread;

	atomic_store(&logging.left, false);
	CHECK(steps_open(&logging.steps));
	tshare_ctx_set_log_fn(ctx, linger, NULL, LOG_DEBUG);
	CHECK(!pthread_create(&thread, NULL, create_and_log, NULL));
	CHECK(await_byte(logging.steps.ends[0]));
	return thread;
}

TEST(no_thread_is_in_a_log_function_that_was_replaced)
{
	pthread_t thread = start_lingering();
	bool left;

	CHECK(send_byte(logging.steps.ends[0]));
	tshare_ctx_set_log_fn(ctx, NULL, NULL, 0);
	left = atomic_load(&logging.left);
	CHECK(!pthread_join(thread, NULL));
	steps_close(&logging.steps);
	CHECK(left);
}

struct replacement {
	struct tshare_ctx *other;
	struct steps done;
};

static void *replace_another_contexts(void *data)
{
	struct replacement *replacement = data;

	tshare_ctx_set_log_fn(replacement->other, NULL, NULL, 0);
	send_byte(replacement->done.ends[1]);
	return NULL;
}

TEST(a_log_function_is_replaced_while_a_thread_is_in_that_of_another_context)
{
	struct replacement replacement;
	struct pollfd replaced = { .events = POLLIN };
	pthread_t lingering, replacing;
	int ready;

	CHECK(!ctx_new(NULL, &replacement.other) && steps_open(&replacement.done));
	replaced.fd = replacement.done.ends[0];
	lingering = start_lingering();
	CHECK(!pthread_create(&replacing, NULL, replace_another_contexts, &replacement));
	ready = poll(&replaced, 1, HANG_SECONDS * 1000);
	CHECK(send_byte(logging.steps.ends[0]));
	CHECK(!pthread_join(replacing, NULL) && !pthread_join(lingering, NULL));
	tshare_ctx_set_log_fn(ctx, NULL, NULL, 0);
	steps_close(&logging.steps);
	steps_close(&replacement.done);
	tshare_ctx_unref(replacement.other);
	CHECK(ready == 1);
}

static int replace_log_fn(void *unused)
{
	(void)unused;
	alarm(HANG_SECONDS);
	tshare_ctx_set_log_fn(ctx, NULL, NULL, 0);
	return 0;
}

TEST(a_child_waits_for_no_log_function_of_its_parents)
{
	pthread_t thread = start_lingering();
	int status = in_child(replace_log_fn, NULL);

	CHECK(send_byte(logging.steps.ends[0]));
	CHECK(!pthread_join(thread, NULL));
	tshare_ctx_set_log_fn(ctx, NULL, NULL, 0);
	steps_close(&logging.steps);
	CHECK(!status);
}

static void replace_itself(void *data, int priority, const char *text)
{
	(void)priority;
	(void)text;
	*(int *)data += 1;
	tshare_ctx_set_log_fn(ctx, NULL, NULL, 0);
}

TEST(a_log_function_can_replace_itself)
{
	int count = 0;

	tshare_ctx_set_log_fn(ctx, replace_itself, &count, LOG_DEBUG);
	tshare_region_unref(new_region(NULL));
	tshare_region_unref(new_region(NULL));
	CHECK(count == 1);
}

static void keep_message(void *data, int priority, const char *text)
{
	(void)priority;
	snprintf(data, 256, "%s", text);
}

TEST(messages_cannot_control_a_terminal)
{
	char name[TSHARE_NAME_MAX + 1], message[256] = "";

	snprintf(name, sizeof(name), "%s\x1b[\x9b[\xc2\x9b[\xc3\xa4", unique("odd"));
	CHECK(tshare_ctx_unlink(ctx, name) == -ENOENT);
	CHECK(error_says("-odd?[?[??[\xc3\xa4'"));
	tshare_ctx_set_log_fn(ctx, keep_message, message, LOG_DEBUG);
	tshare_region_unref(new_region(name));
	tshare_ctx_set_log_fn(ctx, NULL, NULL, 0);
	CHECK(strstr(message, "-odd?[?[??[\xc3\xa4'"));
}

static void keep_first_message(void *data, int priority, const char *text)
{
	if (!*(char *)data)
		snprintf(data, 256, "%d %s", priority, text);
}

TEST(messages_are_logged_from_the_priority_set)
{
	char message[256] = "";

	CHECK(!tshare_ctx_set_log_fn(ctx, keep_first_message, message, LOG_INFO));
	tshare_region_unref(new_region(NULL));
	CHECK(!*message);
	CHECK(!tshare_ctx_set_log_fn(ctx, keep_first_message, message, LOG_DEBUG));
	tshare_region_unref(new_region(NULL));
	CHECK(*message);
	*message = '\0';
	CHECK(!unsetenv("TSHARE_LOG"));
	CHECK(!tshare_ctx_set_log_fn(ctx, keep_first_message, message, 0));
	tshare_region_unref(new_region(NULL));
	CHECK(!*message);
	CHECK(!setenv("TSHARE_LOG", "debug", 1));
	CHECK(!tshare_ctx_set_log_fn(ctx, keep_first_message, message, 0));
	CHECK(!unsetenv("TSHARE_LOG"));
	tshare_region_unref(new_region(NULL));
	CHECK(*message);
}

TEST(a_priority_that_syslog_does_not_have_is_rejected)
{
	struct tshare_ctx_options options = { .size = sizeof(options), .log_priority = 8 };
	struct tshare_ctx *other;

	CHECK(tshare_ctx_new(&options, &other) == -EINVAL);
	CHECK(error_says("options.log_priority: 8"));
	CHECK(tshare_ctx_set_log_fn(ctx, NULL, NULL, -1) == -EINVAL);
	CHECK(error_says("priority: -1"));
}

TEST(context_rejects_unknown_flags)
{
	struct tshare_ctx_options options = { .size = sizeof(options), .flags = 1 };
	struct tshare_ctx *other;

	CHECK(tshare_ctx_new(&options, &other) == -EINVAL);
	CHECK(error_says("options.flags"));
}

/* As a user without access to the device, if there is one. */
static int miss_the_module(void *data)
{
	struct tshare_ctx_options options = {
		.size = sizeof(options),
		.log_fn = keep_first_message,
		.log_data = data,
		.log_priority = LOG_INFO,
	};
	struct tshare_ctx *own;
	char expected[64];

	snprintf(expected, sizeof(expected), "%d kmod is not used: /dev/tshare: ",
		 access("/dev/tshare", F_OK) ? LOG_INFO : LOG_WARNING);
	if (!access("/dev/tshare", F_OK) && !become(USER_ONE))
		return 1;
	if (unsetenv("TSHARE_BACKEND") || tshare_ctx_new(&options, &own))
		return 2;
	return strncmp(data, expected, strlen(expected)) ? 3 : 0;
}

TEST(messages_about_the_choice_of_a_backend_go_to_the_log_function)
{
	char message[256] = "";

	if (!access("/dev/tshare", R_OK) && geteuid())
		SKIP("needs root, or no module");
	CHECK(!in_child(miss_the_module, message));
}

TEST(a_missing_name_is_reported_with_its_backend)
{
	char where[32];

	snprintf(where, sizeof(where), "' on %s", tshare_ctx_get_backend(ctx));
	CHECK(!exists(unique("missing")));
	CHECK(error_says(where));
	CHECK(tshare_ctx_unlink(ctx, unique("missing")) == -ENOENT);
	CHECK(error_says(where));
}

/* As a user without access to the device, with standard error in @data. */
static int open_without_permission(void *data)
{
	struct tshare_ctx *own;

	if (!become(USER_ONE) || unsetenv("TSHARE_BACKEND") || dup2(*(int *)data, 2) < 0)
		return 1;
	if (tshare_ctx_new(NULL, &own) || strcmp(tshare_ctx_get_backend(own), "shm"))
		return 2;
	tshare_ctx_unref(own);
	return tshare_ctx_new(NULL, &own);
}

TEST(a_module_that_may_not_be_used_is_warned_of_once)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), status;
	char said[512] = "";

	if (geteuid() || access("/dev/tshare", F_OK))
		SKIP("needs root, and the module");
	status = in_child(open_without_permission, &fd);
	CHECK(!status);
	CHECK(pread(fd, said, sizeof(said) - 1, 0) > 0);
	close(fd);
	CHECK(strstr(said, "kmod is not used: /dev/tshare: permission denied; join group tshare"));
	CHECK(!strchr(strchr(said, '\n') + 1, '\n'));
}

int main(void)
{
	return tap_main(open_context, close_context);
}
