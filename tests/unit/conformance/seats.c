// SPDX-License-Identifier: MIT
/* Seats: consumers that die, fork, stand still or write what they should not. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../frames.h"
#include "../partner.h"

/* How soon a dead process's slots are free: 0.2 s, but on a machine that emulates others. */
#define SOON (HANG_SECONDS * 1000 * MS)

struct seats {
	int count;
	struct tshare_stream_seat last;
};

static int count_seat(const struct tshare_stream_seat *seat, void *data)
{
	struct seats *seats = data;

	seats->count++;
	seats->last = *seat;
	return 0;
}

static struct seats seats_of(struct tshare_stream *stream)
{
	struct seats seats = { 0 };

	CHECK(!tshare_stream_list_seats(stream, count_seat, &seats));
	return seats;
}

static int loan_within(struct tshare_stream *stream, int64_t timeout_ns)
{
	struct tshare_frame *frame;
	int err = tshare_stream_loan(stream, timeout_ns, &frame);

	if (!err)
		tshare_frame_unref(frame);
	return err;
}

/* The memory of a tensor of NAME.seats, for writing. */
static _Atomic(uint64_t) *seats_tensor(const char *name, const char *part,
				       struct tshare_region **region)
{
	struct tshare_tensor *tensor;
	_Atomic(uint64_t) *data;
	char seats[TSHARE_NAME_MAX + 1];

	strcpy(stpcpy(seats, name), ".seats");
	CHECK(!tshare_region_open(ctx, seats, NULL, region));
	CHECK(!tshare_region_find_tensor(*region, part, &tensor));
	data = tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	return data;
}

/* A child that opens the stream, takes a frame, says so, and holds it until it is killed. */
struct holder {
	const char *name;
	uint32_t flags;
	struct steps steps;
	pid_t pid;
};

static int hold_frame(void *data)
{
	struct holder *holder = data;
	struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = holder->flags,
		.history = 1,
	};
	struct tshare_stream *stream;
	struct tshare_frame *frame;
	struct tshare_ctx *own;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) ||
	    tshare_stream_open(own, holder->name, &options, &stream) ||
	    tshare_stream_take(stream, 0, &frame) || !send_byte(holder->steps.ends[1]))
		return 1;
	pause();
	return 2;
}

static void start_holder(struct holder *holder)
{
	CHECK(steps_open(&holder->steps));
	holder->pid = fork();
	CHECK(holder->pid >= 0);
	if (!holder->pid)
		_exit(hold_frame(holder));
	CHECK(await_byte(holder->steps.ends[0]));
}

static void end_holder(struct holder *holder)
{
	kill_and_reap(holder->pid);
	steps_close(&holder->steps);
}

TEST(a_killed_consumers_slots_return)
{
	struct holder holder = { .name = unique("killed") };
	struct tshare_stream *producer = new_stream(holder.name, 2, 1, 0);
	struct seats seats;

	CHECK(publish_until(producer, 1));
	start_holder(&holder);
	CHECK(publish_until(producer, 2));
	CHECK(loan_within(producer, 0) == -ETIMEDOUT);
	seats = seats_of(producer);
	CHECK(seats.count == 1 && seats.last.pid == holder.pid && seats.last.held == 1);
	CHECK(!strcmp(seats.last.command, "test-seats") && !seats.last.keeps_all);
	end_holder(&holder);
	CHECK(!loan_within(producer, SOON));
	CHECK(!seats_of(producer).count);
	tshare_stream_unref(producer);
}

TEST(a_killed_consumer_that_kept_all_delays_nobody)
{
	struct holder holder = { .name = unique("kept"), .flags = TSHARE_KEEP_ALL };
	struct tshare_stream *producer = new_stream(holder.name, 3, 1, TSHARE_KEEP_ALL);
	struct tshare_region *region;
	uint64_t number;

	CHECK(publish_until(producer, 1));
	start_holder(&holder);
	CHECK(publish_until(producer, 3));
	CHECK(loan_within(producer, 0) == -ETIMEDOUT);
	CHECK(seats_of(producer).last.held == 3 && seats_of(producer).last.keeps_all);
	end_holder(&holder);
	CHECK(!loan_within(producer, SOON));
	CHECK(!*seats_tensor(holder.name, ".keep", &region));
	for (number = 4; number < 20; number++)
		CHECK(publish_until(producer, number));
	tshare_region_unref(region);
	tshare_stream_unref(producer);
}

