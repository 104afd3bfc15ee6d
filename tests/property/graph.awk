# Functions that write JSON graph IR: nodes and constants, collected in `nodes` and `constants`. For awk -f, before others.
function node(op, inputs, outputs, attributes, domain) {
	nodes = nodes (nodes ? ",\n  " : "") "{\"op\":\"" op "\"" (domain ? ",\"domain\":\"" domain "\"" : "") \
		",\"inputs\":[" inputs "],\"outputs\":[" outputs "]" (attributes ? ",\"attributes\":{" attributes "}" : "") "}"
}
function q(name) { return "\"" name "\"" }
function constant(name, type, shape, values,    dims) {
	dims = shape == "scalar" ? "" : shape
	gsub("x", ",", dims)
	constants = constants (constants ? ",\n  " : "") "{\"name\":" q(name) ",\"type\":" q(type) ",\"shape\":[" dims \
		"],\"values\":[" values "]}"
}
