#!/usr/bin/env python3
"""What each memory pass changes, model by model, beside ONNX Runtime where it is installed.

usage: passes.py [--summary] LATHE MODEL.onnx [--dim NAME=MIN:MAX:HINT[:xMULTIPLE]]... [-- MODEL.onnx ...]

One request a model: all variants are compiled and measured interleaved by the lathe given (with --local, a private
daemon). Figures are in bytes, at the hint. ONNX Runtime runs in a process of its own, with its arena on and off: what its
runs raise the peak of resident memory to, over the process without the model and over the size of the model's file,
which is mostly weights. With --summary one table has a row a model: the arena without each pass (without MemoryPlan the
measured peak of the pool), and allocations and copies a run where there are any.
"""
import json
import subprocess
import sys

OFF = ["OrderForMemory", "AliasViews", "ReuseInPlace", "ManifestLifetimes", "ShareBranches", "MemoryPlan"]
ORT = """
import os, sys, numpy as np, onnxruntime as ort
def status(key):
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith(key))
model, arena, dims = sys.argv[1], sys.argv[2] == "on", dict(d.split("=") for d in sys.argv[3:])
options = ort.SessionOptions()
options.enable_cpu_mem_arena = arena
options.intra_op_num_threads = 1
before = status("VmRSS")
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool,
         "tensor(double)": np.float64, "tensor(uint8)": np.uint8}
def shape(i):  # a dimension without a name is called by its place
    return [d if isinstance(d, int) else int(dims.get(d or "%s[%d]" % (i.name, axis), 1))
            for axis, d in enumerate(i.shape)]
feeds = {i.name: np.ones(shape(i), types[i.type]) for i in session.get_inputs()}
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
for _ in range(3):
    session.run(None, feeds)
print(status("VmHWM") - before - os.path.getsize(model))
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
    print("| %s | %s | %s | %s | %s | %s | %s | %s |" % (
        name, memory["naive_bytes"], memory["live_bound_bytes"], "-" if arena is None else arena,
        measure.get("peak_bytes", "-"), measure.get("allocations_per_run", "-"),
        measure.get("copies_per_run", "-"), equal))


def table(program, model, dims):
    print("\n### %s %s\n" % (model.split("/")[-2] if "/" in model else model, " ".join(dims)))
    print("| without | sum of storages | live bound | arena | measured peak | allocations a run | copies a run "
          "| same outputs |")
    print("|---|---|---|---|---|---|---|---|")
    for name, variant in zip(["(all on)"] + OFF, lathe(program, model, dims)):
        measure = variant.get("measure") or {}
        row(name, variant["memory"], measure, measure.get("outputs_equal", "-"))
    for arena in ("on", "off"):
        peak = onnx_runtime(model, dims, arena)
        if peak is not None:
            print("\nONNX Runtime, arena %s: %d bytes resident at the peak, over the weights" % (arena, peak))


def cell(variant):
    arena = variant["memory"].get("arena_bytes")
    measure = variant.get("measure") or {}
    parts = [str(measure.get("peak_bytes", "-") if arena is None else arena)]
    parts += ["%d %s" % (measure[key], what) for key, what in
              (("allocations_per_run", "allocations"), ("copies_per_run", "copies")) if measure.get(key)]
    return ", ".join(parts)


def summary(program, model, dims):
    variants = lathe(program, model, dims)
    cells = [model.split("/")[-2] if "/" in model else model, str(variants[0]["memory"]["naive_bytes"])]
    cells += [cell(variant) for variant in variants]
    cells += [str(onnx_runtime(model, dims, arena) or "-") for arena in ("on", "off")]
    cells.append("yes" if all((v.get("measure") or {}).get("outputs_equal") for v in variants) else "no")
    print("| " + " | ".join(cells) + " |", flush=True)


def main(arguments):
    show = table
    if arguments[:1] == ["--summary"]:
        show, arguments = summary, arguments[1:]
        heads = ["model", "sum", "arena"] + ["without " + name for name in OFF] + ["ORT, arena on", "off", "same bytes"]
        print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    if len(arguments) < 2:
        sys.exit(__doc__)
    program, model, dims = arguments[0], None, []
    for argument in arguments[1:] + ["--"]:
        if argument == "--":
            try:
                if model:
                    show(program, model, dims)
            except RuntimeError as error:  # a model that does not compile leaves the others their tables
                print(error)
            model, dims = None, []
        elif model is None:
            model = argument
        elif argument != "--dim":
            dims.append(argument)


main(sys.argv[1:])