TEST(a_stopped_consumer_is_named_and_can_be_evicted)
{
	struct holder holder = { .name = unique("stopped") };
	struct tshare_stream *producer = new_stream(holder.name, 2, 1, 0);
	uint64_t number;

	CHECK(publish_until(producer, 1));
	start_holder(&holder);
	CHECK(!kill(holder.pid, SIGSTOP));
	CHECK(publish_until(producer, 2));
	CHECK(loan_within(producer, 120 * MS) == -ETIMEDOUT);
	CHECK(error_says("seat 0 (pid ") && error_says("holds frames 1"));
	CHECK(tshare_stream_evict(producer, 1, 0) == -ENOENT);
	CHECK(tshare_stream_evict(producer, -1, 0) == -EINVAL);
	CHECK(tshare_stream_evict(producer, TSHARE_STREAM_CONSUMERS, 0) == -EINVAL);
	CHECK(tshare_stream_evict(producer, 0, getpid()) == -ENOENT);
	CHECK(!tshare_stream_evict(producer, 0, holder.pid));
	CHECK(seats_of(producer).last.evicted);
	for (number = 3; number < 20; number++)
		CHECK(publish_until(producer, number));
	end_holder(&holder);
	tshare_stream_unref(producer);
}

TEST(an_evicted_consumer_is_told_and_its_seat_is_free_when_it_has_gone)
{
	const char *name = unique("evicted");
	struct tshare_stream *producer = new_stream(name, 4, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *victim = open_stream(name, TSHARE_KEEP_ALL), *other, *late;
	struct tshare_frame *frame, *next;

	CHECK(publish_until(producer, 2));
	frame = take_frame(victim);
	CHECK(!tshare_stream_evict(producer, 0, 0));
	CHECK(tshare_frame_check(frame) == -ESTALE && error_says("evicted"));
	CHECK(tshare_stream_take(victim, -1, &next) == -ESTALE);
	CHECK(tshare_stream_get(victim, 2, &next) == -ESTALE);
	CHECK(publish_until(producer, 20));
	other = open_stream(name, TSHARE_KEEP_ALL);
	CHECK(seats_of(producer).count == 2);
	CHECK(seats_of(producer).last.seat == 1);
	tshare_frame_unref(frame);
	tshare_stream_unref(victim);
	/* The producer hasn't seen yet that the victim has gone. */
	late = open_stream(name, 0);
	CHECK(seats_of(producer).count == 2 && seats_of(producer).last.seat == 2);
	tshare_stream_unref(late);
	CHECK(publish_until(producer, 24));
	CHECK(take_number(other) == 21);
	tshare_stream_unref(other);
	other = open_stream(name, 0);
	CHECK(seats_of(producer).last.seat == 0 && !seats_of(producer).last.evicted);
	CHECK(!tshare_stream_evict(producer, 0, 0));
	CHECK(take_number(other) == -ESTALE);
	tshare_stream_unref(other);
	tshare_stream_unref(producer);
}

TEST(an_observer_sees_the_seats_and_takes_none)
{
	struct holder holder = { .name = unique("seen"), .flags = TSHARE_KEEP_ALL };
	struct tshare_stream *producer = new_stream(holder.name, 4, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *observer = open_stream(holder.name, TSHARE_OBSERVE);
	struct seats seats;

	CHECK(!seats_of(observer).count);
	CHECK(publish_until(producer, 1));
	start_holder(&holder);
	CHECK(publish_until(producer, 2));
	seats = seats_of(observer);
	CHECK(seats.count == 1 && seats.last.pid == holder.pid);
	CHECK(seats.last.held == 2 && seats.last.keeps_all);
	end_holder(&holder);
	CHECK(!seats_of(observer).count);
	tshare_stream_unref(observer);
	tshare_stream_unref(producer);
}

TEST(an_observer_finds_no_seats_of_another_stream)
{
	const char *name = unique("other");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *next;
	struct tshare_stream *observer = open_stream(name, TSHARE_OBSERVE);
	struct tshare_stream *late = open_stream(name, TSHARE_OBSERVE);

	tshare_stream_unref(producer);
	CHECK(tshare_stream_list_seats(observer, count_seat, NULL) == -ENOENT);
	next = new_stream(name, 4, 1, 0);
	CHECK(tshare_stream_list_seats(late, count_seat, NULL) == -ESTALE);
	tshare_stream_unref(late);
	tshare_stream_unref(observer);
	tshare_stream_unref(next);
}

TEST(there_are_62_seats)
{
	const char *name = unique("full");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumers[TSHARE_STREAM_CONSUMERS], *one_more;
	int i;

	for (i = 0; i < TSHARE_STREAM_CONSUMERS; i++)
		consumers[i] = open_stream(name, 0);
	CHECK(tshare_stream_open(ctx, name, NULL, &one_more) == -EUSERS);
	CHECK(error_says("62 consumers"));
	one_more = open_stream(name, TSHARE_OBSERVE);
	tshare_stream_unref(one_more);
	CHECK(seats_of(producer).count == TSHARE_STREAM_CONSUMERS);
	CHECK(publish_until(producer, 1));
	for (i = 0; i < TSHARE_STREAM_CONSUMERS; i++)
		CHECK(take_number(consumers[i]) == 1);
	tshare_stream_unref(consumers[30]);
	consumers[30] = open_stream(name, 0);
	for (i = 0; i < TSHARE_STREAM_CONSUMERS; i++)
		tshare_stream_unref(consumers[i]);
	CHECK(publish_until(producer, 10));
	tshare_stream_unref(producer);
}

/* fork() */

struct roles {
	struct tshare_stream *producer, *consumer, *observer;
	struct tshare_frame *loaned, *held, *seen;
	struct steps steps;
};

static int use_as_child(void *data)
{
	const struct tshare_spec element = SPEC(NULL, TSHARE_UINT64);
	struct roles *roles = data;
	struct tshare_tensor *tensor, *same;
	struct tshare_frame *frame;

	if (tshare_stream_loan(roles->producer, 0, &frame) != -EOPNOTSUPP ||
	    !error_says("parent") || tshare_frame_publish(roles->loaned) != -EOPNOTSUPP ||
	    tshare_stream_close(roles->producer, 0) != -EOPNOTSUPP ||
	    tshare_stream_evict(roles->producer, 0, 0) != -EOPNOTSUPP ||
	    tshare_stream_take(roles->consumer, 0, &frame) != -EOPNOTSUPP ||
	    tshare_stream_get(roles->consumer, 1, &frame) != -EOPNOTSUPP ||
	    tshare_stream_take(roles->observer, 0, &frame) != -EOPNOTSUPP ||
	    tshare_stream_list_seats(roles->consumer, count_seat, NULL) != -EOPNOTSUPP)
		return 1;
	if (whole_number(roles->held) != 1)
		return 2;
	if (tshare_frame_get_tensor(roles->held, 0, &tensor) ||
	    tshare_tensor_wrap(tshare_tensor_get_data(tensor), &element, 0, &same) != -ENOENT)
		return 3;
	tshare_tensor_unref(tensor);
	tshare_frame_unref(roles->loaned);
	tshare_frame_unref(roles->held);
	tshare_frame_unref(roles->seen);
	tshare_stream_unref(roles->consumer);
	tshare_stream_unref(roles->observer);
	tshare_stream_unref(roles->producer);
	return 0;
}

TEST(a_child_has_no_role_and_takes_none_from_its_parent)
{
	const char *name = unique("fork");
	struct roles roles = { .producer = new_stream(name, 3, 1, 0) };

	roles.consumer = open_stream(name, 0);
	roles.observer = open_stream(name, TSHARE_OBSERVE);
	CHECK(publish_until(roles.producer, 1));
	roles.held = take_frame(roles.consumer);
	roles.seen = take_frame(roles.observer);
	CHECK(!tshare_stream_loan(roles.producer, 0, &roles.loaned));
	CHECK(!in_child(use_as_child, &roles));
	CHECK(exists(name));
	fill_frame(roles.loaned, 2);
	CHECK(!tshare_frame_publish(roles.loaned));
	tshare_frame_unref(roles.loaned);
	CHECK(publish_until(roles.producer, 9));
	CHECK(whole_number(roles.held) == 1);
	CHECK(seats_of(roles.producer).count == 1);
	tshare_frame_unref(roles.held);
	tshare_frame_unref(roles.seen);
	CHECK(take_number(roles.consumer) > 1);
	tshare_stream_unref(roles.consumer);
	tshare_stream_unref(roles.observer);
	tshare_stream_unref(roles.producer);
}

/* A consumer that has a child, which lives on after it. */
static int hold_and_fork(void *data)
{
	struct holder *holder = data;
	struct tshare_stream *stream;
	struct tshare_frame *frame;
	struct tshare_ctx *own;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) ||
	    tshare_stream_open(own, holder->name,
			       &(struct tshare_stream_open_options){
				       .size = sizeof(struct tshare_stream_open_options),
				       .history = 1,
			       },
			       &stream) ||
	    tshare_stream_take(stream, 0, &frame))
		return 1;
	if (!fork()) {
		send_byte(holder->steps.ends[1]);
		await_byte(holder->steps.ends[1]);
		_exit(0);
	}
	pause();
	return 2;
}

