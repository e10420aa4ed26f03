// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: fuzz [OPTION...]
 *        fuzz --replay FILE...
 *
 * Makes calls of the device that no test thought of, in several processes and threads at once.
 * What reaches new code of the module, by the kernel's kcov, is changed and run again. Prints
 * TAP, and what it has done so far each ten seconds.
 *
 *   --seconds N   how long (60)
 *   --seed N      what all choices depend on, apart from what the kernel's timing changes (1)
 *   --workers N   processes (4)
 *   --corpus DIR  programs to begin with
 *   --save DIR    where to write programs that reach all code that was reached
 *   --log FILE    where to keep the last programs of each process, 4096 bytes for each: eight of
 *                 the first process, then those of the second. FILE is mapped, and best memory
 *                 of a device, which outlives the kernel
 *   --times N     how often --replay runs the files, one after the other (1)
 *
 * The kernel's log and tests/vm/run judge what the calls have done, and this program whether
 * each error was one that the header names, and whether the processes could be ended.
 */
#include <dirent.h>
#include <getopt.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "fuzz_cover.h"
#include "fuzz_program.h"

#define CORPUS_MAX   4096
#define SEEDS_MAX    512
#define WORKERS_MAX  16
#define CHILDREN_MAX 8
#define LOGS	     8
/* How often a repeat makes a command, how often in a row in vain, and for how long. */
#define REPEATS_MAX  128
#define FAILURES_MAX 16
#define REPEAT_MS    20
/* So many programs a process runs; the last one leaves all open. */
#define LIFETIME     300
/* Bytes for the frames of signals, one on top of another. */
#define SIGNAL_STACK (64 * KIB)
/* Edges that a program has to keep when it is trimmed. */
#define TRIM_EDGES   64
#define REPORT_EACH  10
/* How long at most a process may take to end. */
#define END_SECONDS  600
/* MiB that all regions together may have. */
#define MAX_MIB	     192

static struct {
	unsigned int seconds;
	unsigned int seed;
	unsigned int workers;
	unsigned int times;
	const char *corpus;
	const char *save;
	const char *log;
	bool replay;
} options = { .seconds = 60, .seed = 1, .workers = 4, .times = 1 };

struct entry {
	bool ready;
	/* Whether it reached code that none before had. */
	bool first;
	struct fuzz_program program;
};

/* Memory that all processes share. */
static struct shared {
	bool stop;
	struct fuzz_counts counts;
	struct covered covered;
	/* What the first program alone had run. */
	__u32 first_pcs;
	__u32 seed_next;
	__u32 seed_count;
	struct fuzz_program seeds[SEEDS_MAX];
	__u32 corpus_count;
	struct entry corpus[CORPUS_MAX];
} *shared;

/* Of one process: its threads, the last of them a child's. */
static struct {
	struct cover covers[FUZZ_THREADS + 1];
	pthread_barrier_t begin;
	pthread_barrier_t end;
	const struct fuzz_program *program;
	bool threaded;
	pid_t children[CHILDREN_MAX];
	__u32 child_count;
	/* Room for the texts of LOGS programs, or NULL. */
	char *log;
	__u32 logged;
} worker;

static __thread bool is_child;

/* Threads */

/*
 * Signals get a stack that is in memory and that no child shares. Elsewhere the kernel may have to
 * allocate a page to deliver one. If a program's call has that allocation fail, the process gets a
 * SIGSEGV.
 */
static bool set_signal_stack(void)
{
	stack_t stack = { .ss_size = SIGNAL_STACK };

	stack.ss_sp = mmap(NULL, stack.ss_size, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
			   0);
	return stack.ss_sp != MAP_FAILED && !madvise(stack.ss_sp, stack.ss_size, MADV_DONTFORK) &&
	       !sigaltstack(&stack, NULL);
}

