#!/usr/bin/env python3
"""Trains the example network and writes digits.onnx with sample inputs.

A small convolutional classifier of 8x8 handwritten digits (the Optical Recognition of Handwritten Digits set that
scikit-learn ships), with a dynamic batch: N x 1 x 8 x 8 in, N x 10 class probabilities out. Deterministic for one version
of the libraries.

    python3 -m venv venv && venv/bin/pip install torch scikit-learn onnx numpy
    venv/bin/python train.py
"""
import pathlib

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = pathlib.Path(__file__).parent


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))


def train():
    torch.manual_seed(1)
    digits = load_digits()
    x = digits.images.astype(np.float32)[:, None] / 16
    x_train, x_test, y_train, y_test = train_test_split(x, digits.target, test_size=300, random_state=1)
    model = network()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    data, target = torch.from_numpy(x_train), torch.from_numpy(y_train)
    for _ in range(30):
        for rows in torch.randperm(len(data)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(data[rows]), target[rows]).backward()
            optimiser.step()
    model.eval()
    with torch.no_grad():
        right = (model(torch.from_numpy(x_test)).argmax(1).numpy() == y_test).mean()
    print(f"test accuracy {right:.3f}")
    return model, x_test, y_test


def export(model, path):
    """Writes the graph by hand: batch normalisations stay, so that a compiler has something to fold."""
    nodes, weights = [], []

    def constant(name, tensor):
        weights.append(numpy_helper.from_array(tensor.detach().numpy(), name))
        return name

    value = "image"
    for i, layer in enumerate(model):
        out = f"value{i}"
        if isinstance(layer, torch.nn.Conv2d):
            inputs = [value, constant(f"conv{i}.weight", layer.weight), constant(f"conv{i}.bias", layer.bias)]
            nodes.append(helper.make_node("Conv", inputs, [out], f"conv{i}", pads=[1, 1, 1, 1]))
        elif isinstance(layer, torch.nn.BatchNorm2d):
            inputs = [value] + [constant(f"norm{i}.{part}", tensor) for part, tensor in
                                (("scale", layer.weight), ("bias", layer.bias), ("mean", layer.running_mean),
                                 ("variance", layer.running_var))]
            nodes.append(helper.make_node("BatchNormalization", inputs, [out], f"norm{i}", epsilon=layer.eps))
        elif isinstance(layer, torch.nn.ReLU):
            nodes.append(helper.make_node("Relu", [value], [out], f"relu{i}"))
        elif isinstance(layer, torch.nn.MaxPool2d):
            nodes.append(helper.make_node("MaxPool", [value], [out], f"pool{i}", kernel_shape=[2, 2], strides=[2, 2]))
        elif isinstance(layer, torch.nn.AdaptiveAvgPool2d):
            nodes.append(helper.make_node("GlobalAveragePool", [value], [out], f"mean{i}"))
        elif isinstance(layer, torch.nn.Flatten):
            nodes.append(helper.make_node("Flatten", [value], [out], f"flatten{i}"))
        elif isinstance(layer, torch.nn.Linear):
            inputs = [value, constant(f"dense{i}.weight", layer.weight), constant(f"dense{i}.bias", layer.bias)]
            nodes.append(helper.make_node("Gemm", inputs, [out], f"dense{i}", transB=1))
        value = out
    nodes.append(helper.make_node("Softmax", [value], ["probabilities"], "softmax", axis=1))
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                producer_name="lathe-examples"), path)


def main():
    model, x_test, y_test = train()
    export(model, HERE / "digits.onnx")
    with torch.no_grad():
        probabilities = torch.softmax(model(torch.from_numpy(x_test[:3])), 1).numpy()
    np.save(HERE / "input_0.npy", x_test[:3])
    np.save(HERE / "expected_0.npy", probabilities)
    print("labels of the samples:", y_test[:3].tolist())


if __name__ == "__main__":
    main()