TEST(a_child_that_outlives_a_consumer_keeps_none_of_its_slots)
{
	struct holder holder = { .name = unique("outlive") };
	struct tshare_stream *producer = new_stream(holder.name, 2, 1, 0);

	CHECK(publish_until(producer, 1));
	CHECK(steps_open(&holder.steps));
	holder.pid = fork();
	CHECK(holder.pid >= 0);
	if (!holder.pid)
		_exit(hold_and_fork(&holder));
	CHECK(await_byte(holder.steps.ends[0]));
	CHECK(publish_until(producer, 2));
	CHECK(loan_within(producer, 0) == -ETIMEDOUT);
	kill_and_reap(holder.pid);
	CHECK(!loan_within(producer, SOON));
	CHECK(send_byte(holder.steps.ends[0]));
	steps_close(&holder.steps);
	tshare_stream_unref(producer);
}

/* The producer's death */

static int produce_and_die(void *data)
{
	struct holder *holder = data;
	struct tshare_stream *stream;
	struct tshare_frame *frame;

	open_context();
	stream = new_stream(holder->name, 8, 4, TSHARE_KEEP_ALL);
	if (!send_byte(holder->steps.ends[1]) || !await_byte(holder->steps.ends[1]) ||
	    !publish_until(stream, 2) || tshare_stream_loan(stream, 0, &frame))
		return 1;
	fill_frame(frame, 3);
	return raise(SIGKILL);
}

