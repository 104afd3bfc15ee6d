# What the property tests share: a daemon with real workers, compiling and running of models. Sourced.
. "$(dirname "$0")/../http/harness.sh"
tensors=$build/tests/property/tensors
start_daemon --worker "$build/compiler/lathe-worker"
seed=${SEED:-1} # of random graphs and inputs; each test says which it used when it fails
rounds=${ROUNDS:-3}

# program MODEL OUT QUERY: compiles to a program, with every verifier and plan checker on.
program() {
	call --data-binary "@$1" "$url/compile?artifact=exe&verify=true&$3" -H 'Accept: application/octet-stream'
	[ "$status" = 200 ] || fail "seed $seed: $1 with '$3'"
	cp "$work/body" "$2"
	chmod +x "$2"
}

# random_graph N NODES FILE
random_graph() { awk -v seed=$((seed * 1000 + $1)) -v nodes="$2" -f "$here/random-graph.awk" >"$3"; }

# same_outputs GOT EXPECTED WHAT [RTOL ATOL]: the output files of two folders.
same_outputs() {
	got=$1 expected=$2 what=$3
	shift 3
	for file in "$expected"/*; do
		"$tensors" compare "$got/${file##*/}" "$file" "$@" >"$work/difference" ||
			fail "seed $seed: $what: ${file##*/}: $(cat "$work/difference")"
	done
}
