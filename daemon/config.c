/* Settings of lathed. See config.h and config.def. */
#include "daemon/config.h"
#include "runtime/base/io.h"
#include "runtime/base/machine.h"
#include "runtime/base/place.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { KIND_TEXT, KIND_COUNT, KIND_BYTES, KIND_MS, KIND_YESNO };

struct setting {
	const char *name, *value, *argument, *help;
	enum kind kind;
	bool reload;
	size_t offset;
};

static const struct setting settings[] = {
#define LTH_CONFIG(name, type, value, argument, reload, help) \
	{#name, value, argument, help, KIND_##type, reload, offsetof(struct lth_config, name)},
#include "daemon/config.def"
#undef LTH_CONFIG
};
enum { NUM_SETTINGS = sizeof(settings) / sizeof(settings[0]) };

struct unit {
	const char *name;
	uint64_t factor;
};
static const struct unit byte_units[] = {
	{"", 1}, {"B", 1}, {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1ull << 30}, {"TiB", 1ull << 40}, {NULL, 0}};
static const struct unit time_units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

static void *field(struct lth_config *config, const struct setting *setting)
{
	return (char *)config + setting->offset;
}

static bool parse_number(const char *text, const struct unit *units, uint64_t *out)
{
	char *end;
	errno = 0;
	if (!isdigit((unsigned char)text[0]))
		return false;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno)
		return false;
	while (*end == ' ')
		end++;
	for (; units->name; units++)
		if (strcasecmp(units->name, end) == 0)
			return !__builtin_mul_overflow((uint64_t)number, units->factor, out);
	return false;
}

static enum lth_code assign(struct lth_config *config, const struct setting *setting, const char *text,
			    const char *place, struct lth_diag *diag)
{
	static const struct unit *const units[] = {
		[KIND_COUNT] = no_units, [KIND_BYTES] = byte_units, [KIND_MS] = time_units};
	static const char *const expected[] = {[KIND_COUNT] = "a whole number",
					       [KIND_BYTES] = "a size such as 512MiB",
					       [KIND_MS] = "a time such as 500ms, 30s or 10min",
					       [KIND_YESNO] = "yes or no"};
	void *target = field(config, setting);
	uint64_t number;
	switch (setting->kind) {
	case KIND_TEXT: {
		char *copy = strdup(text);
		if (!copy)
			return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, place, NULL, NULL, "a setting");
		free(*(char **)target);
		*(char **)target = copy;
		return LTH_OK;
	}
	case KIND_YESNO:
		if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
			break;
		*(bool *)target = text[0] == 'y';
		return LTH_OK;
	default:
		if (!parse_number(text, units[setting->kind], &number))
			break;
		*(uint64_t *)target = number;
		return LTH_OK;
	}
	return lth_diag_fail(diag, LTH_INVALID_OPTION, place, expected[setting->kind], NULL, "%s = %s", setting->name,
			     text);
}

static const struct setting *find(const char *name, size_t length)
{
	for (size_t i = 0; i < NUM_SETTINGS; i++) {
		const char *own = settings[i].name;
		size_t at = 0;
		while (at < length && own[at] && (own[at] == name[at] || (own[at] == '_' && name[at] == '-')))
			at++;
		if (at == length && !own[at])
			return &settings[i];
	}
	return NULL;
}

static enum lth_code unknown(const char *name, const char *place, struct lth_diag *diag)
{
	const char *names[NUM_SETTINGS];
	char word[64], advice[128];
	for (size_t i = 0; i < NUM_SETTINGS; i++)
		names[i] = settings[i].name;
	snprintf(word, sizeof(word), "%s", name);
	for (char *c = word; *c; c++)
		*c = *c == '-' ? '_' : *c;
	const char *nearest = lth_nearest(word, names, NUM_SETTINGS);
	snprintf(advice, sizeof(advice), "did you mean %s?", nearest ? nearest : "--help");
	return lth_diag_fail(diag, LTH_INVALID_OPTION, place, NULL, advice, "the unknown setting '%s'", name);
}

static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	char *end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	return text;
}

static enum lth_code read_line(struct lth_config *config, char *line, const char *place, struct lth_diag *diag)
{
	line = trim(line);
	if (!*line || *line == '#')
		return LTH_OK;
	char *equals = strchr(line, '=');
	if (!equals)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, place, "name = value", NULL, "'%s'", line);
	*equals = 0;
	char *name = trim(line), *value = trim(equals + 1);
	const struct setting *setting = find(name, strlen(name));
	return setting ? assign(config, setting, value, place, diag) : unknown(name, place, diag);
}

static enum lth_code read_file(struct lth_config *config, struct lth_diag *diag)
{
	char *text, place[PATH_MAX + 24];
	size_t size;
	unsigned number = 0;
	enum lth_code code = lth_read_file(config->file, 1u << 20, &text, &size, diag);
	if (code != LTH_OK)
		return code;
	char *rest = text;
	for (char *line; code == LTH_OK && (line = strsep(&rest, "\n")) != NULL;) {
		snprintf(place, sizeof(place), "%s:%u", config->file, ++number);
		code = read_line(config, line, place, diag);
	}
	free(text);
	return code;
}

