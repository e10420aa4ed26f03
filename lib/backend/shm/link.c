// SPDX-License-Identifier: MIT
/* How a new region gets its name, at once or when a draft is finished: see backend/shm.c. */
#define _GNU_SOURCE 1
#include "backend/shm/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/shm/dead.h"
#include "backend/shm/file.h"
#include "backend/shm/limits.h"
#include "backend/shm/session.h"
#include "backend/shm/users.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/ofd-lock.h"
#include "base/process.h"

/* The longest pause between two looks whether another maker is done, in microseconds. */
#define LONGEST_PAUSE 1000

static int fail_foreign(const char *name, const char *file, const char *entry)
{
	return fail(-EEXIST, "name: '%s' is taken by %s/%s%s, which is no region's; remove that",
		    name, shm_directory(), file, entry);
}

/*
 * Whether a home without a region is foreign, and not just being removed. @claim is what opening a
 * claim returned. A maker that saw a region in the home may move its claim into it meanwhile.
 */
static bool is_foreign(int dir, const char *file, int home, int claim, enum shm_name_state state)
{
	struct statx st;

	return state == SHM_NAME_TAKEN && (claim != -ENOENT || !shm_stat(home, SHM_CLAIM, &st)) &&
	       shm_home_is_at(dir, file, home);
}

int shm_fail_taken(int dir, const char *file, enum shm_name_state state, const char *name)
{
	_cleanup_close_ int home = shm_home_open(dir, file);
	_cleanup_close_ int claim = home < 0 ? home : shm_home_open(home, SHM_CLAIM);
	bool region, claimed, foreign = home == -EPROTO;
	struct statx st;

	if (state == SHM_NAME_STUCK)
		return fail(-EEXIST, "name: '%s' is a dead process's; only its user can remove it",
			    name);
	/* Whatever is there now, a descriptor was missing. */
	if (state == SHM_NAME_UNSEEN)
		return fail_name(shm_is_shortage(home) ? home : -EMFILE, name);
	region = home >= 0 && shm_home_stat_file(home, &st);
	claimed = claim >= 0 && shm_home_stat_file(claim, &st);
	if (home >= 0 && !region && !claimed)
		foreign = is_foreign(dir, file, home, claim,
				     shm_home_unlink_if_dead(dir, file, home));
	if (foreign)
		return fail_foreign(name, file, "");
	return fail_taken(name, claimed && !region);
}

static int fail_directory(int err)
{
	if (shm_is_shortage(err))
		return fail(err, "region: %s", strerror(-err));
	return fail(err, "%s: %s", shm_directory(), strerror(-err));
}

/* Making a home */

/* The maker's place in the directory until the region has its name. */
struct place {
	int dir;
	char file[SHM_NEW_HOME_LEN]; /* what its home is called at first */
	bool draft;
	int home;  /* has the region's file, unless that is a draft */
	int claim; /* in @home, or in @named; or -1 */
	int named; /* the home of a name that is claimed, if it isn't @home; or -1 */
};

static void cleanup_place(const struct place *place)
{
	cleanup_close(&place->home);
	cleanup_close(&place->claim);
	cleanup_close(&place->named);
}

#define _cleanup_place_ __attribute__((cleanup(cleanup_place)))

/* Makes a home for the file, or with @draft one that has a claim for it. */
static int place_make(struct place *place, int dir, int fd, bool draft)
{
	*place = (struct place){ .dir = dir, .draft = draft, .claim = -1, .named = -1 };
	place->home = shm_home_make(dir, fd, draft ? &place->claim : NULL, place->file);
	return place->home < 0 ? shm_fail_proc(place->home, shm_directory()) : 0;
}

/* Removes the maker's home, and a claim that is in it. */
static void place_undo(const struct place *place)
{
	if (place->claim >= 0 && place->named < 0)
		shm_home_clear(place->home, SHM_CLAIM, place->claim);
	shm_home_clear(place->dir, place->file, place->home);
}

/* Claims */

/*
 * Why a claim could not be moved into a home that has one: -EAGAIN if another maker has that for a
 * moment, -ENOENT if it is gone, as a dead maker's is now, and else an error.
 */
