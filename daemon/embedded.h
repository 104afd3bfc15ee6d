/* Files that the build puts into the program as text; made by local.mk. */
#ifndef LTH_DAEMON_EMBEDDED_H
#define LTH_DAEMON_EMBEDDED_H

extern const char lth_web_page[];     /* web/index.html */
extern const char lth_openapi_text[]; /* api/openapi.yaml */

#endif
