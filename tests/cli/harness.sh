# What the tests of the command line share, on top of what those of the daemon share: a daemon with real workers, the
# program under test as `lathe`, and checks of what it printed.
http=$(cd "$(dirname "$0")/../http" && pwd)
. "$http/harness.sh"
digits=$here/../../examples/digits
unset LATHE_SERVER LATHE_TOKEN

# serve [FLAGS]: a daemon with real workers; $LATHE_SERVER is its address from now on.
serve() {
	start_daemon --worker "$build/compiler/lathe-worker" "$@"
	LATHE_SERVER=$url
	export LATHE_SERVER
}

# lathe ARGUMENTS: into $work/out and $work/err; its exit status in $code.
lathe() {
	"$build/api/lathe" "$@" >"$work/out" 2>"$work/err"
	code=$?
	cat "$work/out" "$work/err" >"$work/body" # what finish shows of a failure
	status=$code
}

# expect_exit CODE [TEXT...]: in what it printed, on either stream.
expect_exit() {
	[ "$code" = "$1" ] || fail "exit status $code instead of $1"
	shift
	for text; do
		grep -qF -e "$text" "$work/out" "$work/err" || fail "no '$text' in what it printed"
	done
}
