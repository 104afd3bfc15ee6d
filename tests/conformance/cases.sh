# Runs all cases of a folder through one daemon and compares what passes with a list; sourced by the tests beside it.
#   run_cases FOLDER LIST: fails when a case that LIST names does not pass; names cases that pass and are not in it.
# With LATHE_UPDATE set the list is written anew, in the build folder, to be looked at and copied.
. "$(dirname "$0")/../http/harness.sh"

run_cases() {
	folder=$1 list=$here/$2
	start_daemon --worker "$build/compiler/lathe-worker"
	"$build/api/lathe" --server "$url" suite "$folder" --list-passed --case-time 60 >"$work/report" 2>"$work/errors"
	sed -n "s|^PASS $folder/\\([^ ]*\\) .*|\\1|p" "$work/report" | LC_ALL=C sort >"$work/passing"
	grep ' passed (' "$work/report" || fail "no report: $(tail -3 "$work/errors")"
	LC_ALL=C comm -23 "$list" "$work/passing" >"$work/lost"
	LC_ALL=C comm -13 "$list" "$work/passing" >"$work/gained"
	while read -r name; do
		echo "passed before: $(grep "^FAIL $folder/$name " "$work/report" || echo "$name, which is not there")"
	done <"$work/lost"
	sed 's/^/passes now: /' "$work/gained"
	[ -z "${LATHE_UPDATE:-}" ] || cp "$work/passing" "$build/tests/conformance/$2"
	expect_metric workers_crashed_total 0
	expect_clean
	stop_daemon
	[ ! -s "$work/lost" ] || fail "$(wc -l <"$work/lost") cases passed before"
}
