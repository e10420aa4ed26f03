/* SPDX-License-Identifier: MIT */
/*
 * A recording of a stream: a folder with a .npy file for each field, whose first dimension is the
 * frame, and frames.npy, a structured array of what is known of each frame.
 */
#ifndef TSHARE_CLI_RECORDING_H
#define TSHARE_CLI_RECORDING_H

#include "npy.h"
#include "stream-facts.h"

#define RECORDING_SUFFIX ".npy"
#define RECORDING_FRAMES "frames"

/* A row of frames.npy: these, and then the shapes in use of all fields. */
enum {
	RECORDING_NUMBER,
	RECORDING_CAPTURED,
	RECORDING_PUBLISHED,
	RECORDING_SEQUENCE,
	RECORDING_FLAGS,
	RECORDING_SHAPES
};

/*
 * The file's name, without the suffix, of a field; NULL if memory is short. %XX replaces a slash,
 * a percent sign, a quotation mark, a backslash, all that isn't printable ASCII, and the f of
 * "frames".
 */
char *recording_encode(const char *field);

/* The type of frames.npy, as its dict has it; NULL if memory is short. @files: of the fields */
char *recording_describe(const struct stream_field *fields, char *const *files, size_t count);

/* The reverse of recording_encode(); NULL if that makes no such name, or memory is short. */
char *recording_decode(const char *file);

/* Contents of the dict of frames.npy. */
struct recording {
	uint64_t count; /* of frames */
	size_t field_count;
	char *files[TSHARE_STREAM_FIELDS]; /* names without the suffix */
	int32_t ndims[TSHARE_STREAM_FIELDS];
	size_t dims; /* of all fields */
};

/* Parses a dict that ends with NUL, as recording_describe() and NumPy write it. */
bool recording_parse(const char *dict, struct recording *recording);
void recording_release(struct recording *recording);

#endif /* TSHARE_CLI_RECORDING_H */
