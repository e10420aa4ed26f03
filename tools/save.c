// SPDX-License-Identifier: MIT
/* tshare save: writes a tensor to a .npy file. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "npy.h"

struct request {
	const char *text; /* NAME or NAME:TENSOR */
	const char *path;
};

/* A region's name can have a colon, too: tries each. */
static int open_region(struct tshare_ctx *ctx, const char *text, struct tshare_region **region)
{
	const char *colon = text;
	char *name;
	int err;

	err = open_readonly(ctx, text, region);
	while (err && (colon = strchr(colon, ':'))) {
		name = strndup(text, colon++ - text);
		if (!name)
			return -ENOMEM;
		err = open_readonly(ctx, name, region);
		free(name);
	}
	return err;
}

/* Returns NULL after printing the error. */
static struct tshare_tensor *find_tensor(struct tshare_region *region, const char *name)
{
	size_t count = tshare_region_get_tensor_count(region);
	struct tshare_tensor *tensor;
	int err;

	if (!name && count != 1) {
		failure("'%s' has %zu tensors: name one, %s:TENSOR", tshare_region_get_name(region),
			count, tshare_region_get_name(region));
		return NULL;
	}
	err = name ? tshare_region_find_tensor(region, name, &tensor) :
		     tshare_region_get_tensor(region, 0, &tensor);
	if (!err)
		return tensor;
	failure_of_library(err);
	return NULL;
}

static bool write_all(int fd, const char *data, size_t size)
{
	ssize_t done;

	for (; size; data += done, size -= done) {
		done = write(fd, data, size);
		if (done < 0 && errno != EINTR)
			return false;
		if (done < 0)
			done = 0;
	}
	return true;
}

/* Elements with gaps are copied before they are written. */
static bool write_elements(int fd, const struct tshare_tensor *tensor)
{
	size_t size = tshare_tensor_get_nbytes(tensor);
	char *copy;
	bool done;

	if (tshare_tensor_is_contiguous(tensor))
		return write_all(fd, tshare_tensor_get_data(tensor), size);
	copy = malloc(size);
	if (!copy)
		return false;
	errno = EINVAL;
	done = !tshare_tensor_read(tensor, copy) && write_all(fd, copy, size);
	free(copy);
	return done;
}

/* The content of a .npy file. */
struct content {
	char header[NPY_HEADER_MAX];
	size_t length; /* of the header */
	const struct tshare_tensor *tensor;
};

static bool write_npy(int fd, const struct content *content)
{
	return write_all(fd, content->header, content->length) &&
	       write_elements(fd, content->tensor);
}

/* Closes @fd. Returns 0, or the errno of the failure, which is set if not @done. */
static int close_written(int fd, bool done)
{
	int err = done ? 0 : errno;

	if (close(fd) && done)
		err = errno;
	return err;
}

/* A device or a pipe, which is no file to replace. */
static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

static int write_special(const char *path, const struct content *content)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? errno : close_written(fd, write_npy(fd, content));
}

