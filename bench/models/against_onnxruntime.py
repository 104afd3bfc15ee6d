#!/usr/bin/env python3
"""Latency of compiled models against ONNX Runtime, one thread each, taken in turns so that both see the same machine.

    bench/models/run                                    # compiles; leaves one program a model in build/bench/models
    python3 -m venv venv && venv/bin/pip install onnxruntime onnx numpy
    venv/bin/python bench/models/against_onnxruntime.py build/bench/models

Prints the median of each, their ratio (below 1: Lathe is faster) and the geometric mean of the ratios.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def inputs_of(session, data_set):
    arrays = {}
    for number, port in enumerate(session.get_inputs()):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((data_set / f"input_{number}.pb").read_bytes())
        arrays[port.name] = numpy_helper.to_array(tensor)
    return arrays


def time_peer(session, inputs, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - begin) * 1e6)
    return times


def time_ours(program, data_set, count, runs):
    files = [str(data_set / f"input_{number}.pb") for number in range(count)]
    answer = subprocess.run([str(program), *files, "--bench", str(runs)], check=True, capture_output=True)
    return json.loads(answer.stdout)


def measure(folder, program, rounds, seconds):
    session = session_of(folder / "model.onnx")
    data_set = folder / "test_data_set_0"
    inputs = inputs_of(session, data_set)
    warm = statistics.median(time_peer(session, inputs, 3)[1:])
    runs = max(3, min(2000, int(seconds * 1e6 / rounds / warm)))
    ours, peer = [], []
    for _ in range(rounds):
        report = time_ours(program, data_set, len(inputs), runs)
        ours.append(report["latency_us"]["p50"])
        peer.append(statistics.median(time_peer(session, inputs, runs)))
    return statistics.median(ours), statistics.median(peer), report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where bench/models/run left its programs")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default 3)")
    parser.add_argument("--seconds", type=float, default=2, help="time for each side of a model (default 2)")
    parser.add_argument("names", nargs="*", help="only these models")
    arguments = parser.parse_args()
    ratios = []
    print(f"{'model':22} {'lathe us':>12} {'ort us':>12} {'ratio':>7} {'peak bytes':>12} {'allocations':>11}")
    for program in sorted(arguments.folder.glob("*.exe")):
        if arguments.names and program.stem not in arguments.names:
            continue
        ours, peer, report = measure(arguments.folder / program.stem, program, arguments.rounds, arguments.seconds)
        ratios.append(ours / peer)
        print(f"{program.stem:22} {ours:12.1f} {peer:12.1f} {ours / peer:7.2f} {report['peak_bytes']:12} "
              f"{report['allocations_per_run']:11}", flush=True)
    if ratios:
        print(f"geometric mean of {len(ratios)} ratios: {math.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