static int look_at_claim(const struct place *place, int named, const char *file, const char *name)
{
	_cleanup_close_ int claim = shm_home_open(named, SHM_CLAIM);
	enum shm_name_state state;
	struct statx st;
	bool has_file;

	if (claim == -ENOENT)
		return claim;
	if (claim < 0)
		return claim == -EPROTO ? fail_foreign(name, file, "/" SHM_CLAIM) :
					  fail_name(claim, name);
	/* Looked at first: a claim never gets a file later, but its maker may remove both. */
	has_file = shm_home_stat_file(claim, &st);
	state = shm_home_unlink_if_dead(named, SHM_CLAIM, claim);
	if (state == SHM_NAME_GONE)
		return -ENOENT;
	if (state != SHM_NAME_TAKEN)
		return shm_fail_taken(place->dir, file, state, name);
	if (shm_stat(claim, SHM_DRAFT_FILE, &st))
		return fail_taken(name, true);
	return has_file ? -EAGAIN : fail_foreign(name, file, "/" SHM_CLAIM);
}

/* As look_at_claim(), for a home with neither region nor claim. */
static int look_at_what_has_neither(const struct place *place, int home, const char *file,
				    const char *name)
{
	enum shm_name_state state = shm_home_unlink_if_dead(place->dir, file, home);

	if (state == SHM_NAME_STUCK || state == SHM_NAME_UNSEEN)
		return shm_fail_taken(place->dir, file, state, name);
	return is_foreign(place->dir, file, home, -ENOENT, state) ? fail_foreign(name, file, "") :
								    -ENOENT;
}

/*
 * Moves the claim into @home, and back if the name leads elsewhere. A draft's own home has nothing
 * else, so the file is linked there: others would remove an empty home before the claim is back.
 */
static int move_claim(const struct place *place, int fd, int home, const char *file)
{
	int err = place->draft ? shm_home_link(place->home, fd, SHM_NEW_FILE) : 0;

	if (err)
		return fail_directory(err);
	err = renameat(place->home, SHM_CLAIM, home, SHM_CLAIM) ? -errno : 0;
	if (!err && shm_home_is_at(place->dir, file, home))
		return 0;
	if (!err)
		err = renameat(home, SHM_CLAIM, place->home, SHM_CLAIM) ? -errno : -ENOENT;
	if (place->draft)
		unlinkat(place->home, SHM_NEW_FILE, 0);
	return err;
}

/*
 * Moves the claim into the home that the name leads to: -ENOENT if the name doesn't lead there any
 * more, or what look_at_claim() returns. From then on the claim keeps the home in its place: a
 * home that isn't empty can be neither removed nor replaced, and only the maker with the claim
 * exchanges it.
 */
static int claim_home(struct place *place, int fd, const char *file, const char *name)
{
	_cleanup_close_ int home = shm_home_open(place->dir, file);
	struct statx st;
	int err;

	if (home == -ENOENT)
		return home;
	if (home < 0)
		return home == -EPROTO ? shm_fail_taken(place->dir, file, SHM_NAME_TAKEN, name) :
					 fail_name(home, name);
	if (!shm_home_stat_file(home, &st))
		return shm_stat(home, SHM_CLAIM, &st) ?
			       look_at_claim(place, home, file, name) :
			       look_at_what_has_neither(place, home, file, name);
	err = shm_check_owner(home, "");
	if (err)
		return fail_name(err, name);
	if (place->claim < 0)
		place->claim = shm_claim_make(place->home, fd);
	/* Another process may have removed the empty claim as a dead process's. */
	if (place->claim < 0)
		return place->claim == -ENOENT ? -ENOENT : fail_directory(place->claim);
	err = move_claim(place, fd, home, file);
	if (err == -ENOTEMPTY || err == -EEXIST || err == -ENOTDIR)
		return look_at_claim(place, home, file, name);
	if (err == -EACCES || err == -EPERM)
		return fail_name(-EPERM, name);
	if (err)
		return err == -ENOENT ? err : fail_directory(err);
	place->named = no_cleanup(home);
	return 0;
}

