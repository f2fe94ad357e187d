"""Decoders of two blocks, a Llama and a GPT-2, as ONNX Runtime's exporters write them: a plan computes one word after
another, each run with the present of the run before as its past. The oracle computes the whole text at once, in NumPy's
float64."""

import unittest

import support
from support import numpy as np

if np is not None:
    from onnx_file import Model, erf, softmax

WORDS, TABLE, WIDTH, HEADS, FEATURES, BLOCKS = 5, 40, 32, 4, 8, 2
M = "com.microsoft."


class Weights:
    """Arrays that the model and the oracle share; stored as int8 with a scale for each column, or as they are."""

    def __init__(self, model, stored, seed):
        self.model, self.stored = model, stored
        self.random = np.random.default_rng(seed)

    def constant(self, array):
        array = np.asarray(array, np.float32)
        return self.model.constant(array), array.astype(np.float64)

    def vector(self, mean=0.0):
        return self.constant(mean + 0.1 * self.random.standard_normal(WIDTH))

    def matrix(self, rows, columns):
        array = (self.random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
        if not self.stored:
            return self.constant(array)
        scale = (np.abs(array).max(axis=0) / 127).astype(np.float32)
        q = np.rint(array / scale).astype(np.int8)
        operands = [self.model.constant(value) for value in (q, scale, np.zeros(columns, np.int8))]
        return self.model.node("DequantizeLinear", *operands, axis=1), q * scale.astype(np.float64)


def apart(x, heads):
    return x.reshape(WORDS, heads, FEATURES).transpose(1, 0, 2)


def attended(q, k, v):
    """Of heads [heads, words, features]; each word sees those before it."""
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(FEATURES)
    scores = np.where(np.tri(WORDS) > 0, scores, -np.inf)
    return (softmax(scores, -1) @ v).transpose(1, 0, 2).reshape(WORDS, -1)


def rms(x, scale):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale


def rotated(x, cosines, sines):
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cosines - second * sines, second * cosines + first * sines], -1)