static void thread_init(__u32 number)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };

	if (!set_signal_stack())
		_exit(2);
	event._sigev_un._tid = gettid();
	fuzz_thread.has_timer = !timer_create(CLOCK_MONOTONIC, &event, &fuzz_thread.timer);
	fuzz_thread.fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	cover_enable(&worker.covers[number]);
}

static int run_call(const struct fuzz_call *call)
{
	int ret = fuzz_ops[call->op].run(call);

	if (options.replay)
		printf("# %d %s: %d\n", is_child ? -1 : call->thread, fuzz_ops[call->op].name, ret);
	return ret;
}

static __u64 now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000ULL + time.tv_nsec / 1000000;
}

/*
 * Makes the next command again and again, as it has succeeded last but for one number: to set up
 * and to clear what a program's commands need takes longer than most of them do. Ends early where
 * the command is slow, or goes on failing.
 */
static void run_repeat(const struct fuzz_call *call)
{
	const struct fuzz_call *end = worker.program->calls + worker.program->count, *next = call;
	struct fuzz_random random = { .state = call->arg[0] };
	__u32 times = call->arg[1] % REPEATS_MAX, failures = 0;
	__u64 deadline = now_ms() + REPEAT_MS;
	struct fuzz_call last, changed;

	while (++next < end && next->op >= FUZZ_COMMANDS)
		;
	if (next == end)
		return;
	last = *next;
	while (times-- && failures < FAILURES_MAX && (options.replay || now_ms() < deadline)) {
		changed = last;
		fuzz_mutate_call(&random, &changed);
		if (run_call(&changed)) {
			failures++;
		} else {
			failures = 0;
			last = changed;
		}
	}
}

/* In the child: makes the calls from @call to @end, whichever thread's they are. */
static void run_child(const struct fuzz_call *call, const struct fuzz_call *end, __u32 way)
{
	struct itimerval when = { { 0, 5000 }, { 0, 5000 } };
	stack_t no_stack = { .ss_flags = SS_DISABLE };

	is_child = true;
	sigaltstack(&no_stack, NULL);
	fuzz_thread.fail_nth = -1;
	fuzz_thread.has_timer = false;
	setitimer(ITIMER_REAL, &when, NULL);
	cover_enable(&worker.covers[FUZZ_THREADS]);
	for (; call < end; call++)
		if (call->op == FUZZ_REPEAT)
			run_repeat(call);
		else if (call->op != FUZZ_FORK)
			run_call(call);
	fflush(stdout);
	while (way % 4 == 2)
		pause();
	if (way % 4 == 1)
		raise(SIGKILL);
	_exit(0);
}

