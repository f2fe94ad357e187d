#!/usr/bin/env python3
"""Writes a .tflite model of any size: a sequence of fully connected layers, int8, with random weights.

usage: large_model.py MEGABYTES OUTPUT [--seed N]

The weights come after the flatbuffer, as in files beyond its 2 GiB; flatc makes the flatbuffer from JSON.
"""

import argparse
import json
import pathlib
import random
import struct
import subprocess
import tempfile

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src" / "packer" / "import" / "tflite" / "tflite_subset.fbs"
UNITS = 2048  # inputs and outputs of a layer: 4 MiB of weights
ALIGNMENT = 16
# Accumulators of random weights and inputs are then about 50 steps of the output wide.
ACTIVATION_SCALE, WEIGHT_SCALE = 0.05, 0.0005


def quantization(scale):
    return {"scale": [scale], "zero_point": [0]}


def tensor(name, dtype, shape, buffer, scale):
    return {"name": name, "type": dtype, "shape": shape, "buffer": buffer, "quantization": quantization(scale)}


def model(num_layers, offsets):
    """As flatc reads it. offsets: where each layer's weights and bias are in the file."""
    activation = lambda i: tensor(f"x{i}", "INT8", [1, UNITS], 0, ACTIVATION_SCALE)  # noqa: E731
    tensors, operators, buffers = [activation(0)], [], [{}]
    for i in range(num_layers):
        first = len(tensors)
        weights, bias = offsets[i]
        tensors.append(tensor(f"w{i}", "INT8", [UNITS, UNITS], len(buffers), WEIGHT_SCALE))
        tensors.append(tensor(f"b{i}", "INT32", [UNITS], len(buffers) + 1, ACTIVATION_SCALE * WEIGHT_SCALE))
        tensors.append(activation(i + 1))
        buffers += [{"offset": weights, "size": UNITS * UNITS}, {"offset": bias, "size": UNITS * 4}]
        operators.append(
            {
                "opcode_index": 0,
                "inputs": [first - 1, first, first + 1],
                "outputs": [first + 2],
                "builtin_options_type": "FullyConnectedOptions",
                "builtin_options": {"fused_activation_function": "NONE"},
            }
        )
    graph = {"tensors": tensors, "inputs": [0], "outputs": [len(tensors) - 1], "operators": operators, "name": "main"}
    code = {"deprecated_builtin_code": 9, "builtin_code": "FULLY_CONNECTED", "version": 4}
    return {"version": 3, "operator_codes": [code], "subgraphs": [graph], "description": "", "buffers": buffers}


def flatbuffer(description):
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "model.json"
        text.write_text(json.dumps(description), encoding="utf-8")
        # The importer asks for the identifier by itself: the schema does not name it.
        schema = pathlib.Path(folder) / "model.fbs"
        schema.write_text(SCHEMA.read_text(encoding="utf-8") + 'file_identifier "TFL3";\n', encoding="utf-8")
        subprocess.run(["flatc", "--binary", "-o", folder, schema, text], check=True)
        data = (pathlib.Path(folder) / "model.bin").read_bytes()
    return data + bytes(-len(data) % ALIGNMENT)


def write_model(path, megabytes, seed=1):
    """A model of about so many million bytes."""
    weights, bias = UNITS * UNITS, UNITS * 4
    num_layers = max(1, round(megabytes * 1e6 / (weights + bias)))
    # The flatbuffer has the same size for any offsets but 0 and 1.
    begin = len(flatbuffer(model(num_layers, [(2, 2)] * num_layers)))
    offsets = [(begin + i * (weights + bias), begin + i * (weights + bias) + weights) for i in range(num_layers)]
    source = random.Random(seed)
    with open(path, "wb") as file:
        file.write(flatbuffer(model(num_layers, offsets)))
        for _ in range(num_layers):
            file.write(source.randbytes(weights))
            file.write(struct.pack(f"<{UNITS}i", *(source.randrange(-2000, 2000) for _ in range(UNITS))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=float)
    parser.add_argument("output")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write_model(options.output, options.megabytes, options.seed)


if __name__ == "__main__":
    main()
