/* Tokens. See auth.h. */
#include "daemon/auth.h"
#include "runtime/base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { SHORTEST_TOKEN = 16, FILE_LIMIT = 1 << 20 };

static enum lth_code read_line(struct lth_tokens *tokens, char *line, const char *place, struct lth_diag *diag)
{
	static const char *const roles[] = {"open", "read", "submit", "admin"};
	struct lth_token token = {.role = LTH_NUM_ROLE};
	char *rest = line, *words[4] = {NULL};
	size_t count = 0;
	for (char *word; count < 4 && (word = strsep(&rest, " \t\r")) != NULL;)
		if (*word)
			words[count++] = word;
	if (!count || words[0][0] == '#')
		return LTH_OK;
	for (int role = LTH_ROLE_READ; count > 1 && role < LTH_NUM_ROLE; role++)
		if (strcmp(words[1], roles[role]) == 0)
			token.role = (enum lth_role)role;
	if (count < 2 || count > 3 || token.role == LTH_NUM_ROLE) /* never quotes the line: it is a secret */
		return lth_diag_fail(diag, LTH_INVALID_OPTION, place, "TOKEN read|submit|admin [NAME]", NULL,
				     "another line");
	if (strlen(words[0]) < SHORTEST_TOKEN)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, place, "at least 16 letters",
				     "openssl rand -hex 24 makes a good one", "a token that can be guessed");
	lth_sha256_text(words[0], strlen(words[0]), token.digest);
	snprintf(token.name, sizeof(token.name), "%s", count == 3 ? words[2] : words[1]);
	struct lth_token *list = realloc(tokens->list, (tokens->count + 1) * sizeof(*list));
	if (!list)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, place, NULL, NULL, "a token");
	list[tokens->count++] = token;
	tokens->list = list;
	return LTH_OK;
}

enum lth_code lth_tokens_load(struct lth_tokens *tokens, const char *path, struct lth_diag *diag)
{
	struct lth_tokens fresh = {0};
	struct stat info;
	char *text, place[4096];
	size_t size;
	unsigned number = 0;
	if (stat(path, &info) == 0 && (info.st_mode & (S_IROTH | S_IWOTH)))
		return lth_diag_fail(diag, LTH_INVALID_OPTION, path, "a file that only its owner reads", "chmod 600",
				     "mode %o", (unsigned)info.st_mode & 0777);
	enum lth_code code = lth_read_file(path, FILE_LIMIT, &text, &size, diag);
	if (code != LTH_OK)
		return code;
	char *rest = text;
	for (char *line; code == LTH_OK && (line = strsep(&rest, "\n")) != NULL;) {
		snprintf(place, sizeof(place), "%s:%u", path, ++number);
		code = read_line(&fresh, line, place, diag);
	}
	explicit_bzero(text, size);
	free(text);
	if (code == LTH_OK && !fresh.count)
		code = lth_diag_fail(diag, LTH_INVALID_OPTION, path, "at least one token", NULL, "none");
	if (code != LTH_OK) {
		lth_tokens_free(&fresh);
		return code;
	}
	lth_tokens_free(tokens);
	*tokens = fresh;
	return LTH_OK;
}

void lth_tokens_free(struct lth_tokens *tokens)
{
	free(tokens->list);
	*tokens = (struct lth_tokens){0};
}

const struct lth_token *lth_tokens_find(const struct lth_tokens *tokens, const char *authorization)
{
	const struct lth_token *found = NULL;
	char digest[LTH_DIGEST_TEXT];
	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return NULL;
	lth_sha256_text(authorization + 7, strlen(authorization + 7), digest);
	for (size_t i = 0; i < tokens->count; i++) { /* all of them, all letters: time tells nothing */
		unsigned differs = 0;
		for (int letter = 0; letter < LTH_DIGEST_TEXT; letter++)
			differs |= (unsigned)(tokens->list[i].digest[letter] ^ digest[letter]);
		found = differs ? found : &tokens->list[i];
	}
	return found;
}
