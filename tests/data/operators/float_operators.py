"""Operators on float32 and on numbers that stand for themselves, in plain NumPy with float64: an oracle of
tests/models/tflite_operator_test.cc, which reads what this writes. What is float32 is compared within 1e-5.

usage: float_operators.py OUT.json
Writes models of one operator or a few, their inputs and their expected outputs. Bytes are hexadecimal.
"""
import json
import math
import sys

import numpy as np

RANDOM = np.random.default_rng(23)
CASES = []


def reals(*shape, spread=2.0):
    return RANDOM.normal(0, spread, shape).astype(np.float32)


def tensor(array, is_input=False, scale=None, zero_point=0):
    """is_input: its values are the case's input; else they are a constant of the model."""
    array = np.asarray(array)
    return {"array": array, "is_input": is_input, "scale": scale, "zero_point": zero_point}


def network(tensors, operators, expected, scale=None, zero_point=0):
    """operators: (name, options, operands, result). The result of the last one is the output."""
    entries, inputs = [], []
    for i, t in enumerate(tensors):
        if isinstance(t, tuple):  # a tensor between operators: dtype, shape
            entries.append(entry(i, t[0], t[1]))
            continue
        data = None if t["is_input"] else t["array"].tobytes().hex()
        entries.append(entry(i, str(t["array"].dtype), t["array"].shape, data, t["scale"], t["zero_point"]))
        if t["is_input"]:
            inputs.append([i, t["array"].tobytes().hex()])
    expected = np.ascontiguousarray(expected)
    entries.append(entry(len(tensors), str(expected.dtype), expected.shape, None, scale, zero_point))
    CASES.append({"operators": [{"op": op, "options": options, "operands": operands,
                                 "result": len(tensors) if result is None else result}
                                for op, options, operands, result in operators],
                  "tensors": entries, "inputs": inputs, "expected": expected.tobytes().hex()})


def entry(index, dtype, shape, data=None, scale=None, zero_point=0):
    return {"name": f"t{index}", "type": dtype, "shape": list(shape),
            "scales": [] if scale is None else [float(np.float32(scale))],
            "zero_points": [] if scale is None else [zero_point], "axis": 0, "data": data}


def case(op, tensors, expected, options=None, **quantisation):
    network(tensors, [(op, options or {}, list(range(len(tensors))), None)], expected, **quantisation)


def ints(*values, dtype=np.int32):
    return tensor(np.array(values, dtype))


def wide(array):
    return np.asarray(array, np.float64)


def narrow(array):
    return np.asarray(array, np.float64).astype(np.float32)


# ---- float32 ----

def functions():
    x = np.concatenate([reals(60), np.array([0, -0.0, 1e-6, -1e-6, 20, -20, 0.3, -0.3], np.float32)])
    for op, function in (("SIN", np.sin), ("COS", np.cos), ("SQUARE", np.square),
                         ("ELU", lambda v: np.where(v < 0, np.expm1(v), v))):
        case(op, [tensor(x, True)], narrow(function(wide(x))))
    halves = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, 3.49, -3.51, 7])
    for op, function in (("FLOOR", np.floor), ("CEIL", np.ceil), ("ROUND", np.rint)):
        case(op, [tensor(halves, True)], function(halves))
    rows = reals(3, 7)
    case("LOG_SOFTMAX", [tensor(rows, True)], narrow(wide(rows) - np.log(np.exp(wide(rows)).sum(-1, keepdims=True))))
    erf = np.vectorize(math.erf)
    case("GELU", [tensor(x, True)], narrow(wide(x) / 2 * (1 + erf(wide(x) / math.sqrt(2)))), {"approximate": False})
    inner = math.sqrt(2 / math.pi) * (wide(x) + 0.044715 * wide(x) ** 3)
    case("GELU", [tensor(x, True)], narrow(wide(x) / 2 * (1 + np.tanh(inner))), {"approximate": True})
    base, exponent = np.abs(reals(40)) + np.float32(0.01), reals(40)
    case("POW", [tensor(base, True), tensor(exponent)], narrow(wide(base) ** wide(exponent)))
    x = reals(2, 5)
    case("POW", [tensor(x, True), tensor(np.float32([3]))], narrow(wide(x) ** 3))
    a, b, c = reals(2, 3), reals(2, 3), reals(2, 3)
    case("ADD_N", [tensor(a, True), tensor(b, True), tensor(c)], narrow(wide(a) + b + c))


