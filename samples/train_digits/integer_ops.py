"""TFLite's reference arithmetic for int8 networks, in NumPy int64 and Python integers: the oracle of evaluate.py.

It shares nothing with the project's kernels. Fixed-point numbers are raw int32 values; Qn has n integer bits, 31 - n
fractional bits. Rounding: a product is doubled and rounded to its high half, then divided by a power of two, rounding
half away from zero ("double rounding").
"""
import math

import numpy as np

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
INT8_MIN, INT8_MAX = -128, 127


def truncating_divide(a, b):
    """C's division for b > 0."""
    return np.sign(a) * (np.abs(a) // b)


def doubling_high_mul(a, b):
    """round(a * b / 2^31): ties up for positive products, towards zero for negative ones; saturates -1 * -1."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    nudge = np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    return np.minimum(truncating_divide(product + nudge, 1 << 31), INT32_MAX)


def rounding_shift_right(x, exponent):
    """round(x / 2^exponent), half away from zero."""
    x = np.asarray(x, np.int64)
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponent) + ((x & mask) > threshold)


def saturating_shift_left(x, exponent):
    return np.clip(np.asarray(x, np.int64) << exponent, INT32_MIN, INT32_MAX)


def quantize_multiplier(real):
    """real = multiplier / 2^31 * 2^shift with multiplier in [2^30, 2^31)."""
    if real == 0.0:
        return 0, 0
    fraction, shift = math.frexp(real)
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def multiply(x, multiplier, shift):
    """x * multiplier / 2^31 * 2^shift; multiplier and shift may be arrays over the last axis of x."""
    shift = np.asarray(shift, np.int64)
    scaled = np.asarray(x, np.int64) << np.maximum(shift, 0)
    assert np.all(scaled >= INT32_MIN) and np.all(scaled <= INT32_MAX), "the accumulator leaves int32"
    return rounding_shift_right(doubling_high_mul(scaled, multiplier), np.maximum(-shift, 0))


def convolution(x, weights, bias, stride, padding, input_zero_point, multiplier, shift, output_zero_point, clamp):
    """x [n,h,w,c], weights [o,kh,kw,c]; padding (top, left, height_out, width_out); the border is the zero point."""
    top, left, height, width = padding
    kernel_h, kernel_w = weights.shape[1:3]
    acc = np.zeros((x.shape[0], height, width, weights.shape[0]), np.int64)
    for y, x0, window in _windows(_bordered(x, input_zero_point, padding, kernel_h, kernel_w, stride), stride,
                                  height, width, kernel_h, kernel_w):
        acc += window @ weights[:, y, x0, :].astype(np.int64).T
    return np.clip(multiply(acc + bias, multiplier, shift) + output_zero_point, *clamp).astype(np.int8)


def depthwise(x, weights, bias, stride, padding, input_zero_point, multiplier, shift, output_zero_point, clamp):
    """weights [1,kh,kw,c * depth_multiplier]."""
    top, left, height, width = padding
    _, kernel_h, kernel_w, channels = weights.shape
    acc = np.zeros((x.shape[0], height, width, channels), np.int64)
    for y, x0, window in _windows(_bordered(x, input_zero_point, padding, kernel_h, kernel_w, stride), stride,
                                  height, width, kernel_h, kernel_w):
        acc += np.repeat(window, channels // x.shape[3], axis=3) * weights[0, y, x0, :].astype(np.int64)
    return np.clip(multiply(acc + bias, multiplier, shift) + output_zero_point, *clamp).astype(np.int8)


def _bordered(x, zero_point, padding, kernel_h, kernel_w, stride):
    """x - zero_point with the zeros around it that the windows reach into."""
    top, left, height, width = padding
    bottom = max((height - 1) * stride[0] + kernel_h - x.shape[1] - top, 0)
    right = max((width - 1) * stride[1] + kernel_w - x.shape[2] - left, 0)
    return np.pad(x.astype(np.int64) - zero_point, ((0, 0), (top, bottom), (left, right), (0, 0)))


def _windows(bordered, stride, height, width, kernel_h, kernel_w):
    for y in range(kernel_h):
        for x in range(kernel_w):
            yield y, x, bordered[:, y:y + (height - 1) * stride[0] + 1:stride[0],
                                 x:x + (width - 1) * stride[1] + 1:stride[1], :]


def fully_connected(x, weights, bias, input_zero_point, multiplier, shift, output_zero_point, clamp):
    acc = (x.astype(np.int64) - input_zero_point) @ weights.astype(np.int64).T + bias
    return np.clip(multiply(acc, multiplier, shift) + output_zero_point, *clamp).astype(np.int8)


def add(a, b, a_scale, a_zero_point, b_scale, b_zero_point, output_scale, output_zero_point, clamp):
    """Both operands are brought to twice the larger scale, with 20 more bits, and added."""
    left_shift = 20
    twice_max = 2.0 * max(a_scale, b_scale)
    total = 0
    for value, scale, zero_point in ((a, a_scale, a_zero_point), (b, b_scale, b_zero_point)):
        shifted = (value.astype(np.int64) - zero_point) << left_shift
        total = total + multiply(shifted, *quantize_multiplier(scale / twice_max))
    real = twice_max / ((1 << left_shift) * output_scale)
    return np.clip(multiply(total, *quantize_multiplier(real)) + output_zero_point, *clamp).astype(np.int8)


def average_pool(x, kernel, stride, padding, clamp):
    """The mean of the window's cells inside the image, half away from zero."""
    top, left, height, width = padding
    out = np.zeros((x.shape[0], height, width, x.shape[3]), np.int8)
    for y in range(height):
        for x0 in range(width):
            y_begin, x_begin = y * stride[0] - top, x0 * stride[1] - left
            window = x[:, max(y_begin, 0):y_begin + kernel[0], max(x_begin, 0):x_begin + kernel[1], :]
            count = window.shape[1] * window.shape[2]
            total = window.astype(np.int64).sum(axis=(1, 2))
            total = np.where(total > 0, total + count // 2, total - count // 2)
            out[:, y, x0, :] = np.clip(truncating_divide(total, count), *clamp)
    return out


def softmax(x, beta, input_scale):
    """Along the last axis; the output has scale 1/256 and zero point -128."""
    integer_bits, accumulator_bits = 5, 12
    real = min(beta * input_scale * (1 << (31 - integer_bits)), (1 << 31) - 1.0)
    multiplier, left_shift = quantize_multiplier(real)
    diff_min = -math.floor(((1 << integer_bits) - 1) * (1 << (31 - integer_bits)) / (1 << left_shift))
    rows = x.reshape(-1, x.shape[-1]).astype(np.int64)
    out = np.full(rows.shape, INT8_MIN, np.int8)
    for row, result in zip(rows, out):
        diff = row - row.max()
        kept = diff >= diff_min
        exps = exp_on_negative(doubling_high_mul(diff[kept] << left_shift, multiplier), integer_bits)
        total = int(rounding_shift_right(exps, accumulator_bits).sum())
        headroom = 32 - total.bit_length()  # leading zeros of the 32-bit sum
        scale = reciprocal_of_one_plus((total << headroom) - (1 << 31))
        shift = accumulator_bits - headroom + 31 - 8
        result[kept] = np.clip(rounding_shift_right(doubling_high_mul(scale, exps), shift) + INT8_MIN, INT8_MIN,
                               INT8_MAX)
    return out.reshape(x.shape)


def exp_on_negative(a, integer_bits):
    """exp(a) in Q0 for a <= 0 in Q<integer_bits>: a polynomial on [-1/4, 0), then factors exp(-2^k)."""
    fractional_bits = 31 - integer_bits
    quarter = 1 << (fractional_bits - 2)
    below_quarter = (a & (quarter - 1)) - quarter
    result = _exp_between_minus_quarter_and_zero(saturating_shift_left(below_quarter, integer_bits))
    remainder = below_quarter - a
    factors = {-2: 1672461947, -1: 1302514674, 0: 790015084, 1: 290630308, 2: 39332535, 3: 720401, 4: 242}
    for exponent, factor in factors.items():
        if exponent < integer_bits:
            has_bit = (remainder & (1 << (fractional_bits + exponent))) != 0
            result = np.where(has_bit, doubling_high_mul(result, factor), result)
    return np.where(a == 0, INT32_MAX, result)


def _exp_between_minus_quarter_and_zero(a):
    """Taylor's polynomial of degree 4 around -1/8, in Q0."""
    exp_minus_eighth, third = 1895147668, 715827883
    x = a + (1 << 28)
    x2 = doubling_high_mul(x, x)
    x3 = doubling_high_mul(x2, x)
    x4 = doubling_high_mul(x2, x2)
    higher = rounding_shift_right(doubling_high_mul(rounding_shift_right(x4, 2) + x3, third) + x2, 1)
    return exp_minus_eighth + doubling_high_mul(exp_minus_eighth, x + higher)


def reciprocal_of_one_plus(a):
    """1 / (1 + a) in Q0 for a in [0, 1): three Newton steps for the reciprocal of (1 + a) / 2, in Q2."""
    half_denominator = truncating_divide(np.int64(a) + INT32_MAX + 1, 2)
    x = 1515870810 + doubling_high_mul(half_denominator, -1010580540)  # 48/17 - 32/17 d
    for _ in range(3):
        error = (1 << 29) - doubling_high_mul(half_denominator, x)
        x = x + saturating_shift_left(doubling_high_mul(x, error), 2)
    return int(saturating_shift_left(x, 1))
