"""Runs a shared object made by Lathe through its one symbol, lathe_query (lathe.h), with numpy arrays."""
import ctypes as C

import numpy as np

P = C.c_void_p
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
         10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
CODES = {np.dtype(v): k for k, v in TYPES.items()}


class Error(C.Structure):
    _fields_ = [('code', C.c_int), ('text', C.c_char * 2048)]


class Tensor(C.Structure):
    _fields_ = [('dtype', C.c_int32), ('rank', C.c_uint32), ('dims', C.c_int64 * 16), ('data', P), ('bytes', C.c_uint64)]


class Description(C.Structure):
    _fields_ = [('name', C.c_char_p), ('num_inputs', C.c_uint32), ('num_outputs', C.c_uint32)]


class Options(C.Structure):
    _fields_ = [('bytes', C.c_uint32), ('threads', C.c_uint32), ('arena', P), ('arena_bytes', C.c_uint64),
                ('profile', C.c_uint32), ('signatures', C.c_uint32)]


class Api(C.Structure):
    _fields_ = [('version', C.c_uint32), ('bytes', C.c_uint32), ('runtime', C.c_char_p)] + [
        (name, P) for name in 'open close describe memory fit context_create context_destroy run release'.split()]


class Executable:
    """One executable with one context and fixed inputs; calling it is one run whose outputs are given back at once."""

    def __init__(self, path, inputs, threads=1):
        self.library = C.CDLL(path)
        self.library.lathe_query.restype = C.POINTER(Api)
        api = self.library.lathe_query(1).contents
        self.error, executable, self.context = Error(), P(), P()
        self._check(C.CFUNCTYPE(C.c_int, P, P)(api.open)(C.byref(executable), C.byref(self.error)))
        description = C.CFUNCTYPE(C.POINTER(Description), P)(api.describe)(executable).contents
        options = Options(C.sizeof(Options), threads, None, 0, 0, 0)
        self._check(C.CFUNCTYPE(C.c_int, P, P, P, P)(api.context_create)(
            executable, C.byref(options), C.byref(self.context), C.byref(self.error)))
        self._run = C.CFUNCTYPE(C.c_int, P, P, C.c_size_t, P, C.c_size_t, P)(api.run)
        self._release = C.CFUNCTYPE(None, P, P)(api.release)
        self.arrays = [np.ascontiguousarray(x) for x in inputs]
        self.inputs, self.outputs = (Tensor * len(inputs))(), (Tensor * description.num_outputs)()
        for tensor, x in zip(self.inputs, self.arrays):
            tensor.dtype, tensor.rank, tensor.data, tensor.bytes = CODES[x.dtype], x.ndim, x.ctypes.data, x.nbytes
            tensor.dims[:x.ndim] = x.shape
        self.references = [C.byref(t) for t in self.outputs]

    def _check(self, code):
        if code:
            raise RuntimeError(self.error.text.decode())

    def _start(self):
        self._check(self._run(self.context, self.inputs, len(self.inputs), self.outputs, len(self.outputs),
                              C.byref(self.error)))

    def __call__(self):
        self._start()
        for reference in self.references:
            self._release(self.context, reference)

    def results(self):
        """The outputs of one run, copied."""
        self._start()
        arrays = []
        for tensor, reference in zip(self.outputs, self.references):
            dtype, shape = np.dtype(TYPES[tensor.dtype]), tuple(tensor.dims[:tensor.rank])
            size = int(np.prod(shape)) * dtype.itemsize
            arrays.append(np.frombuffer(C.string_at(tensor.data, size), dtype).reshape(shape).copy())
            self._release(self.context, reference)
        return arrays
