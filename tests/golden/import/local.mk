# Importers and the text form.
golden_import_tests = \
	%D%/bound-of-later-symbol.lt \
	%D%/dims-of-no-symbol.lt \
	%D%/dims-override-the-document.lt \
	%D%/dropped-region.lt \
	%D%/json-lists-missing.lt \
	%D%/json-no-values.lt \
	%D%/json-opset-unknown.lt \
	%D%/json-range-of-no-symbol.lt \
	%D%/json-without-opset.lt \
	%D%/layout-of-another-rank.lt \
	%D%/refuse-input-without-shape.lt \
	%D%/softmax-axis-of-old.lt \
	%D%/layout-needs-rank.lt \
	%D%/loop-condition-of-two.lt \
	%D%/missing-operators.lt \
	%D%/operator-of-a-later-set.lt \
	%D%/passes-dead-code.lt \
	%D%/passes-unknown-name.lt \
	%D%/round-trip.lt \
	%D%/symbol-multiple-cancels.lt \
	%D%/text-constant-values.lt \
	%D%/text-second-definition.lt \
	%D%/text-unknown-operator.lt \
	%D%/text-unknown-symbol.lt \
	%D%/text-use-before-definition.lt \
	%D%/upgrade-broadcast-at-axis.lt \
	%D%/upgrade-cast-name.lt \
	%D%/upgrade-clip-attributes.lt \
	%D%/upgrade-dropout-is-identity.lt \
	%D%/upgrade-experimental.lt \
	%D%/upgrade-group-scale.lt \
	%D%/upgrade-pad-attributes.lt \
	%D%/upgrade-prelu-channel-slope.lt \
	%D%/upgrade-reduce-axes.lt \
	%D%/upgrade-resize-scales.lt \
	%D%/upgrade-scatter.lt \
	%D%/upgrade-slice-attributes.lt \
	%D%/upgrade-softmax-flattens.lt \
	%D%/upgrade-softmax-one-axis.lt \
	%D%/upgrade-split-parts.lt \
	%D%/upgrade-squeeze-unsqueeze.lt \
	%D%/upgrade-topk.lt \
	%D%/upgrade-upsample.lt
TESTS += $(golden_import_tests)
EXTRA_DIST += $(golden_import_tests)
