"""HARD_SWISH as TFLite's reference kernel computes it, in NumPy's 16-bit integers: the oracle of
tests/packer/import/tflite_table_test.cc, which has what this prints.

usage: hard_swish.py
Prints for each case the outputs of all 256 inputs, from the least on, as hexadecimal bytes.
"""
import math

import numpy as np

I16 = np.iinfo(np.int16)


def multiplier_of(real):
    """A fraction of 16 bits, which stands for itself / 2^15, and an exponent."""
    if real == 0:
        return np.int16(0), 0
    fraction, exponent = math.frexp(float(real))
    mantissa = math.floor(fraction * 2**31 + 0.5)
    if mantissa == 2**31:
        mantissa, exponent = mantissa // 2, exponent + 1
    if exponent < -31:
        return np.int16(0), 0
    return np.int16(I16.max if mantissa >= 2**31 - 1 - 2**15 else (mantissa + 2**15) >> 16), exponent


def saturating_shift(values, bits):
    return np.clip(values.astype(np.int64) << bits, I16.min, I16.max).astype(np.int16)


def rounding_high_product(values, factor):
    product = values.astype(np.int32) * np.int32(factor)
    nudged = product + np.where(product >= 0, 2**14, 1 - 2**14)
    result = np.trunc(nudged / 2**15)  # exact: 31 bits over a power of two
    both_least = (values == I16.min) & (factor == I16.min)
    return np.where(both_least, I16.max, result).astype(np.int16)


def truncating_high_product(a, b):
    result = np.trunc((a.astype(np.int32) * b.astype(np.int32)) / 2**15)
    return np.where((a == I16.min) & (b == I16.min), I16.max, result).astype(np.int16)


def rounding_divide(values, bits):
    wide = values.astype(np.int32)
    mask = (1 << bits) - 1
    threshold = (mask >> 1) + (wide < 0)
    return ((wide >> bits) + ((wide & mask) > threshold)).astype(np.int16)


def hard_swish(dtype, in_scale, in_zero_point, out_scale, out_zero_point):
    info = np.iinfo(dtype)
    in_scale, out_scale = np.float32(in_scale), np.float32(out_scale)
    hires_scale = np.float32(1.0 / 128.0) * in_scale
    out_multiplier, out_exponent = multiplier_of(hires_scale / out_scale)
    ramp_multiplier, ramp_exponent = multiplier_of(hires_scale / np.float32(3.0 / 32768.0))
    x = np.arange(info.min, info.max + 1)
    hires = ((x - in_zero_point) * 128).astype(np.int16)
    preshift = rounding_high_product(hires, out_multiplier)
    ramp = hires
    if ramp_exponent > 0:
        ramp = saturating_shift(ramp, ramp_exponent - 1)
    ramp = rounding_high_product(ramp, ramp_multiplier)
    if ramp_exponent > 0:
        ramp = saturating_shift(ramp, 1)
    if ramp_exponent < 0:
        ramp = rounding_divide(ramp, -ramp_exponent)
    ramp = ((ramp.astype(np.int32) + 2**15) >> 1).astype(np.int16)
    out = rounding_divide(truncating_high_product(ramp, preshift), -out_exponent)
    out = (out.astype(np.int32) + out_zero_point).astype(np.int16)  # wraps
    return np.clip(out, info.min, info.max).astype(dtype)


CASES = [
    (np.int8, 0.0625, -10, 0.05, -120),
    (np.int8, 0.7, 5, 0.35, -128),
    (np.int8, 0.003, 0, 0.0017, -20),
    (np.uint8, 0.11, 120, 0.06, 8),
    (np.uint8, 8.0, 0, 0.062502, 255),
]

for case in CASES:
    print(case[0].__name__, *case[1:])
    print(hard_swish(*case).tobytes().hex())
