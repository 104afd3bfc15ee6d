/* Comparing tensors by tolerance: shape and type exactly; NaN equals NaN; infinities, integers, bools and strings
 * exactly; floats within atol + rtol * |expected|; random numbers by their distribution. Pure functions. */
#ifndef LTH_CLI_VERIFY_H
#define LTH_CLI_VERIFY_H

#include "runtime/exe/value.h"
#include "runtime/tensor/host.h"

struct lth_cli_tolerance {
	double rtol, atol; /* negative: by the expected type */
	double mismatch; /* part of the values that may be off, 0 to 1 */
	bool scaled; /* atol times the largest expected magnitude, where that is above 1 */
	bool step; /* integers may be off by one: quantised values */
	bool kept; /* values where either is 0 count as equal: what a random mask keeps must agree */
	bool random; /* numbers are random: shape, type and distribution */
};

/* True when `got` is right; else `reason` says what is off. */
bool lth_cli_verify(const struct lth_host_tensor *got, const struct lth_host_tensor *expected,
		    const struct lth_cli_tolerance *tolerance, char *reason, size_t size);

/* The same of values of any kind: kinds and counts exactly, maps whatever the order of their keys. */
bool lth_cli_verify_value(const struct lathe_value *got, const struct lathe_value *expected,
			  const struct lth_cli_tolerance *tolerance, char *reason, size_t size);

#endif
