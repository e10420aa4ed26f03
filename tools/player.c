// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "player.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opening */

static bool open_file(struct player_file *file, const char *folder, const char *name)
{
	if (asprintf(&file->path, "%s/%s" RECORDING_SUFFIX, folder, name) < 0) {
		file->path = NULL;
		failure("out of memory");
		return false;
	}
	file->file.path = file->path;
	file->file.fd = open(file->path, O_RDONLY | O_CLOEXEC);
	return file->file.fd >= 0 || npy_file_fail(&file->file, strerror(errno));
}

/* The first rows are read; there may be one more, if the recording was killed. */
static bool check_rows(struct player_file *file, uint64_t count)
{
	off_t place = lseek(file->file.fd, 0, SEEK_CUR);
	struct stat st;
	uint64_t size;

	if (place < 0 || fstat(file->file.fd, &st))
		return npy_file_fail(&file->file, strerror(errno));
	file->start = place;
	if (__builtin_mul_overflow(count, file->row, &size) ||
	    (uint64_t)st.st_size - file->start < size)
		return npy_file_fail(&file->file, "the file is truncated");
	return true;
}

static bool open_frames(struct player *player, const char *folder)
{
	struct player_file *file = &player->frames;
	size_t length;
	char *dict;
	bool parsed;

	if (!open_file(file, folder, RECORDING_FRAMES))
		return false;
	dict = npy_file_read_dict(&file->file, &length);
	if (!dict)
		return false;
	dict[length] = '\0';
	parsed = recording_parse(dict, &player->recording);
	free(dict);
	if (!parsed)
		return npy_file_fail(&file->file,
				     "is not of a recording by 'tshare stream record'");
	if (!player->recording.count)
		return npy_file_fail(&file->file, "has no frames");
	file->row = (RECORDING_SHAPES + player->recording.dims) * sizeof(uint64_t);
	player->words = malloc(file->row);
	return player->words ? check_rows(file, player->recording.count) :
			       npy_file_fail(&file->file, "out of memory");
}

static bool open_field(struct player *player, size_t index, const char *folder)
{
	struct player_file *field = &player->fields[index];
	const struct npy *npy = &field->file.npy;
	const struct recording *recording = &player->recording;
	struct npy_file row;
	size_t bytes;

	field->field = recording_decode(recording->files[index]);
	if (!field->field)
		return npy_file_fail(&player->frames.file, "has an invalid name of a field");
	if (!open_file(field, folder, recording->files[index]) ||
	    !npy_file_read_header(&field->file))
		return false;
	if (npy->fortran_order)
		return npy_file_fail(&field->file, "is in Fortran's order");
	if (npy->ndim != recording->ndims[index] + 1)
		return npy_file_fail(&field->file, "has other dimensions than frames.npy says");
	if ((uint64_t)npy->shape[0] < recording->count)
		return npy_file_fail(&field->file, "has fewer frames than frames.npy");
	row = field->file;
	row.npy.shape[0] = 1;
	if (!npy_file_count(&row, &bytes))
		return false;
	field->row = bytes;
	return check_rows(field, recording->count);
}

static bool open_fields(struct player *player, const char *folder)
{
	size_t count = player->recording.field_count, i;

	player->fields = calloc(count, sizeof(*player->fields));
	if (!player->fields)
		return npy_file_fail(&player->frames.file, "out of memory");
	for (i = 0; i < count; i++)
		player->fields[i].file.fd = -1;
	for (i = 0; i < count; i++)
		if (!open_field(player, i, folder))
			return false;
	return true;
}

int player_open(struct player *player, const char *folder)
{
	*player = (struct player){ .frames.file.fd = -1 };
	if (open_frames(player, folder) && open_fields(player, folder))
		return EXIT_OK;
	player_close(player);
	return EXIT_FAILED;
}

static void close_file(struct player_file *file)
{
	if (file->file.fd >= 0)
		close(file->file.fd);
	free(file->path);
	free(file->field);
}

void player_close(struct player *player)
{
	size_t i;

	for (i = 0; player->fields && i < player->recording.field_count; i++)
		close_file(&player->fields[i]);
	free(player->fields);
	close_file(&player->frames);
	free(player->words);
	recording_release(&player->recording);
}

int player_create(const struct player *player, struct tshare_ctx *ctx, const char *name,
		  const struct tshare_stream_options *options, struct tshare_stream **stream)
{
	struct tshare_spec specs[TSHARE_STREAM_FIELDS];
	const struct player_file *field;
	size_t i;

	for (i = 0; i < player->recording.field_count; i++) {
		field = &player->fields[i];
		specs[i] = (struct tshare_spec){
			.size = sizeof(*specs),
			.name = field->field,
			.dtype = field->file.npy.dtype,
			.ndim = field->file.npy.ndim - 1,
			.shape = field->file.npy.shape + 1,
		};
	}
	return tshare_stream_create(ctx, name, specs, player->recording.field_count, options,
				    stream);
}

/* Frames */

static bool read_row(const struct player_file *file, uint64_t index, void *to)
{
	off_t at = (off_t)(file->start + index * file->row);

	if (lseek(file->file.fd, at, SEEK_SET) != at)
		return npy_file_fail(&file->file, strerror(errno));
	return npy_file_read(&file->file, to, file->row);
}

int player_time(struct player *player, uint64_t index, int64_t *published_ns)
{
	if (!read_row(&player->frames, index, player->words))
		return EXIT_FAILED;
	*published_ns = (int64_t)player->words[RECORDING_PUBLISHED];
	return EXIT_OK;
}

/* Fills a whole slot, and then says how much of it is in use. */
static int fill_field(const struct player_file *field, uint64_t index, const int64_t *shape,
		      struct tshare_frame *frame, size_t place)
{
	struct tshare_tensor *tensor;
	bool done;
	int err;

	err = tshare_frame_get_tensor(frame, place, &tensor);
	if (err)
		return failure_of_library(err);
	done = read_row(field, index, tshare_tensor_get_data(tensor));
	tshare_tensor_unref(tensor);
	if (!done)
		return EXIT_FAILED;
	err = tshare_frame_set_shape(frame, place, shape);
	if (err)
		return failure("%s: frame %" PRIu64 ": %s", field->path, index, tshare_error_get());
	return EXIT_OK;
}

int player_fill(struct player *player, uint64_t index, struct tshare_frame *frame)
{
	const int64_t *shape = (const int64_t *)player->words + RECORDING_SHAPES;
	int status = EXIT_OK;
	size_t i;

	for (i = 0; !status && i < player->recording.field_count; i++) {
		status = fill_field(&player->fields[i], index, shape, frame, i);
		shape += player->recording.ndims[i];
	}
	return status;
}

int player_publish(const struct player *player, struct tshare_frame *frame, int64_t now)
{
	const uint64_t *words = player->words;
	struct tshare_frame_info info = {
		.size = sizeof(info),
		.sequence = words[RECORDING_SEQUENCE],
		.flags = words[RECORDING_FLAGS],
	};
	int err;

	/* A recording may have any times. */
	if (words[RECORDING_CAPTURED])
		info.captured_ns = (int64_t)((uint64_t)now - (words[RECORDING_PUBLISHED] -
							      words[RECORDING_CAPTURED]));
	err = tshare_frame_set_info(frame, &info);
	if (!err)
		err = tshare_frame_publish(frame);
	return err ? failure_of_library(err) : EXIT_OK;
}
