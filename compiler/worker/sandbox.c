/* The worker locks itself in before its first job: session, death signal, resource limits, no new privileges, Landlock
 * (files), seccomp (system calls). Each layer is used where the kernel has it and named in `layers`; the daemon shows
 * them. What stays possible: read the system's libraries and the program's own installation, read the kernel cache,
 * write in the work folder, execute the linker. See landlock(7), seccomp(2). */
#include "compiler/worker/worker.h"
#include "runtime/base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OPEN_FILES = 1024 };

/* A sanitizer reserves terabytes of address space: the daemon's watch on resident memory stands in for the limit. */
#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* gcc */
#define SANITIZED
#endif
#ifdef SANITIZED
enum { ADDRESS_SPACE_LIMIT = 0 };
#else
enum { ADDRESS_SPACE_LIMIT = 1 };
#endif

static enum lth_code layer_failed(struct lth_diag *diag, const char *layer)
{
	return lth_diag_fail(diag, LTH_INTERNAL, layer, NULL, "start lathed with --worker-sandbox=no to go without it",
			     "the kernel refused: %s", strerror(errno));
}

static bool limit(int resource, uint64_t value)
{
	struct rlimit both = {.rlim_cur = value, .rlim_max = value};
	return setrlimit(resource, &both) == 0;
}

static enum lth_code set_limits(const struct lth_worker_limits *limits, struct lth_diag *diag)
{
	bool ok = limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, MAX_OPEN_FILES);
	if (ok && limits->memory_bytes && ADDRESS_SPACE_LIMIT)
		ok = limit(RLIMIT_AS, limits->memory_bytes);
	if (ok && limits->file_bytes)
		ok = limit(RLIMIT_FSIZE, limits->file_bytes);
	signal(SIGXFSZ, SIG_IGN); /* a file over its limit is EFBIG, an error like any other */
	return ok ? LTH_OK : layer_failed(diag, "resource limits");
}

/* Where the kernel schedules by sessions (see sched(7), autogroup), a nice value counts inside of one only, and the
 * session's own is a file. Neither can fail in a way that matters. */
static void be_nice(int value)
{
	char text[12];
	if (value <= 0)
		return;
	setpriority(PRIO_PROCESS, 0, value);
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t ignored = write(fd, text, (size_t)snprintf(text, sizeof(text), "%d", value));
	(void)ignored;
	close(fd);
}

void lth_worker_cpu_budget(uint64_t seconds)
{
	struct timespec used;
	struct rlimit both;
	if (!seconds || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0 || getrlimit(RLIMIT_CPU, &both) != 0)
		return;
	both.rlim_cur = (rlim_t)used.tv_sec + seconds + 1;
	setrlimit(RLIMIT_CPU, &both); /* the soft value only: each job moves it */
}

/* --- Landlock: no wrappers in libc */
static const uint64_t READ_TREE = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t EXECUTE_TREE =
	LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t HANDLED = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1; /* all of ABI 1 */

static bool allow(int ruleset, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access};
	struct stat info;
	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT; /* nothing there, nothing to allow */
	bool ok = fstat(rule.parent_fd, &info) == 0;
	if (ok && !S_ISDIR(info.st_mode))
		rule.allowed_access &=
			LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
	ok = ok && syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
	close(rule.parent_fd);
	return ok;
}

/* The folder above the program's own: its installation prefix, or the build tree. */
static bool own_prefix(char out_path[PATH_MAX])
{
	if (!lth_own_folder(out_path))
		return false;
	char *slash = strrchr(out_path, '/');
	if (!slash || slash == out_path)
		return false; /* never the root */
	*slash = 0;
	return true;
}

static enum lth_code set_landlock(const struct lth_worker_limits *limits, json_t *layers, struct lth_diag *diag)
{
	static const struct {
		const char *path;
		uint64_t access;
	} system[] = {
		{"/usr", EXECUTE_TREE},
		{"/lib", EXECUTE_TREE},
		{"/lib64", EXECUTE_TREE},
		{"/bin", EXECUTE_TREE},
		{"/proc", READ_TREE},
		{"/sys/devices/system/cpu", READ_TREE},
		{"/etc/ld.so.cache", LANDLOCK_ACCESS_FS_READ_FILE},
		{"/dev/urandom", LANDLOCK_ACCESS_FS_READ_FILE},
		{"/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE},
	};
	char prefix[PATH_MAX];
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 1)
		return LTH_OK; /* this kernel has no Landlock, or it is switched off */
	struct landlock_ruleset_attr attributes = {.handled_access_fs = HANDLED};
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
	if (ruleset < 0)
		return layer_failed(diag, "landlock");
	bool ok = allow(ruleset, limits->work_dir, HANDLED);
	ok = ok && (!limits->kernel_cache || allow(ruleset, limits->kernel_cache, READ_TREE));
	ok = ok && (!own_prefix(prefix) || allow(ruleset, prefix, EXECUTE_TREE));
	for (size_t i = 0; ok && i < sizeof(system) / sizeof(system[0]); i++)
		ok = allow(ruleset, system[i].path, system[i].access);
	ok = ok && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
	int error = errno;
	close(ruleset);
	errno = error;
	if (!ok)
		return layer_failed(diag, "landlock");
	json_array_append_new(layers, json_string("landlock"));
	return LTH_OK;
}

