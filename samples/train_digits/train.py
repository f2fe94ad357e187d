#!/usr/bin/env python3
"""Trains, quantises and writes the sample model and everything that goes with it.

usage: train.py [--epochs N] [--root REPOSITORY]
Writes samples/models/digits.tflite and digits_labels.txt, samples/images/*.png and tests/data/digits/. Needs Debian's
python3-torch, python3-sklearn, python3-pil, python3-flatbuffers and flatbuffers-compiler; takes about half a minute.
Then run convert.py, which writes the model in the forms of other frameworks.
"""
import argparse
import json
import os

import numpy as np
import torch

import data
import images
from evaluate import Model
from network import train
from quantize import quantize
from tflite_writer import write

LEAST_ACCURACY = 0.97
MOST_BYTES = 300 * 1024
HERE = os.path.dirname(os.path.abspath(__file__))


def as_float(inputs):
    """int8 inputs -> float32 [n, 1, h, w] in 0..1, the real values of the network's input."""
    return torch.from_numpy((inputs.astype(np.float32) + 128) / 255)[:, None]


def choose_samples(pixels, labels, predictions):
    """One held-out picture of each digit that the network reads rightly: the one most like the digit's average."""
    chosen = []
    for digit in range(10):
        mean = pixels[labels == digit].astype(np.float64).mean(axis=0)
        distance = ((pixels - mean) ** 2).sum(axis=(1, 2))
        chosen.append(int(np.where((labels == digit) & (predictions == digit), distance, np.inf).argmin()))
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--root", default=os.path.join(HERE, "..", ".."), help="where the files go")
    args = parser.parse_args()
    models, pictures, test_data = (os.path.join(args.root, *parts) for parts in
                                   (("samples", "models"), ("samples", "images"), ("tests", "data", "digits")))
    for folder in (models, pictures, test_data):
        os.makedirs(folder, exist_ok=True)

    (train_pixels, train_labels), (held_pixels, held_labels) = data.load()
    train_inputs, held_inputs = data.network_inputs(train_pixels), data.network_inputs(held_pixels)
    net = train(as_float(train_inputs), torch.from_numpy(train_labels), args.epochs, print)
    with torch.no_grad():
        float_accuracy = float((net(as_float(held_inputs)).argmax(1).numpy() == held_labels).mean())
    content = write(quantize(net.fold(), as_float(train_inputs)),
                    "handwritten digits, 16 x 16 grey: samples/train_digits of qplan")

    outputs = Model(content).run(held_inputs[..., None])  # what was written, not what was meant to be written
    predictions = outputs.argmax(axis=1)
    accuracy = float((predictions == held_labels).mean())
    print(f"held-out digits: {len(held_labels)}, float {float_accuracy:.4f}, quantised {accuracy:.4f}; "
          f"model: {len(content)} bytes")
    if accuracy < LEAST_ACCURACY or len(content) > MOST_BYTES:
        raise SystemExit(f"train.py: needed at least {LEAST_ACCURACY} and at most {MOST_BYTES} bytes; nothing written")

    with open(os.path.join(models, "digits.tflite"), "wb") as file:
        file.write(content)
    with open(os.path.join(models, "digits_labels.txt"), "w", encoding="utf-8") as file:
        file.writelines(name + "\n" for name in "zero one two three four five six seven eight nine".split())
    held_inputs.tofile(os.path.join(test_data, "held_out_inputs.bin"))
    outputs.tofile(os.path.join(test_data, "held_out_outputs.bin"))
    held_labels.astype(np.uint8).tofile(os.path.join(test_data, "held_out_labels.bin"))
    for index in choose_samples(held_pixels, held_labels, predictions):
        digit = held_labels[index]
        picture = data.sample_picture(held_pixels[index])
        sample = data.network_input(picture)
        images.write_png(os.path.join(pictures, f"digit{digit}.png"), picture)
        sample.tofile(os.path.join(test_data, f"digit{digit}_input.bin"))
        Model(content).run(sample[None, ..., None]).tofile(os.path.join(test_data, f"digit{digit}_output.bin"))
    with open(os.path.join(test_data, "summary.json"), "w", encoding="utf-8") as file:
        json.dump({"held_out": len(held_labels), "correct": int((predictions == held_labels).sum())}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
