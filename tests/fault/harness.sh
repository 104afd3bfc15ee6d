# What the fault tests share: the real worker in trouble. Sourced.
. "$(dirname "$0")/../http/harness.sh"
graphs=$here/../property/random-graph.awk

# big_graph SEED FILE: takes seconds to compile.
big_graph() { awk -v seed="$1" -v nodes=5000 -f "$graphs" >"$2"; }
small='{"opset":17,"inputs":[{"name":"x","type":"f32","shape":["n",8]}],"nodes":[{"op":"Relu","inputs":["x"],"outputs":["y"]}],"outputs":["y"]}'

# still_serves: after whatever happened, a compile works and nothing is left behind.
still_serves() {
	compile "$small" 'artifact=exe' -H 'Cache-Control: no-cache'
	expect 200
	expect_clean
}