/*
 * Gives the maker's home the name if that is free, or else, with TSHARE_REPLACE, claims the name.
 * Makers that replace a region at the same time wait for each other, as all of them can succeed.
 */
static int take_name(struct place *place, int fd, const struct backend_request *request)
{
	char file[SHM_HOME_NAME_LEN];
	enum shm_name_state state;
	unsigned int pause = 1;
	int tries, err = 0;

	shm_home_name(file, request->name);
	for (tries = 0; tries < SHM_MAX_TRIES; tries++) {
		state = shm_name_unlink_if_dead(place->dir, file);
		if (state == SHM_NAME_GONE) {
			if (!renameat(place->dir, place->file, place->dir, file))
				return 0;
			err = -errno;
			continue;
		}
		if (state != SHM_NAME_TAKEN || !(request->flags & TSHARE_REPLACE))
			return shm_fail_taken(place->dir, file, state, request->name);
		err = claim_home(place, fd, file, request->name);
		if (err != -ENOENT && err != -EAGAIN)
			return err;
		if (err == -ENOENT)
			continue;
		usleep(pause);
		pause = pause < LONGEST_PAUSE ? 2 * pause : LONGEST_PAUSE;
	}
	if (err == -EAGAIN)
		return fail(-EEXIST,
			    "name: '%s' is just being given to another region, by the maker "
			    "of %s/%s/" SHM_CLAIM ", which has not done so for a second; try again",
			    request->name, shm_directory(), file);
	return err == -ENOTEMPTY || err == -EEXIST ?
		       shm_fail_taken(place->dir, file, SHM_NAME_TAKEN, request->name) :
		       fail_directory(err);
}

/* Getting the name */

static int exchange(const struct place *place, const char *name)
{
	char file[SHM_HOME_NAME_LEN];

	shm_home_name(file, name);
	return renameat2(place->dir, place->file, place->dir, file, RENAME_EXCHANGE) ? -errno : 0;
}

/*
 * Exchanges the maker's home with the one that has its claim. If the maker is root, the owner of
 * that home may have moved it in spite of the claim: then the exchange is undone.
 */
static int exchange_homes(const struct place *place, const char *name)
{
	int err = exchange(place, name);

	if (!err && shm_home_is_at(place->dir, place->file, place->named))
		return 0;
	if (!err)
		err = exchange(place, name);
	if (!err)
		err = -ENOENT;
	return fail_name(err == -EACCES ? -EPERM : err, name);
}

/*
 * Ends the creation of a region that the name leads to. The order of the steps keeps the name with
 * the maker until the last one.
 */
static void settle(const struct place *place, int fd, uint32_t lifetime)
{
	/* Fails if the name was unlinked meanwhile, which is as if it were unlinked later. */
	renameat(place->home, SHM_NEW_FILE, place->home, SHM_REGION_FILE);
	if (place->claim >= 0)
		shm_home_clear(place->named < 0 ? place->home : place->named, SHM_CLAIM,
			       place->claim);
	if (place->named >= 0)
		shm_home_clear(place->dir, place->file, place->named);
	/* The header or the users have kept the name since it leads to the region. */
	if (lifetime != TSHARE_LIFETIME_MAKER)
		ofd_lock_set(fd, F_UNLCK, SHM_LIFE);
}

int shm_link(const struct shm_session *session, const struct shm_name *name,
	     const struct backend_request *request)
{
	_cleanup_place_ struct place place;
	int err;

	err = place_make(&place, session->dir, name->fd, false);
	if (err)
		return err;
	err = take_name(&place, name->fd, request);
	if (!err && place.named >= 0) {
		err = exchange_homes(&place, request->name);
		if (err)
			shm_claim_clear(session->dir, request->name, place.claim);
	}
	if (err)
		place_undo(&place);
	else
		settle(&place, name->fd, request->lifetime);
	return err;
}

