# Shared by quickstart, check and .ci/run: packages, building, a daemon for the time of a script. POSIX sh, sourced.

say() {
	printf '== %s\n' "$*"
}

# Installs the Debian packages of the list that are not there. With sudo where not root.
install_packages() {
	missing=
	for package in $(sed -e 's/#.*//' packages "$@"); do
		dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	say "installing Debian packages:$missing"
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq $missing >/dev/null
}

# prepare_tree FOLDER [CONFIGURE ARGUMENTS]: configures there, once.
prepare_tree() {
	folder=$1
	shift
	[ -x configure ] || {
		say "preparing the build system"
		autoreconf -fi >autoreconf.log 2>&1 || { cat autoreconf.log; return 1; }
		rm -f autoreconf.log
	}
	mkdir -p "$folder"
	[ -f "$folder/Makefile" ] || (cd "$folder" && "$OLDPWD/configure" -q "$@")
}

# build_tree FOLDER [CONFIGURE ARGUMENTS]: configures and builds there.
build_tree() {
	say "building in $1/"
	prepare_tree "$@"
	make -s -C "$1" -j"$(nproc)"
}

# start_daemon BUILD STATE: sets $url and $daemon_pid.
start_daemon() {
	"$1/daemon/lathed" --listen 127.0.0.1:0 --state-dir "$2/state" --port-file "$2/port" 2>"$2/daemon.log" &
	daemon_pid=$!
	for _ in $(seq 100); do
		[ -s "$2/port" ] && break
		sleep 0.1
	done
	[ -s "$2/port" ] || { cat "$2/daemon.log"; return 1; }
	url=http://127.0.0.1:$(cat "$2/port")
}

stop_daemon() {
	[ -n "${daemon_pid:-}" ] || return 0
	kill "$daemon_pid" 2>/dev/null || true
	wait "$daemon_pid" 2>/dev/null || true
	daemon_pid=
}

# sanitized_tests: the quick tests under the address and undefined-behaviour sanitizers, in build-asan/.
sanitized_tests() {
	prepare_tree build-asan CFLAGS='-g -O1' --enable-werror --with-sanitizer=address,undefined
	say "running the quick tests under sanitizers"
	make -s -C build-asan -j"$(nproc)" check-quick
}

# fuzz_tests: every fuzz target on its seeds and some thousand inputs made of them, in build-fuzz/.
fuzz_tests() {
	prepare_tree build-fuzz CC=clang-19 CFLAGS='-g -O1' --enable-werror --enable-fuzzers \
		--with-sanitizer=address,undefined
	say "running the fuzz targets"
	make -s -C build-fuzz -j"$(nproc)" fuzz
}