TEST(a_killed_producers_frames_stay_and_the_claimed_one_is_invisible)
{
	struct holder holder = { .name = unique("producer") };
	struct tshare_stream *consumer, *lossy, *next;
	struct tshare_frame *frame;
	int status;

	CHECK(steps_open(&holder.steps));
	holder.pid = fork();
	CHECK(holder.pid >= 0);
	if (!holder.pid)
		_exit(produce_and_die(&holder));
	CHECK(await_byte(holder.steps.ends[0]));
	consumer = open_stream(holder.name, TSHARE_KEEP_ALL);
	lossy = open_stream(holder.name, 0);
	CHECK(send_byte(holder.steps.ends[0]));
	CHECK(waitpid(holder.pid, &status, 0) == holder.pid && WIFSIGNALED(status));
	CHECK(take_number(consumer) == 1);
	CHECK(take_number(consumer) == 2);
	CHECK(take_number(lossy) == 1);
	CHECK(take_number(lossy) == 2);
	CHECK(tshare_stream_take(consumer, LONG, &frame) == -EOWNERDEAD);
	CHECK(tshare_stream_take(lossy, LONG, &frame) == -EOWNERDEAD);
	CHECK(tshare_stream_get(lossy, 3, &frame) == -ENOENT);
	next = new_stream(holder.name, 8, 4, 0);
	tshare_stream_unref(next);
	tshare_stream_unref(lossy);
	tshare_stream_unref(consumer);
	steps_close(&holder.steps);
}

/* Broken peers */

TEST(forged_words_and_commands_delay_but_harm_nobody)
{
	const char *name = unique("forged");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_region *region, *labels;
	_Atomic(uint64_t) *words = seats_tensor(name, ".word", &region), *commands;
	char printable[16] = "";
	int slot, i;

	memset(printable, '?', sizeof(printable) - 1);
	commands = seats_tensor(name, ".command", &labels);
	for (i = 0; i < 124; i++)
		commands[i] = UINT64_C(0x1b1b1b1b1b1b1b1b);
	CHECK(publish_until(producer, 4));
	for (slot = 0; slot < 4; slot++)
		words[8 * slot] = ~UINT64_C(0);
	CHECK(take_number(consumer) <= 4);
	CHECK(seats_of(producer).last.held == 4);
	CHECK(!strcmp(seats_of(producer).last.command, printable));
	/* Only one seat is taken: the others' bits are a dead consumer's. */
	CHECK(loan_within(producer, 0) == -ETIMEDOUT);
	CHECK(error_says(printable));
	tshare_stream_unref(consumer);
	CHECK(publish_until(producer, 20));
	tshare_region_unref(labels);
	tshare_region_unref(region);
	tshare_stream_unref(producer);
}

