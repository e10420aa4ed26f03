// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording.h"

/*
 * The rows are written first, and then the number of rows in the header, which is as long for any
 * number: a reader finds a whole file at any time, also if this process is killed.
 */
struct recorder_file {
	int fd; /* -1 for none */
	char *name;
	char *descr;
	struct npy npy;
	char *header;
	size_t header_length;
	uint64_t row; /* bytes */
	char *buffer; /* of a row; NULL until it is needed */
};

static int fail(const struct recorder *recorder, const char *file)
{
	return failure("%s/%s: %s", recorder->path, file, strerror(errno));
}

static bool write_at(int fd, const char *data, size_t size, off_t offset)
{
	ssize_t done;

	for (; size; data += done, size -= done, offset += done) {
		done = pwrite(fd, data, size, offset);
		if (done < 0 && errno != EINTR)
			return false;
		if (done < 0)
			done = 0;
	}
	return true;
}

static bool write_rows(struct recorder_file *file, uint64_t count)
{
	file->npy.shape[0] = (int64_t)count;
	file->header_length = npy_format_growing(file->header, file->descr, &file->npy);
	return write_at(file->fd, file->header, file->header_length, 0);
}

/* Opening */

static int open_folder(struct recorder *recorder)
{
	recorder->made_folder = !mkdir(recorder->path, 0777);
	if (!recorder->made_folder && errno != EEXIST)
		return failure("%s: %s", recorder->path, strerror(errno));
	recorder->folder = open(recorder->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (recorder->folder < 0)
		return failure("%s: %s", recorder->path, strerror(errno));
	return EXIT_OK;
}

/* Takes @descr, which is NULL if memory was short, as @encoded may be. */
static int prepare_file(struct recorder_file *file, const char *encoded, char *descr)
{
	file->descr = descr;
	if (encoded && asprintf(&file->name, "%s" RECORDING_SUFFIX, encoded) < 0)
		file->name = NULL;
	if (descr)
		file->header = malloc(NPY_HEADER_MAX + strlen(descr));
	if (file->name && file->header)
		return EXIT_OK;
	failure("out of memory");
	return EXIT_FAILED;
}

static int prepare_field(struct recorder_file *file, const struct stream_field *field,
			 const char *encoded)
{
	char descr[NPY_DESCR_LEN], dtype[TSHARE_DTYPE_NAME_LEN] = "?";

	if (!npy_describe(field->dtype, descr)) {
		tshare_dtype_get_name(field->dtype, dtype);
		return failure("field '%s' is of type %s, which .npy files don't have", field->name,
			       dtype);
	}
	file->npy.ndim = field->ndim + 1;
	memcpy(file->npy.shape + 1, field->shape, field->ndim * sizeof(*field->shape));
	file->row = stream_field_bytes(field);
	return prepare_file(file, encoded, strdup(descr));
}

static int prepare_frames(struct recorder *recorder, char *const *encoded)
{
	const size_t fields = recorder->facts->info.field_count;
	struct recorder_file *file = &recorder->files[fields];
	size_t words = RECORDING_SHAPES, i;

	for (i = 0; i < fields; i++)
		words += recorder->facts->fields[i].ndim;
	file->npy.ndim = 1;
	file->row = words * sizeof(uint64_t);
	return prepare_file(file, RECORDING_FRAMES,
			    recording_describe(recorder->facts->fields, encoded, fields));
}

static int prepare_files(struct recorder *recorder)
{
	const struct stream_field *fields = recorder->facts->fields;
	const size_t count = recorder->facts->info.field_count;
	char *encoded[TSHARE_STREAM_FIELDS] = { NULL };
	int status = EXIT_OK;
	size_t i;

	for (i = 0; !status && i < count; i++) {
		encoded[i] = recording_encode(fields[i].name);
		status = prepare_field(&recorder->files[i], &fields[i], encoded[i]);
	}
	if (!status)
		status = prepare_frames(recorder, encoded);
	for (i = 0; i < count; i++)
		free(encoded[i]);
	return status;
}

static int create_files(struct recorder *recorder)
{
	struct recorder_file *file;
	size_t i;

	for (i = 0; i <= recorder->facts->info.field_count; i++) {
		file = &recorder->files[i];
		file->fd = openat(recorder->folder, file->name,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (file->fd < 0 || !write_rows(file, 0))
			return fail(recorder, file->name);
	}
	return EXIT_OK;
}

int recorder_open(struct recorder *recorder, const char *path, const struct stream_facts *facts)
{
	const size_t count = facts->info.field_count + 1;
	size_t i;
	int status;

	*recorder = (struct recorder){ .path = path, .folder = -1, .facts = facts };
	recorder->files = calloc(count, sizeof(*recorder->files));
	if (!recorder->files)
		return failure("out of memory");
	for (i = 0; i < count; i++)
		recorder->files[i].fd = -1;
	status = prepare_files(recorder);
	if (!status)
		status = open_folder(recorder);
	if (!status)
		status = create_files(recorder);
	if (status)
		recorder_close(recorder);
	return status;
}

/* Frames */

/* Copies elements without gaps to their places in the largest shape. */
static void place_elements(char *to, const char *from, const struct tshare_tensor *tensor,
			   const struct stream_field *field)
{
	const int64_t *shape = tshare_tensor_get_shape(tensor);
	int64_t index[TSHARE_NDIM_LIMIT] = { 0 };
	const int32_t last = field->ndim - 1;
	size_t itemsize = tshare_dtype_get_itemsize(field->dtype), at, length;
	size_t left = tshare_tensor_get_nbytes(tensor);
	int32_t d;

	length = shape[last] * itemsize;
	while (left) {
		for (at = 0, d = 0; d <= last; d++)
			at = at * field->shape[d] + index[d];
		memcpy(to + at * itemsize, from, length);
		from += length;
		left -= length;
		for (d = last - 1; d >= 0 && ++index[d] == shape[d]; d--)
			index[d] = 0;
	}
}

static bool is_largest(const struct tshare_tensor *tensor, const struct stream_field *field)
{
	return !field->ndim || !memcmp(tshare_tensor_get_shape(tensor), field->shape,
				       field->ndim * sizeof(*field->shape));
}

/* Copies the elements into the file's buffer, with zeros beside the shape in use. */
static int fill_buffer(struct recorder_file *file, const struct tshare_tensor *tensor,
		       const struct stream_field *field)
{
	char *elements;
	int err;

	if (!file->buffer)
		file->buffer = malloc(file->row + 1);
	if (!file->buffer)
		return failure("out of memory");
	if (is_largest(tensor, field)) {
		err = tshare_tensor_read(tensor, file->buffer);
		return err ? failure_of_library(err) : EXIT_OK;
	}
	elements = malloc(file->row + 1);
	if (!elements)
		return failure("out of memory");
	err = tshare_tensor_read(tensor, elements);
	memset(file->buffer, 0, file->row);
	if (!err)
		place_elements(file->buffer, elements, tensor, field);
	free(elements);
	return err ? failure_of_library(err) : EXIT_OK;
}

/* Where a row's bytes are: in the stream's memory, if they are so there and stay. */
static int find_row(struct recorder_file *file, const struct tshare_tensor *tensor,
		    const struct stream_field *field, bool copies, const char **row)
{
	int status = EXIT_OK;

	*row = tshare_tensor_get_data(tensor);
	if (copies || !is_largest(tensor, field) || !tshare_tensor_is_contiguous(tensor)) {
		status = fill_buffer(file, tensor, field);
		*row = file->buffer;
	}
	return status;
}

static bool write_row(const struct recorder *recorder, const struct recorder_file *file,
		      const char *row)
{
	return write_at(file->fd, row, file->row,
			(off_t)(file->header_length + recorder->count * file->row));
}

/* The rows that a frame adds. They point into the tensors, which stay until they are written. */
struct addition {
	struct tshare_tensor *tensors[TSHARE_STREAM_FIELDS];
	const char *rows[TSHARE_STREAM_FIELDS];
	uint64_t *words; /* of frames.npy */
};

static int read_frame(struct recorder *recorder, struct tshare_frame *frame, bool copies,
		      struct addition *addition)
{
	struct tshare_frame_info info = { .size = sizeof(info) };
	uint64_t *word = addition->words + RECORDING_SHAPES;
	const struct stream_field *field;
	int status = EXIT_OK, err;
	size_t i;

	tshare_frame_get_info(frame, &info);
	addition->words[RECORDING_NUMBER] = info.number;
	addition->words[RECORDING_CAPTURED] = (uint64_t)info.captured_ns;
	addition->words[RECORDING_PUBLISHED] = (uint64_t)info.published_ns;
	addition->words[RECORDING_SEQUENCE] = info.sequence;
	addition->words[RECORDING_FLAGS] = info.flags;
	for (i = 0; !status && i < recorder->facts->info.field_count; i++) {
		field = &recorder->facts->fields[i];
		err = tshare_frame_get_tensor(frame, i, &addition->tensors[i]);
		if (err)
			return failure_of_library(err);
		memcpy(word, tshare_tensor_get_shape(addition->tensors[i]),
		       field->ndim * sizeof(*word));
		word += field->ndim;
		status = find_row(&recorder->files[i], addition->tensors[i], field, copies,
				  &addition->rows[i]);
	}
	return status;
}

/* Takes back what was written of a frame, as far as possible: files stay valid without. */
static void undo(struct recorder *recorder)
{
	struct recorder_file *file;
	size_t i;

	for (i = 0; i <= recorder->facts->info.field_count; i++) {
		file = &recorder->files[i];
		write_rows(file, recorder->count);
		if (ftruncate(file->fd, (off_t)(file->header_length + recorder->count * file->row)))
			continue;
	}
}

/* Writes all rows before any header, and frames.npy last. */
static int write_frame(struct recorder *recorder, const struct addition *addition)
{
	const size_t fields = recorder->facts->info.field_count;
	const char *row;
	size_t i;

	for (i = 0; i <= fields; i++) {
		row = i < fields ? addition->rows[i] : (const char *)addition->words;
		if (!write_row(recorder, &recorder->files[i], row))
			return fail(recorder, recorder->files[i].name);
	}
	for (i = 0; i <= fields; i++)
		if (!write_rows(&recorder->files[i], recorder->count + 1))
			return fail(recorder, recorder->files[i].name);
	for (i = 0; i <= fields; i++)
		recorder->bytes += recorder->files[i].row;
	recorder->count++;
	return EXIT_OK;
}

int recorder_add(struct recorder *recorder, struct tshare_frame *frame, bool copies, bool *torn)
{
	const size_t fields = recorder->facts->info.field_count;
	struct addition addition = { .words = malloc(recorder->files[fields].row) };
	int status;
	size_t i;

	*torn = false;
	if (!addition.words)
		return failure("out of memory");
	status = read_frame(recorder, frame, copies, &addition);
	if (!status && copies)
		*torn = tshare_frame_check(frame);
	if (!status && !*torn) {
		status = write_frame(recorder, &addition);
		if (status)
			undo(recorder);
	}
	for (i = 0; i < fields; i++)
		tshare_tensor_unref(addition.tensors[i]);
	free(addition.words);
	return status;
}

/* Closing */

static int close_file(struct recorder *recorder, struct recorder_file *file)
{
	int status = EXIT_OK;

	if (file->name && file->fd >= 0 && !recorder->count)
		unlinkat(recorder->folder, file->name, 0);
	if (file->fd >= 0 && close(file->fd) && recorder->count)
		status = fail(recorder, file->name);
	free(file->name);
	free(file->descr);
	free(file->header);
	free(file->buffer);
	return status;
}

int recorder_close(struct recorder *recorder)
{
	int status = EXIT_OK, closed;
	size_t i;

	for (i = 0; i <= recorder->facts->info.field_count; i++) {
		closed = close_file(recorder, &recorder->files[i]);
		status = status ? status : closed;
	}
	if (recorder->folder >= 0)
		close(recorder->folder);
	if (recorder->made_folder && !recorder->count)
		rmdir(recorder->path);
	free(recorder->files);
	return status;
}
