"""Operators on integers as TFLite's reference kernels compute them, in plain Python integers: the oracle of
tests/models/tflite_operator_test.cc, which reads what this writes.

usage: integer_operators.py OUT.json
Writes models of one operator or a few, their inputs and their expected outputs. Bytes are hexadecimal.
"""
import json
import math
import sys

import numpy as np

from fixed_point import (
    divide_by_power, exponential, high_mul, logarithm, quantize_multiplier, reciprocal, scaled, scaled_wide, wrap32,
)
from integer_cases import CASES, F, RANDOM, TYPES, add_case, clamp, half_away, hexadecimal, random_values, tensor
from integer_layers import conv2d, fully_connected, network, padding_of, transpose_conv

# ---- two operands ----

def binary(op, dtype, function, shapes, scales, zero_points, options=None):
    """function(x, y): of integers, to the output before the clamp."""
    x, y = (random_values(dtype, s) for s in shapes)
    a, b = np.broadcast_arrays(x, y)
    expected = [clamp(function(int(p), int(q)), dtype) for p, q in zip(a.reshape(-1), b.reshape(-1))]
    tensors = [tensor(n, dtype, s, scale, z)
               for n, s, scale, z in zip("xyz", [*shapes, a.shape], scales, zero_points)]
    add_case(op, tensors, [0, 1], {0: x, 1: y}, expected, options)


def sums(op, dtype, shapes, scales, zero_points, shift):
    s1, s2, so = (float(F(s)) for s in scales)
    twice = 2 * max(s1, s2)
    m1, m2 = quantize_multiplier(s1 / twice), quantize_multiplier(s2 / twice)
    mo = quantize_multiplier(twice / (2**shift * so))

    def function(p, q):
        p, q = scaled((p - zero_points[0]) << shift, *m1), scaled((q - zero_points[1]) << shift, *m2)
        return scaled(p + q if op == "ADD" else p - q, *mo) + zero_points[2]

    binary(op, dtype, function, shapes, scales, zero_points, {"pot": False})


def shifted_sums(op, scales, shifts):
    def function(p, q):
        p, q = divide_by_power(p, shifts[0]), divide_by_power(q, shifts[1])
        return p + q if op == "ADD" else p - q

    binary(op, "int16", function, [[40], [40]], scales, [0, 0, 0], {"pot": True})


def products(scales):
    m = quantize_multiplier(float(F(F(F(scales[0]) * F(scales[1])) / F(scales[2]))))
    binary("MUL", "int16", lambda p, q: scaled(p * q, *m), [[6, 7], [7]], scales, [0, 0, 0])


def squared_difference(dtype, shapes, scales, zero_points):
    s1, s2, so = (float(F(s)) for s in scales)
    twice = 2 * max(s1, s2)
    m1, m2 = quantize_multiplier(s1 / twice), quantize_multiplier(s2 / twice)
    mo = quantize_multiplier(twice * twice / (2**14 * so))

    def function(p, q):
        d = scaled((p - zero_points[0]) << 7, *m1) - scaled((q - zero_points[1]) << 7, *m2)
        return scaled(d * d, *mo) + zero_points[2]

    binary("SQUARED_DIFFERENCE", dtype, function, shapes, scales, zero_points)


def prelu(dtype, shapes, scales, zero_points):
    above = quantize_multiplier(float(F(F(scales[0]) / F(scales[2]))))
    below = quantize_multiplier(float(F(F(F(scales[0]) * F(scales[1])) / F(scales[2]))))

    def function(p, q):
        v = p - zero_points[0]
        return (scaled(v, *above) if v >= 0 else scaled(v * (q - zero_points[1]), *below)) + zero_points[2]

    binary("PRELU", dtype, function, shapes, scales, zero_points)


