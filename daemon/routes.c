/* Finding routes. See routes.def. */
#include "daemon/server.h"

#include <stdio.h>
#include <string.h>

static const struct lth_route routes[] = {
#define LTH_ROUTE(method, path, body, role, handler, summary)                                                          \
	{#method, path, LTH_BODY_##body, LTH_ROLE_##role, handler},
#include "daemon/routes.def"
#undef LTH_ROUTE
};
enum { NUM_ROUTES = sizeof(routes) / sizeof(routes[0]) };
_Static_assert((int)NUM_ROUTES < (int)LTH_METRIC_ROUTES, "metrics has room for every route and for what matched none");

static bool matches(const char *pattern, const char *path, char *argument, size_t size)
{
	for (; *pattern; pattern++) {
		if (*pattern != '*') {
			if (*pattern != *path++)
				return false;
			continue;
		}
		size_t length = strcspn(path, "/");
		if (!length || length >= size)
			return false;
		memcpy(argument, path, length);
		argument[length] = 0;
		path += length;
	}
	return *path == 0;
}

void lth_routes_match(struct lth_request *request, const char *method, const char *path)
{
	char allowed[96] = "", argument[sizeof(request->argument)] = "";
	bool head = strcmp(method, "HEAD") == 0;
	request->route_number = NUM_ROUTES;
	for (unsigned i = 0; i < NUM_ROUTES; i++) {
		if (!matches(routes[i].path, path, argument, sizeof(argument)))
			continue;
		if (strcmp(routes[i].method, head ? "GET" : method) == 0) {
			request->route = &routes[i];
			request->route_number = i;
			request->head = head;
			memcpy(request->argument, argument, sizeof(argument));
			return;
		}
		size_t used = strlen(allowed);
		snprintf(allowed + used, sizeof(allowed) - used, "%s%s%s", used ? ", " : "", routes[i].method,
			 strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");
	}
	struct lth_diag diag = {0};
	if (allowed[0])
		lth_diag_fail(&diag, LTH_METHOD_NOT_ALLOWED, path, allowed, NULL, "the method %s", method);
	else
		lth_diag_fail(&diag, LTH_NOT_FOUND, path, NULL, "GET /openapi.yaml lists the addresses",
			      "no such address");
	lth_reply_problem(request, &diag, NULL);
	if (allowed[0])
		lth_reply_header(request, "Allow", allowed);
}

const char *lth_routes_name(unsigned number)
{
	return number < NUM_ROUTES ? routes[number].path : "none";
}