/* The child makes the calls that follow at the same time as the parent, or before it. */
static void run_fork(const struct fuzz_call *call)
{
	const struct fuzz_program *program = worker.program;
	const struct fuzz_call *end = call + 2 + call->arg[0] % 6;
	__u32 number;
	pid_t pid;

	if (end > program->calls + program->count)
		end = program->calls + program->count;
	number = __atomic_fetch_add(&worker.child_count, 1, __ATOMIC_RELAXED);
	if (number >= CHILDREN_MAX)
		return;
	fflush(stdout);
	pid = fork();
	if (!pid)
		run_child(call + 1, end, call->arg[1]);
	if (pid > 0 && call->arg[1] % 4 != 2 && call->arg[2] & 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	worker.children[number] = pid;
}

static void run_thread(__u32 thread)
{
	const struct fuzz_call *call = worker.program->calls;

	for (; call < worker.program->calls + worker.program->count; call++) {
		if (call->thread != thread)
			continue;
		if (call->op == FUZZ_FORK)
			run_fork(call);
		else if (call->op == FUZZ_REPEAT)
			run_repeat(call);
		else
			run_call(call);
	}
	if (fuzz_thread.other_user)
		fuzz_set_user(0);
	if (fuzz_thread.other_namespace)
		setns(fuzz.namespace, CLONE_NEWIPC);
	fuzz_thread.other_namespace = false;
	if (fuzz_thread.other_policy)
		syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	fuzz_thread.other_policy = false;
}

static void *thread_main(void *arg)
{
	__u32 number = (uintptr_t)arg;

	thread_init(number);
	for (;;) {
		pthread_barrier_wait(&worker.begin);
		run_thread(number);
		pthread_barrier_wait(&worker.end);
	}
	return NULL;
}

/* Programs */

static void log_program(const struct fuzz_program *program)
{
	char *text;
	int len;

	if (!worker.log)
		return;
	text = worker.log + worker.logged++ % LOGS * FUZZ_TEXT;
	len = fuzz_write_text(program, text);
	memset(text + len, 0, FUZZ_TEXT - len);
}

static void end_children(void)
{
	__u32 i;

	for (i = 0; i < worker.child_count && i < CHILDREN_MAX; i++) {
		if (worker.children[i] <= 0)
			continue;
		kill(worker.children[i], SIGKILL);
		waitpid(worker.children[i], NULL, 0);
	}
	worker.child_count = 0;
}

static void restore_limits(void)
{
	write_file("/sys/module/tshare/parameters/max_mib", "%d", MAX_MIB);
	write_file("/sys/module/tshare/parameters/user_max_mib", "0");
	write_file("/sys/module/tshare/parameters/ns_max_mib", "0");
}

/* What @program has open stays so. */
static void run_program(const struct fuzz_program *program)
{
	__u32 i;

	log_program(program);
	for (i = 0; i <= FUZZ_THREADS; i++)
		cover_reset(&worker.covers[i]);
	worker.program = program;
	worker.threaded = false;
	for (i = 0; i < program->count; i++)
		worker.threaded |= program->calls[i].thread;
	memset(worker.children, 0, sizeof(worker.children));
	/* Most programs need one. */
	fuzz_keep(open_device(), FUZZ_DEVICE);
	if (worker.threaded)
		pthread_barrier_wait(&worker.begin);
	run_thread(0);
	if (worker.threaded)
		pthread_barrier_wait(&worker.end);
	end_children();
	if (__atomic_exchange_n(&shared->counts.limited, 0, __ATOMIC_RELAXED))
		restore_limits();
	__atomic_add_fetch(&shared->counts.programs, 1, __ATOMIC_RELAXED);
}

/* Coverage */

/* What was new in a run: edges, and places among them. */
struct news {
	__u32 edges[TRIM_EDGES];
	__u32 count;
	__u32 pcs;
};

static void add_edge(__u32 edge, unsigned long pc, void *arg)
{
	struct news *news = arg;

	if (shared->covered.edges[edge])
		return;
	shared->covered.edges[edge] = 1;
	news->pcs += cover_add_pc(&shared->covered, pc);
	if (news->count < TRIM_EDGES)
		news->edges[news->count++] = edge;
}

static struct news find_news(void)
{
	struct news news = {};
	__u32 i;

	for (i = 0; i <= FUZZ_THREADS; i++)
		cover_each_edge(&worker.covers[i], add_edge, &news);
	return news;
}

static __u8 seen_edges[COVER_EDGES];

static void mark_edge(__u32 edge, unsigned long pc, void *arg)
{
	(void)pc;
	(void)arg;
	seen_edges[edge] = 1;
}

/* Whether the last run has reached all that was new. */
static bool reached(const struct news *news)
{
	__u32 i;

	memset(seen_edges, 0, sizeof(seen_edges));
	for (i = 0; i <= FUZZ_THREADS; i++)
		cover_each_edge(&worker.covers[i], mark_edge, NULL);
	for (i = 0; i < news->count; i++)
		if (!seen_edges[news->edges[i]])
			return false;
	return true;
}

/* Takes the calls away that the new code is reached without. */
static void trim(struct fuzz_program *program, const struct news *news)
{
	struct fuzz_program shorter;
	__u32 at = program->count;

	while (at-- && program->count > 1 && !shared->stop) {
		shorter = *program;
		fuzz_remove_call(&shorter, at);
		run_program(&shorter);
		if (reached(news))
			*program = shorter;
		fuzz_state_clear();
	}
}

static void add_to_corpus(const struct fuzz_program *program, bool first)
{
	__u32 number = __atomic_fetch_add(&shared->corpus_count, 1, __ATOMIC_RELAXED);
	struct entry *entry = &shared->corpus[number];

	if (number >= CORPUS_MAX)
		return;
	entry->program = *program;
	entry->first = first;
	__atomic_store_n(&entry->ready, true, __ATOMIC_RELEASE);
}

static const struct fuzz_program *from_corpus(struct fuzz_random *random)
{
	__u32 count = __atomic_load_n(&shared->corpus_count, __ATOMIC_RELAXED);
	const struct entry *entry;

	if (!count)
		return NULL;
	entry = &shared->corpus[fuzz_below(random, count < CORPUS_MAX ? count : CORPUS_MAX)];
	return __atomic_load_n(&entry->ready, __ATOMIC_ACQUIRE) ? &entry->program : NULL;
}

/* Returns whether the program is one of the files to begin with, which have been trimmed. */
static bool choose_program(struct fuzz_random *random, struct fuzz_program *program)
{
	const struct fuzz_program *old = from_corpus(random), *other = from_corpus(random);
	__u32 seed = __atomic_fetch_add(&shared->seed_next, 1, __ATOMIC_RELAXED);

	if (seed < shared->seed_count) {
		*program = shared->seeds[seed];
		return true;
	}
	if (!old || !other || fuzz_one_in(random, 6)) {
		fuzz_random_program(random, program);
	} else {
		*program = *old;
		fuzz_mutate(random, program, other);
	}
	return false;
}

/* Processes */

/* The part of the log that is process @number's. */
static bool log_open(__u32 number)
{
	const size_t size = LOGS * FUZZ_TEXT;
	int fd;

	if (!options.log)
		return true;
	fd = open(options.log, O_RDWR | O_CLOEXEC);
	worker.log = mmap(NULL, size, RW, MAP_SHARED, fd, number * size);
	close(fd);
	return worker.log != MAP_FAILED;
}

static bool worker_init(__u32 number)
{
	pthread_t thread;
	uintptr_t i;

	fuzz_counts = &shared->counts;
	for (i = 0; i <= FUZZ_THREADS; i++)
		cover_open(&worker.covers[i]);
	/* Children need theirs alone, and a fork would copy the tables of all. */
	for (i = 0; i < FUZZ_THREADS; i++)
		if (worker.covers[i].area)
			madvise(worker.covers[i].area, COVER_BYTES, MADV_DONTFORK);
	if (!log_open(number) || !fuzz_state_init(number == 0))
		return false;
	/* The threads open a file each. */
	thread_init(0);
	pthread_barrier_init(&worker.begin, NULL, FUZZ_THREADS);
	pthread_barrier_init(&worker.end, NULL, FUZZ_THREADS);
	for (i = 1; i < FUZZ_THREADS; i++)
		if (pthread_create(&thread, NULL, thread_main, (void *)i))
			return false;
	/* Once all threads have come this far their files are open. */
	worker.program = &(struct fuzz_program){};
	pthread_barrier_wait(&worker.begin);
	pthread_barrier_wait(&worker.end);
	fuzz.first = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fuzz.first >= 0;
}

static void worker_main(__u32 number, __u32 life)
{
	struct fuzz_random random = {
		.state = ((__u64)options.seed << 32) + ((__u64)number << 24) + life,
	};
	struct fuzz_program program;
	struct news news;
	bool trimmed;
	int i;

	if (!worker_init(number))
		_exit(2);
	for (i = 0; i < LIFETIME && !shared->stop; i++) {
		trimmed = choose_program(&random, &program);
		run_program(&program);
		if (i == LIFETIME - 1)
			break;
		news = find_news();
		fuzz_state_clear();
		if (!shared->first_pcs)
			shared->first_pcs = shared->covered.pc_count;
		if (news.pcs && !trimmed)
			trim(&program, &news);
		if (news.count)
			add_to_corpus(&program, news.pcs);
	}
	_exit(0);
}

static pid_t start_worker(__u32 number)
{
	static __u32 lives;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	lives++;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		worker_main(number, lives);
	}
	return pid;
}

