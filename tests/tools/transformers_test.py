"""Attention as exporters write it: a ViT and a BERT of a few thousand weights, written node by node, quantised between
QuantizeLinear and DequantizeLinear, and as quantize_dynamic writes it. The oracle is NumPy in float64."""

import unittest

import support
from support import numpy as np

if np is not None:
    from onnx_file import Model


class Builder:
    """A transformer's parts. quantised: "qdq", "dynamic" or "" (float32)."""

    def __init__(self, quantised, seed):
        self.model, self.quantised = Model(), quantised
        self.random = np.random.default_rng(seed)
        self.scales = {}

    def weights(self, *shape, deviation=None):
        deviation = deviation or 1 / np.sqrt(shape[0])
        return (self.random.standard_normal(shape) * deviation).astype(np.float32)

    def number(self, value):
        return self.model.constant(np.float32(value))

    def axes(self, *values):
        return self.model.constant(np.array(values, np.int64))

    def edge(self, value, scale, zero_point=0):
        """A tensor as quantisers leave it: quantised and dequantised."""
        if self.quantised != "qdq":
            return value
        params = [self.number(scale), self.model.constant(np.int8(zero_point))]
        return self.model.node("DequantizeLinear", self.model.node("QuantizeLinear", value, *params), *params)

    def stored(self, array, axis=None):
        """Weights as int8 behind a DequantizeLinear, with one scale, or one for each index of the axis."""
        others = tuple(i for i in range(array.ndim) if i != axis) if axis is not None else None
        scale = (np.abs(array).max(axis=others) / 127).astype(np.float32)
        shape = [1] * array.ndim
        if axis is not None:
            shape[axis] = -1
        quantised = np.clip(np.rint(array / scale.reshape(shape)), -127, 127).astype(np.int8)
        attributes = {} if axis is None else {"axis": axis}
        return self.model.node("DequantizeLinear", self.model.constant(quantised), self.model.constant(scale),
                               self.model.constant(np.zeros(scale.shape, np.int8)), **attributes)

    def dense(self, x, inputs, outputs, scale):
        """x @ w + b, the product and the sum each between their own quantisations."""
        w, b = self.weights(inputs, outputs), self.weights(outputs, deviation=0.1)
        if self.quantised == "dynamic":
            w_scale = np.float32(np.abs(w).max() / 127)
            stored = self.model.constant(np.clip(np.rint(w / w_scale), -127, 127).astype(np.int8))
            q, x_scale, zero_point = self.model.node("DynamicQuantizeLinear", x, outputs=3)
            sums = self.model.node("MatMulInteger", q, stored, zero_point, self.model.constant(np.int8(0)))
            factor = self.model.node("Mul", x_scale, self.number(w_scale))
            product = self.model.node("Mul", self.model.node("Cast", sums, to=1), factor)
        else:
            stored = self.stored(w, 1) if self.quantised else self.model.constant(w)
            product = self.edge(self.model.node("MatMul", x, stored), scale)
        return self.edge(self.model.node("Add", product, self.model.constant(b)), scale)

    def norm(self, x, width, whole):
        """As one node, or as exporters of older opsets write it."""
        scale, bias = self.model.constant(1 + self.weights(width, deviation=0.1)), self.model.constant(
            self.weights(width, deviation=0.1))
        if whole:
            result = self.model.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        else:
            mean = self.model.node("ReduceMean", x, axes=[-1])
            centred = self.model.node("Sub", x, mean)
            variance = self.model.node("ReduceMean", self.model.node("Pow", centred, self.number(2)), axes=[-1])
            deviation = self.model.node("Sqrt", self.model.node("Add", variance, self.number(1e-5)))
            scaled = self.model.node("Mul", self.model.node("Div", centred, deviation), scale)
            result = self.model.node("Add", scaled, bias)
        return self.edge(result, 4 / 127)

    def heads(self, x, steps, heads, width, perm=(0, 2, 1, 3)):
        shape = self.axes(1, steps, heads, width // heads)
        return self.model.node("Transpose", self.model.node("Reshape", x, shape), perm=list(perm))

    def attention(self, x, steps, heads, width, mask):
        q = self.heads(self.dense(x, width, width, 4 / 127), steps, heads, width)
        k = self.heads(self.dense(x, width, width, 4 / 127), steps, heads, width, (0, 2, 3, 1))
        v = self.heads(self.dense(x, width, width, 4 / 127), steps, heads, width)
        scores = self.edge(self.model.node("MatMul", q, k), 12 / 127)
        scores = self.edge(self.model.node("Div", scores, self.number(np.sqrt(width / heads))), 4 / 127)
        if mask is not None:
            scores = mask(scores)
        weights = self.edge(self.model.node("Softmax", scores, axis=-1), 1 / 255, -128)
        mixed = self.edge(self.model.node("MatMul", weights, v), 3 / 127)
        joined = self.model.node("Reshape", self.model.node("Transpose", mixed, perm=[0, 2, 1, 3]),
                                 self.axes(1, steps, width))
        return self.dense(joined, width, width, 3 / 127)

    def gelu(self, x):
        inner = self.model.node("Erf", self.model.node("Div", x, self.number(np.sqrt(2))))
        product = self.model.node("Mul", x, self.model.node("Add", inner, self.number(1)))
        return self.edge(self.model.node("Mul", product, self.number(0.5)), 4 / 127)

    def block(self, x, steps, heads, width, mask=None, before=True):
        """Pre-normalised (ViT), or post-normalised (BERT)."""
        plus = lambda a, b: self.edge(self.model.node("Add", a, b), 6 / 127)
        feed = lambda h: self.dense(self.gelu(self.dense(h, width, 2 * width, 4 / 127)), 2 * width, width, 4 / 127)
        if before:
            x = plus(x, self.attention(self.norm(x, width, False), steps, heads, width, mask))
            return plus(x, feed(self.norm(x, width, False)))
        x = self.norm(plus(x, self.attention(x, steps, heads, width, mask)), width, True)
        return self.norm(plus(x, feed(x)), width, True)


def vit(quantised, seed=1, width=24, heads=3, blocks=2, classes=10):
    b = Builder(quantised, seed)
    m = b.model
    image = b.edge(m.input("image", "float32", [1, 3, 16, 16]), 3 / 127)
    w = b.weights(width, 3, 4, 4, deviation=0.15)
    kernel = b.stored(w, 0) if quantised == "qdq" else m.constant(w)
    bias = m.constant(b.weights(width, deviation=0.1))
    patches = b.edge(m.node("Conv", image, kernel, bias, strides=[4, 4], kernel_shape=[4, 4]), 4 / 127)
    x = m.node("Transpose", m.node("Reshape", patches, b.axes(1, width, 16)), perm=[0, 2, 1])
    x = m.node("Concat", m.constant(b.weights(1, 1, width, deviation=1)), x, axis=1)
    x = b.edge(m.node("Add", x, m.constant(b.weights(1, 17, width, deviation=0.3))), 6 / 127)
    for _ in range(blocks):
        x = b.block(x, 17, heads, width)
    first = m.node("Gather", b.norm(x, width, False), m.constant(np.int64(0)), axis=1)
    m.output(b.dense(first, width, classes, 4 / 127), "float32", [1, classes])
    return m


def bert(quantised, seed=2, words=50, steps=12, width=24, heads=2, blocks=2, classes=3):
    b = Builder(quantised, seed)
    m = b.model
    ids, mask = m.input("input_ids", "int64", [1, steps]), m.input("attention_mask", "int64", [1, steps])
    table = b.weights(words, width, deviation=1)
    embedding = m.node("Gather", b.stored(table) if quantised else m.constant(table), ids)
    x = b.edge(m.node("Add", embedding, m.constant(b.weights(1, steps, width, deviation=0.3))), 5 / 127)
    x = b.norm(x, width, True)
    hidden = m.node("Equal", m.node("Unsqueeze", mask, b.axes(1, 2)), m.constant(np.int64(0)))

    def masked(scores):
        return m.node("Where", hidden, b.number(-10000), scores)

    for _ in range(blocks):
        x = b.block(x, steps, heads, width, masked, before=False)
    first = m.node("Gather", x, m.constant(np.int64(0)), axis=1)
    pooled = b.edge(m.node("Tanh", b.dense(first, width, width, 4 / 127)), 1 / 127)
    m.output(b.dense(pooled, width, classes, 4 / 127), "float32", [1, classes])
    return m


@support.needs_numpy
class Transformers(support.CommandTest):
    def check(self, model, tolerance, **inputs):
        """The outputs beside the oracle's: no element is off by more than `tolerance`."""
        expected, _ = model.run(**inputs)
        path = self.file("model.onnx", model.bytes())
        result = support.run("pack", path, "-o", self.folder / "model.qplan")
        self.assertEqual(result.returncode, 0, result.stderr)
        arguments = ["run", self.folder / "model.qplan", "--output-dir", self.folder]
        for name, array in inputs.items():
            arguments += ["--input", self.file(name + ".bin", array.tobytes())]
        self.succeed(*arguments)
        found = np.frombuffer((self.folder / "output0.bin").read_bytes(), np.float32).reshape(expected[0].shape)
        distance = np.abs(found - expected[0]).max()
        self.assertLessEqual(distance, tolerance, (found, expected[0]))
        return distance

    def image(self, seed):
        return np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype(np.float32)

    def text(self, seed):
        random = np.random.default_rng(seed)
        mask = np.ones((1, 12), np.int64)
        mask[0, random.integers(3, 12):] = 0
        return {"input_ids": random.integers(0, 50, (1, 12)), "attention_mask": mask}

    # One step of the output is 4 / 127: rounding somewhere else, in float32 and in float64, moves few by one.
    def test_vit_between_quantisations(self):
        for seed in range(4):
            self.check(vit("qdq"), 3 * 4 / 127, image=self.image(seed))

    def test_bert_between_quantisations(self):
        for seed in range(4):
            self.check(bert("qdq"), 3 * 4 / 127, **self.text(seed))

    def test_vit_in_float(self):
        self.check(vit(""), 1e-4, image=self.image(1))

    def test_bert_in_float(self):
        self.check(bert(""), 1e-4, **self.text(1))

    # What is quantised dynamically has 8 bits of its own range: a value that rounds the other way is a step off.
    def test_vit_as_quantize_dynamic_writes_it(self):
        for seed in range(3):
            self.check(vit("dynamic"), 0.05, image=self.image(seed))

    def test_bert_as_quantize_dynamic_writes_it(self):
        for seed in range(3):
            self.check(bert("dynamic"), 0.05, **self.text(seed))

    def test_the_products_of_attention_run_on_integers(self):
        path = self.file("model.onnx", vit("qdq").bytes())
        result = support.run("pack", path, "-o", self.folder / "model.qplan")
        self.assertEqual(result.returncode, 0, result.stderr)
        plan = self.succeed_json("inspect", self.folder / "model.qplan", "--json")
        kernels = [step["op"] for step in plan["steps"]]
        self.assertEqual(kernels.count("batch_matmul"), 4)  # two blocks, two products each
        self.assertNotIn("float_batch_matmul", kernels)
        self.assertNotIn("float_conv2d", kernels)


if __name__ == "__main__":
    unittest.main()