def reductions():
    x = reals(2, 3, 4, 5)
    for op, function in (("SUM", np.sum), ("REDUCE_MAX", np.max), ("REDUCE_MIN", np.min), ("REDUCE_PROD", np.prod)):
        for axes, keep in (((1,), False), ((0, 2), True), ((-1,), False), ((0, 1, 2, 3), True)):
            case(op, [tensor(x, True), ints(*axes)], narrow(function(wide(x), axis=axes, keepdims=keep)), {"keep": keep})
    x = reals(3, 7)
    case("L2_NORMALIZATION", [tensor(x, True)], narrow(wide(x) / np.sqrt((wide(x) ** 2).sum(-1, keepdims=True))))
    for exclusive in (False, True):
        for reverse in (False, True):
            x = reals(2, 4, 3)
            y = np.flip(wide(x), 1) if reverse else wide(x)
            sums = np.cumsum(y, 1) - (y if exclusive else 0)
            case("CUMSUM", [tensor(x, True), ints(1)], narrow(np.flip(sums, 1) if reverse else sums),
                 {"exclusive": exclusive, "reverse": reverse})


def matrices():
    for adj_x, adj_y in ((False, False), (True, False), (False, True)):
        a, b = reals(2, 1, *((7, 3) if adj_x else (3, 7))), reals(4, *((5, 7) if adj_y else (7, 5)))
        left = np.swapaxes(wide(a), -1, -2) if adj_x else wide(a)
        right = np.swapaxes(wide(b), -1, -2) if adj_y else wide(b)
        case("BATCH_MATMUL", [tensor(a, True), tensor(b, True)], narrow(left @ right), {"adj_x": adj_x, "adj_y": adj_y})
    x, w, b = reals(3, 8), reals(5, 8), reals(5)
    case("FULLY_CONNECTED", [tensor(x, True), tensor(w, True), tensor(b)], narrow(wide(x) @ wide(w).T + b))


def resized(x, size, mode):
    n, height, width, c = x.shape
    out = np.zeros((n, *size, c))

    def places(extent, count):
        for i in range(count):
            if mode == "align_corners" and count > 1:
                place = i * (extent - 1) / (count - 1)
            else:
                place = (i + 0.5) * extent / count - 0.5 if mode == "half_pixel" else i * extent / count
            first = min(max(math.floor(place), 0), extent - 1)
            second = min(max(math.ceil(place), 0), extent - 1)
            yield i, first, second, place - first

    for y, y0, y1, dy in places(height, size[0]):
        for z, x0, x1, dx in places(width, size[1]):
            top = wide(x[:, y0, x0]) * (1 - dx) + wide(x[:, y0, x1]) * dx
            bottom = wide(x[:, y1, x0]) * (1 - dx) + wide(x[:, y1, x1]) * dx
            out[:, y, z] = top * (1 - dy) + bottom * dy
    return out


