/* The client library from C, as its header shows it: compiles a model, fetches the artifact, reads a problem. Called
 * with the daemon's address and a model by the test client-library-from-c. */
#include "api/lathe_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path, size_t *out_size)
{
	enum { MOST = 16 << 20 };
	FILE *file = fopen(path, "rb");
	char *bytes = malloc(MOST);
	if (!file || !bytes) {
		fprintf(stderr, "%s: cannot be read\n", path);
		exit(99);
	}
	*out_size = fread(bytes, 1, MOST, file);
	fclose(file);
	return bytes;
}

int main(int argc, char **argv)
{
	struct lathe_client *client;
	struct lathe_problem problem;
	struct lathe_reply reply, blob;
	struct lathe_client_settings settings = {.server = argc > 1 ? argv[1] : NULL, .retries = -1};
	struct lathe_compile compile = {.query = "dim=batch=1:4", .accept = "application/json"};
	char digest[LATHE_DIGEST_TEXT];
	char *bytes = read_file(argc > 2 ? argv[2] : "", &compile.model_bytes);
	compile.model = bytes;
	if (lathe_client_create(&settings, &client, &problem) ||
	    lathe_client_compile(client, &compile, &reply, &problem)) {
		fprintf(stderr, "%s\n", problem.text);
		return problem.exit_code;
	}
	char *at = strstr(reply.body, "\"kind\":\"so\",\"digest\":\"");
	if (!at) {
		fprintf(stderr, "no artifact in %s\n", reply.body);
		return 99;
	}
	memcpy(digest, at + strlen("\"kind\":\"so\",\"digest\":\""), LATHE_DIGEST_TEXT - 1);
	digest[LATHE_DIGEST_TEXT - 1] = 0;
	if (lathe_client_blob(client, digest, &blob, &problem)) {
		fprintf(stderr, "%s\n", problem.text);
		return problem.exit_code;
	}
	printf("%s: %zu bytes, ELF %d\n", digest, blob.bytes, memcmp(blob.body, "\177ELF", 4) == 0);
	lathe_reply_free(&blob);
	lathe_reply_free(&reply);
	compile.query = "opt_levle=3";
	int code = lathe_client_compile(client, &compile, &reply, &problem);
	printf("%d %d %s: %s\n", code, problem.status, problem.type, problem.advice);
	lathe_client_destroy(&client);
	free(bytes);
	return 0;
}
