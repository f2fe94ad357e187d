"""LEAKY_RELU as TFLite's reference kernel computes it, in NumPy: the oracle of
tests/packer/import/tflite_table_test.cc, which has what this prints.

usage: leaky_relu.py
Prints for each case the outputs of all 256 inputs, from the least on, as hexadecimal bytes.
"""
import math

import numpy as np


def multiplier_of(real):
    """An integer that stands for itself / 2^31, and an exponent."""
    if real == 0:
        return 0, 0
    fraction, exponent = math.frexp(float(real))
    mantissa = math.floor(fraction * 2**31 + 0.5)
    return (mantissa // 2, exponent + 1) if mantissa == 2**31 else (mantissa, exponent)


def scaled(value, multiplier, exponent):
    """Two roundings: the doubled high half of a product to the nearest, then a division by a power of two."""
    product = value * 2 ** max(exponent, 0) * multiplier
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    high = abs(nudged) // 2**31 * (1 if nudged >= 0 else -1)  # towards zero
    right = max(-exponent, 0)
    mask = 2**right - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


def leaky_relu(dtype, alpha, in_scale, in_zero_point, out_scale, out_zero_point):
    info = np.iinfo(dtype)
    alpha, in_scale, out_scale = np.float32(alpha), np.float32(in_scale), np.float32(out_scale)
    above = multiplier_of(in_scale / out_scale)
    below = multiplier_of(in_scale * alpha / out_scale)
    outputs = []
    for x in range(info.min, info.max + 1):
        value = x - in_zero_point
        result = out_zero_point + scaled(value, *(above if value >= 0 else below))
        outputs.append(min(max(result, info.min), info.max))
    return np.array(outputs, dtype)


CASES = [
    (np.int8, 0.3, 0.05, -20, 0.04, -60),
    (np.int8, 0.01, 0.5, 0, 0.5, 0),
    (np.uint8, 0.2, 0.021, 90, 0.013, 40),
    (np.uint8, 2.5, 0.7, 128, 0.35, 200),
]

for case in CASES:
    print(case[0].__name__, *case[1:])
    print(leaky_relu(*case).tobytes().hex())
