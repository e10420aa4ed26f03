// SPDX-License-Identifier: MIT
/* tshare stream: has verbs of its own. */
#include "cli.h"

static const struct verb *const below[] = {
	&verb_stream_list,   &verb_stream_show, &verb_stream_hz,
	&verb_stream_record, &verb_stream_play, NULL,
};

static int run(const struct verb *verb, int argc, char **argv)
{
	const struct verb *asked;
	int status, first;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	if (optind == argc)
		return usage_error(verb, "needs a VERB");
	first = optind;
	asked = find_verb_below(verb, argv[first]);
	if (!asked)
		return EXIT_USAGE;
	message_verb(asked);
	optind = 0; /* getopt_long() begins anew */
	return asked->run(asked, argc - first, argv + first);
}

const struct verb verb_stream = {
	.name = "stream",
	.arguments = "VERB [ARGUMENT...]",
	.summary = "list, show, measure, record and play streams of frames",
	.help = "\n"
		"  list                   list the streams\n"
		"  show NAME              show a stream's fields and consumers\n"
		"  hz NAME                measure how often frames are published\n"
		"  record NAME FOLDER     write frames to .npy files\n"
		"  play FOLDER NAME       publish the frames of such files\n"
		"\n'tshare help stream VERB' lists the verb's options.\n",
	.in_order = true, /* as the verb has options of its own */
	.run = run,
	.below = below,
};