int shm_claim(const struct shm_session *session, struct shm_name *name,
	      const struct backend_request *request)
{
	_cleanup_place_ struct place place;
	int err;

	err = place_make(&place, session->dir, name->fd, true);
	if (err)
		return err;
	/* fork() takes the lock: a child that has the pipe has it in its session. */
	process_lock();
	name->maker = shm_claim_make_maker(place.claim);
	process_unlock();
	err = name->maker < 0 ? fail_directory(name->maker) : take_name(&place, name->fd, request);
	if (err || place.named >= 0)
		place_undo(&place);
	if (err)
		return err;
	process_lock();
	name->home = no_cleanup(place.claim);
	process_unlock();
	/* Others may unlink it only now: while the claim was moved, its maker would miss that. */
	if (renameat(name->home, SHM_NEW_FILE, name->home, SHM_DRAFT_FILE))
		return fail_directory(-errno);
	return 0;
}

/* Drafts */

static struct shm_name *find_draft(struct shm_session *session, int fd)
{
	struct shm_name *name;

	TAILQ_FOREACH(name, &session->names, entry)
	if (name->draft && shm_is_same_file(name->fd, fd))
		break;
	return name;
}

static int fail_no_draft(void)
{
	return fail(-EINVAL, "region: is not a draft");
}

static int fail_lost(void)
{
	return fail(-ENOENT, "region: the draft's name was removed");
}

/* Why the session can't finish a region that isn't one of its drafts. */
static int refuse_to_finish(int fd)
{
	struct shm_head head;
	struct stat st;
	size_t length;
	int err;

	err = shm_file_read_head(fd, &head, &length);
	if (err || fstat(fd, &st) || !(head.header.flags & SHM_DRAFT))
		return fail_no_draft();
	if (!st.st_nlink)
		return fail_lost();
	return fail(-EPERM, "region: the draft was made in another context");
}

/* The draft has its name, and no process waits for its maker any more. */
static void end_draft(struct shm_session *session, struct shm_name *name)
{
	shm_name_close_maker(name);
	name->draft = false;
	if (name->lifetime != TSHARE_LIFETIME_MAKER)
		shm_name_drop(session, name);
}

/* Whether the draft may take the name from the region that has it, if there is one. */
static int check_place(const struct place *place, const char *name, bool replace)
{
	char file[SHM_HOME_NAME_LEN];
	enum shm_name_state state;
	struct statx st;
	int err;

	shm_home_name(file, name);
	state = shm_home_unlink_if_dead(place->dir, file, place->named);
	if (!shm_home_stat_file(place->named, &st))
		return 0;
	if (!replace || state != SHM_NAME_TAKEN)
		return shm_fail_taken(place->dir, file, state, name);
	err = shm_check_owner(place->named, "");
	return err == -EPERM ? fail_name(err, name) : 0;
}

/* A draft that is to get its name. */
struct finishing {
	struct shm_name *name;
	struct backend_region *region;
	struct place place; /* its home is made last */
	bool replace;
};

/* Opens the draft's claim and the home that it is in. */
static int open_claimed(struct shm_session *session, struct finishing *draft)
{
	struct place *place = &draft->place;
	struct shm_name *name = draft->name;
	char file[SHM_HOME_NAME_LEN];
	bool claim;

	/* Only a user keeps others from removing the draft: see clear_unused(). */
	if (!draft->region->user)
		return fail(-EPERM, "region: its file could not be opened anew when it was "
				    "imported, so it can't be finished; import it again");
	place->claim = shm_name_open_home(session, name, &claim);
	if (place->claim >= 0 && !claim) {
		end_draft(session, name);
		return fail_no_draft(); /* another process has finished it since a fork() */
	}
	if (place->claim == -ENOENT) {
		shm_name_drop(session, name);
		return fail_lost();
	}
	shm_home_name(file, name->name);
	place->named = place->claim < 0 ? place->claim : shm_home_open(session->dir, file);
	return place->named < 0 ? fail_name(place->named, name->name) : 0;
}

/* Opens what a finish needs, and refuses what can't be finished. */
static int open_draft(struct shm_session *session, const struct backend_finish *finish,
		      struct finishing *draft)
{
	struct backend_region *region = finish->region;
	int err;

	*draft = (struct finishing){
		.name = session ? find_draft(session, region->fd) : NULL,
		.region = region,
		.place = { .dir = -1, .home = -1, .claim = -1, .named = -1 },
		.replace = finish->replace,
	};
	if (!draft->name)
		return refuse_to_finish(region->fd);
	draft->place.dir = session->dir;
	err = open_claimed(session, draft);
	return err ? err : check_place(&draft->place, draft->name->name, draft->replace);
}

