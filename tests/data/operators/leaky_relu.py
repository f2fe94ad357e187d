"""LEAKY_RELU as TFLite's reference kernel computes it, in NumPy: the oracle of
tests/packer/import/tflite_table_test.cc, which has what this prints.

usage: leaky_relu.py
Prints for each case the outputs of all 256 inputs, from the least on, as hexadecimal bytes.
"""
import numpy as np

from fixed_point import quantize_multiplier, scaled


def leaky_relu(dtype, alpha, in_scale, in_zero_point, out_scale, out_zero_point):
    info = np.iinfo(dtype)
    alpha, in_scale, out_scale = np.float32(alpha), np.float32(in_scale), np.float32(out_scale)
    above = quantize_multiplier(in_scale / out_scale)
    below = quantize_multiplier(in_scale * alpha / out_scale)
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
