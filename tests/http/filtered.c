/* Runs a program under a filter of system calls such as a service manager sets: those whose names stand in the file LIST
 * are allowed, all others fail. filtered LIST PROGRAM ARGUMENT... Names that this machine does not have are left out. */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char name[128];
	FILE *list = argc > 2 ? fopen(argv[1], "r") : NULL;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!list || !filter)
		return 99;
	while (fscanf(list, "%127s", name) == 1) {
		int call = seccomp_syscall_resolve_name(name);
		if (call != __NR_SCMP_ERROR)
			(void)seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
	}
	fclose(list);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || seccomp_load(filter) != 0)
		return 99;
	execv(argv[2], argv + 2);
	return 99;
}
