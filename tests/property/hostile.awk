# One row of an operator (see hostile) as a model in JSON graph IR. Usage: awk -f graph.awk -f hostile.awk ROW
BEGIN { FS = "|" }
{
	operator = $1
	domain = ""
	if (split(operator, word, ":") == 2) {
		domain = word[1]
		operator = word[2]
	}
	results = split(operator, word, "/") == 2 ? word[2] : 1
	operator = word[1]
	for (k = 3; k <= NF; k++) {
		name = $k == "" ? "" : "x" k
		operands = operands (k > 3 ? "," : "") q(name)
		count = split($k, word, ":")
		dims = word[2] == "scalar" ? "" : word[2]
		gsub("x", ",", dims)
		gsub("n", "\"n\"", dims)
		gsub("m", "\"m\"", dims)
		if ($k ~ /^=/)
			constant(name, substr(word[1], 2), word[2], word[3])
		else if (count)
			inputs = inputs (inputs ? "," : "") "{\"name\":" q(name) ",\"type\":" q(word[1]) ",\"shape\":[" dims "]}"
	}
	for (k = 1; k <= results; k++)
		list = list (list ? "," : "") q("y" k)
	node(operator, operands, list, $2, domain)
	printf "{\"opset\":28,\"inputs\":[%s],\n \"constants\":[%s],\n \"nodes\":[%s],\n \"outputs\":[%s]}\n", inputs, constants, nodes, list
}