TEST(a_forged_word_gives_no_slot_to_two_loans)
{
	const char *name = unique("double");
	struct tshare_stream *producer = new_stream(name, 3, 1, 0);
	struct tshare_frame_info info = { .size = sizeof(info) };
	struct tshare_region *region;
	_Atomic(uint64_t) *words = seats_tensor(name, ".word", &region);
	struct tshare_frame *frames[3];
	uint32_t slots = 0;
	int i, slot;

	for (i = 0; i < 3; i++) {
		CHECK(!tshare_stream_loan(producer, 0, &frames[i]));
		CHECK(!tshare_frame_get_info(frames[i], &info));
		slots |= 1U << info.slot;
		for (slot = 0; slot < 3; slot++)
			words[8 * slot] = 0;
	}
	CHECK(slots == 7);
	CHECK(loan_within(producer, 0) == -ETIMEDOUT);
	for (i = 0; i < 3; i++)
		tshare_frame_unref(frames[i]);
	tshare_region_unref(region);
	tshare_stream_unref(producer);
}

TEST(grants_of_empty_slots_are_no_frames)
{
	const char *name = unique("empty");
	struct tshare_stream *producer = new_stream(name, 4, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *consumer = open_stream(name, TSHARE_KEEP_ALL);
	struct tshare_region *region;
	_Atomic(uint64_t) *words = seats_tensor(name, ".word", &region);

	words[0] = words[8] = 1;
	CHECK(take_number(consumer) == -ETIMEDOUT);
	tshare_stream_unref(consumer);
	words[0] = words[8] = 1;
	consumer = open_stream(name, TSHARE_KEEP_ALL);
	CHECK(publish_until(producer, 1));
	CHECK(take_number(consumer) == 1);
	tshare_region_unref(region);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_kept_frame_that_a_peer_takes_away_is_an_error)
{
	const char *name = unique("stolen");
	struct tshare_stream *producer = new_stream(name, 4, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *consumer = open_stream(name, TSHARE_KEEP_ALL);
	struct tshare_region *region;
	_Atomic(uint64_t) *words = seats_tensor(name, ".word", &region);
	int slot;

	CHECK(publish_until(producer, 3));
	CHECK(take_number(consumer) == 1);
	for (slot = 0; slot < 4; slot++)
		words[8 * slot] = 0;
	CHECK(take_number(consumer) == -EPROTO);
	CHECK(error_says("frame 2 is missing"));
	tshare_region_unref(region);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(publishing_in_the_seats_ends_no_wait_for_a_slot)
{
	const char *name = unique("noise");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_region *region;
	struct tshare_frame *frame;

	seats_tensor(name, ".word", &region);
	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(publish_until(producer, 2));
	CHECK(!tshare_region_publish(region, NULL));
	tshare_region_unref(region);
	CHECK(loan_within(producer, 120 * MS) == -ETIMEDOUT);
	tshare_frame_unref(frame);
	CHECK(!loan_within(producer, SOON));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

/* A stream's maker may write everything in it, and consumers check it. */

static void *stream_part(struct tshare_stream *stream, const char *part)
{
	struct tshare_tensor *tensor;
	void *data;

	CHECK(!tshare_region_find_tensor(tshare_stream_get_region(stream), part, &tensor));
	data = tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	return data;
}

static int open_error_of(const char *name)
{
	struct tshare_stream *stream;
	int err = tshare_stream_open(ctx, name, NULL, &stream);

	if (!err)
		tshare_stream_unref(stream);
	return err;
}

TEST(a_damaged_stream_is_refused)
{
	const char *name = unique("damaged");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	_Atomic(uint64_t) *head = stream_part(producer, ".stream");
	_Atomic(int64_t) *shapes = stream_part(producer, ".shape");
	_Atomic(uint64_t) *numbers = stream_part(producer, ".number");
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 1));
	shapes[0] = FRAME_ELEMENTS + 1;
	CHECK(take_number(consumer) == -EPROTO && error_says("shape"));
	shapes[0] = -1;
	CHECK(take_number(consumer) == -EPROTO);
	shapes[0] = 2;
	CHECK(!tshare_stream_take(consumer, 0, &frame));
	tshare_frame_unref(frame);
	numbers[0] = numbers[1] = numbers[2] = numbers[3] = 1;
	CHECK(take_number(consumer) == -ETIMEDOUT);
	head[0]++;
	CHECK(open_error_of(name) == -EPROTO && error_says("version"));
	head[0]--;
	head[1]++;
	CHECK(open_error_of(name) == -EPROTO && error_says(".seats"));
	head[1]--;
	head[2] = 1000;
	CHECK(open_error_of(name) == -EPROTO && error_says("history"));
	head[2] = 1;
	CHECK(!open_error_of(name));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

/* Other users */

struct visit {
	const char *name;
	bool may_read;
};

static int visit_stream(void *data)
{
	const struct tshare_stream_open_options observe = {
		.size = sizeof(observe),
		.flags = TSHARE_OBSERVE,
	};
	const struct visit *visit = data;
	struct tshare_stream *stream;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int err;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) || !become(USER_ONE))
		return 1;
	err = tshare_stream_open(own, visit->name, NULL, &stream);
	if (!visit->may_read)
		return err == -EACCES ? 0 : 2;
	/* A process that may write a file of shared memory may truncate it. */
	if (limits_of(own).dmabuf ? err : err != -EACCES)
		return 3;
	if (err && !error_says("(TSHARE_OBSERVE)"))
		return 4;
	if (err && tshare_stream_open(own, visit->name, &observe, &stream))
		return 5;
	if (take_number(stream) != -ETIMEDOUT)
		return 6;
	if (!tshare_region_is_readonly(tshare_stream_get_region(stream)))
		return 7;
	return tshare_region_open(own, visit->name, NULL, &region) == -EACCES ? 0 : 8;
}

TEST(another_user_who_may_read_takes_frames_and_cannot_write_them)
{
	const struct tshare_options public = { .size = sizeof(public), .mode = 0644 };
	const struct tshare_stream_options options = { .size = sizeof(options), .region = &public };
	const struct tshare_spec field = SPEC("data", TSHARE_INT8);
	struct visit visit = { unique("public"), true };
	struct tshare_stream *producer;

	if (geteuid())
		SKIP("needs root");
	CHECK(!tshare_stream_create(ctx, visit.name, &field, 1, &options, &producer));
	CHECK(!in_child(visit_stream, &visit));
	tshare_stream_unref(producer);
	producer = new_stream(visit.name, 4, 1, 0);
	visit.may_read = false;
	CHECK(!in_child(visit_stream, &visit));
	tshare_stream_unref(producer);
}

/*
 * Opens a stream of 8 MiB in a process that locks all that it maps, and may lock 4 MiB. Sanitizers
 * map a little, and make the C library's mlockall() do nothing.
 */
static int open_without_room(void *data)
{
	const struct tshare_stream_open_options observe = {
		.size = sizeof(observe),
		.flags = TSHARE_OBSERVE,
	};
	const struct rlimit little = { 4 << 20, 4 << 20 };
	struct tshare_stream *stream;
	struct tshare_ctx *own;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) || !become(USER_ONE) ||
	    setrlimit(RLIMIT_MEMLOCK, &little) || syscall(SYS_mlockall, MCL_FUTURE))
		return 1;
	return tshare_stream_open(own, data, &observe, &stream) == -EAGAIN ? 0 : 2;
}

