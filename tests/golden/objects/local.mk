# Sequences, optionals and maps, and what loops around them must not decide early.
golden_objects_tests = \
	%D%/deep-types.lt \
	%D%/deeper-type.lt \
	%D%/element-type.lt \
	%D%/element-widens-in-a-loop.lt \
	%D%/empty-optional.lt \
	%D%/guards-of-a-settled-loop.lt \
	%D%/if-in-a-loop-that-grows.lt \
	%D%/if-joins.lt \
	%D%/json-type-attribute.lt \
	%D%/json-types.lt \
	%D%/known-list.lt \
	%D%/map-is-a-loop.lt \
	%D%/map-is-unrolled.lt \
	%D%/map-key-type.lt \
	%D%/not-a-sequence.lt \
	%D%/optional-known.lt \
	%D%/position-outside.lt \
	%D%/rank-not-known.lt \
	%D%/split-at-known-places.lt \
	%D%/split-in-a-loop-that-grows.lt \
	%D%/split-where-the-run-tells.lt \
	%D%/types-of-tensors-are-whole.lt \
	%D%/types.lt
TESTS += $(golden_objects_tests)
EXTRA_DIST += $(golden_objects_tests)
