"""Layers with weights on integers as TFLite's reference kernels compute them: convolutions and fully connected layers."""
import itertools
import math

import numpy as np

from fixed_point import quantize_multiplier, scaled, scaled_wide, wrap32
from integer_cases import F, RANDOM, TYPES, add_case, add_network, clamp, random_values, tensor


def padding_of(kind, extent, kernel, stride, dilation=1):
    covered = (kernel - 1) * dilation + 1
    if kind == "VALID":
        return (extent - covered) // stride + 1, 0
    out = -(-extent // stride)
    return out, max((out - 1) * stride + covered - extent, 0) // 2


class Layer:
    """Weights, bias and scales of a layer; `finish` requantises an accumulator."""

    def __init__(self, dtype, weight_shape, channel_axis, bias, per_channel=True, product_in_float=False):
        self.dtype, self.channels = dtype, weight_shape[channel_axis]
        is_uint8 = dtype == "uint8"
        self.weight_type = "uint8" if is_uint8 else "int8"
        self.weight_zero_point = 119 if is_uint8 else 0
        self.weights = random_values(self.weight_type, weight_shape)
        self.in_scale, self.in_zero_point = F(0.013), {"int8": -7, "uint8": 130, "int16": 0}[dtype]
        depth = self.weights.size // self.channels
        self.out_scale = F(0.013 * 0.004 * math.sqrt(depth) * 60 * (16000 if dtype == "int16" else 110) /
                           (16000 if dtype == "int16" else 64))
        self.out_zero_point = {"int8": 9, "uint8": 101, "int16": 0}[dtype]
        count = self.channels if per_channel and not is_uint8 else 1
        self.weight_scales = [F(s) for s in RANDOM.uniform(0.002, 0.006, count)]
        self.bias_type = bias
        if bias is None:
            self.bias = None
        else:
            self.bias = random_values(bias, [self.channels], -30000, 30000)
        self.wide = dtype == "int16" and bias != "int32"
        self.multipliers = []
        for o in range(self.channels):
            w = self.weight_scales[o if count > 1 else 0]
            if product_in_float or is_uint8:
                real = float(F(self.in_scale * w)) / float(self.out_scale)
            else:
                real = float(self.in_scale) * float(w) / float(self.out_scale)
            self.multipliers.append(quantize_multiplier(real))
        self.channel_axis = channel_axis

    def tensors(self):
        found = [tensor("w", self.weight_type, self.weights.shape, self.weight_scales, self.weight_zero_point,
                        self.weights, self.channel_axis if len(self.weight_scales) > 1 else 0)]
        if self.bias is not None:
            found.append(tensor("b", self.bias_type, self.bias.shape, None, 0, self.bias))
        return found

    def finish(self, acc, o):
        acc += 0 if self.bias is None else int(self.bias[o])
        multiplier, exponent = self.multipliers[o]
        result = scaled_wide(acc, multiplier, exponent) if self.wide else scaled(wrap32(acc), multiplier, exponent)
        return clamp(result + self.out_zero_point, self.dtype)


def conv2d(dtype, bias, shape, channels, kernel, stride, padding, dilation=1, depthwise=False):
    n, h, w, c = shape
    weight_shape = [1, kernel, kernel, channels] if depthwise else [channels, kernel, kernel, c]
    layer = Layer(dtype, weight_shape, 3 if depthwise else 0, bias)
    x = random_values(dtype, shape)
    expected = conv2d_values(layer, x, kernel, stride, padding, dilation, depthwise)
    tensors = [tensor("x", dtype, shape, layer.in_scale, layer.in_zero_point)] + layer.tensors()
    tensors.append(tensor("y", dtype, expected.shape, layer.out_scale, layer.out_zero_point))
    add_case("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", tensors, list(range(len(tensors) - 1)), {0: x},
             expected, {"padding": padding, "stride": stride, "dilation": dilation})


def conv2d_values(layer, x, kernel, stride, padding, dilation=1, depthwise=False):
    n, h, w, c = x.shape
    channels = layer.channels
    oh, top = padding_of(padding, h, kernel, stride, dilation)
    ow, left = padding_of(padding, w, kernel, stride, dilation)
    expected = np.zeros([n, oh, ow, channels], TYPES[layer.dtype])
    for b, y, z, o in np.ndindex(*expected.shape):
        acc = 0
        for ky, kx in itertools.product(range(kernel), repeat=2):
            iy, ix = y * stride + ky * dilation - top, z * stride + kx * dilation - left
            if not (0 <= iy < h and 0 <= ix < w):
                continue
            for i in ([o // (channels // c)] if depthwise else range(c)):
                weight = layer.weights[0, ky, kx, o] if depthwise else layer.weights[o, ky, kx, i]
                acc += (int(x[b, iy, ix, i]) - layer.in_zero_point) * (int(weight) - layer.weight_zero_point)
        expected[b, y, z, o] = layer.finish(acc, o)
    return expected


def network():
    """Two convolutions of int16 with a LEAKY_RELU between them, and the sum with the input; then its maxima."""
    first, second = Layer("int16", [6, 3, 3, 4], 0, "int64"), Layer("int16", [4, 1, 1, 6], 0, "int32")
    x = random_values("int16", [1, 7, 5, 4], -9000, 9000)
    second.in_scale = first.out_scale
    for o in range(4):
        w = second.weight_scales[o]
        second.multipliers[o] = quantize_multiplier(
            float(second.in_scale) * float(w) / float(second.out_scale))
    a = conv2d_values(first, x, 3, 1, "SAME")
    below = quantize_multiplier(float(F(F(first.out_scale * F(0.25)) / first.out_scale)))
    above = quantize_multiplier(1.0)
    b = np.array([clamp(scaled(v, *(above if v >= 0 else below)), "int16") for v in a.reshape(-1).tolist()],
                 np.int16).reshape(a.shape)
    c = conv2d_values(second, b, 1, 1, "SAME")
    s1, s2, so = float(first.in_scale), float(second.out_scale), float(F(second.out_scale * F(1.25)))
    twice = 2 * max(s1, s2)
    m1, m2 = quantize_multiplier(s1 / twice), quantize_multiplier(s2 / twice)
    mo = quantize_multiplier(twice / (2**15 * so))
    total = [clamp(scaled(scaled(p << 15, *m1) + scaled(q << 15, *m2), *mo), "int16")
             for p, q in zip(x.reshape(-1).tolist(), c.reshape(-1).tolist())]
    y = np.array(total, np.int16).reshape(x.shape)
    axes = tensor("axes", "int32", [2], None, 0, np.array([1, 2], np.int32))
    tensors = [tensor("x", "int16", x.shape, s1), *first.tensors(), tensor("a", "int16", a.shape, first.out_scale),
               tensor("b", "int16", a.shape, first.out_scale), *second.tensors(),
               tensor("c", "int16", c.shape, s2), tensor("y", "int16", y.shape, so), axes,
               tensor("z", "int16", [1, 4], so)]
    layer = {"padding": "SAME", "stride": 1, "dilation": 1}
    add_network([{"op": "CONV_2D", "options": layer, "operands": [0, 1, 2], "result": 3},
                 {"op": "LEAKY_RELU", "options": {"alpha": 0.25}, "operands": [3], "result": 4},
                 {"op": "CONV_2D", "options": layer, "operands": [4, 5, 6], "result": 7},
                 {"op": "ADD", "options": {"pot": False}, "operands": [0, 7], "result": 8},
                 {"op": "REDUCE_MAX", "options": {"keep": False}, "operands": [8, 9], "result": 10}],
                tensors, {0: x}, y.max((1, 2)))


def transpose_conv(dtype, bias, shape, channels, kernel, stride, padding):
    n, h, w, c = shape
    layer = Layer(dtype, [channels, kernel, kernel, c], 0, bias)
    x = random_values(dtype, shape)
    extents = [(e - 1) * stride + kernel if padding == "VALID" else e * stride for e in (h, w)]
    top = padding_of(padding, extents[0], kernel, stride)[1]
    left = padding_of(padding, extents[1], kernel, stride)[1]
    sums = np.zeros([n, *extents, channels], object)
    for b, iy, ix, i in np.ndindex(*x.shape):
        for ky, kx, o in np.ndindex(kernel, kernel, channels):
            y, z = iy * stride + ky - top, ix * stride + kx - left
            if 0 <= y < extents[0] and 0 <= z < extents[1]:
                sums[b, y, z, o] += (int(x[b, iy, ix, i]) - layer.in_zero_point) * (
                    int(layer.weights[o, ky, kx, i]) - layer.weight_zero_point)
    expected = [layer.finish(acc, at[3]) for at, acc in np.ndenumerate(sums)]
    size = np.array([n, *extents, channels], np.int32)
    layer_tensors = layer.tensors()
    tensors = [tensor("size", "int32", [4], None, 0, size), layer_tensors[0],
               tensor("x", dtype, shape, layer.in_scale, layer.in_zero_point)] + layer_tensors[1:]
    tensors.append(tensor("y", dtype, sums.shape, layer.out_scale, layer.out_zero_point))
    add_case("TRANSPOSE_CONV", tensors, list(range(len(tensors) - 1)), {2: x}, expected,
             {"padding": padding, "stride": stride})


def fully_connected(dtype, bias, per_channel):
    layer = Layer(dtype, [5, 12], 0, bias, per_channel, product_in_float=not per_channel)
    x = random_values(dtype, [3, 12])
    expected = []
    for r, o in np.ndindex(3, 5):
        acc = sum((int(x[r, k]) - layer.in_zero_point) * int(layer.weights[o, k]) for k in range(12))
        expected.append(layer.finish(acc, o))
    tensors = [tensor("x", dtype, x.shape, layer.in_scale, layer.in_zero_point)] + layer.tensors()
    tensors.append(tensor("y", dtype, [3, 5], layer.out_scale, layer.out_zero_point))
    add_case("FULLY_CONNECTED", tensors, list(range(len(tensors) - 1)), {0: x}, expected)