TEST(a_stream_that_cannot_be_mapped_is_not_taken_for_one_that_is_replaced)
{
	const struct tshare_options public = { .size = sizeof(public), .mode = 0644 };
	const struct tshare_stream_options options = { .size = sizeof(options), .region = &public };
	const int64_t shape[] = { 1 << 20 };
	const struct tshare_spec field = SPEC("data", TSHARE_INT8, 1, shape);
	const char *name = unique("locked");
	struct tshare_stream *producer;

	if (geteuid())
		SKIP("needs root");
	CHECK(!tshare_stream_create(ctx, name, &field, 1, &options, &producer));
	CHECK(!in_child(open_without_room, (void *)name));
	tshare_stream_unref(producer);
}

static int take_name(void *name)
{
	const struct tshare_spec field = SPEC("data", TSHARE_INT8);
	struct tshare_stream *stream;
	struct tshare_ctx *own;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) || !become(USER_ONE))
		return 1;
	if (tshare_stream_create(own, name, &field, 1, NULL, &stream) != -EEXIST)
		return 2;
	return error_says("may not read") ? 0 : 3;
}

TEST(another_user_s_private_stream_keeps_its_name)
{
	const char *name = unique("private");
	struct tshare_stream *producer;

	if (geteuid())
		SKIP("needs root");
	producer = new_stream(name, 4, 1, 0);
	CHECK(!in_child(take_name, (void *)(uintptr_t)name));
	tshare_stream_unref(producer);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
