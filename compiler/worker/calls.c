/* System calls that a worker is denied: by name, or by an argument that aims at somebody else. A list of what is
 * denied, not of what is allowed: the linker and the C library change their calls with every release, while what a
 * compiler has no business with stays the same. Children inherit it: the linker, measured runs. See seccomp(2). */
#include "compiler/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <unistd.h>

static const int denied[] = {
	/* the network, and processes beside this one */
	SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(bind), SCMP_SYS(connect), SCMP_SYS(kcmp), SCMP_SYS(listen),
	SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_open), SCMP_SYS(pidfd_send_signal), SCMP_SYS(process_madvise),
	SCMP_SYS(process_mrelease), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(ptrace),
	SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(socket), SCMP_SYS(tkill),
	/* files by another way than opening them, which Landlock does not see: the store is the same user's */
	SCMP_SYS(chmod), SCMP_SYS(chown), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(fchown), SCMP_SYS(fchownat),
	SCMP_SYS(fremovexattr), SCMP_SYS(fsetxattr), SCMP_SYS(futimesat), SCMP_SYS(lchown), SCMP_SYS(lremovexattr),
	SCMP_SYS(lsetxattr), SCMP_SYS(name_to_handle_at), SCMP_SYS(open_by_handle_at), SCMP_SYS(removexattr),
	SCMP_SYS(setxattr), SCMP_SYS(truncate), SCMP_SYS(utime), SCMP_SYS(utimensat), SCMP_SYS(utimes),
	/* what outlives a process */
	SCMP_SYS(add_key), SCMP_SYS(keyctl), SCMP_SYS(mq_open), SCMP_SYS(msgget), SCMP_SYS(request_key),
	SCMP_SYS(semget), SCMP_SYS(shmget),
	/* other views of the system */
	SCMP_SYS(chroot), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fsopen), SCMP_SYS(fspick), SCMP_SYS(mount),
	SCMP_SYS(mount_setattr), SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(pivot_root), SCMP_SYS(setns),
	SCMP_SYS(umount2), SCMP_SYS(unshare),
	/* the system itself, and large doors into the kernel */
	SCMP_SYS(acct), SCMP_SYS(adjtimex), SCMP_SYS(bpf), SCMP_SYS(clock_adjtime), SCMP_SYS(clock_settime),
	SCMP_SYS(delete_module), SCMP_SYS(fanotify_init), SCMP_SYS(finit_module), SCMP_SYS(init_module),
	SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register), SCMP_SYS(io_uring_setup), SCMP_SYS(ioperm),
	SCMP_SYS(iopl), SCMP_SYS(kexec_file_load), SCMP_SYS(kexec_load), SCMP_SYS(perf_event_open), SCMP_SYS(quotactl),
	SCMP_SYS(reboot), SCMP_SYS(setdomainname), SCMP_SYS(sethostname), SCMP_SYS(settimeofday), SCMP_SYS(swapoff),
	SCMP_SYS(swapon), SCMP_SYS(syslog), SCMP_SYS(userfaultfd), SCMP_SYS(vhangup),
};

/* Denied where an argument, masked, has a value. */
struct by_argument {
	int call;
	unsigned place;
	scmp_datum_t mask, value;
};

/* An int is the low half of a register: the kernel takes no notice of the other, and so must the filter. */
#define ALL_BITS 0xffffffffU
enum { IOCTL_FIOSETOWN = 0x8901, IOCTL_SIOCSPGRP = 0x8902, IOCTL_TIOCSTI = 0x5412 };
static const struct by_argument by_argument[] = {
	/* new namespaces, where a process would have capabilities again */
	{SCMP_SYS(clone), 0, CLONE_NEWUSER, CLONE_NEWUSER},
	{SCMP_SYS(clone), 0, CLONE_NEWNS, CLONE_NEWNS},
	{SCMP_SYS(clone), 0, CLONE_NEWNET, CLONE_NEWNET},
	{SCMP_SYS(clone), 0, CLONE_NEWPID, CLONE_NEWPID},
	/* signals by way of a file that becomes ready */
	{SCMP_SYS(fcntl), 1, ALL_BITS, F_SETOWN},
	{SCMP_SYS(fcntl), 1, ALL_BITS, F_SETOWN_EX},
	{SCMP_SYS(fcntl), 1, ALL_BITS, F_SETSIG},
	{SCMP_SYS(ioctl), 1, ALL_BITS, IOCTL_FIOSETOWN},
	{SCMP_SYS(ioctl), 1, ALL_BITS, IOCTL_SIOCSPGRP},
	{SCMP_SYS(ioctl), 1, ALL_BITS, IOCTL_TIOCSTI},
};

/* Denied where an argument names the daemon: threads raise signals in themselves by process id, and children of the
 * worker, who inherit this, have ids that nobody knows yet. */
static const struct by_argument at_daemon[] = {
	{SCMP_SYS(tgkill), 0, ALL_BITS, 0},            {SCMP_SYS(prlimit64), 0, ALL_BITS, 0},
	{SCMP_SYS(setpriority), 1, ALL_BITS, 0},       {SCMP_SYS(ioprio_set), 1, ALL_BITS, 0},
	{SCMP_SYS(sched_setaffinity), 0, ALL_BITS, 0}, {SCMP_SYS(sched_setattr), 0, ALL_BITS, 0},
	{SCMP_SYS(sched_setparam), 0, ALL_BITS, 0},    {SCMP_SYS(sched_setscheduler), 0, ALL_BITS, 0},
	{SCMP_SYS(migrate_pages), 0, ALL_BITS, 0},     {SCMP_SYS(move_pages), 0, ALL_BITS, 0},
};

static int deny(scmp_filter_ctx filter, const struct by_argument *row, scmp_datum_t value)
{
	const struct scmp_arg_cmp same = {
		.arg = row->place, .op = SCMP_CMP_MASKED_EQ, .datum_a = row->mask, .datum_b = value};
	return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), row->call, 1, &same);
}

static int add_rules(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp another = {.arg = 0, .op = SCMP_CMP_NE, .datum_a = (scmp_datum_t)getpid()};
	/* its flags are behind a pointer, where a filter cannot look: the C library takes clone() then */
	int error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	for (size_t i = 0; !error && i < sizeof(denied) / sizeof(denied[0]); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
	for (size_t i = 0; !error && i < sizeof(by_argument) / sizeof(by_argument[0]); i++)
		error = deny(filter, &by_argument[i], by_argument[i].value);
	for (size_t i = 0; !error && i < sizeof(at_daemon) / sizeof(at_daemon[0]); i++)
		error = deny(filter, &at_daemon[i], (scmp_datum_t)getppid());
	/* by process, its own id is as good as raise() needs */
	return error ? error : seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kill), 1, &another);
}

enum lth_code lth_worker_deny_calls(json_t *layers, struct lth_diag *diag)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "seccomp", NULL, NULL, "no memory for the filter");
	int error = add_rules(filter);
	if (!error)
		error = seccomp_load(filter);
	seccomp_release(filter);
	if (error == -EINVAL || error == -ENOSYS)
		return LTH_OK; /* this kernel has no seccomp filters */
	if (error) {
		errno = -error;
		return lth_worker_layer_failed(diag, "seccomp");
	}
	json_array_append_new(layers, json_string("seccomp"));
	return LTH_OK;
}
