#!/usr/bin/env python3
"""What each memory pass changes, model by model, beside ONNX Runtime where it is installed.

usage: passes.py LATHE MODEL.onnx [--dim NAME=MIN:MAX:HINT[:xMULTIPLE]]... [-- MODEL.onnx ...]

One request a model: all variants are compiled and measured interleaved by the lathe given (with --local, a private
daemon). Figures are in bytes, at the hint. ONNX Runtime runs in a process of its own, with its arena on and off: its peak
resident memory in runs over that of the loaded model.
"""
import json
import subprocess
import sys

OFF = ["OrderForMemory", "AliasViews", "ReuseInPlace", "ManifestLifetimes", "ShareBranches", "MemoryPlan"]
ORT = """
import sys, numpy as np, onnxruntime as ort
model, arena, dims = sys.argv[1], sys.argv[2] == "on", dict(d.split("=") for d in sys.argv[3:])
options = ort.SessionOptions()
options.enable_cpu_mem_arena = arena
options.intra_op_num_threads = 1
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool,
         "tensor(double)": np.float64, "tensor(uint8)": np.uint8}
feeds = {i.name: np.ones([d if isinstance(d, int) else int(dims.get(d, 1)) for d in i.shape], types[i.type])
         for i in session.get_inputs()}
def status(key):
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith(key))
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = status("VmRSS")
for _ in range(3):
    session.run(None, feeds)
print(status("VmHWM") - before)
"""


def lathe(program, model, dims):
    command = [program, "compare", model, "--local", "--json", "--runs", "5"]
    for name in OFF:
        command += ["--without", name]
    for dim in dims:
        command += ["--dim", dim]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return json.loads(done.stdout)["variants"]


def onnx_runtime(model, dims, arena):
    hints = []
    for dim in dims:
        name, _, box = dim.partition("=")
        parts = [p for p in box.split(":") if not p.startswith("x")]
        hints.append(name + "=" + (parts[2] if len(parts) > 2 else parts[0]))
    done = subprocess.run([sys.executable, "-c", ORT, model, arena] + hints, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else None


def row(name, memory, measure, equal):
    arena = memory.get("arena_bytes")
    print("| %s | %s | %s | %s | %s | %s | %s |" % (
        name, memory["naive_bytes"], memory["live_bound_bytes"], "-" if arena is None else arena,
        measure.get("peak_bytes", "-"), measure.get("allocations_per_run", "-"), equal))


def table(program, model, dims):
    print("\n### %s %s\n" % (model.split("/")[-2] if "/" in model else model, " ".join(dims)))
    print("| without | sum of storages | live bound | arena | measured peak | allocations a run | same outputs |")
    print("|---|---|---|---|---|---|---|")
    for name, variant in zip(["(all on)"] + OFF, lathe(program, model, dims)):
        measure = variant.get("measure") or {}
        row(name, variant["memory"], measure, measure.get("outputs_equal", "-"))
    for arena in ("on", "off"):
        peak = onnx_runtime(model, dims, arena)
        if peak is not None:
            print("\nONNX Runtime, arena %s: %d bytes resident over the loaded model" % (arena, peak))


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    program, model, dims = arguments[0], None, []
    for argument in arguments[1:] + ["--"]:
        if argument == "--":
            try:
                if model:
                    table(program, model, dims)
            except RuntimeError as error:  # a model that does not compile leaves the others their tables
                print(error)
            model, dims = None, []
        elif model is None:
            model = argument
        elif argument != "--dim":
            dims.append(argument)


main(sys.argv[1:])