static time_t now(void)
{
	return now_ms() / 1000;
}

static void report(time_t begin)
{
	const struct fuzz_counts *counts = &shared->counts;

	printf("# %ld s: %llu programs, %llu ioctls (%llu succeeded), %u places, corpus %u\n",
	       (long)(now() - begin), counts->programs, counts->ioctls, counts->succeeded,
	       shared->covered.pc_count, shared->corpus_count);
}

/* Whether @pid has ended, and how if that was wrong. */
static bool reap(pid_t pid, __u32 number, __u32 *died)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		(*died)++;
		printf("# process %u ended with status %#x\n", number, status);
	}
	return true;
}

/* Runs the processes until the time is over; how many died, or didn't end. */
static __u32 run_workers(void)
{
	time_t begin = now(), end = begin + options.seconds, next = begin + REPORT_EACH;
	pid_t pids[WORKERS_MAX];
	__u32 i, died = 0, left;

	for (i = 0; i < options.workers; i++)
		pids[i] = start_worker(i);
	do {
		usleep(50000);
		left = 0;
		shared->stop = now() >= end;
		for (i = 0; i < options.workers; i++) {
			if (pids[i] > 0 && reap(pids[i], i, &died))
				pids[i] = shared->stop ? 0 : start_worker(i);
			left += pids[i] > 0;
		}
		if (now() >= next) {
			report(begin);
			next += REPORT_EACH;
		}
	} while (left && now() < end + END_SECONDS);
	report(begin);
	for (i = 0; i < options.workers; i++)
		if (pids[i] > 0)
			printf("# process %u (%d) does not end\n", i, pids[i]);
	return died + left;
}

