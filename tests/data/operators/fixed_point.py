"""Fixed-point arithmetic of TFLite's reference kernels and gemmlowp in plain Python integers: what the other files of this
directory compute expected outputs with."""
import math


def quantize_multiplier(real):
    """An integer that stands for itself / 2^31, and an exponent."""
    if real == 0:
        return 0, 0
    fraction, exponent = math.frexp(float(real))
    mantissa = math.floor(fraction * 2**31 + 0.5)
    if mantissa == 2**31:
        mantissa, exponent = mantissa // 2, exponent + 1
    return (0, 0) if exponent < -31 else (mantissa, exponent)


def wrap32(x):
    return (x + 2**31) % 2**32 - 2**31


def high_mul(a, b):
    """The doubled high half of a product: to the nearest, as gemmlowp does it."""
    if a == b == -(2**31):
        return 2**31 - 1
    nudged = a * b + (2**30 if a * b >= 0 else 1 - 2**30)
    return abs(nudged) // 2**31 * (1 if nudged >= 0 else -1)


def divide_by_power(x, n):
    mask = 2**n - 1
    return (x >> n) + ((x & mask) > (mask >> 1) + (x < 0))


def scaled(x, multiplier, exponent):
    """Of an int32: two roundings."""
    return divide_by_power(high_mul(wrap32(x * 2 ** max(exponent, 0)), multiplier), max(-exponent, 0))


def scaled_wide(x, multiplier, exponent):
    """Of an int64: the multiplier is rounded to 16 bits, one rounding."""
    reduced = (multiplier + 2**15) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    return wrap32((x * reduced + 2 ** (14 - exponent)) >> (15 - exponent))


def q_constant(real, fraction_bits):
    return min(math.floor(real * 2**fraction_bits + 0.5), 2**31 - 1)


def saturating_shift(x, n):
    return min(max(x << n, -(2**31)), 2**31 - 1)


def reciprocal(a):
    """1 / (1 + a) of a in [0, 1), both in Q0.31: three of Newton's steps in Q2.29."""
    half = (a + 2**31) // 2
    x = q_constant(48 / 17, 29) + high_mul(half, -q_constant(32 / 17, 29))
    for _ in range(3):
        x += saturating_shift(high_mul(x, 2**29 - high_mul(half, x)), 2)
    return saturating_shift(x, 1)


def exponential(a):
    """exp(a) of a <= 0 in Q5.26, in Q0.31."""
    if a == 0:
        return 2**31 - 1
    quarter = 2**24
    rest = a % quarter - quarter
    x = rest * 32 + 2**28
    x2 = high_mul(x, x)
    x4 = high_mul(x2, x2)
    tail = divide_by_power(
        high_mul(divide_by_power(x4, 2) + high_mul(x2, x), q_constant(1 / 3, 31)) + x2, 1)
    eighth = q_constant(math.exp(-1 / 8), 31)
    result = eighth + high_mul(eighth, x + tail)
    steps = (rest - a) // quarter
    for bit in range(7):
        if steps >> bit & 1:
            result = high_mul(result, q_constant(math.exp(-(2 ** (bit - 2))), 31))
    return result


def logarithm(a):
    """log(a) of a >= 1 in Q12.19, in Q5.26."""
    root = q_constant(math.sqrt(0.5), 31)
    fourth = q_constant(0.5**0.25, 31)
    zeros = 32 - a.bit_length()
    by_root = 31 - high_mul(a, root).bit_length()
    r = min(saturating_shift(high_mul(a << (zeros - 1), root), 1), saturating_shift(a, by_root))
    power = max((12 - zeros) * 2**25 + 2**23, (12 - by_root) * 2**25 - 2**23)
    p, q = (r + fourth + 1) // 2, 2 * (r - fourth)
    q2 = high_mul(q, q)
    above = high_mul(q, r) + high_mul(high_mul(q, q2), q_constant(11 / 240 * 2**0.25, 31))
    below = high_mul(p, q_constant(2 / 2**0.25 - 2**0.25, 31) + q +
                     high_mul(q_constant(1 / 20 * 2**0.25, 31), q2)) + high_mul(q_constant(1 / 4 * 2**0.25, 31), q)
    total = high_mul(power, q_constant(math.log(2), 31)) + high_mul(divide_by_power(above, 6), reciprocal(below))
    return saturating_shift(total, 1)
