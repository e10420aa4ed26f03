/* SPDX-License-Identifier: MIT */
/* Writes a recording, whose files are valid after each call: see recording.h. */
#ifndef TSHARE_CLI_RECORDER_H
#define TSHARE_CLI_RECORDER_H

#include "stream-facts.h"

struct recorder_file;

struct recorder {
	const char *path; /* of the folder */
	int folder;
	bool made_folder;
	const struct stream_facts *facts;
	struct recorder_file *files; /* of the fields, and frames.npy behind them */
	uint64_t count;		     /* of frames */
	uint64_t bytes;
};

/* Creates the folder, if it is missing, and new files in it. Returns an exit status. */
int recorder_open(struct recorder *recorder, const char *path, const struct stream_facts *facts);

/*
 * Adds a frame, or nothing of it. Returns an exit status.
 * @copies: the frame may be overwritten meanwhile. Then it isn't added, and @torn is set
 */
int recorder_add(struct recorder *recorder, struct tshare_frame *frame, bool copies, bool *torn);

/* Closes the files, and removes a recording without frames. Returns an exit status. */
int recorder_close(struct recorder *recorder);

#endif /* TSHARE_CLI_RECORDER_H */
