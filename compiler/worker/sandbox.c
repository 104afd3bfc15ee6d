/* The worker locks itself in before its first job: session, death signal, resource limits, no new privileges, no
 * capabilities, Landlock (files, and where it can also signals), system calls (calls.c). Each layer is used where the
 * kernel has it and named in `layers`; the daemon shows them. What stays possible: read the system's libraries and the
 * program's own installation, read the kernel cache, write in the work folder, execute the linker. See landlock(7). */
#include "compiler/worker/worker.h"
#include "runtime/base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stddef.h>
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

enum lth_code lth_worker_layer_failed(struct lth_diag *diag, const char *layer)
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
	return ok ? LTH_OK : lth_worker_layer_failed(diag, "resource limits");
}

/* Where the kernel schedules by sessions (see sched(7), autogroup), a nice value counts inside of one only, and the
 * session's own is a file: "/autogroup-N nice VALUE". Neither can fail in a way that matters. */
static void be_nice(int value, long parent)
{
	char path[48], text[64] = "";
	int of_daemon = 0;
	if (value <= 0)
		return;
	if (getpriority(PRIO_PROCESS, 0) < value) /* a daemon that was started nicer stays so */
		setpriority(PRIO_PROCESS, 0, value);
	snprintf(path, sizeof(path), "/proc/%ld/autogroup", parent);
	int daemon = open(path, O_RDONLY | O_CLOEXEC), own = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	if (daemon >= 0 && read(daemon, text, sizeof(text) - 1) > 0)
		sscanf(text, "%*s nice %d", &of_daemon);
	int size = snprintf(text, sizeof(text), "%d", of_daemon > value ? of_daemon : value);
	if (own >= 0 && write(own, text, (size_t)size) != size)
		errno = 0; /* as before, then */
	if (daemon >= 0)
		close(daemon);
	if (own >= 0)
		close(own);
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

/* A daemon of root's has workers of root's: they keep the one capability that leads to a state folder below a folder of
 * somebody else, where Landlock still has its say. See capabilities(7). */
static void drop_capabilities(json_t *layers)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
	const uint32_t kept = 1U << CAP_DAC_OVERRIDE;
	if (syscall(SYS_capget, &header, sets) != 0)
		return;
	for (unsigned long number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++)
		if (number != CAP_DAC_OVERRIDE)
			prctl(PR_CAPBSET_DROP, number, 0, 0, 0); /* not allowed without capabilities, nor needed */
	sets[0] = (struct __user_cap_data_struct){sets[0].effective & kept, sets[0].permitted & kept, 0};
	sets[1] = (struct __user_cap_data_struct){0};
	if (syscall(SYS_capset, &header, sets) == 0)
		json_array_append_new(layers, json_string("no_capabilities"));
}

/* --- Landlock: no wrappers in libc, and headers older than kernels: what came after version 1 is spelled out */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)
#define ACCESS_IOCTL_DEV (UINT64_C(1) << 15)
#define NET_TCP UINT64_C(3)
#define SCOPE_ALL UINT64_C(3) /* abstract Unix sockets, signals */
static const uint64_t READ_TREE = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t EXECUTE_TREE =
	LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
/* Files and folders, nothing that is a device, and nothing to execute. */
static const uint64_t WORK_TREE = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				  LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
				  LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
				  LANDLOCK_ACCESS_FS_REMOVE_DIR | ACCESS_TRUNCATE;

/* What a kernel's version of Landlock can be asked for: more each time, in a structure that grew. */
struct ruleset {
	uint64_t files, net, scoped;
};

static int create_ruleset(long abi, struct ruleset *out)
{
	size_t size = abi >= 6 ? sizeof(*out) : abi >= 4 ? offsetof(struct ruleset, scoped) : sizeof(out->files);
	*out = (struct ruleset){
		.files = ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1) | (abi >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
			 (abi >= 3 ? ACCESS_TRUNCATE : 0) | (abi >= 5 ? ACCESS_IOCTL_DEV : 0),
		.net = abi >= 4 ? NET_TCP : 0,
		.scoped = abi >= 6 ? SCOPE_ALL : 0,
	};
	return (int)syscall(SYS_landlock_create_ruleset, out, size, 0);
}

static bool allow(int ruleset, const struct ruleset *handled, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access & handled->files};
	struct stat info;
	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT; /* nothing there, nothing to allow */
	bool ok = fstat(rule.parent_fd, &info) == 0;
	if (ok && !S_ISDIR(info.st_mode))
		rule.allowed_access &=
			LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
			ACCESS_TRUNCATE;
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
		{"/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE},
	};
	char prefix[PATH_MAX];
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 1)
		return LTH_OK; /* this kernel has no Landlock, or it is switched off */
	struct ruleset handled;
	int ruleset = create_ruleset(abi, &handled);
	if (ruleset < 0)
		return lth_worker_layer_failed(diag, "landlock");
	bool ok = allow(ruleset, &handled, limits->work_dir, WORK_TREE);
	ok = ok && (!limits->kernel_cache || allow(ruleset, &handled, limits->kernel_cache, READ_TREE));
	ok = ok && (!own_prefix(prefix) || allow(ruleset, &handled, prefix, EXECUTE_TREE));
	for (size_t i = 0; ok && i < sizeof(system) / sizeof(system[0]); i++)
		ok = allow(ruleset, &handled, system[i].path, system[i].access);
	ok = ok && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
	int error = errno;
	close(ruleset);
	errno = error;
	if (!ok)
		return lth_worker_layer_failed(diag, "landlock");
	json_array_append_new(layers, json_string("landlock"));
	return LTH_OK;
}

enum lth_code lth_worker_lock_in(const struct lth_worker_limits *limits, json_t *layers, struct lth_diag *diag)
{
	setsid(); /* fails where the parent has made the session: just as good */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return lth_worker_layer_failed(diag, "death signal");
	if (limits->parent && getppid() != (pid_t)limits->parent)
		return lth_diag_fail(diag, LTH_CANCELLED, "start", NULL, NULL, "the daemon is gone already");
	be_nice(limits->nice, limits->parent);
	enum lth_code code = set_limits(limits, diag);
	if (code != LTH_OK)
		return code;
	json_array_append_new(layers, json_string("rlimits"));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return lth_worker_layer_failed(diag, "no_new_privs");
	json_array_append_new(layers, json_string("no_new_privs"));
	if (!limits->sandbox)
		return LTH_OK;
	drop_capabilities(layers);
	code = set_landlock(limits, layers, diag);
	return code == LTH_OK ? lth_worker_deny_calls(layers, diag) : code;
}