/* Permission bits of the file that is replaced, or of a new one. */
static mode_t mode_of(const char *path)
{
	struct stat st;
	mode_t mask;

	if (!stat(path, &st))
		return st.st_mode & 0777;
	mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

/* A new file beside the one that it replaces. */
struct draft {
	int folder;	    /* which has both */
	const char *target; /* the file that is replaced */
	char name[sizeof("tshare-save.") + 16];
};

/* The file that an ending signal removes, or NULL. */
static const struct draft *volatile pending;

static void remove_draft(int number)
{
	if (pending)
		unlinkat(pending->folder, pending->name, 0);
	raise(number);
}

/* Signals ignored when this process began stay ignored, as by nohup(1). */
static void remove_draft_at_signals(void)
{
	static const int ending[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ };
	struct sigaction action;
	size_t i;

	for (i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		if (sigaction(ending[i], NULL, &action) || action.sa_handler == SIG_IGN)
			continue;
		action = (struct sigaction){ .sa_handler = remove_draft, .sa_flags = SA_RESETHAND };
		sigaction(ending[i], &action, NULL);
	}
}

/* By descriptor, so that no path is longer than the given one. */
static int open_folder(const char *path, const char *name)
{
	char *parent = name == path ? strdup(".") : strndup(path, name - path);
	int fd = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	free(parent);
	return fd;
}

/* The name doesn't contain the target's: a name longer than that may be too long. */
static int create_draft(struct draft *draft)
{
	uint64_t random;
	int fd;

	do {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -1;
		snprintf(draft->name, sizeof(draft->name), "tshare-save.%016" PRIx64, random);
		fd = openat(draft->folder, draft->name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EEXIST);
	return fd;
}

static int replace(const struct draft *draft, const char *path, const struct content *content,
		   int fd)
{
	int err;

	pending = draft;
	remove_draft_at_signals();
	err = close_written(fd, write_npy(fd, content) && !fchmod(fd, mode_of(path)));
	if (!err && renameat(draft->folder, draft->name, draft->folder, draft->target))
		err = errno;
	if (err)
		unlinkat(draft->folder, draft->name, 0);
	pending = NULL;
	return err;
}

/* Writes beside the file and renames, so that the file is either complete or as before. */
static int write_beside(const char *path, const struct content *content)
{
	const char *slash = strrchr(path, '/');
	struct draft draft = { .target = slash ? slash + 1 : path };
	int fd, err;

	draft.folder = open_folder(path, draft.target);
	if (draft.folder < 0)
		return errno;
	fd = create_draft(&draft);
	err = fd < 0 ? errno : replace(&draft, path, content, fd);
	close(draft.folder);
	return err;
}

/* A symbolic link stays, and leads to the new file. */
static int replace_target(const char *path, const struct content *content)
{
	char *target = realpath(path, NULL);
	int err = errno;
	struct stat st;

	/* A link that leads nowhere stays, too; this command doesn't create its target. */
	if (target || (lstat(path, &st) ? errno == ENOENT : !S_ISLNK(st.st_mode)))
		err = write_beside(target ?: path, content);
	free(target);
	return err;
}

static int write_file(const char *path, const struct content *content)
{
	int err;

	if (is_special(path))
		err = write_special(path, content);
	else
		err = replace_target(path, content);
	return err ? failure("%s: %s", path, strerror(err)) : EXIT_OK;
}

static int save_tensor(const struct tshare_tensor *tensor, const char *path)
{
	struct npy npy = {
		.dtype = tshare_tensor_get_dtype(tensor),
		.ndim = tshare_tensor_get_ndim(tensor),
	};
	struct content content = { .tensor = tensor };
	char dtype[TSHARE_DTYPE_NAME_LEN] = "?";

	memcpy(npy.shape, tshare_tensor_get_shape(tensor), npy.ndim * sizeof(*npy.shape));
	content.length = npy_format(content.header, &npy);
	if (!content.length) {
		tshare_dtype_get_name(npy.dtype, dtype);
		return failure("the tensor is of type %s, which .npy files don't have", dtype);
	}
	if (strcmp(path, "-"))
		return write_file(path, &content);
	if (!write_npy(STDOUT_FILENO, &content))
		return failure("standard output: %s", strerror(errno));
	return EXIT_OK;
}

static int save(struct tshare_region *region, void *data)
{
	const struct request *request = data;
	const char *behind = request->text + strlen(tshare_region_get_name(region));
	struct tshare_tensor *tensor;
	int status;

	tensor = find_tensor(region, *behind == ':' ? behind + 1 : NULL);
	if (!tensor)
		return EXIT_FAILED;
	status = save_tensor(tensor, request->path);
	tshare_tensor_unref(tensor);
	return status;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request;
	int status;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	if (argc - optind != 2)
		return usage_error(verb, "needs NAME and FILE");
	request = (struct request){ .text = argv[optind], .path = argv[optind + 1] };
	return use_region(request.text, open_region, save, &request);
}

const struct verb verb_save = {
	.name = "save",
	.arguments = "NAME[:TENSOR] FILE",
	.summary = "write a tensor to a .npy file, as NumPy and 'create --from' read",
	.help = "      FILE               the file, which is replaced; or - for standard output\n",
	.run = run,
};
