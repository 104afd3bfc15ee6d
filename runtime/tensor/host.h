/* Tensors in the caller's hands, and the files they come in: NumPy's .npy and ONNX's TensorProto (.pb). Readers take
 * untrusted bytes: every length is checked against what is left, and no number in a file makes them allocate more than
 * a small multiple of the file. Thread rule: plain values. */
#ifndef LTH_TENSOR_HOST_H
#define LTH_TENSOR_HOST_H

#include "runtime/base/buf.h"
#include "runtime/base/diag.h"
#include "runtime/tensor/dtype.h"

enum { LTH_HOST_MAX_RANK = 16 };

struct lth_host_tensor {
	char *name; /* owned; NULL where the file has none */
	enum lth_dtype dtype;
	uint32_t rank;
	int64_t dims[LTH_HOST_MAX_RANK];
	void *data; /* owned; dense, row-major; strings are struct lth_string, their bytes behind them */
	int64_t bytes; /* of the elements */
};

void lth_host_tensor_free(struct lth_host_tensor *tensor);
/* The product of the dims; false when it overflows or a dim is negative. */
bool lth_host_count(uint32_t rank, const int64_t *dims, int64_t *out_count);

/* A file of either kind, known by its first bytes. */
LTH_MUST_CHECK enum lth_code lth_host_read_file(const char *path, struct lth_host_tensor *out_tensor,
						struct lth_diag *diag);
/* Writes .npy when the path ends so, else TensorProto. */
LTH_MUST_CHECK enum lth_code lth_host_write_file(const char *path, const struct lth_host_tensor *tensor,
						 struct lth_diag *diag);

/* .npy of format 1, 2 or 3, of any byte order and order of axes; written little-endian and row-major. npy.c */
LTH_MUST_CHECK enum lth_code lth_npy_read(const void *bytes, size_t size, struct lth_host_tensor *out_tensor,
					  struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_npy_write(const struct lth_host_tensor *tensor, struct lth_buf *out,
					   struct lth_diag *diag);
/* TensorProto: raw data and every typed field, packed or not. pb.c */
LTH_MUST_CHECK enum lth_code lth_pb_read(const void *bytes, size_t size, struct lth_host_tensor *out_tensor,
					 struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_pb_write(const struct lth_host_tensor *tensor, struct lth_buf *out,
					  struct lth_diag *diag);

#endif