/* A list of what is denied, not of what is allowed: the linker and the C library change their calls with every
 * release, while what a compiler has no business with stays the same. */
static enum lth_code set_seccomp(json_t *layers, struct lth_diag *diag)
{
	static const int denied[] = {
		SCMP_SYS(accept),
		SCMP_SYS(accept4),
		SCMP_SYS(acct),
		SCMP_SYS(add_key),
		SCMP_SYS(adjtimex),
		SCMP_SYS(bind),
		SCMP_SYS(bpf),
		SCMP_SYS(chroot),
		SCMP_SYS(clock_settime),
		SCMP_SYS(connect),
		SCMP_SYS(delete_module),
		SCMP_SYS(finit_module),
		SCMP_SYS(fsconfig),
		SCMP_SYS(fsmount),
		SCMP_SYS(fsopen),
		SCMP_SYS(init_module),
		SCMP_SYS(io_uring_enter),
		SCMP_SYS(io_uring_setup),
		SCMP_SYS(io_uring_register),
		SCMP_SYS(kcmp),
		SCMP_SYS(kexec_load),
		SCMP_SYS(keyctl),
		SCMP_SYS(listen),
		SCMP_SYS(mount),
		SCMP_SYS(move_mount),
		SCMP_SYS(name_to_handle_at),
		SCMP_SYS(open_by_handle_at),
		SCMP_SYS(open_tree),
		SCMP_SYS(perf_event_open),
		SCMP_SYS(pidfd_getfd),
		SCMP_SYS(pidfd_send_signal),
		SCMP_SYS(pivot_root),
		SCMP_SYS(process_vm_readv),
		SCMP_SYS(process_vm_writev),
		SCMP_SYS(ptrace),
		SCMP_SYS(quotactl),
		SCMP_SYS(reboot),
		SCMP_SYS(request_key),
		SCMP_SYS(rt_sigqueueinfo),
		SCMP_SYS(rt_tgsigqueueinfo),
		SCMP_SYS(sethostname),
		SCMP_SYS(setns),
		SCMP_SYS(settimeofday),
		SCMP_SYS(socket),
		SCMP_SYS(swapoff),
		SCMP_SYS(swapon),
		SCMP_SYS(tkill),
		SCMP_SYS(umount2),
		SCMP_SYS(unshare),
		SCMP_SYS(userfaultfd),
	};
	const struct scmp_arg_cmp another = {.arg = 0, .op = SCMP_CMP_NE, .datum_a = (scmp_datum_t)getpid()};
	const struct scmp_arg_cmp daemon = {.arg = 0, .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t)getppid()};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "seccomp", NULL, NULL, "no memory for the filter");
	int error = 0;
	for (size_t i = 0; !error && i < sizeof(denied) / sizeof(denied[0]); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
	/* another process may not be signalled; its own id is as good as raise() needs. Threads by process id only
	 * where that is not the daemon's: children of the worker, who inherit this, raise signals in themselves so. */
	if (!error)
		error = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kill), 1, &another);
	if (!error)
		error = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1, &daemon);
	if (!error)
		error = seccomp_load(filter);
	seccomp_release(filter);
	if (error == -EINVAL || error == -ENOSYS)
		return LTH_OK; /* this kernel has no seccomp filters */
	if (error) {
		errno = -error;
		return layer_failed(diag, "seccomp");
	}
	json_array_append_new(layers, json_string("seccomp"));
	return LTH_OK;
}

enum lth_code lth_worker_lock_in(const struct lth_worker_limits *limits, json_t *layers, struct lth_diag *diag)
{
	setsid(); /* fails where the parent has made the session: just as good */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return layer_failed(diag, "death signal");
	if (limits->parent && getppid() != (pid_t)limits->parent)
		return lth_diag_fail(diag, LTH_CANCELLED, "start", NULL, NULL, "the daemon is gone already");
	be_nice(limits->nice);
	enum lth_code code = set_limits(limits, diag);
	if (code != LTH_OK)
		return code;
	json_array_append_new(layers, json_string("rlimits"));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return layer_failed(diag, "no_new_privs");
	json_array_append_new(layers, json_string("no_new_privs"));
	if (!limits->sandbox)
		return LTH_OK;
	code = set_landlock(limits, layers, diag);
	return code == LTH_OK ? set_seccomp(layers, diag) : code;
}