def llama(ids, stored):
    """The model for one word with room for all, and the oracle's results for each word."""
    m, groups = Model(), 2
    w = Weights(m, stored, 1)
    word, mask = m.input("word", "int64", [1, 1]), m.input("mask", "int64", [1, WORDS])
    kinds = m.node("ReduceSum", mask, m.constant(np.array([1])), keepdims=0)
    last = m.node("Cast", m.node("Sub", kinds, m.constant(np.array(1))), to=6)
    total = m.node("Cast", m.node("Gather", m.node("Shape", mask), m.constant(np.array(1)), axis=0), to=6)
    angles = np.outer(np.arange(WORDS), 100.0 ** (-np.arange(FEATURES // 2) / (FEATURES // 2)))
    cosine, cosines = w.constant(np.cos(angles))
    sine, sines = w.constant(np.sin(angles))
    table, rows = w.matrix(TABLE, WIDTH)
    x, expected = m.node("Gather", table, word), rows[ids]
    presents = []

    def dense(value, real, columns):
        matrix, array = w.matrix(real.shape[1], columns)
        return m.node("MatMul", value, matrix), real @ array

    def norm(value, real):
        scale, array = w.vector(1)
        return m.node("SimplifiedLayerNormalization", value, scale, axis=-1, epsilon=1e-5), rms(real, array)

    for block in range(BLOCKS):
        past = [m.input(f"past_{block}_{i}", "float32", [1, groups, WORDS, FEATURES]) for i in range(2)]
        h, real = norm(x, expected)
        (q, real_q), (k, real_k), (v, real_v) = (dense(h, real, n * FEATURES) for n in (HEADS, groups, groups))
        y, *present = m.node(M + "GroupQueryAttention", q, k, v, *past, last, total, cosine, sine, outputs=3,
                             num_heads=HEADS, kv_num_heads=groups, do_rotary=1)
        presents += present
        real_k, real_v = (np.repeat(apart(value, groups), HEADS // groups, 0) for value in (real_k, real_v))
        mixed = attended(rotated(apart(real_q, HEADS), cosines, sines), rotated(real_k, cosines, sines), real_v)
        y, real = dense(y, mixed, WIDTH)
        x, expected = m.node("Add", x, y), expected + real
        h, real = norm(x, expected)
        (gate, real_gate), (up, real_up) = dense(h, real, 48), dense(h, real, 48)
        y = m.node("Mul", m.node("Mul", gate, m.node("Sigmoid", gate)), up)
        y, real = dense(y, real_gate / (1 + np.exp(-real_gate)) * real_up, WIDTH)
        x, expected = m.node("Add", x, y), expected + real
    result, expected = dense(*norm(x, expected), TABLE)
    m.output(result, "float32", [1, 1, TABLE])
    for present in presents:
        m.output(present, "float32", [1, groups, WORDS, FEATURES])
    return m, expected


def gpt2(ids, stored):
    """The model for one word after a past of all the others, of which a mask says which are there."""
    m = Model()
    w = Weights(m, stored, 2)
    word, mask = m.input("word", "int64", [1, 1]), m.input("mask", "int64", [1, WORDS])
    position = m.input("position", "int64", [1, 1])
    table, rows = w.matrix(TABLE, WIDTH)
    places, place_rows = w.matrix(WORDS, WIDTH)
    x = m.node("Add", m.node("Gather", table, word), m.node("Gather", places, position))
    expected = rows[ids] + place_rows
    narrow = m.node("Cast", mask, to=6)
    presents = []

    def norm(value, real):
        (scale, array), (bias, shift) = w.vector(1), w.vector()
        centred = real - real.mean(-1, keepdims=True)
        centred /= np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return m.node("LayerNormalization", value, scale, bias, axis=-1, epsilon=1e-5), centred * array + shift

    for block in range(BLOCKS):
        past = m.input(f"past_{block}", "float32", [2, 1, HEADS, WORDS - 1, FEATURES])
        h, real = norm(x, expected)
        matrix, array = w.matrix(WIDTH, 3 * WIDTH)
        bias, shift = w.constant(0.1 * w.random.standard_normal(3 * WIDTH))
        y, present = m.node(M + "Attention", h, matrix, bias, narrow, past, outputs=2, num_heads=HEADS,
                            unidirectional=1, mask_filter_value=float(np.finfo(np.float32).min))
        presents.append(present)
        mixed = attended(*(apart(part, HEADS) for part in np.split(real @ array + shift, 3, -1)))
        matrix, array = w.matrix(WIDTH, WIDTH)
        x, expected = m.node("Add", x, m.node("MatMul", y, matrix)), expected + mixed @ array
        h, real = norm(x, expected)
        (up, up_array), (down, down_array) = w.matrix(WIDTH, 64), w.matrix(64, WIDTH)
        real = real @ up_array
        real *= 0.5 * (1 + erf(real / np.sqrt(2)))
        y = m.node("MatMul", m.node(M + "Gelu", m.node("MatMul", h, up)), down)
        x, expected = m.node("Add", x, y), expected + real @ down_array
    h, real = norm(x, expected)
    matrix, array = w.matrix(WIDTH, TABLE)
    m.output(m.node("MatMul", h, matrix), "float32", [1, 1, TABLE])
    for present in presents:
        m.output(present, "float32", [2, 1, HEADS, WORDS, FEATURES])
    return m, real @ array


@support.needs_numpy
class Decoders(support.CommandTest):
    def pack(self, model):
        path = self.file("model.onnx", model.bytes())
        result = support.run("pack", path, "-o", self.folder / "model.qplan")
        self.assertEqual(result.returncode, 0, result.stderr)

    def run_word(self, inputs, past_shapes):
        arguments = ["run", self.folder / "model.qplan", "--output-dir", self.folder]
        for i, array in enumerate(inputs):
            arguments += ["--input", self.file(f"input{i}.bin", array.tobytes())]
        self.succeed(*arguments)
        outputs = [np.frombuffer((self.folder / f"output{i}.bin").read_bytes(), np.float32)
                   for i in range(1 + len(past_shapes))]
        return outputs[0], [array.reshape(shape) for array, shape in zip(outputs[1:], past_shapes)]

    def near(self, found, expected):
        self.assertLessEqual(np.abs(found - expected).max(), 1e-5 * np.abs(expected).max(), (found, expected))

    def test_llama_writes_into_a_past_with_room(self):
        ids = np.array([3, 17, 0, 39, 17])
        for stored in (False, True):
            model, expected = llama(ids, stored)
            self.pack(model)
            # What the past has beyond the words so far is not read.
            shapes = [(1, 2, WORDS, FEATURES)] * 2 * BLOCKS
            past = [np.full(shape, 7, np.float32) for shape in shapes]
            for i, word in enumerate(ids):
                mask = (np.arange(WORDS) <= i).astype(np.int64).reshape(1, -1)
                found, past = self.run_word([np.array([[word]]), mask, *past], shapes)
                self.near(found, expected[i])

    def test_gpt2_gets_the_last_positions_of_its_present(self):
        ids = np.array([3, 17, 0, 39, 17])
        for stored in (False, True):
            model, expected = gpt2(ids, stored)
            self.pack(model)
            shapes = [(2, 1, HEADS, WORDS, FEATURES)] * BLOCKS
            past = [np.full((2, 1, HEADS, WORDS - 1, FEATURES), 7, np.float32)] * BLOCKS
            for i, word in enumerate(ids):
                mask = (np.arange(WORDS) >= WORDS - 1 - i).astype(np.int64).reshape(1, -1)
                found, present = self.run_word([np.array([[word]]), mask, np.array([[i]]), *past], shapes)
                self.near(found, expected[i])
                past = [np.ascontiguousarray(array[:, :, :, 1:]) for array in present]


if __name__ == "__main__":
    unittest.main()
