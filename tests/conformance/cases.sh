# Runs all cases of a folder through one daemon and compares what passes with a list; sourced by the tests beside it.
#   run_cases FOLDER LIST: fails when a case that LIST names does not pass; names cases that pass and are not in it.
#   count_operators TABLE: fails when fewer of these cases use an operator and pass than TABLE says (compiler/ops/cases.def).
#   run_twins FOLDER LIST EXCEPTIONS: the same with a symbol for every dimension of every input; EXCEPTIONS names the cases
#     of LIST that have no such twin, each with its reason.
# With LATHE_UPDATE set the list is written anew, in the build folder, to be looked at and copied.
. "$(dirname "$0")/../http/harness.sh"

run_suite() { # FOLDER OPTION...: the names of what passes into $work/passing
	folder=$1
	shift
	start_daemon --worker "$build/compiler/lathe-worker"
	"$build/api/lathe" --server "$url" suite "$folder" --list-passed --case-time 60 "$@" >"$work/report" 2>"$work/errors"
	sed -n "s|^PASS $folder/\\([^ ]*\\) .*|\\1|p" "$work/report" | LC_ALL=C sort >"$work/passing"
	grep ' passed (' "$work/report" || fail "no report: $(tail -3 "$work/errors")"
	expect_metric workers_crashed_total 0
	expect_clean
	stop_daemon
}

run_cases() {
	list=$here/$2
	run_suite "$1" --list-operators
	LC_ALL=C comm -23 "$list" "$work/passing" >"$work/lost"
	LC_ALL=C comm -13 "$list" "$work/passing" >"$work/gained"
	while read -r name; do
		echo "passed before: $(grep "^FAIL $folder/$name " "$work/report" || echo "$name, which is not there")"
	done <"$work/lost"
	sed 's/^/passes now: /' "$work/gained"
	[ -z "${LATHE_UPDATE:-}" ] || cp "$work/passing" "$build/tests/conformance/$2"
	[ ! -s "$work/lost" ] || fail "$(wc -l <"$work/lost") cases passed before"
}

count_operators() {
	rows='s/LTH_CASES("\([^"]*\)", "\([^"]*\)", \([0-9]*\))/\1 \2 \3/p'
	sed -n -e 's/^OPERATOR \([0-9]*\) \(.*\)\.\([^.]*\)$/LTH_CASES("\2", "\3", \1)/p' \
	       -e 's/^OPERATOR \([0-9]*\) \(.*\)$/LTH_CASES("", "\2", \1)/p' "$work/report" | LC_ALL=C sort >"$work/rows"
	[ -s "$work/rows" ] || fail "no operator was counted"
	[ -z "${LATHE_UPDATE:-}" ] ||
		{ sed '/^LTH_CASES/d' "$1"; cat "$work/rows"; } >"$build/tests/conformance/$(basename "$1")"
	grep "^LTH_CASES" "$1" | LC_ALL=C sort | LC_ALL=C comm -13 "$work/rows" - | sed -n "$rows" | sed 's/^ /ai.onnx /' >"$work/wanted"
	while read -r domain name cases; do
		[ "$domain" = ai.onnx ] && domain=
		now=$(sed -n "s/LTH_CASES(\"$domain\", \"$name\", \([0-9]*\))/\1/p" "$work/rows")
		[ "${now:-0}" -ge "$cases" ] || fail "$name: ${now:-0} cases pass, $cases in $(basename "$1")"
		echo "more cases than $(basename "$1") has: $name, $now"
	done <"$work/wanted"
}

run_twins() {
	run_suite "$1" --option symbolic=true
	sed -n '/^[^#]/s/[ 	].*//p' "$here/$3" | LC_ALL=C sort >"$work/exceptions"
	LC_ALL=C comm -23 "$here/$2" "$work/exceptions" >"$work/wanted"
	LC_ALL=C comm -23 "$work/wanted" "$work/passing" >"$work/lost"
	while read -r name; do
		echo "no twin: $(grep "^FAIL $folder/$name " "$work/report" || echo "$name, which is not there")"
	done <"$work/lost"
	LC_ALL=C comm -12 "$work/exceptions" "$work/passing" | sed 's/^/has a twin now: /'
	[ ! -s "$work/lost" ] || fail "$(wc -l <"$work/lost") cases without a symbolic twin"
}

unpack_onnx() { # the cases of all opsets, where they are at hand, into $work/cases; skips elsewhere
	archives=${LATHE_SHARED:-$here/../../../shared}/onnx
	[ -d "$archives" ] || { echo "SKIP: no folder $archives; LATHE_SHARED names the one that has onnx/"; exit 77; }
	mkdir "$work/cases"
	for archive in "$archives"/*.tar.xz; do
		tar -xJf "$archive" -C "$work/cases" || fail "$archive does not unpack"
	done
}