/* Begin and end */

static void fail_allocations(bool begin)
{
	static const char *const files[] = {
		"failslab/ignore-gfp-wait", "fail_page_alloc/ignore-gfp-wait",
		"fail_page_alloc/ignore-gfp-highmem",
	};
	char path[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", files[i]);
		write_file(path, begin ? "N" : "Y");
	}
	write_file("/sys/kernel/debug/failslab/verbose", "0");
	write_file("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	write_file("/sys/kernel/debug/fail_page_alloc/min-order", begin ? "0" : "1");
}

/* Names that stay until they are unlinked, of whichever namespace. */
static bool unlink_all(void)
{
	struct tshare_list_entry entries[16];
	int dev = open_device(), count, i;
	bool any;

	do {
		any = false;
		count = do_list(dev, TSHARE_LIST_ALL, entries, ARRAY_SIZE(entries));
		for (i = 0; i < count; i++)
			any |= entries[i].name[0] && !unlink_id(dev, entries[i].id);
	} while (any);
	close(dev);
	return count >= 0;
}

static bool give_back(void)
{
	bool done = unlink_all();

	write_file("/sys/module/tshare/parameters/max_mib", "0");
	write_file("/sys/module/tshare/parameters/user_max_mib", "0");
	write_file("/sys/module/tshare/parameters/ns_max_mib", "0");
	fail_allocations(false);
	return write_file(SYSFS "pool_node0/size", "0") && done;
}

static bool read_seed(const char *path)
{
	if (shared->seed_count == SEEDS_MAX ||
	    !fuzz_read_text(path, &shared->seeds[shared->seed_count]))
		return false;
	shared->seed_count++;
	return true;
}

static void read_corpus(void)
{
	struct dirent **names;
	int count = scandir(options.corpus, &names, NULL, alphasort), i;
	char path[600];

	if (count < 0)
		ksft_exit_fail_msg("%s: %m\n", options.corpus);
	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", options.corpus, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && !read_seed(path))
			ksft_exit_fail_msg("%s: not a program\n", path);
	}
}

