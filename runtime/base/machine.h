/* What of the machine this process may use: its CPUs and its memory, by affinity and by the limits of its control
 * groups (version 2, at /sys/fs/cgroup), which is what a container or a service unit sets. Thread rule: reentrant. */
#ifndef LTH_BASE_MACHINE_H
#define LTH_BASE_MACHINE_H

#include <stdint.h>

/* `root` is "", or a folder that stands in for the root of the file system, for tests. Neither is ever 0. A share of a
 * CPU counts as one. */
uint64_t lth_machine_cpus(const char *root);
uint64_t lth_machine_memory_bytes(const char *root);

#endif
