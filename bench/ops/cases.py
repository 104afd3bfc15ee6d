"""One-node models of elementwise, reduction, normalisation, softmax and data movement operators, made to a size."""
import math

import numpy as np
import onnx
from onnx import TensorProto as TP, helper as H, numpy_helper as NH

R = np.random.default_rng(1)


def f(*s):
    return R.standard_normal(s).astype(np.float32)


def pos(*s):
    return (R.random(s) + 0.1).astype(np.float32)


def i64(*v):
    return np.array(v, np.int64)


def shapes(n):
    a = 1 << int(math.log2(n) / 2)
    b = n // a
    return a, b


def cases(n):
    """(name, operator, inputs, constants, output type, opset, attributes) of each case, about n elements large."""
    a, b = shapes(n)
    c = max(16, min(64, a))
    h = int(math.sqrt(n // c))
    nchw = (1, c, h, n // (c * h))
    x = f(a, b)
    y = f(a, b)
    L = []

    def add(name, op, ins, consts=(), out=TP.FLOAT, opset=21, **attr):
        L.append((name, op, ins, list(consts), out, opset, attr))

    for op in 'Add Mul Sub Div'.split():
        add(op, op, [x, pos(a, b)])
    add('Add row', 'Add', [x, f(b)])
    add('Add col', 'Add', [x, f(a, 1)])
    add('Mul scalar', 'Mul', [x], [np.float32(3.5)])
    add('Add chan', 'Add', [f(*nchw), f(1, nchw[1], 1, 1)])
    for op in 'Relu Sigmoid Tanh Exp Erf Abs Neg Sqrt Floor Sin Softplus Elu HardSwish Gelu Reciprocal Sign'.split():
        add(op, op, [pos(a, b) if op in ('Sqrt', 'Reciprocal') else x])
    add('Log', 'Log', [pos(a, b)])
    add('LeakyRelu', 'LeakyRelu', [x])
    add('Clip', 'Clip', [x], [np.float32(-1), np.float32(1)])
    add('Pow 2', 'Pow', [x], [np.float32(2)])
    add('Pow 1.7', 'Pow', [pos(a, b)], [np.float32(1.7)])
    add('Pow', 'Pow', [pos(a, b), pos(a, b)])
    add('Greater', 'Greater', [x, y], out=TP.BOOL)
    add('Equal', 'Equal', [x, y], out=TP.BOOL)
    add('Where', 'Where', [x > 0, x, y])
    add('Max', 'Max', [x, y])
    add('Not', 'Not', [x > 0], out=TP.BOOL)
    add('And', 'And', [x > 0, y > 0], out=TP.BOOL)
    add('Cast f32 i32', 'Cast', [x], out=TP.INT32, to=TP.INT32)
    add('Cast f32 f16', 'Cast', [x], out=TP.FLOAT16, to=TP.FLOAT16)
    add('Cast u8 f32', 'Cast', [R.integers(0, 255, (a, b)).astype(np.uint8)], to=TP.FLOAT)
    add('Add i64', 'Add', [R.integers(0, 99, (a, b)), R.integers(0, 99, (a, b))], out=TP.INT64)
    for op in 'ReduceSum ReduceMean ReduceMax ReduceL2 ReduceLogSumExp ReduceProd'.split():
        add(op + ' last', op, [x], [i64(1)], keepdims=0)
        add(op + ' first', op, [x], [i64(0)], keepdims=0)
    add('ReduceSum all', 'ReduceSum', [x], [i64(0, 1)], keepdims=0)
    add('ReduceMean hw', 'ReduceMean', [f(*nchw)], [i64(2, 3)], keepdims=0)
    add('ReduceMean c', 'ReduceMean', [f(*nchw)], [i64(1)], keepdims=0)
    for op in 'ArgMax ArgMin'.split():
        add(op + ' last', op, [x], out=TP.INT64, axis=1)
        add(op + ' first', op, [x], out=TP.INT64, axis=0)
    add('LayerNorm', 'LayerNormalization', [x, f(b), f(b)])
    add('BatchNorm', 'BatchNormalization', [f(*nchw), f(c), f(c), f(c), pos(c)])
    add('InstanceNorm', 'InstanceNormalization', [f(*nchw), f(c), f(c)])
    add('GroupNorm', 'GroupNormalization', [f(*nchw), f(c), f(c)], num_groups=4)
    add('LRN', 'LRN', [f(*nchw)], size=5)
    add('LpNorm', 'LpNormalization', [x], axis=1)
    for op in 'Softmax LogSoftmax'.split():
        add(op + ' last', op, [x], axis=1)
        add(op + ' chan', op, [f(*nchw)], axis=1)
    add('Transpose 10', 'Transpose', [x], perm=[1, 0])
    add('Transpose 0231', 'Transpose', [f(*nchw)], perm=[0, 2, 3, 1])
    add('Transpose 0312', 'Transpose', [f(*nchw)], perm=[0, 3, 1, 2])
    q = max(1, n // 1024)
    add('Transpose 0213', 'Transpose', [f(1, max(1, q // 8), 8 if q >= 8 else q, 1024)], perm=[0, 2, 1, 3])
    add('Concat 0', 'Concat', [f(a // 2, b), f(a // 2, b)], axis=0)
    add('Concat 1', 'Concat', [f(a, b // 2), f(a, b // 2)], axis=1)
    add('Split 1', 'Split', [x], [i64(b // 2, b // 2)], axis=1)
    add('Slice', 'Slice', [x], [i64(1, 1), i64(a - 1, b - 1), i64(0, 1)])
    add('Slice step 2', 'Slice', [x], [i64(0), i64(b), i64(1), i64(2)])
    add('Slice reverse', 'Slice', [x], [i64(-1), i64(-b - 1), i64(1), i64(-1)])
    add('Pad', 'Pad', [x], [i64(1, 1, 1, 1), np.float32(0)])
    add('Pad reflect', 'Pad', [x], [i64(1, 1, 1, 1)], mode='reflect')
    add('Gather 0', 'Gather', [x, R.integers(0, a, a)], axis=0)
    add('Gather 1', 'Gather', [x, R.integers(0, b, b)], axis=1)
    add('GatherElements', 'GatherElements', [x, R.integers(0, b, (a, b))], axis=1)
    add('Tile', 'Tile', [f(a // 2, b // 2)], [i64(2, 2)])
    add('Expand', 'Expand', [f(1, b)], [i64(a, b)])
    add('Expand col', 'Expand', [f(a, 1)], [i64(a, b)])
    add('Reshape', 'Reshape', [x], [i64(b, a)])
    hh = nchw[2] // 2 * 2
    add('DepthToSpace', 'DepthToSpace', [f(*nchw)], blocksize=2)
    add('SpaceToDepth', 'SpaceToDepth', [f(1, c, hh, nchw[3] // 2 * 2)], blocksize=2)
    s4 = f(1, c, max(2, nchw[2] // 2), max(2, nchw[3] // 2))
    add('Resize nearest', 'Resize', [s4], [None, np.array([1, 1, 2, 2], np.float32)], mode='nearest',
        coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    add('Resize linear', 'Resize', [s4], [None, np.array([1, 1, 2, 2], np.float32)], mode='linear')
    add('CumSum last', 'CumSum', [x], [np.array(1, np.int64)])
    add('CumSum first', 'CumSum', [x], [np.array(0, np.int64)])
    add('Trilu', 'Trilu', [f(a, b)])
    add('OneHot', 'OneHot', [R.integers(0, b, a)], [np.array(b, np.int64), np.array([0, 1], np.float32)])
    add('ScatterElements', 'ScatterElements', [x, R.integers(0, b, (a, b)), y], axis=1)
    add('MaxPool', 'MaxPool', [f(*nchw)], kernel_shape=[2, 2], strides=[2, 2])
    add('AveragePool', 'AveragePool', [f(*nchw)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    add('GlobalAveragePool', 'GlobalAveragePool', [f(*nchw)])
    add('TopK', 'TopK', [x], [i64(5)], axis=1)
    return L


def build(case, path):
    """Writes a case as an ONNX model."""
    name, op, ins, consts, out, opset, attr = case
    names = [f'x{i}' for i in range(len(ins))]
    inputs = [H.make_tensor_value_info(k, H.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in zip(names, ins)]
    inits = []
    for i, v in enumerate(consts):
        if v is None:
            names.append('')
        else:
            names.append(f'c{i}')
            inits.append(NH.from_array(np.asarray(v), f'c{i}'))
    outs = ['y0', 'y1'] if op in ('Split', 'TopK') else ['y0']
    dt = [out, TP.INT64] if op == 'TopK' else [out] * len(outs)
    outputs = [H.make_tensor_value_info(o, d, None) for o, d in zip(outs, dt)]
    g = H.make_graph([H.make_node(op, names, outs, **attr)], 'g', inputs, outputs, inits)
    m = H.make_model(g, opset_imports=[H.make_opsetid('', opset)], ir_version=10)
    onnx.save(m, path)
