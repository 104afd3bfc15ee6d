/* A few threads for the length of one call, for work that is handed out in pieces. */
#ifndef LTH_TEAM_H
#define LTH_TEAM_H

/* Calls `work` once a member, with its number, on `members` threads at a time, and returns when all have. The caller's
 * thread is member 0; of the others those may be missing that could not be started, so members take their share of the
 * work when they come. */
void lth_team_run(unsigned members, void (*work)(void *context, unsigned member), void *context);

#endif
