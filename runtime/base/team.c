/* Threads that are started and joined within a call. See team.h. */
#include "runtime/base/team.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct member {
	void (*work)(void *context, unsigned member);
	void *context;
	unsigned number;
	pthread_t thread;
	bool started;
};

static void *run(void *argument)
{
	struct member *member = argument;
	member->work(member->context, member->number);
	return NULL;
}

void lth_team_run(unsigned members, void (*work)(void *context, unsigned member), void *context)
{
	struct member *others = members > 1 ? calloc(members - 1, sizeof(*others)) : NULL;
	unsigned count = others ? members - 1 : 0;
	for (unsigned k = 0; k < count; k++) {
		others[k] = (struct member){.work = work, .context = context, .number = k + 1};
		others[k].started = pthread_create(&others[k].thread, NULL, run, &others[k]) == 0;
	}
	work(context, 0);
	for (unsigned k = 0; k < count; k++)
		if (others[k].started)
			pthread_join(others[k].thread, NULL);
	free(others);
}