static enum lth_code read_environment(struct lth_config *config, struct lth_diag *diag)
{
	for (size_t i = 0; i < NUM_SETTINGS; i++) {
		char name[64] = "LATHED_";
		size_t at = strlen(name);
		for (const char *c = settings[i].name; *c; c++)
			name[at++] = (char)toupper((unsigned char)*c);
		name[at] = 0;
		const char *value = getenv(name);
		enum lth_code code = value ? assign(config, &settings[i], value, name, diag) : LTH_OK;
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

/* `--name value` and `--name=value`. */
static enum lth_code read_flags(struct lth_config *config, int argc, char **argv, enum lth_config_action *action,
				bool only_file, struct lth_diag *diag)
{
	for (int i = 1; i < argc; i++) {
		const char *flag = argv[i];
		static const struct {
			const char *flag;
			enum lth_config_action action;
		} actions[] = {{"--help", LTH_CONFIG_HELP},
			       {"--version", LTH_CONFIG_VERSION},
			       {"--print-config", LTH_CONFIG_REFERENCE},
			       {"--print-manual", LTH_CONFIG_MANUAL}};
		bool is_action = false;
		for (size_t known = 0; known < sizeof(actions) / sizeof(actions[0]); known++)
			if (strcmp(flag, actions[known].flag) == 0) {
				*action = actions[known].action;
				is_action = true;
			}
		if (is_action)
			continue;
		if (strncmp(flag, "--", 2) != 0)
			return lth_diag_fail(diag, LTH_INVALID_OPTION, "command line", "flags; see --help", NULL,
					     "'%s'", flag);
		const char *name = flag + 2, *equals = strchr(name, '=');
		size_t length = equals ? (size_t)(equals - name) : strlen(name);
		const char *value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
		bool is_file = length == 6 && strncmp(name, "config", 6) == 0;
		const struct setting *setting = is_file ? NULL : find(name, length);
		if (!is_file && !setting)
			return unknown(name, "command line", diag);
		if (!value)
			return lth_diag_fail(diag, LTH_INVALID_OPTION, "command line", "a value", NULL,
					     "'%s' and the end", flag);
		if (is_file && only_file) {
			free(config->file);
			config->file = strdup(value);
		}
		enum lth_code code = setting && !only_file ? assign(config, setting, value, flag, diag) : LTH_OK;
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

/* --- what follows from the settings */
static enum lth_code split_listen(struct lth_config *config, struct lth_diag *diag)
{
	if (strncmp(config->listen, "unix:/", 6) == 0)
		return LTH_OK;
	char *colon = strrchr(config->listen, ':');
	size_t length = colon ? (size_t)(colon - config->listen) : 0;
	const char *host = config->listen;
	if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
		host++;
		length -= 2;
	}
	if (!colon || !length || !colon[1])
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "listen", "ADDRESS:PORT", NULL, "'%s'", config->listen);
	config->host = strndup(host, length);
	config->port = strdup(colon + 1);
	return config->host && config->port ? LTH_OK
					    : lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "listen", NULL, NULL, "its text");
}

static char *path_printf(const char *format, const char *a, const char *b)
{
	char *text;
	return asprintf(&text, format, a, b) < 0 ? NULL : text;
}

static enum lth_code find_state_dir(struct lth_config *config, struct lth_diag *diag)
{
	if (config->state_dir[0])
		return LTH_OK;
	const char *given = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	if (given && *given)
		path = strdup(given);
	else if (xdg && *xdg)
		path = path_printf("%s/%s", xdg, "lathe");
	else if (home && *home)
		path = path_printf("%s/%s", home, ".local/state/lathe");
	if (!path)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "state_dir", "a folder", "pass --state-dir DIR",
				     "no setting, no $STATE_DIRECTORY and no $HOME");
	free(config->state_dir);
	config->state_dir = path;
	return LTH_OK;
}

/* The setting; else the program of the same installation, wherever that has been moved, or of the same build; else the
 * one at the configured place. */
static enum lth_code find_worker(struct lth_config *config, struct lth_diag *diag)
{
	static const char installed[] = LATHE_LIBEXECDIR "/lathe-worker";
	char moved[PATH_MAX] = "", built[PATH_MAX + 32] = "", own[PATH_MAX];
	if (!lth_moved_path(LATHE_SBINDIR, installed, moved))
		moved[0] = 0;
	if (lth_own_folder(own))
		snprintf(built, sizeof(built), "%s/../compiler/lathe-worker", own);
	const char *const candidates[] = {config->worker, moved, built, installed};
	size_t count = config->worker[0] ? 1 : sizeof(candidates) / sizeof(candidates[0]);
	for (size_t i = 0; i < count && !config->worker_path; i++)
		if (access(candidates[i], X_OK) == 0)
			config->worker_path = realpath(candidates[i], NULL);
	if (config->worker_path)
		return LTH_OK;
	return lth_diag_fail(diag, LTH_NOT_FOUND, "worker", "an executable file", "pass --worker FILE", "nothing at %s",
			     config->worker[0] ? config->worker : moved[0] ? moved : installed);
}

