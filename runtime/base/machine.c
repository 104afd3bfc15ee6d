/* CPUs and memory of this process. See machine.h, sched_getaffinity(2), and the kernel's cgroup-v2 document for
 * memory.max and cpu.max; the limits of all groups above hold too. */
#include "runtime/base/machine.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* At most size - 1 bytes as a string; empty where there is no such file. */
static void read_text(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd >= 0 ? read(fd, out, size - 1) : 0;
	if (fd >= 0)
		close(fd);
	out[count > 0 ? count : 0] = 0;
}

/* Of the lines of /proc/self/cgroup the one of version 2: "0::/a/b". */
static void own_group(const char *root, char out[PATH_MAX])
{
	char path[PATH_MAX], text[PATH_MAX];
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	read_text(path, text, sizeof(text));
	const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	line = line ? strchr(line, '/') : NULL;
	snprintf(out, PATH_MAX, "%.*s", line ? (int)strcspn(line, "\n") : 0, line ? line : "");
}

/* The least limit that `file` gives in the group and those above it, as `read_limit` reads one (0: none). */
static uint64_t least_limit(const char *root, const char *file, uint64_t (*read_limit)(const char *text))
{
	char group[PATH_MAX], path[2 * PATH_MAX], text[128];
	uint64_t least = UINT64_MAX;
	own_group(root, group);
	for (;;) {
		snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s/%s", root, group, file);
		read_text(path, text, sizeof(text));
		uint64_t limit = read_limit(text);
		if (limit && limit < least)
			least = limit;
		char *slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = 0;
	}
}

static uint64_t read_bytes(const char *text)
{
	return strtoull(text, NULL, 10); /* "max" is none */
}

static uint64_t read_cpus(const char *text)
{
	unsigned long long quota = 0, period = 0;
	if (sscanf(text, "%llu %llu", &quota, &period) != 2 || !quota || !period)
		return 0; /* "max 100000" */
	return quota / period + (quota % period != 0);
}

uint64_t lth_machine_cpus(const char *root)
{
	cpu_set_t set;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0; /* fails above 1024 CPUs */
	uint64_t cpus = allowed > 0 ? (uint64_t)allowed : online > 0 ? (uint64_t)online : 1;
	uint64_t limit = least_limit(root, "cpu.max", read_cpus);
	return limit < cpus ? limit : cpus;
}

uint64_t lth_machine_memory_bytes(const char *root)
{
	uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t limit = least_limit(root, "memory.max", read_bytes);
	return limit < physical ? limit : physical;
}