def batch_matmul(dtype, lead_a, lead_b, adj_x, adj_y):
    m, k, n = 3, 7, 4
    scales, zero_points = [0.021, 0.017, 0.05], {"int8": [3, -9, 12], "uint8": [120, 133, 90]}[dtype]
    a = random_values(dtype, [*lead_a, *((k, m) if adj_x else (m, k))])
    b = random_values(dtype, [*lead_b, *((n, k) if adj_y else (k, n))])
    left = (np.swapaxes(a, -1, -2) if adj_x else a).astype(np.int64) - zero_points[0]
    right = (np.swapaxes(b, -1, -2) if adj_y else b).astype(np.int64) - zero_points[1]
    sums_ = left @ right
    factor = quantize_multiplier(float(F(F(scales[0]) * F(scales[1]))) / float(F(scales[2])))
    expected = [clamp(scaled(int(v), *factor) + zero_points[2], dtype) for v in sums_.reshape(-1)]
    tensors = [tensor(name, dtype, t.shape, s, z) for name, t, s, z in
               zip("abc", [a, b, sums_], scales, zero_points)]
    add_case("BATCH_MATMUL", tensors, [0, 1], {0: a, 1: b}, expected, {"adj_x": adj_x, "adj_y": adj_y})


# ---- one operand ----

def unary(op, function, in_type, out_type, in_quant, out_quant, x=None, options=None):
    if x is None:
        info = np.iinfo(TYPES[in_type])
        every = in_type != "int16"
        x = (np.arange(info.min, info.max + 1) if every else
             np.append(RANDOM.integers(info.min, info.max, 300), [info.min, -1, 0, 1, info.max]))
        x = x.astype(TYPES[in_type])
    expected = [clamp(function(v), out_type) for v in x.tolist()]
    tensors = [tensor("x", in_type, x.shape, *in_quant), tensor("y", out_type, x.shape, *out_quant)]
    add_case(op, tensors, [0], {0: x}, expected, options)


def rescaling(in_type, out_type, in_quant, out_quant, x=None):
    m = quantize_multiplier(float(F(in_quant[0])) / float(F(out_quant[0])))
    unary("QUANTIZE", lambda v: scaled(v - in_quant[1], *m) + out_quant[1], in_type, out_type, in_quant,
          out_quant, x)


def leaky_relu(alpha, scales):
    above = quantize_multiplier(float(F(F(scales[0]) / F(scales[1]))))
    below = quantize_multiplier(float(F(F(F(scales[0]) * F(alpha)) / F(scales[1]))))
    unary("LEAKY_RELU", lambda v: scaled(v, *(above if v >= 0 else below)), "int16", "int16", (scales[0], 0),
          (scales[1], 0), options={"alpha": alpha})


def real_function(op, function, dtype, in_quant, out_quant, options=None):
    inverse = F(1) / F(out_quant[0])

    def of(v):
        real = F(in_quant[0]) * F(v - in_quant[1])
        value = F(F(function(real)) * inverse)
        if abs(value) > 1e6:
            return math.copysign(1e6, value)
        return half_away(float(value)) + out_quant[1]

    unary(op, of, dtype, dtype, in_quant, out_quant, options=options)


