"""Models of a few operators on integers, with random inputs: what integer_operators.py fills CASES with."""
import math

import numpy as np

F = np.float32
RANDOM = np.random.default_rng(17)
TYPES = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
         "float32": np.float32}
CASES = []


def clamp(x, dtype):
    info = np.iinfo(TYPES[dtype])
    return min(max(int(x), int(info.min)), int(info.max))


def half_away(x):
    return math.floor(x + 0.5) if x >= 0 else math.ceil(x - 0.5)


def tensor(name, dtype, shape, scale=None, zero_point=0, data=None, axis=0):
    scales = [] if scale is None else [float(F(s)) for s in np.atleast_1d(scale)]
    return {"name": name, "type": dtype, "shape": list(shape), "scales": scales,
            "zero_points": [zero_point] * len(scales), "axis": axis, "data": data}


def random_values(dtype, shape, low=None, high=None):
    info = np.iinfo(TYPES[dtype])
    low, high = info.min if low is None else low, info.max if high is None else high
    values = RANDOM.integers(low, high, shape, endpoint=True).astype(TYPES[dtype])
    flat = values.reshape(-1)
    if low == info.min and flat.size > 4:  # the ends
        flat[RANDOM.integers(0, flat.size)], flat[RANDOM.integers(0, flat.size)] = low, high
    return values


def hexadecimal(values):
    return np.ascontiguousarray(values).tobytes().hex()


def add_case(op, tensors, operands, inputs, expected, options=None):
    """tensors: with the output last. operands: positions in tensors. inputs: {position: values}."""
    add_network([{"op": op, "options": options or {}, "operands": operands, "result": len(tensors) - 1}], tensors,
                inputs, expected)


def add_network(operators, tensors, inputs, expected):
    """The last tensor is the output."""
    output = tensors[-1]
    values = np.array(expected, TYPES[output["type"]]).reshape(output["shape"])
    for t in tensors:
        t["data"] = None if t["data"] is None else hexadecimal(t["data"])
    CASES.append({"operators": operators, "tensors": tensors, "inputs": [[i, hexadecimal(v)] for i, v in inputs.items()], "expected": hexadecimal(values)})