static void save_corpus(void)
{
	char path[300], text[FUZZ_TEXT];
	__u32 i;
	int fd;

	for (i = 0; i < shared->corpus_count && i < CORPUS_MAX; i++) {
		if (!shared->corpus[i].first)
			continue;
		snprintf(path, sizeof(path), "%s/%04u", options.save, i);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		write(fd, text, fuzz_write_text(&shared->corpus[i].program, text));
		close(fd);
	}
}

static int replay(char **paths)
{
	unsigned int i;
	char **path;

	for (path = paths; *path; path++)
		if (!read_seed(*path))
			ksft_exit_fail_msg("%s: not a program\n", *path);
	if (!worker_init(0))
		return 1;
	for (i = 0; i < options.times; i++) {
		for (shared->seed_next = 0; shared->seed_next < shared->seed_count;
		     shared->seed_next++) {
			run_program(&shared->seeds[shared->seed_next]);
			fuzz_state_clear();
		}
	}
	return give_back() ? 0 : 1;
}

static void parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'e' },
		{ "workers", required_argument, NULL, 'w' },
		{ "corpus", required_argument, NULL, 'c' },
		{ "save", required_argument, NULL, 'a' },
		{ "log", required_argument, NULL, 'l' },
		{ "times", required_argument, NULL, 't' },
		{ "replay", no_argument, NULL, 'r' },
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) >= 0) {
		unsigned int number = optarg ? strtoul(optarg, NULL, 0) : 0;

		switch (option) {
		case 's':
			options.seconds = number;
			break;
		case 'e':
			options.seed = number;
			break;
		case 'w':
			options.workers = number;
			break;
		case 'c':
			options.corpus = optarg;
			break;
		case 'a':
			options.save = optarg;
			break;
		case 'l':
			options.log = optarg;
			break;
		case 't':
			options.times = number;
			break;
		case 'r':
			options.replay = true;
			break;
		default:
			exit(2);
		}
	}
	if (!options.workers || options.workers > WORKERS_MAX) {
		fprintf(stderr, "fuzz: --workers: 1 to %d\n", WORKERS_MAX);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	bool kcov = !access("/sys/kernel/debug/kcov", R_OK | W_OK), gave_back;
	const struct fuzz_counts *counts;
	__u32 died;

	parse_options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || !fuzz_memfds_init())
		ksft_exit_fail_msg("no memory: %m\n");
	counts = &shared->counts;
	fail_allocations(true);
	restore_limits();
	if (options.replay)
		return replay(argv + optind);
	if (options.corpus)
		read_corpus();
	ksft_print_header();
	ksft_set_plan(5);
	ksft_print_msg("seed %u\n", options.seed);
	died = run_workers();
	gave_back = give_back();
	if (options.save)
		save_corpus();

	if (counts->wrong)
		ksft_print_msg("ioctl %#x: error %d\n", counts->wrong_cmd, counts->wrong_error);
	ksft_test_result(counts->ioctls > 0, "fuzz.calls_were_made\n");
	if (kcov)
		ksft_test_result(shared->covered.pc_count > shared->first_pcs,
				 "fuzz.programs_reached_more_than_the_first_one\n");
	else
		ksft_test_result_skip("the kernel has no kcov\n");
	ksft_test_result(!counts->wrong, "fuzz.errors_are_those_that_the_header_names\n");
	ksft_test_result(!died, "fuzz.processes_ended_by_themselves\n");
	ksft_test_result(gave_back, "fuzz.names_and_the_pool_were_given_back\n");
	return ksft_get_fail_cnt() ? 1 : 0;
}
