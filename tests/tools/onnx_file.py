"""ONNX models written node by node: the protobuf's bytes, and what the nodes compute in float64 NumPy, which shares
nothing with qplan."""

import math
import struct

import numpy as np

DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9}


def varint(value):
    value &= (1 << 64) - 1
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, array):
    dims = b"".join(field(1, int(extent)) for extent in array.shape)
    return dims + field(2, DTYPES[str(array.dtype)]) + field(8, name) + field(9, array.tobytes())


def attribute(name, value):
    data = field(1, name)
    if isinstance(value, float):
        return data + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return data + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return data + field(4, value) + field(20, 3)
    return data + b"".join(field(8, int(item)) for item in value) + field(20, 7)


def value_info(name, dtype, shape):
    dims = b"".join(field(1, field(1, int(extent))) for extent in shape)
    return field(1, name) + field(2, field(1, field(1, DTYPES[dtype]) + field(2, dims)))


def erf(x):
    return np.vectorize(math.erf)(x)


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def along(values, rank, axis):
    """One value for each index of the axis, to broadcast."""
    if values.ndim == 0:
        return values
    shape = [1] * rank
    shape[axis] = -1
    return values.reshape(shape)


def quantize(x, scale, zero_point, axis=1):
    scale, zero_point = along(scale, x.ndim, axis), along(zero_point, x.ndim, axis)
    limits = np.iinfo(zero_point.dtype)
    return np.clip(np.rint(x / scale) + zero_point, limits.min, limits.max).astype(zero_point.dtype)


def dequantize(q, scale, zero_point, axis=1):
    scale, zero_point = along(scale, q.ndim, axis), along(zero_point, q.ndim, axis)
    return (q.astype(np.float64) - zero_point) * scale


def dynamic_quantize(x):
    high, low = max(x.max(), 0.0), min(x.min(), 0.0)
    scale = (high - low) / 255
    zero_point = np.clip(np.rint(-low / scale), 0, 255)
    return np.clip(np.rint(x / scale) + zero_point, 0, 255).astype(np.uint8), scale, zero_point.astype(np.uint8)


def patches(x, w, b, strides):
    """A convolution without padding."""
    n, c, height, width = x.shape
    o, _, kh, kw = w.shape
    out = np.zeros((n, o, (height - kh) // strides[0] + 1, (width - kw) // strides[1] + 1))
    for y in range(out.shape[2]):
        for z in range(out.shape[3]):
            part = x[:, :, y * strides[0]:y * strides[0] + kh, z * strides[1]:z * strides[1] + kw]
            out[:, :, y, z] = np.tensordot(part, w, ([1, 2, 3], [1, 2, 3]))
    return out if b is None else out + b.reshape(1, -1, 1, 1)


def layer_norm(x, scale, bias, epsilon):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) * scale + bias


FUNCTIONS = {
    "Add": lambda i, a: i[0] + i[1],
    "Sub": lambda i, a: i[0] - i[1],
    "Mul": lambda i, a: i[0] * i[1],
    "Div": lambda i, a: i[0] / i[1],
    "Pow": lambda i, a: i[0] ** i[1],
    "Sqrt": lambda i, a: np.sqrt(i[0]),
    "Erf": lambda i, a: erf(i[0]),
    "Tanh": lambda i, a: np.tanh(i[0]),
    "Relu": lambda i, a: np.maximum(i[0], 0),
    "Equal": lambda i, a: i[0] == i[1],
    "Where": lambda i, a: np.where(i[0], i[1], i[2]),
    "Cast": lambda i, a: i[0].astype(np.float64) if a["to"] == 1 else i[0].astype(np.int64),
    "MatMul": lambda i, a: i[0] @ i[1],
    "MatMulInteger": lambda i, a: (i[0].astype(np.int64) - i[2]) @ (i[1].astype(np.int64) - i[3]),
    "ConvInteger": lambda i, a: patches(i[0].astype(np.int64) - i[2], i[1].astype(np.int64) - i[3], None, a["strides"]),
    "Gemm": lambda i, a: i[0] @ (i[1].T if a.get("transB") else i[1]) + i[2],
    "Conv": lambda i, a: patches(i[0], i[1], i[2] if len(i) > 2 else None, a["strides"]),
    "Softmax": lambda i, a: softmax(i[0], a["axis"]),
    "ReduceMean": lambda i, a: i[0].mean(axis=tuple(a["axes"]), keepdims=True),
    "LayerNormalization": lambda i, a: layer_norm(i[0], i[1], i[2], a["epsilon"]),
    "Reshape": lambda i, a: i[0].reshape(i[1]),
    "Transpose": lambda i, a: i[0].transpose(a["perm"]),
    "Concat": lambda i, a: np.concatenate(i, axis=a["axis"]),
    "Unsqueeze": lambda i, a: np.expand_dims(i[0], tuple(i[1])),
    "Gather": lambda i, a: np.take(i[0], i[1], axis=a.get("axis", 0)),
    "QuantizeLinear": lambda i, a: quantize(*i, axis=a.get("axis", 1)),
    "DequantizeLinear": lambda i, a: dequantize(*i, axis=a.get("axis", 1)),
    "DynamicQuantizeLinear": lambda i, a: dynamic_quantize(i[0]),
}


class Model:
    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs, self.names = [], {}, [], [], 0

    def constant(self, array, name=None):
        name = name or self._name("c")
        self.constants[name] = np.asarray(array)
        return name

    def input(self, name, dtype, shape):
        self.inputs.append((name, dtype, shape))
        return name

    def output(self, name, dtype, shape):
        self.outputs.append((name, dtype, shape))

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [self._name(op.lower()) for _ in range(outputs)]
        self.nodes.append((op, list(inputs), names, attributes))
        return names[0] if outputs == 1 else names

    def _name(self, stem):
        self.names += 1
        return f"{stem}_{self.names}"

    def bytes(self, opset=17):
        graph = b""
        for op, inputs, outputs, attributes in self.nodes:
            node = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
            domain, _, name = op.rpartition(".")
            node += field(3, outputs[0]) + field(4, name) + (field(7, domain) if domain else b"")
            node += b"".join(field(5, attribute(name, value)) for name, value in attributes.items())
            graph += field(1, node)
        graph += field(2, "g")
        graph += b"".join(field(5, tensor(name, array)) for name, array in self.constants.items())
        graph += b"".join(field(11, value_info(*entry)) for entry in self.inputs)
        graph += b"".join(field(12, value_info(*entry)) for entry in self.outputs)
        domains = {op.rpartition(".")[0] for op, *_ in self.nodes} - {""}
        opsets = field(2, opset), *(field(1, domain) + field(2, 1) for domain in sorted(domains))
        return field(1, 8) + b"".join(field(8, entry) for entry in opsets) + field(7, graph)

    def run(self, **inputs):
        values = {**{name: array for name, array in self.constants.items()}, **inputs}
        for op, read, written, attributes in self.nodes:
            operands = [values[name].astype(np.float64) if values[name].dtype == np.float32 else values[name]
                        for name in read]
            result = FUNCTIONS[op](operands, attributes)
            if len(written) == 1:
                result = (result,)
            values.update(zip(written, (np.asarray(item) for item in result)))
        return [values[name] for name, _, _ in self.outputs], values
