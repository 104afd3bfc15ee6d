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

# build_tree FOLDER [CONFIGURE ARGUMENTS]: configures (once) and builds there.
build_tree() {
	folder=$1
	shift
	[ -x configure ] || { say "preparing the build system"; autoreconf -fi >autoreconf.log 2>&1 || { cat autoreconf.log; return 1; }; rm -f autoreconf.log; }
	say "building in $folder/"
	mkdir -p "$folder"
	(cd "$folder" && { [ -f Makefile ] || "$OLDPWD/configure" -q "$@"; } && make -s -j"$(nproc)")
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
