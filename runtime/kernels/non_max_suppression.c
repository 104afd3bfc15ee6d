/* non_max_suppression: boxes that survive, per batch and class, best score first (ONNX NonMaxSuppression).
 *
 *   outputs: selected i64 [bound, 3] (batch, class, box), extent i64 (absent when the bound is 0)
 *   inputs: boxes f32 [batches, n, 4], scores f32 [batches, classes, n], most per class i64 (absent: 0, none),
 *     iou threshold f32 (absent: 0), score threshold f32 (absent: none)
 *   attributes: center_point_box (0: corners y1 x1 y2 x2 in any order; 1: x centre, y centre, width, height)
 *
 * Candidates form a heap by score, the lower box first among equals; only as many are taken from it as it needs to fill
 * the class. A candidate is one number, so that comparing is one instruction and no branch. */
#include "runtime/exec/pool.h"
#include "runtime/kernels/copy.h"

#include <math.h>
#include <string.h>

struct box {
	float top, left, bottom, right, area;
};

struct nms {
	const struct lth_builtin_tensor *boxes, *scores;
	int64_t most;
	float iou, score;
	bool has_score, centred;
	uint64_t *heap; /* of n candidates (candidate_of); the least is the best */
	struct box *kept;       /* of min(n, most) */
	int64_t *out, capacity, count;
};

static float least(float a, float b)
{
	return a < b ? a : b;
}

static float greatest(float a, float b)
{
	return a > b ? a : b;
}

/* Score and box: the greater score is the lesser number; nan counts as the greatest, negative zero as zero. */
static uint64_t candidate_of(float score, int64_t box)
{
	uint32_t bits = 0;
	score += 0.0f;
	memcpy(&bits, &score, sizeof(bits));
	if (isnan(score))
		bits = UINT32_MAX;
	else
		bits = bits >> 31 ? ~bits : bits | (uint32_t)1 << 31;
	return (uint64_t)~bits << 32 | (uint32_t)box;
}

static float score_at(const struct nms *n, int64_t batch, int64_t class, int64_t box)
{
	const int64_t *s = n->scores->strides;
	return ((const float *)n->scores->data)[batch * s[0] + class * s[1] + box * s[2]];
}

static struct box box_at(const struct nms *n, int64_t batch, int64_t index)
{
	const int64_t *s = n->boxes->strides;
	const float *at = (const float *)n->boxes->data + batch * s[0] + index * s[1];
	float a = at[0], b = at[s[2]], c = at[2 * s[2]], d = at[3 * s[2]];
	struct box box;
	if (n->centred) /* x, y, width, height */
		box = (struct box){b - d / 2, a - c / 2, b + d / 2, a + c / 2, 0};
	else
		box = (struct box){least(a, c), least(b, d), greatest(a, c), greatest(b, d), 0};
	box.area = (box.bottom - box.top) * (box.right - box.left);
	return box;
}

static bool overlaps(const struct box *a, const struct box *b, float limit)
{
	float height = least(a->bottom, b->bottom) - greatest(a->top, b->top);
	float width = least(a->right, b->right) - greatest(a->left, b->left);
	if (height <= 0 || width <= 0 || a->area <= 0 || b->area <= 0)
		return false;
	float shared = height * width, joined = a->area + b->area - shared;
	return joined > 0 && shared / joined > limit;
}

static void sift_down(uint64_t *heap, int64_t count, int64_t at)
{
	uint64_t item = heap[at];
	for (int64_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count)
			child += heap[child + 1] < heap[child];
		if (heap[child] > item)
			break;
		heap[at] = heap[child];
	}
	heap[at] = item;
}

static int64_t gather_candidates(const struct nms *n, int64_t batch, int64_t class)
{
	int64_t boxes = n->boxes->dims[1], count = 0;
	for (int64_t i = 0; i < boxes; i++) {
		float score = score_at(n, batch, class, i);
		if (n->has_score && !(score > n->score))
			continue;
		n->heap[count++] = candidate_of(score, i);
	}
	for (int64_t at = count / 2; at-- > 0;)
		sift_down(n->heap, count, at);
	return count;
}

