#!/usr/bin/env python3
"""Writes samples/models/digits.tflite in three other forms: digits_qdq.onnx, digits_float_weights.onnx and digits.pt.

usage: convert.py [--models DIRECTORY]
Weights, scales and zero points are those of the .tflite file: samples/three_ways.sh shows that qplan makes one network of
the four files. Needs Debian's python3-torch, python3-onnx, python3-flatbuffers and flatbuffers-compiler.
"""
import argparse
import os

import graph
import onnx_writer
import torchscript_writer

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=os.path.join(HERE, "..", "models"), help="where digits.tflite is")
    folder = parser.parse_args().models
    image, shape, layers = graph.read(os.path.join(folder, "digits.tflite"))
    files = {
        "digits_qdq.onnx": onnx_writer.write(image, shape, layers, float_weights=False),
        "digits_float_weights.onnx": onnx_writer.write(image, shape, layers, float_weights=True),
        "digits.pt": torchscript_writer.write(image, shape, layers),
    }
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
