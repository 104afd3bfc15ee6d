# What the tests of the daemon share; sourced by them. Each test has a folder and a daemon of its own, started with the
# worker double on a free port, and everything it started is gone when it ends.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/lathe-http.XXXXXX") || exit 99
daemon_pid=
background= # processes that are to end with the test, whichever way it does
export LATHED_CONFIG= # no settings of this machine
status=

finish() {
	code=$?
	trap - EXIT
	[ -n "$background" ] && kill $background 2>/dev/null && wait $background 2>/dev/null
	[ -n "$daemon_pid" ] && kill "$daemon_pid" 2>/dev/null && wait "$daemon_pid" 2>/dev/null
	if [ $code -ne 0 ] && [ $code -ne 77 ]; then
		echo "--- status $status, body:"; head -c 2000 "$work/body" 2>/dev/null | tr -cd '[:print:]\n'
		echo "--- daemon's log:"; tail -40 "$work/log" 2>/dev/null
	fi
	rm -rf "$work"
	exit $code
}
trap finish EXIT
trap 'exit 1' INT TERM

fail() {
	echo "FAIL: $*"
	exit 1
}

# wait_for SECONDS COMMAND...: until it succeeds; generous limits, they only matter when something is broken.
wait_for() {
	tries=$(($1 * 20))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.05
	done
}

is_ready() { curl -s -o /dev/null -f "$url/readyz"; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

# start_daemon [FLAGS]: listens on $url with state in $work/state; workers: two unless the flags say otherwise; $under, if
# set, is what the daemon runs under.
start_daemon() {
	rm -f "$work/port"
	${under-} "$build/daemon/lathed" --listen 127.0.0.1:0 --state-dir "$work/state" --port-file "$work/port" \
		--worker "$build/tests/http/lathe-worker-double" --workers 2 "$@" 2>>"$work/log" &
	daemon_pid=$!
	wait_for 20 test -s "$work/port" || fail "the daemon did not start"
	url=http://127.0.0.1:$(cat "$work/port")
	wait_for 20 is_ready || fail "the daemon did not get ready"
}

# Ends it in order and fails when it did not end well.
stop_daemon() {
	kill -TERM "$daemon_pid"
	wait "$daemon_pid"
	code=$?
	daemon_pid=
	[ $code -eq 0 ] || fail "the daemon ended with status $code"
}

# call CURL-ARGUMENTS: the answer in $work/body and $work/headers, its status in $status.
call() {
	status=$(curl -s -S -m 120 -o "$work/body" -D "$work/headers" -w '%{http_code}' "$@")
}

# compile MODEL-TEXT [QUERY] [CURL-ARGUMENTS]
compile() {
	printf '%s' "$1" >"$work/model"
	query=${2-}
	shift
	[ $# -gt 0 ] && shift
	call --data-binary "@$work/model" "$url/compile?$query" "$@"
}

expect() { # expect STATUS [TEXT-IN-BODY...]
	[ "$status" = "$1" ] || fail "status $status instead of $1"
	shift
	for text; do
		grep -qF -e "$text" "$work/body" || fail "no '$text' in the body"
	done
}

# open_gates: the jobs that run now and wait at their gate (see double.c) go on. Better than to hope that a job takes long
# enough: on a busy machine it does not.
open_gates() { for folder in "$work"/state/work/*/j*; do touch "$folder/open"; done; }

expect_header() { grep -qiF -e "$1" "$work/headers" || fail "no header '$1'"; }

# expect_problem STATUS SLUG [TEXT...]
expect_problem() {
	expect_header 'content-type: application/problem+json'
	wanted=$1
	slug=$2
	shift 2
	expect "$wanted" "\"type\":\"about:lathe:$slug\"" "\"status\":$wanted" "$@"
}

# field NAME [FILE]: a string member, the last of its name; of the last answer unless a file is given.
field() { sed -n "s/.*\"$1\":\"\\([^\"]*\\)\".*/\\1/p" "${2-$work/body}"; }
# job: the id of the last answer's job; one that has ended before its handle is on the disk is answered for at once.
job() { sed -n 's/^[Ll]athe-[Jj]ob: \(j[0-9a-f]*\).*/\1/p' "$work/headers"; }
metric() { curl -s "$url/metrics" | sed -n "s/^lathe_$1 //p"; }
expect_metric() { [ "$(metric "$1")" = "$2" ] || fail "lathe_$1 is $(metric "$1"), not $2"; }
digest_of() { printf 'sha256:%s' "$(sha256sum "$1" | cut -d' ' -f1)"; }

# Nothing may be left of a job: no temporary, no work folder of it.
expect_clean() {
	[ -z "$(ls -A "$work/state/tmp")" ] || fail "temporaries left: $(ls "$work/state/tmp")"
	[ -z "$(find "$work/state/work" -name "j*")" ] || fail "work left: $(find "$work/state/work" -name "j*")"
}