def sigmoid_table():
    """TFLite's table of 256 entries, which is not the rounded function: where it is one above."""
    above = [0xFA7BD110, 0xC0467BAE, 0x20440005, 0x00110090, 0x80, 0, 0, 0x80000000]
    return [math.floor(65536 / (1 + math.exp(-i / 24)) + 0.5) + (above[i // 32] >> i % 32 & 1)
            for i in range(256)]


def int16_function(op, scale):
    table = sigmoid_table()
    log2 = math.log2(float(F(scale)))
    shift = 12 + round(log2)
    if abs(log2 - round(log2)) < 1e-3 and shift in (0, 1):
        multiplier, shift = 3 << shift, 0
    else:
        multiplier, shift = float(F(scale)) * 4096 * 3, 0
        while multiplier <= 32767 / 2 and shift <= 30:
            multiplier, shift = multiplier * 2, shift + 1
        multiplier = int(multiplier)

    def of(v):
        v = (v * multiplier + (1 << shift >> 1 if shift else 0)) >> shift
        bits = 9 if op == "LOGISTIC" else 8
        h, t = abs(v) >> bits, abs(v) & (1 << bits) - 1
        if op == "LOGISTIC":
            f = 0x7FFF << 10 if h >= 255 else (table[h] << 9) + t * (table[h + 1] - table[h])
            return ((f + 2**9) if v >= 0 else 2**25 - f + 2**9 - 1) >> 10
        f = 0xFFFF << 8 if h >= 255 else (table[h] << 8) + t * (table[h + 1] - table[h])
        return ((f - 2**23 + 2**7) if v >= 0 else 2**23 - f + 2**7 - 1) >> 8

    unary(op, of, "int16", "int16", (scale, 0), (1 / 32768, 0))


def inverse_sqrt(value):
    """Newton's iteration as TFLite writes it: a multiplier and an exponent that is not positive."""
    if value <= 1:
        return 2**31 - 1, 0
    right = 11
    while value >= 2**29:
        value, right = value // 4, right + 1
    pairs = (32 - value.bit_length() - 1) // 2 - 1
    right -= pairs
    value <<= 2 * pairs

    def shift_left(x, n):
        return min(max(x << n, -(2**31)), 2**31 - 1)

    half = divide_by_power(value >> 1, 1)
    x = 2**28
    for _ in range(5):
        cube = shift_left(high_mul(high_mul(x, x), x), 6)
        x = shift_left(high_mul(2**28 + 2**27, x) - high_mul(half, cube), 3)
    x = high_mul(x, 1518500250)
    if right < 0:
        x, right = x << -right, 0
    return x, -right


def l2_normalization(dtype, zero_point):
    x = random_values(dtype, [4, 9])
    x[1] = zero_point
    expected = []
    for row in x.tolist():
        v = [e - zero_point for e in row]
        m, e = inverse_sqrt(sum(a * a for a in v))
        for a in v:
            expected.append(clamp(scaled(a, m, e + 7), dtype) if dtype == "int8" else
                            clamp(128 + scaled(128 * a, m, e), dtype))
    tensors = [tensor("x", dtype, x.shape, 0.02, zero_point),
               tensor("y", dtype, x.shape, 1 / 128, 0 if dtype == "int8" else 128)]
    add_case("L2_NORMALIZATION", tensors, [0], {0: x}, expected)


def log_softmax(dtype, x, scale):
    x = np.asarray(x, TYPES[dtype])
    highest = int(np.iinfo(TYPES[dtype]).max)
    m, e = quantize_multiplier(min(float(F(scale)) * 2**26, 2**31 - 1))
    least = -((31 << 26) >> e)
    reverse = quantize_multiplier(2 ** (31 - e) / m)
    expected = []
    for row in x.tolist():
        d = [v - max(row) for v in row]
        log = logarithm(min(sum(divide_by_power(exponential(scaled(v, m, e)), 12) for v in d if v >= least), 2**31 - 1))
        farthest = max(least - 1, scaled(log - 2**31, *reverse))
        for v in d:
            value = highest + divide_by_power(scaled(v, m, e) - log, 22) if v > farthest else highest - 255
            expected.append(clamp(value, dtype))
    real = x.astype(float) * float(F(scale))
    textbook = real - real.max(-1, keepdims=True)
    textbook -= np.log(np.exp(textbook).sum(-1, keepdims=True))
    error = np.abs((np.array(expected).reshape(x.shape) - highest) / 16 - np.maximum(textbook, -255 / 16))
    assert error.max() <= 1.01 / 16, error.max()
    tensors = [tensor("x", dtype, x.shape, scale, 5), tensor("y", dtype, x.shape, 1 / 16, highest)]
    add_case("LOG_SOFTMAX", tensors, [0], {0: x}, expected)


def division(dtype, shapes, scales, zero_points, textbook):
    """textbook: the formula keeps within the widths that TFLite's defines."""
    s1, s2, so = (F(s) for s in scales)
    m, e = quantize_multiplier(float(F(s1 / F(s2 * so))))
    info = np.iinfo(TYPES[dtype])

    def function(p, q):
        v, w = p - zero_points[0], q - zero_points[1]
        if w == 0:  # TFLite leaves it undefined
            return zero_points[2] if v == 0 else int(info.max if v > 0 else info.min)
        if w < 0:
            v, w = -v, -w
        k = w.bit_length() - 1
        h = 31 if v == 0 else 31 - (v.bit_length() if v > 0 else (-v - 1).bit_length())
        quotient = high_mul(wrap32(v << h), reciprocal((w << (31 - k)) - 2**31))
        right = k + h - e
        assert right <= 31 or v == 0 or not textbook
        result = (0 if right > 31 else divide_by_power(high_mul(quotient, m), right)) + zero_points[2]
        real = v / w * float(s1) / float(s2) / float(so) + zero_points[2]
        assert abs(clamp(result, dtype) - min(max(real, info.min), info.max)) <= 0.51, (v, w, result, real)
        return result

    binary("DIV", dtype, function, shapes, scales, zero_points)


def rsqrt(in_quant, out_quant):
    scale = quantize_multiplier(1.0 / float(F(np.sqrt(F(in_quant[0])) * F(out_quant[0]))))

    def of(v):
        if v <= in_quant[1]:
            return 127
        m, e = inverse_sqrt(v - in_quant[1])
        return scaled(scaled(1, m, e + 20), scale[0], scale[1] - 20) + out_quant[1]

    unary("RSQRT", of, "int8", "int8", in_quant, out_quant)


# ---- reductions ----

def reduction(op, dtype, shape, axes, keep, in_quant, out_quant, data=None, tflite=None):
    """tflite: what TensorFlow Lite 2.9 itself gives for data."""
    low, high = (None, None) if op != "REDUCE_PROD" else (-60, 60)
    x = random_values(dtype, shape, low, high) if data is None else np.array(data, TYPES[dtype])
    kept = [i for i in range(len(shape)) if i not in axes]
    rows = np.transpose(x, kept + list(axes)).reshape(int(np.prod([shape[i] for i in kept])), -1)
    n = rows.shape[1]
    m, e = quantize_multiplier(float(F(in_quant[0])) / float(F(out_quant[0])))
    if op == "MEAN":
        k = min(n.bit_length() - 1, 32, 31 + e)
        m, e = (m << k) // n, e - k
    if op == "REDUCE_PROD":
        m, e = quantize_multiplier(float(F(in_quant[0])) / float(F(out_quant[0])) ** (1 / n))
    expected = []
    for row in rows.tolist():
        if op in ("REDUCE_MAX", "REDUCE_MIN"):
            expected.append((max if op == "REDUCE_MAX" else min)(row))
        elif op == "REDUCE_PROD":
            # The first factor is not scaled, and the last product is scaled twice.
            product = row[0] - in_quant[1]
            for v in row[1:]:
                product = scaled_wide(product * (v - in_quant[1]), m, e)
            expected.append(clamp(scaled_wide(product, m, e) + out_quant[1], dtype))
        else:
            total = sum(row) - n * in_quant[1]
            expected.append(clamp(scaled(total, m, e) + out_quant[1], dtype))
    assert tflite is None or expected == tflite, (expected, tflite)
    out_shape = [1 if i in axes else s for i, s in enumerate(shape) if keep or i not in axes]
    tensors = [tensor("x", dtype, shape, *in_quant),
               tensor("axes", "int32", [len(axes)], None, 0, np.array(axes, np.int32)),
               tensor("y", dtype, out_shape, *out_quant)]
    add_case(op, tensors, [0, 1], {0: x}, expected, {"keep": keep})


def arg_min(dtype, shape, axis):
    x = random_values(dtype, shape, 0, 4)
    expected = np.argmin(x, axis)
    tensors = [tensor("x", dtype, shape, 0.5, 0), tensor("axis", "int32", [1], None, 0, np.array([axis], np.int32)),
               tensor("y", "int32", expected.shape)]
    add_case("ARG_MIN", tensors, [0, 1], {0: x}, expected)


def pool(op, shape, kernel, stride, padding):
    n, h, w, c = shape
    x = random_values("int16", shape)
    oh, top = padding_of(padding, h, kernel, stride)
    ow, left = padding_of(padding, w, kernel, stride)
    expected = np.zeros([n, oh, ow, c], np.int16)
    for b, y, z, o in np.ndindex(*expected.shape):
        window = [int(x[b, i, j, o])
                  for i in range(max(y * stride - top, 0), min(y * stride - top + kernel, h))
                  for j in range(max(z * stride - left, 0), min(z * stride - left + kernel, w))]
        if op == "MAX_POOL_2D":
            expected[b, y, z, o] = max(window)
        else:
            total, half = sum(window), len(window) // 2
            rounded = total + half if total > 0 else total - half
            expected[b, y, z, o] = abs(rounded) // len(window) * (1 if rounded >= 0 else -1)
    tensors = [tensor("x", "int16", shape, 0.01, 0), tensor("y", "int16", expected.shape, 0.01, 0)]
    add_case(op, tensors, [0], {0: x}, expected, {"padding": padding, "stride": stride, "kernel": kernel})


def make_cases():
    network()
    for bias in ("int64", "int32", None):
        conv2d("int16", bias, [1, 6, 5, 3], 4, 3, 2, "SAME")
        conv2d("int16", bias, [2, 6, 6, 2], 6, 2, 1, "VALID", depthwise=True)
        fully_connected("int16", bias, True)
    conv2d("int16", "int64", [1, 7, 7, 2], 3, 3, 1, "SAME", dilation=2)
    fully_connected("int16", "int64", False)
    for dtype, bias in (("int8", "int32"), ("int8", None), ("uint8", "int32"), ("int16", "int64"),
                        ("int16", "int32"), ("int16", None)):
        transpose_conv(dtype, bias, [1, 4, 3, 3], 2, 3, 2, "SAME")
        transpose_conv(dtype, bias, [2, 3, 3, 2], 3, 2, 3, "VALID")
    transpose_conv("int8", "int32", [1, 5, 5, 2], 2, 4, 1, "SAME")
    for op in ("ADD", "SUB"):
        sums(op, "int16", [[3, 8], [8]], [0.0011, 0.0031, 0.0042], [0, 0, 0], 15)
        sums(op, "int16", [[20], [20]], [0.5, 0.00001, 0.6], [0, 0, 0], 15)
        shifted_sums(op, [1 / 4096, 1 / 16384, 1 / 4096], [0, 2])
        shifted_sums(op, [1 / 32768, 1 / 4096, 1 / 4096], [3, 0])
    products([0.0011, 0.0031, 0.0042])
    products([1 / 32768, 1 / 32768, 1 / 32768])
    squared_difference("int8", [[5, 8], [8]], [0.05, 0.03, 0.4], [-4, 20, -100])
    squared_difference("uint8", [[30], [30]], [0.01, 0.9, 40.0], [140, 12, 3])
    for dtype, zero_points in (("int8", [-3, 11, -60]), ("uint8", [121, 140, 60]), ("int16", [0, 0, 0])):
        prelu(dtype, [[2, 3, 4], [4]], [0.05, 0.006, 0.04], zero_points)
        prelu(dtype, [[2, 3, 4], [3, 1]], [0.05, 0.03, 0.09], zero_points)
    leaky_relu(0.3, [0.0017, 0.0017])
    leaky_relu(0.0, [0.02, 0.0172])
    batch_matmul("int8", [2], [2], False, False)
    batch_matmul("int8", [2, 1], [3], False, True)
    batch_matmul("int8", [], [], True, False)
    batch_matmul("uint8", [2], [1], True, True)
    rescaling("int16", "int16", (0.002, 0), (0.0007, 0))
    rescaling("int16", "int8", (0.0009, 0), (0.21, -13))
    rescaling("int8", "int16", (0.3, 7), (0.0011, 0))
    wide = RANDOM.integers(-(2**31), 2**31, 60).astype(np.int32)
    rescaling("int32", "int16", (1.5e-7, 0), (0.0092, 0), wide)
    rescaling("int32", "int8", (1.5e-9, 0), (0.02, 4), wide)
    reals = RANDOM.normal(0, 10, 100).astype(F)
    reals[:4] = [np.inf, -np.inf, 0.0055, -0.0055]
    limit = np.iinfo(np.int16)
    unary("QUANTIZE", lambda v: half_away(min(max(float(F(F(v) / F(0.001))), limit.min), limit.max)), "float32",
          "int16", (), (0.001, 0), reals)
    for name, low, high in (("RELU", 0, 32767), ("RELU6", 0, half_away(float(F(6) / F(0.0004))))):
        m = quantize_multiplier(float(F(F(0.0007) / F(0.0004))))
        unary(name, lambda v: min(max(scaled(v, *m), low), high), "int16", "int16", (0.0007, 0), (0.0004, 0))
    for op in ("LOGISTIC", "TANH"):
        for scale in (1 / 4096, 1 / 2048, 0.0003, 0.01, 1e-6):
            int16_function(op, scale)
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        pool(op, [1, 5, 6, 3], 3, 2, "SAME")
        pool(op, [2, 4, 4, 2], 2, 2, "VALID")
    for dtype, zero_point in (("int8", -5), ("uint8", 140)):
        l2_normalization(dtype, zero_point)
        arg_min(dtype, [4, 6, 3], 1)
        reduction("SUM", dtype, [3, 4, 5], [1], False, (0.02, zero_point), (0.11, zero_point + 3))
        reduction("SUM", dtype, [3, 4, 5], [0, 2], True, (0.02, zero_point), (0.3, zero_point - 9))
    for dtype in ("int8", "uint8", "int16"):
        for op in ("REDUCE_MAX", "REDUCE_MIN"):
            reduction(op, dtype, [2, 3, 4], [1], True, (0.1, 0), (0.1, 0))
            reduction(op, dtype, [2, 3, 4], [0, 2], False, (0.1, 0), (0.1, 0))
    reduction("REDUCE_PROD", "int8", [3, 4], [1], False, (0.05, 3), (0.002, -7))
    reduction("REDUCE_PROD", "int16", [3, 3, 2], [0, 2], True, (0.05, 0), (0.0003, 0))
    reduction("REDUCE_PROD", "int8", [3, 3], [1], False, (0.02, 0), (0.02, 0),
              data=[[5, 100, 90], [9, 110, 120], [3, 127, 127]], tflite=[18, 48, 19])
    reduction("MEAN", "int16", [2, 3, 5], [1], False, (0.01, 0), (0.006, 0))
    reduction("MEAN", "int16", [2, 3, 4, 5], [1, 2], True, (0.01, 0), (0.01, 0))
    for dtype, z in (("int8", 0), ("uint8", 128)):
        real_function("TANH", lambda r: math.tanh(float(r)), dtype, (0.03, z + 5), (1 / 128, z))
    real_function("ELU", lambda r: F(math.exp(float(r))) - F(1) if r < 0 else r, "int8", (0.04, 20), (0.03, -90))
    real_function("EXP", lambda r: math.exp(float(r)), "int8", (0.02, 10), (0.07, -128))
    real_function("EXP", lambda r: math.exp(float(r)) if r < 80 else 1e30, "int8", (2.0, 0), (1.0, -128))
    real_function("LOG", lambda r: F(math.log(float(r))) if r > 0 else F(-128 - 30) * F(0.03), "int8", (0.05, -100),
                  (0.03, 30))
    for dtype, z in (("int8", 0), ("uint8", 128)):
        real_function("GELU", lambda r: F(F(0.5) * r) * F(math.erfc(float(F(r * F(-0.7071067811865476))))), dtype,
                      (0.04, z + 7), (0.03, z - 100))
        real_function("GELU", lambda r: F(F(0.5) * r) * F(F(1) + F(math.tanh(float(
            F(0.7978845608028654) * F(r + F(F(F(F(0.044715) * r) * r) * r)))))), dtype, (0.04, z + 7), (0.03, z - 100),
            {"approximate": True})

    def sqrt(v):
        real = F(0.05) * F(v + 128)
        return half_away(float(F(np.sqrt(real)) / F(0.02))) - 100

    unary("SQRT", sqrt, "int8", "int8", (0.05, -128), (0.02, -100))
    rsqrt((0.05, -128), (0.02, -100))
    rsqrt((0.7, -90), (0.004, 3))
    m = quantize_multiplier(float(F(F(0.05) / F(0.03))))
    unary("ABS", lambda v: scaled(abs(v - 11), *m) - 120, "int8", "int8", (0.05, 11), (0.03, -120))
    unary("ABS", lambda v: abs(v + 4) - 100, "int8", "int8", (0.05, -4), (0.05, -100))
    for dtype in ("int8", "uint8"):
        for scale in (0.01, 0.1, 0.7, 3e-5):
            log_softmax(dtype, random_values(dtype, [5, 12]), scale)
        log_softmax(dtype, random_values(dtype, [2, 1000]), 0.08)
        log_softmax(dtype, np.full([1, 300], 7), 0.5)
        log_softmax(dtype, random_values(dtype, [3, 1]), 0.1)
    for dtype, zero_points in (("uint8", [128, 127, 130]), ("int8", [-3, 11, -60])):
        division(dtype, [[4, 50], [4, 50]], [2 / 255, 2 / 255, 2 / 255], zero_points, True)
        division(dtype, [[4, 50], [50]], [0.05, 0.02, 0.4], zero_points, False)
        division(dtype, [[1], [7, 30]], [4.0, 0.001, 30.0], zero_points, False)


make_cases()
with open(sys.argv[1], "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in CASES) + "\n]\n")
