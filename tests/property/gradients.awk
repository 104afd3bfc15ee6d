# From rows of operators (see gradients) a model in JSON graph IR with input t: f32, the step, and two outputs of one number
# a row: central differences of its loss, and its gradients times the directions. Usage: awk -v seed=N -f graph.awk -f gradients.awk ROWS
# The loss is the sum of y^3 + y over all results: no normalisation keeps it constant.
function binary(op, a, b, out) { node(op, q(a) "," q(b), q(out)); return out }
function random_list(shape, low, high,    dims, k, count, list) {
	count = 1
	if (shape != "scalar")
		for (k = split(shape, dims, "x"); k > 0; k--)
			count *= dims[k]
	for (list = ""; count > 0; count--)
		list = list (list ? "," : "") sprintf("%.6f", low + (high - low) * rand())
	return list
}
# The loss of the row's operator on operands named with `suffix`.
function loss(row, suffix,    k, base, inputs, outputs, sum) {
	base = "r" row "." suffix
	for (k = 3; k <= NF; k++)
		inputs = inputs (inputs ? "," : "") q($k ~ /^=/ ? "r" row ".c" k : base ".x" k)
	for (k = 1; k <= results; k++)
		outputs = outputs (outputs ? "," : "") q(base ".y" k)
	node(operator, inputs, outputs, $2)
	for (k = 1; k <= results; k++) {
		binary("Mul", base ".y" k, base ".y" k, base ".square" k)
		binary("Mul", base ".square" k, base ".y" k, base ".cube" k)
		binary("Add", base ".cube" k, base ".y" k, base ".term" k)
		node("ReduceSum", q(base ".term" k), q(base ".sum" k), "\"keepdims\":0")
		sum = k == 1 ? base ".sum1" : binary("Add", sum, base ".sum" k, base ".total" k)
	}
	return sum
}
BEGIN {
	FS = "|"
	srand(seed)
	node("Cast", q("t"), q("step"), "\"to\":11")
	constant("two", "f64", "scalar", "2")
	binary("Mul", "step", "two", "span")
}
{
	row = NR
	results = 1
	operator = $1
	if (split($1, word, "/") == 2) {
		operator = word[1]
		results = word[2]
	}
	names = ""
	for (k = 3; k <= NF; k++) {
		split($k, word, ":")
		if ($k ~ /^=/) {
			constant("r" row ".c" k, substr(word[1], 2), word[2], word[3])
			continue
		}
		constant("r" row ".at" k, "f64", word[1], random_list(word[1], word[2], word[3]))
		constant("r" row ".d" k, "f64", word[1], random_list(word[1], -1, 1))
		binary("Mul", "step", "r" row ".d" k, "r" row ".move" k)
		binary("Add", "r" row ".at" k, "r" row ".move" k, "r" row ".above.x" k)
		binary("Sub", "r" row ".at" k, "r" row ".move" k, "r" row ".below.x" k)
		binary("Sub", "r" row ".above.x" k, "r" row ".move" k, "r" row ".mid.x" k)
		names = names (names ? "," : "") q("r" row ".mid.x" k)
	}
	above = loss(row, "above")
	binary("Div", binary("Sub", above, loss(row, "below"), "r" row ".change"), "span", "r" row ".numeric")
	middle = loss(row, "mid")
	gradients = names
	gsub("mid", "gradient", gradients)
	node("Gradient", names, gradients, "\"xs\":{\"strings\":[" names "]},\"y\":" q(middle), "ai.onnx.preview.training")
	sum = ""
	for (k = 3; k <= NF; k++) {
		if ($k ~ /^=/)
			continue
		binary("Mul", "r" row ".gradient.x" k, "r" row ".d" k, "r" row ".along" k)
		node("ReduceSum", q("r" row ".along" k), q("r" row ".part" k), "\"keepdims\":0")
		sum = sum == "" ? "r" row ".part" k : binary("Add", sum, "r" row ".part" k, "r" row ".parts" k)
	}
	node("Reshape", q("r" row ".numeric") "," q("list"), q("r" row ".left"))
	node("Reshape", q(sum) "," q("list"), q("r" row ".right"))
	left = left (left ? "," : "") q("r" row ".left")
	right = right (right ? "," : "") q("r" row ".right")
}
END {
	constant("list", "i64", "1", "1")
	node("Concat", left, q("numeric64"), "\"axis\":0")
	node("Concat", right, q("derived64"), "\"axis\":0")
	node("Cast", q("numeric64"), q("numeric"), "\"to\":1")
	node("Cast", q("derived64"), q("derived"), "\"to\":1")
	printf "{\"opset\":28,\n \"inputs\":[{\"name\":\"t\",\"type\":\"f32\",\"shape\":[]}],\n"
	printf " \"constants\":[\n  %s],\n \"nodes\":[\n  %s],\n", constants, nodes
	printf " \"outputs\":[\"derived\",\"numeric\"]}\n"
}