static bool select_class(struct nms *n, int64_t batch, int64_t class)
{
	int64_t candidates = gather_candidates(n, batch, class), kept = 0;
	while (candidates > 0 && kept < n->most) {
		int64_t index = (uint32_t)n->heap[0];
		struct box box = box_at(n, batch, index);
		bool free = true;
		n->heap[0] = n->heap[--candidates];
		if (candidates)
			sift_down(n->heap, candidates, 0);
		for (int64_t i = 0; i < kept && free; i++)
			free = !overlaps(&box, &n->kept[i], n->iou);
		if (!free)
			continue;
		if (n->count == n->capacity)
			return false;
		n->kept[kept++] = box;
		int64_t *row = n->out + 3 * n->count++;
		row[0] = batch;
		row[1] = class;
		row[2] = index;
	}
	return true;
}

/* A float of an optional input with one element. */
static float scalar(const struct lth_builtin_tensor *tensor, float fallback)
{
	return tensor->data && lth_tensor_count(tensor->rank, tensor->dims) ? *(const float *)tensor->data : fallback;
}

static bool shapes_fit(const struct lth_builtin_call *call, const struct lth_builtin_tensor *boxes,
		       const struct lth_builtin_tensor *scores)
{
	if (call->num_outputs < 1 || call->num_outputs > 2)
		return false;
	return call->tensors[0].rank == 2 && boxes->rank == 3 && scores->rank == 3 && boxes->dtype == LTH_DTYPE_F32 &&
	       scores->dtype == LTH_DTYPE_F32 && boxes->dims[2] == 4 && boxes->dims[0] == scores->dims[0] &&
	       boxes->dims[1] == scores->dims[2];
}

int lth_builtin_non_max_suppression(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in[5];
	for (uint32_t i = 0; i < 5; i++)
		in[i] = lth_builtin_input(call, i);
	if (!shapes_fit(call, &in[0], &in[1]))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE,
					"boxes [batches, n, 4] and scores [batches, classes, n] of f32 are wanted");
	const struct lth_builtin_tensor *most = &in[2];
	struct nms n = {
		.boxes = &in[0], .scores = &in[1], .iou = scalar(&in[3], 0), .score = scalar(&in[4], 0),
		.has_score = in[4].data != NULL,
		.centred = lth_builtin_int(call, "center_point_box", 0) != 0,
		.out = call->tensors[0].data, .capacity = call->tensors[0].dims[0],
	};
	int64_t boxes = n.boxes->dims[1];
	if (boxes > UINT32_MAX)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "%lld boxes are too many", (long long)boxes);
	n.most = most->data && lth_tensor_count(most->rank, most->dims) ? *(const int64_t *)most->data : 0;
	n.most = n.most < 0 ? 0 : n.most > boxes ? boxes : n.most;
	int64_t heap_bytes = boxes * (int64_t)sizeof(*n.heap), kept_bytes = n.most * (int64_t)sizeof(*n.kept);
	n.heap = lth_pool_take(call->pool, heap_bytes);
	n.kept = lth_pool_take(call->pool, kept_bytes);
	bool fits = true, memory = n.heap && n.kept;
	for (int64_t batch = 0; memory && fits && batch < n.scores->dims[0]; batch++)
		for (int64_t class = 0; fits && class < n.scores->dims[1]; class++)
			fits = select_class(&n, batch, class);
	if (n.kept)
		lth_pool_give(call->pool, n.kept, kept_bytes);
	lth_pool_give(call->pool, n.heap, heap_bytes);
	if (!memory)
		return LTH_KERNEL_MEMORY;
	if (!fits)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "more than the %lld boxes that were planned for",
					(long long)n.capacity);
	if (call->num_outputs > 1)
		*(int64_t *)call->tensors[1].data = n.count;
	return 0;
}
