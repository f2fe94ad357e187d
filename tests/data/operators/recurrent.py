"""LSTM and GRU of ONNX, and DynamicQuantizeLSTM of ONNX Runtime, in plain NumPy with float64: an oracle of
tests/models/onnx_recurrent_test.cc, which reads what this writes.

usage: recurrent.py OUT.json
Writes models of one operator, their inputs and their expected outputs. Bytes are hexadecimal.
"""
import json
import sys

import numpy as np

RANDOM = np.random.default_rng(41)
CASES = []


def reals(*shape, spread=1.0):
    return RANDOM.normal(0, spread, shape).astype(np.float32)


def wide(array):
    return np.asarray(array, np.float64)


def logistic(x):
    return 1 / (1 + np.exp(-x))


# One direction, as the operators' definitions have it: x [steps, batch, k]; w and r rows of the gates.

def lstm(x, w, r, b, h, c):
    cells = h.shape[1]
    sequence = []
    for step in x:
        gates = step @ w.T + h @ r.T + b[:4 * cells] + b[4 * cells:]
        i, o, f, g = (gates[:, n * cells:(n + 1) * cells] for n in range(4))
        c = logistic(f) * c + logistic(i) * np.tanh(g)
        h = logistic(o) * np.tanh(c)
        sequence.append(h)
    return np.stack(sequence), h, c


def gru(x, w, r, b, h, linear_before_reset):
    cells = h.shape[1]
    wz, wr, wh = (w[n * cells:(n + 1) * cells] for n in range(3))
    rz, rr, rh = (r[n * cells:(n + 1) * cells] for n in range(3))
    wbz, wbr, wbh, rbz, rbr, rbh = (b[n * cells:(n + 1) * cells] for n in range(6))
    sequence = []
    for step in x:
        z = logistic(step @ wz.T + h @ rz.T + wbz + rbz)
        reset = logistic(step @ wr.T + h @ rr.T + wbr + rbr)
        if linear_before_reset:
            n = np.tanh(step @ wh.T + reset * (h @ rh.T + rbh) + wbh)
        else:
            n = np.tanh(step @ wh.T + (reset * h) @ rh.T + rbh + wbh)
        h = (1 - z) * n + z * h
        sequence.append(h)
    return np.stack(sequence), h


def tensor(name, array, is_input=False, dtype=None):
    array = np.ascontiguousarray(array)
    return {"name": name, "type": dtype or str(array.dtype), "shape": list(array.shape), "is_input": is_input,
            "data": array.tobytes().hex()}