static enum lth_code derive(struct lth_config *config, struct lth_diag *diag)
{
	static const char *const levels[] = {"debug", "info", "warn", "error", "none"};
	enum lth_code code = LTH_NUM_CODES;
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(config->log_level, levels[i]) == 0) {
			config->log_threshold = (enum lth_log_level)i;
			code = LTH_OK;
		}
	if (code != LTH_OK)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "log_level", "debug, info, warn, error or none", NULL,
				     "'%s'", config->log_level);
	if (config->worker_nice > 19)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "worker_nice", "0 to 19", NULL, "%llu",
				     (unsigned long long)config->worker_nice);
	config->num_cpus = lth_machine_cpus("");
	if (!config->workers)
		config->workers = config->num_cpus;
	if (!config->memory_budget_bytes)
		config->memory_budget_bytes = lth_machine_memory_bytes("") / 5 * 4;
	code = split_listen(config, diag);
	code = code == LTH_OK ? find_state_dir(config, diag) : code;
	return code == LTH_OK ? find_worker(config, diag) : code;
}

/* $LATHED_CONFIG (empty: none), else the file of this installation where there is one, else the system's. */
static char *standard_file(void)
{
	static const char standard[] = LATHE_SYSCONFDIR "/lathe/lathed.conf";
	char moved[PATH_MAX];
	const char *given = getenv("LATHED_CONFIG");
	if (given)
		return *given ? strdup(given) : NULL;
	if (lth_moved_path(LATHE_SBINDIR, standard, moved) && access(moved, R_OK) == 0)
		return realpath(moved, NULL);
	return access(standard, R_OK) == 0 ? strdup(standard) : NULL;
}

enum lth_code lth_config_load(int argc, char **argv, struct lth_config *out_config, enum lth_config_action *out_action,
			      struct lth_diag *diag)
{
	struct lth_config config = {0};
	enum lth_config_action action = LTH_CONFIG_RUN;
	enum lth_code code = LTH_OK;
	for (size_t i = 0; code == LTH_OK && i < NUM_SETTINGS; i++)
		code = assign(&config, &settings[i], settings[i].value, "default", diag);
	if (code == LTH_OK)
		code = read_flags(&config, argc, argv, &action, true, diag);
	if (code == LTH_OK && !config.file)
		config.file = standard_file();
	if (code == LTH_OK && config.file)
		code = read_file(&config, diag);
	if (code == LTH_OK)
		code = read_environment(&config, diag);
	if (code == LTH_OK)
		code = read_flags(&config, argc, argv, &action, false, diag);
	if (code == LTH_OK && action == LTH_CONFIG_RUN)
		code = derive(&config, diag);
	if (code != LTH_OK) {
		lth_config_free(&config);
		return code;
	}
	*out_config = config;
	*out_action = action;
	return LTH_OK;
}

static bool same(struct lth_config *a, struct lth_config *b, const struct setting *setting)
{
	if (setting->kind == KIND_TEXT)
		return strcmp(*(char **)field(a, setting), *(char **)field(b, setting)) == 0;
	if (setting->kind == KIND_YESNO)
		return *(bool *)field(a, setting) == *(bool *)field(b, setting);
	return *(uint64_t *)field(a, setting) == *(uint64_t *)field(b, setting);
}

void lth_config_reload(struct lth_config *config, struct lth_config *fresh, const struct lth_log *log)
{
	for (size_t i = 0; i < NUM_SETTINGS; i++) {
		const struct setting *setting = &settings[i];
		if (same(config, fresh, setting))
			continue;
		lth_log_event(log, LTH_LOG_INFO, NULL, "setting-changed", "name", setting->name, "takes_effect",
			      setting->reload ? "now" : "at the next start", NULL);
		if (!setting->reload)
			continue;
		if (setting->kind == KIND_TEXT) {
			char *old = *(char **)field(config, setting);
			*(char **)field(config, setting) = *(char **)field(fresh, setting);
			*(char **)field(fresh, setting) = old;
		} else if (setting->kind == KIND_YESNO) {
			*(bool *)field(config, setting) = *(bool *)field(fresh, setting);
		} else {
			*(uint64_t *)field(config, setting) = *(uint64_t *)field(fresh, setting);
		}
	}
	config->log_threshold = fresh->log_threshold;
}

void lth_config_free(struct lth_config *config)
{
	for (size_t i = 0; i < NUM_SETTINGS; i++)
		if (settings[i].kind == KIND_TEXT)
			free(*(char **)field(config, &settings[i]));
	free(config->file);
	free(config->host);
	free(config->port);
	free(config->worker_path);
	*config = (struct lth_config){0};
}
