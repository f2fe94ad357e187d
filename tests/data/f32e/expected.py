"""Writes case*_output.bin from case*_input.bin and the constants of model.relay: docs/numerics, contract F32E, in NumPy.

The outputs are kept; run this by hand where the model changes: python3 tests/data/f32e/expected.py
"""
import pathlib
import re

import numpy as np

HERE = pathlib.Path(__file__).parent
f32 = np.float32


def constants():
    """The tensors of the model by the name of their operator: weights, bias and, where there is one per channel, scale."""
    found = {}
    pattern = re.compile(r"const\(Tensor\[\(([\d, ]+)\), (\w+)\], \[([^\]]*)\]\)")
    for line in (HERE / "model.relay").read_text().splitlines():
        name = re.search(r'name="(\w+)"', line)
        kind = re.search(r"= (?:qnn|nn)\.(\w+)\(", line)
        if not name or not kind or kind[1] == "requantize":
            continue
        for shape, dtype, values in pattern.findall(line):
            tensor = np.array([float(v) for v in values.split(",")]).reshape([int(n) for n in shape.split(",")])
            role = "scale" if dtype == "float32" else "bias" if kind[1] == "bias_add" else "weights"
            found[name[1], role] = tensor.astype(f32) if role == "scale" else tensor.astype(np.int64)
    return found


def quantize(real, zero_point, lo=-128, hi=127):
    assert real.dtype == np.float32
    return np.clip(np.rint(real).astype(np.int64) + zero_point, lo, hi)  # rint rounds half to even


def dequantize(x, scale, zero_point):
    return (x - zero_point).astype(f32) * f32(scale)


def convolution(x, zero_point, weights, pad, depthwise=False):
    _, height, width, _ = x.shape
    _, kernel_h, kernel_w, _ = weights.shape
    padded = np.pad(x - zero_point, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    out_h, out_w = height + 2 * pad - kernel_h + 1, width + 2 * pad - kernel_w + 1
    sums = 0
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            tap = padded[:, ky : ky + out_h, kx : kx + out_w, :]
            sums = sums + (tap * weights[:, ky, kx, 0] if depthwise else tap @ weights[:, ky, kx, :].T)
    return sums


def requantize(sums, bias, input_scale, weights_scale, output_scale, zero_point, lo=-128):
    scale = (f32(input_scale) * np.asarray(weights_scale, f32)) / f32(output_scale)
    return quantize((sums + bias).astype(f32) * scale, zero_point, lo)


def average(x):
    """3x3, stride 2, one of padding that is not counted."""
    out = np.zeros((1, 5, 5, x.shape[3]), np.int64)
    for y in range(5):
        for i in range(5):
            window = x[0, max(2 * y - 1, 0) : 2 * y + 2, max(2 * i - 1, 0) : 2 * i + 2]
            count = window.shape[0] * window.shape[1]
            scale = f32(0.055) / (f32(0.044) * f32(count))
            out[0, y, i] = quantize((window + 3).sum((0, 1)).astype(f32) * scale, 2)
    return out


def softmax(x):
    exponentials = np.exp(-np.float64(f32(0.035)) * np.arange(256)).astype(f32)
    e = exponentials[x.max() - x]
    total = f32(0)
    for value in e:
        total = f32(total + value)
    return quantize((e / total) / f32(0.003), -128)


def run(x, c):
    x = quantize(x / f32(0.0235), 3)
    first = requantize(convolution(x, 3, c["first", "weights"], 1), c["first", "bias"], 0.0235, c["first", "scale"],
                       0.031, -5, lo=-5)
    depthwise = requantize(convolution(first, -5, c["depthwise", "weights"], 1, depthwise=True),
                           c["depthwise", "bias"], 0.031, 0.006, 0.029, 7)
    expand = requantize(convolution(depthwise, 7, c["expand", "weights"], 0), c["expand", "bias"], 0.029,
                        c["expand", "scale"], 0.04, -2)
    logistic = (1 / (1 + np.exp(-dequantize(expand, 0.04, -2).astype(np.float64)))).astype(f32)
    gate = quantize(logistic / f32(0.0041), -120)
    swish = quantize((dequantize(expand, 0.04, -2) * dequantize(gate, 0.0041, -120)) / f32(0.033), 1)
    project = requantize(convolution(swish, 1, c["project", "weights"], 0), c["project", "bias"], 0.033, 0.007, 0.05, 4)
    residual = quantize((dequantize(first, 0.031, -5) + dequantize(project, 0.05, 4)) / f32(0.06), 0)
    difference = quantize((dequantize(residual, 0.06, 0) - dequantize(depthwise, 0.029, 7)) / f32(0.055), -3)
    rescaled = quantize(dequantize(average(difference), 0.044, 2) / f32(0.04), 0)
    mean = quantize(rescaled.sum((0, 1, 2)).astype(f32) * (f32(0.04) / (f32(0.02) * f32(25))), -10)
    logits = requantize(c["logits", "weights"] @ (mean + 10), c["logits", "bias"], 0.02, 0.009, 0.035, 11)
    return dequantize(softmax(logits), 0.003, -128)


for case in sorted(HERE.glob("case*_input.bin")):
    output = run(np.fromfile(case, f32).reshape(1, 9, 9, 3), constants())
    output.tofile(HERE / case.name.replace("input", "output"))