/* Lets a region whose file is "new" be a draft as before. */
static void stay_draft(const struct finishing *draft)
{
	const struct place *place = &draft->place;

	if (place->home >= 0)
		place_undo(place);
	shm_claim_mark_maker(place->claim, false);
	shm_file_write_flags(draft->name->fd, shm_header_flags(draft->name->lifetime, true));
	renameat(place->claim, SHM_NEW_FILE, place->claim, SHM_DRAFT_FILE);
}

/* Makes a home for a draft whose file is "new". */
static int make_home(struct finishing *draft)
{
	const struct shm_name *name = draft->name;
	struct place *place = &draft->place;
	int err;

	shm_claim_mark_maker(place->claim, true);
	err = shm_file_write_flags(name->fd, shm_header_flags(name->lifetime, false));
	if (err)
		return fail(err, "region: its file can't be written: %s%s", strerror(-err),
			    err == -EFBIG ? " (see RLIMIT_FSIZE, ulimit -f)" : "");
	place->home = shm_home_make(place->dir, name->fd, NULL, place->file);
	return place->home < 0 ? shm_fail_proc(place->home, shm_directory()) : 0;
}

/*
 * While the file is called "new", no process can unlink the draft by its name, not even if the
 * finish fails. So all refusals come first, and hold: as long as the draft has the claim, no other
 * process gives the name another home.
 */
static int begin_finish(struct shm_session *session, struct finishing *draft)
{
	struct place *place = &draft->place;
	int err;

	err = renameat(place->claim, SHM_DRAFT_FILE, place->claim, SHM_NEW_FILE) ? -errno : 0;
	if (err == -ENOENT) {
		shm_name_drop(session, draft->name);
		return fail_lost();
	}
	if (err)
		return fail_name(err, draft->name->name);
	err = make_home(draft);
	if (err)
		stay_draft(draft);
	return err;
}

static void end_finish(struct shm_session *session, struct finishing *draft)
{
	shm_user_finish(draft->region, draft->name->lifetime);
	end_draft(session, draft->name);
}

/*
 * Whatever may fail comes before the first name, which may be another region's: it is not lost in
 * vain. Only an exchange can still fail between two names. Then the first one is given back, unless
 * another process has just swept, and found its old region at a maker's place.
 */
static int finish_drafts(struct shm_session *session, struct finishing *drafts, size_t count)
{
	size_t begun, named, i;
	int err = 0;

	for (begun = 0; !err && begun < count; begun += !err)
		err = begin_finish(session, &drafts[begun]);
	for (named = 0; !err && named < count; named += !err)
		err = exchange_homes(&drafts[named].place, drafts[named].name->name);
	if (err) {
		while (named--)
			exchange(&drafts[named].place, drafts[named].name->name);
		while (begun--)
			stay_draft(&drafts[begun]);
		return err;
	}
	for (i = 0; i < count; i++)
		settle(&drafts[i].place, drafts[i].name->fd, drafts[i].name->lifetime);
	for (i = 0; i < count; i++)
		end_finish(session, &drafts[i]);
	return 0;
}

static int try_to_finish(struct shm_session *session, const struct backend_finish *finishing,
			 size_t count)
{
	struct finishing drafts[BACKEND_FINISH_MAX];
	size_t known;
	int err = 0;

	process_lock();
	for (known = 0; !err && known < count; known++)
		err = open_draft(session, &finishing[known], &drafts[known]);
	if (!err)
		err = finish_drafts(session, drafts, count);
	while (known--)
		cleanup_place(&drafts[known].place);
	process_unlock();
	return err;
}

int shm_finish(void *opened, const struct backend_finish *finishing, size_t count)
{
	struct shm_session *session = opened;
	int err = try_to_finish(session, finishing, count);

	if (err == -ENOSPC && shm_names_sweep(session->dir))
		err = try_to_finish(session, finishing, count);
	return err == -ENOSPC ? shm_fail_no_file() : err;
}
