/* SPDX-License-Identifier: MIT */
/* Reads a recording, and publishes its frames: see recording.h. */
#ifndef TSHARE_CLI_PLAYER_H
#define TSHARE_CLI_PLAYER_H

#include "npy-file.h"
#include "recording.h"

struct player_file {
	struct npy_file file;
	char *path;
	char *field;	/* its name; NULL for frames.npy */
	uint64_t start; /* of the first row in the file */
	uint64_t row;	/* bytes */
};

struct player {
	struct recording recording;
	struct player_file frames;
	struct player_file *fields;
	uint64_t *words; /* of a row of frames.npy */
};

/* Opens the files and checks them. Returns an exit status. */
int player_open(struct player *player, const char *folder);
void player_close(struct player *player);

/* As tshare_stream_create(), with the fields of the recording. */
int player_create(const struct player *player, struct tshare_ctx *ctx, const char *name,
		  const struct tshare_stream_options *options, struct tshare_stream **stream);

/* Stores when a frame was published. Returns an exit status. */
int player_time(struct player *player, uint64_t index, int64_t *published_ns);

/* Fills a loaned frame with the frame that player_time() was asked for. Returns an exit status. */
int player_fill(struct player *player, uint64_t index, struct tshare_frame *frame);

/* Publishes it, as captured as long ago as the recorded one was. Returns an exit status. */
int player_publish(const struct player *player, struct tshare_frame *frame, int64_t now);

#endif /* TSHARE_CLI_PLAYER_H */
