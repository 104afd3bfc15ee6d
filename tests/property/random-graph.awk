# Writes a random graph as JSON graph IR. Usage: awk -v seed=N -v nodes=N -f random-graph.awk
# One input x: f32[n, 8, 6]; values are f32[n, channels, width]; ops are chosen among those whose shapes fit. Values stay
# of moderate size: each chain passes through functions with bounded results.
function pick(count) { return int(rand() * count) }
function add(op, inputs, attributes, c, w) {
	list = list (list ? ",\n  " : "") "{\"op\":\"" op "\",\"inputs\":[" inputs "],\"outputs\":[\"v" ++num "\"]" \
		(attributes ? ",\"attributes\":{" attributes "}" : "") "}"
	channels[num] = c; width[num] = w
}
function name(i) { return "\"" (i ? "v" i : "x") "\"" }
function same_shape(a,    tries, b) { # another value of a's shape, or a
	for (tries = 0; tries < 8; tries++) {
		b = pick(num + 1)
		if (channels[b] == channels[a] && width[b] == width[a])
			return b
	}
	return a
}
BEGIN {
	srand(seed)
	num = 0
	channels[0] = 8; width[0] = 6
	num_unary = split("Relu Sigmoid Tanh Neg Abs Erf Softsign Sin", unary, " ")
	num_binary = split("Add Sub Mul Max Min", binary, " ")
	while (num < nodes) {
		do {
			a = pick(2) ? num : pick(num + 1)
		} while (channels[a] < 0)
		b = same_shape(a); c = channels[a]; w = width[a]
		kind = pick(8)
		if (kind <= 1) add(unary[1 + pick(num_unary)], name(a), "", c, w)
		else if (kind == 2) {
			add(binary[1 + pick(num_binary)], name(a) "," name(b), "", c, w)
			add("Tanh", name(num), "", c, w)
		} else if (kind == 3) add("Transpose", name(a), "\"perm\":[0,2,1]", w, c)
		else if (kind == 4 && c <= 16) add("Concat", name(a) "," name(b), "\"axis\":1", 2 * c, w)
		else if (kind == 5) add("Softmax", name(a), "\"axis\":" (1 + pick(2)), c, w)
		else if (kind == 6) {
			add("Transpose", name(b), "\"perm\":[0,2,1]", w, c)
			add("MatMul", name(a) "," name(num), "", c, c)
			add("Tanh", name(num), "", c, c)
		} else if (kind == 7) {
			add("GlobalAveragePool", name(a), "", c, 1)
			add("Sub", name(a) "," name(num), "", c, w)
			channels[num - 1] = -1 # only its subtraction reads it
		}
	}
	printf "{\"opset\":17,\n \"dims\":{\"n\":{\"min\":1,\"max\":9,\"hint\":3}},\n"
	printf " \"inputs\":[{\"name\":\"x\",\"type\":\"f32\",\"shape\":[\"n\",8,6]}],\n \"nodes\":[\n  %s],\n", list
	printf " \"outputs\":[\"v%d\"", num
	for (i = 1; i < num; i++) if (channels[i] > 0 && pick(num) == 0) printf ",\"v%d\"", i
	printf "]}\n"
}
