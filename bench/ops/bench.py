#!/usr/bin/env python3
"""Times one-node models against ONNX Runtime in the same run, one thread each, turn by turn, and compares their results.

    bench.py [--lathe PROGRAM] [--server URL] [--sizes N,N,...] [--seconds S] [WORD...]

WORDs choose the cases whose names contain one. Needs the onnx, onnxruntime and numpy packages (a virtual environment) and
a running lathed. The times are the least of many short turns: on a shared machine nothing else means much. Prints a row
a case, and geometric means."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

import cases
from executable import Executable


def best(first, second, seconds):
    """Least time a call of each, the two in turns."""
    clock = time.perf_counter
    for _ in range(2):
        first()
        second()
    start = clock()
    first()
    middle = clock()
    second()
    once = max(min(middle - start, clock() - middle), 1e-6)
    calls, least, turns, end = max(1, int(2e-4 / once)), [float('inf')] * 2, 0, clock() + seconds
    while clock() < end or turns < 4:
        for which, call in enumerate((first, second)):
            start = clock()
            for _ in range(calls):
                call()
            least[which] = min(least[which], (clock() - start) / calls)
        turns += 1
    return least


def same(got, expected):
    return got.shape == expected.shape and np.allclose(got.astype(np.float64), expected.astype(np.float64), rtol=1e-3,
                                                       atol=1e-4, equal_nan=True)


def measure(model, library, inputs, seconds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=['CPUExecutionProvider'])
    binding = session.io_binding()
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(x) for x in inputs]
    for value, port in zip(values, session.get_inputs()):
        binding.bind_ortvalue_input(port.name, value)
    for port in session.get_outputs():
        binding.bind_output(port.name)
    ours = Executable(library, inputs)
    session.run_with_iobinding(binding)
    for got, expected in zip(ours.results(), binding.copy_outputs_to_cpu()):
        if not same(got, expected):
            raise RuntimeError('the results differ')
    return best(lambda: session.run_with_iobinding(binding), ours, seconds)


def in_child(function, *arguments):
    """A crash or a library of one case does not reach the next."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = function(*arguments)
        except Exception as error:
            answer = str(error)[:200]
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as stream:
        text = stream.read()
    return json.loads(text) if text else 'crashed'


def mean(values):
    return float(np.exp(np.mean(np.log(values)))) if values else float('nan')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--lathe', default='lathe')
    parser.add_argument('--server')
    parser.add_argument('--sizes', default='1024,65536,4194304')
    parser.add_argument('--seconds', type=float, default=0.1)
    parser.add_argument('words', nargs='*')
    wanted = parser.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, wanted.sizes.split(',')):
            for case in cases.cases(size):
                name = case[0]
                if wanted.words and not any(word.lower() in name.lower() for word in wanted.words):
                    continue
                model, library = f'{folder}/model.onnx', f'{folder}/{name.replace(" ", "_")}_{size}.so'
                cases.build(case, model)
                command = [wanted.lathe, 'compile', model, '-o', library]
                command += ['--server', wanted.server] if wanted.server else []
                compiled = subprocess.run(command, capture_output=True, text=True)
                if compiled.returncode:
                    print(f'{name:20s} {size:8d} {compiled.stderr.strip()[:200]}')
                    continue
                answer = in_child(measure, model, library, case[2], wanted.seconds)
                if isinstance(answer, str):
                    print(f'{name:20s} {size:8d} {answer}')
                    continue
                ratio = ratios[name, size] = answer[1] / answer[0]
                print(f'{name:20s} {size:8d} onnxruntime {answer[0] * 1e6:9.1f} us  lathe {answer[1] * 1e6:9.1f} us  '
                      f'ratio {ratio:5.2f}{"  above 1.5" if ratio > 1.5 else ""}', flush=True)
    for size in sorted({size for _, size in ratios}):
        values = [ratio for (_, n), ratio in ratios.items() if n == size]
        print(f'{size:8d} elements: geometric mean {mean(values):.2f}, above 1.5: {sum(v > 1.5 for v in values)} of '
              f'{len(values)}')
    print(f'all: geometric mean {mean(list(ratios.values())):.2f}')
    return 0 if ratios else 1


if __name__ == '__main__':
    sys.exit(main())