def layer(op, direction="forward", batch_first=False, states=None, has_bias=True, linear_before_reset=0,
          extents=(3, 2, 5, 4), lengths=False, weights="float32"):
    """extents: steps, batch, k, cells. states: "input", "constant" or None. weights: "float32", "qdq" (8 bits
    under DequantizeLinear) or "dynamic" (DynamicQuantizeLSTM)."""
    steps, batch, k, cells = extents
    names = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    directions, rows = len(names), (4 if op == "LSTM" else 3) * cells
    x = reals(steps, batch, k)
    w, r = reals(directions, rows, k, spread=0.6), reals(directions, rows, cells, spread=0.4)
    b = reals(directions, 2 * rows, spread=0.5) if has_bias else np.zeros((directions, 2 * rows), np.float32)
    first = [reals(directions, batch, cells, spread=0.5) if states else np.zeros((directions, batch, cells), np.float32)
             for _ in range(2 if op == "LSTM" else 1)]
    operators, tensors = [], []

    def outside(array):  # [steps, batch, ..] or [directions, batch, ..] as the file has it
        return np.swapaxes(array, 0, 1) if batch_first else array

    tensors.append(tensor("x", outside(x), True))
    inputs = ["x", "w", "r"]
    extra = []
    for name, value in (("w", w), ("r", r)):
        if weights == "float32":
            tensors.append(tensor(name, value))
            continue
        scale = (np.abs(value).max(axis=(1, 2)) / 120).astype(np.float32)
        zero_point = RANDOM.integers(-3, 4, directions).astype(np.int8)
        codes = np.clip(np.rint(value / scale[:, None, None]) + zero_point[:, None, None], -128, 127).astype(np.int8)
        value[...] = (codes - zero_point[:, None, None].astype(np.float32)) * scale[:, None, None]
        tensors += [tensor(name + "_scale", scale), tensor(name + "_zero", zero_point)]
        if weights == "dynamic":
            tensors.append(tensor(name, codes.transpose(0, 2, 1)))
            extra += [name + "_scale", name + "_zero"]
        else:
            tensors.append(tensor(name + "_codes", codes))
            operators.append({"op": "DequantizeLinear", "domain": "", "inputs": [name + "_codes", name + "_scale",
                              name + "_zero"], "outputs": [name], "attributes": {"axis": 0}})
    inputs.append("b" if has_bias else "")
    if has_bias:
        tensors.append(tensor("b", b))
    inputs.append("lengths" if lengths else "")
    if lengths:
        tensors.append(tensor("lengths", np.full(batch, steps, np.int32)))
    for name, value in zip(("h", "c"), first):
        inputs.append(name if states else "")
        if states:
            tensors.append(tensor(name, outside(value), states == "input"))
    if weights == "dynamic":
        inputs += [""] + extra  # no peepholes

    results = []
    for d, is_reverse in enumerate(names):
        sequence = wide(x)[::-1] if is_reverse else wide(x)
        state = [wide(f[d]) for f in first]
        if op == "LSTM":
            made = list(lstm(sequence, wide(w[d]), wide(r[d]), wide(b[d]), *state))
        else:
            made = list(gru(sequence, wide(w[d]), wide(r[d]), wide(b[d]), *state, linear_before_reset))
        made[0] = made[0][::-1] if is_reverse else made[0]
        results.append(made)
    outputs = [np.stack([made[0] for made in results], 1)]  # [steps, directions, batch, cells]
    outputs += [np.stack([made[i] for made in results], 0) for i in range(1, len(results[0]))]
    if batch_first:
        outputs = [outputs[0].transpose(2, 0, 1, 3)] + [o.transpose(1, 0, 2) for o in outputs[1:]]
    attributes = {"hidden_size": cells, "direction": direction, "layout": int(batch_first)}
    if op == "GRU":
        attributes["linear_before_reset"] = linear_before_reset
    outputs_names = ["y", "y_h", "y_c"][:len(outputs)]
    operators.append({"op": "DynamicQuantizeLSTM" if weights == "dynamic" else op,
                      "domain": "com.microsoft" if weights == "dynamic" else "", "inputs": inputs,
                      "outputs": outputs_names,
                      "attributes": {k: v for k, v in attributes.items() if k != "layout" or weights != "dynamic"}})
    CASES.append({"operators": operators, "tensors": tensors,
                  "outputs": [tensor(n, o.astype(np.float32)) for n, o in zip(outputs_names, outputs)]})


for kind in ("LSTM", "GRU"):
    for way in ("forward", "reverse", "bidirectional"):
        for batches in (False, True):
            layer(kind, way, batches, states="input" if way == "reverse" else "constant" if batches else None)
    layer(kind, has_bias=False)
    layer(kind, lengths=True, extents=(1, 1, 3, 7))
    layer(kind, "bidirectional", extents=(20, 1, 9, 33), weights="qdq")
for after in (0, 1):
    layer("GRU", "bidirectional", linear_before_reset=after, extents=(7, 2, 6, 17), states="input")
layer("LSTM", "bidirectional", weights="dynamic", states="constant")
layer("LSTM", "forward", weights="dynamic", extents=(5, 1, 8, 16))
with open(sys.argv[1], "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES) + "\n]\n")