def images():
    x = reals(1, 3, 4, 2)
    for mode in ("", "align_corners", "half_pixel"):
        for size in ((6, 8), (5, 3), (1, 1)):
            case("RESIZE_BILINEAR", [tensor(x, True), ints(*size)], narrow(resized(x, size, mode)), {"mode": mode})
    for padding, stride, kernel in (("SAME", 2, 3), ("VALID", 2, 3), ("SAME", 1, 3), ("VALID", 3, 2), ("SAME", 3, 2)):
        x, w, b = reals(1, 4, 3, 3), reals(2, kernel, kernel, 3), reals(2)
        extents = [e * stride if padding == "SAME" else (e - 1) * stride + kernel for e in (4, 3)]
        if padding == "VALID" and kernel < stride:
            extents = [(e - 1) * stride + kernel for e in (4, 3)]
        pads = [max((-(-e // stride) - 1) * stride + kernel - e, 0) // 2 if padding == "SAME" else 0 for e in extents]
        out = np.zeros((1, *extents, 2)) + b
        for y, z, ky, kx in np.ndindex(4, 3, kernel, kernel):
            oy, ox = y * stride + ky - pads[0], z * stride + kx - pads[1]
            if 0 <= oy < extents[0] and 0 <= ox < extents[1]:
                out[0, oy, ox] += wide(w[:, ky, kx]) @ wide(x[0, y, z])
        case("TRANSPOSE_CONV", [ints(1, *extents, 2), tensor(w), tensor(x, True), tensor(b)], narrow(out),
             {"padding": padding, "stride": stride})


def spectrum():
    for length, given in ((16, 16), (8, 12), (12, 8)):
        x = reals(3, given)
        padded = np.zeros((3, length))
        padded[:, :min(length, given)] = wide(x)[:, :length]
        y = np.fft.rfft(padded)
        tensors = [tensor(x.reshape(3, 1, given), True), ints(1, length), ("complex64", (3, 1, length // 2 + 1))]
        for op, value in (("COMPLEX_ABS", np.abs(y)), ("REAL", y.real), ("IMAG", y.imag)):
            network([dict(t) if isinstance(t, dict) else t for t in tensors],
                    [("RFFT2D", {}, [0, 1], 2), (op, {}, [2], None)], narrow(value).reshape(3, 1, -1))


# ---- conditions ----

def comparisons():
    operators = (("LESS", np.less), ("LESS_EQUAL", np.less_equal), ("GREATER", np.greater),
                 ("GREATER_EQUAL", np.greater_equal), ("EQUAL", np.equal), ("NOT_EQUAL", np.not_equal))
    for op, function in operators:
        for dtype in (np.int32, np.int64):
            a, b = RANDOM.integers(-2, 3, (3, 4)).astype(dtype), RANDOM.integers(-2, 3, (4,)).astype(dtype)
            case(op, [tensor(a, True), tensor(b)], function(a, b))
        a, b = np.float32([1, 2, np.nan, 3, -0.0]), np.float32([1, 3, 1, np.nan, 0.0])
        case(op, [tensor(a, True), tensor(b, True)], function(a, b))
        for scales, zeros in (((0.05, 0.05), (3, 3)), ((0.5, 0.25), (-10, 7)), ((0.001, 0.001), (0, 0))):
            a, b = (RANDOM.integers(-128, 128, (2, 30)).astype(np.int8) for _ in range(2))
            if scales[0] == 0.5:  # so that few enough values are compared
                a, b = np.clip(a, -60, 60).astype(np.int8), b
            values = [compared(v, s, z) for v, s, z in zip((a, b), scales, zeros)]
            case(op, [tensor(a, True, scales[0], zeros[0]), tensor(b, True, scales[1], zeros[1])],
                 function(*values))


def compared(values, scale, zero_point):
    """TFLite's integers: shifted left by 8, times the scale in fixed point, rounded twice."""
    fraction, exponent = math.frexp(float(np.float32(scale)))
    multiplier = math.floor(fraction * 2**31 + 0.5)

    def one(v):
        product = (int(v) - zero_point) * 256 * multiplier
        high = abs(product + (2**30 if product >= 0 else 1 - 2**30)) // 2**31 * (1 if product >= 0 else -1)
        mask = 2**-exponent - 1
        return (high >> -exponent) + ((high & mask) > (mask >> 1) + (high < 0))

    return np.vectorize(one)(values)


def choices():
    condition = RANDOM.integers(0, 2, (3, 4)).astype(bool)
    a, b = reals(3, 4), reals(3, 4)
    for op in ("SELECT", "SELECT_V2"):
        case(op, [tensor(condition, True), tensor(a, True), tensor(b)], np.where(condition, a, b))
    rows = np.array([True, False, True])
    case("SELECT", [tensor(rows, True), tensor(a, True), tensor(b, True)], np.where(rows[:, None], a, b))
    case("SELECT_V2", [tensor(condition, True), tensor(a, True), tensor(np.float32([7]))],
         np.where(condition, a, np.float32(7)))
    x, y = (RANDOM.integers(-128, 128, (3, 4)).astype(np.int8) for _ in range(2))
    case("SELECT_V2", [tensor(condition, True), tensor(x, True, 0.1, 5), tensor(y, True, 0.1, 5)],
         np.where(condition, x, y), scale=0.1, zero_point=5)
    other = RANDOM.integers(0, 2, (3, 4)).astype(bool)
    case("LOGICAL_AND", [tensor(condition, True), tensor(other, True)], condition & other)
    case("LOGICAL_OR", [tensor(condition, True), tensor(other, True)], condition | other)
    case("LOGICAL_NOT", [tensor(condition, True)], ~condition)
    for dtype in (np.int32, np.int64):
        indices = RANDOM.integers(-1, 6, (2, 3)).astype(dtype)
        expected = np.where(indices[..., None] == np.arange(5), np.float32(2), np.float32(-1))
        case("ONE_HOT", [tensor(indices, True), ints(5), tensor(np.float32([2])), tensor(np.float32([-1]))], expected)
    data, update = reals(4, 3), reals(2, 3)
    for start in (0, 1, 2, 9):  # held within the data
        expected = data.copy()
        expected[min(start, 2):min(start, 2) + 2] = update
        case("DYNAMIC_UPDATE_SLICE", [tensor(data, True), tensor(update, True), ints(start, 0)], expected)
    table = reals(6, 3)
    indices = RANDOM.integers(0, 6, (2, 2)).astype(np.int32)
    case("GATHER", [tensor(table), tensor(indices, True)], table[indices])


def blocks():
    for dtype in (np.int8, np.float32):
        x = RANDOM.integers(-100, 100, (2, 4, 6, 3)).astype(dtype)
        quantised = {"scale": 0.1, "zero_point": 9} if dtype == np.int8 else {}
        for pads in ((0, 0, 0, 0), (1, 1, 0, 3)):
            fill = 9 if dtype == np.int8 else 0
            padded = np.pad(x, ((0, 0), pads[:2], pads[2:], (0, 0)), constant_values=fill)
            n, h, w, c = padded.shape
            b = (2, 3)
            split = padded.reshape(n, h // b[0], b[0], w // b[1], b[1], c)
            moved = split.transpose(2, 4, 0, 1, 3, 5).reshape(n * 6, h // b[0], w // b[1], c)
            arguments = [ints(*b), tensor(np.array(pads, np.int32).reshape(2, 2))]
            case("SPACE_TO_BATCH_ND", [tensor(x, True, *quantised.values()), *arguments], moved, **quantised)
            case("BATCH_TO_SPACE_ND", [tensor(moved, True, *quantised.values()), *arguments], x, **quantised)


def signs():
    for dtype in (np.int32, np.float32):
        x = RANDOM.integers(-3, 4, (3, 5)).astype(dtype)
        if dtype == np.float32:
            x *= np.float32(0.25)
        case("SIGN", [tensor(x, True)], np.sign(x))
    x = np.array([-7, 0, 5, 2**31 - 1, -2**31], np.int32)
    with np.errstate(over="ignore"):
        case("NEG", [tensor(x, True)], np.negative(x))
        case("ABS", [tensor(x, True)], np.abs(x))


def frames():
    """tf.signal.rfft and stft, as TensorFlow's converter writes them."""
    x = reals(2, 3, 8)
    y = np.fft.rfft(wide(x))
    for op, value in (("COMPLEX_ABS", np.abs(y)), ("REAL", y.real), ("IMAG", y.imag)):
        for way, operands, moved in (("SQUEEZE", [4], (2, 3, 5)), ("RESHAPE", [4, 5], (2, 3, 5)),
                                     ("RESHAPE", [4, 5], (6, 5)), ("EXPAND_DIMS", [4, 5], (2, 3, 1, 5, 1))):
            shape = ints(-1) if way == "EXPAND_DIMS" else ints(*moved)
            tensors = [tensor(x, True), ints(-2), ("float32", (2, 3, 1, 8)), ints(1, 8),
                       ("complex64", (2, 3, 1, 5)), shape, ("complex64", moved)]
            network(tensors, [("EXPAND_DIMS", {}, [0, 1], 2), ("RFFT2D", {}, [2, 3], 4), (way, {}, operands, 6),
                              (op, {}, [6], None)], narrow(value).reshape(moved))


for make_cases in (functions, reductions, matrices, images, spectrum, comparisons, choices, blocks, signs, frames):
    make_cases()
with open(sys.argv[1], "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES) + "\n]\n")
