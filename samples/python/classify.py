#!/usr/bin/env python3
"""Classifies arrays with a plan.

usage: classify.py MODEL_OR_PLAN INPUT.npy... [--labels FILE] [--top K] [--threads N]

Each INPUT.npy is one inference of a model with one input: its dtype and shape must be the model's. A .tflite is packed
first. Run it with the repository's python/ directory in PYTHONPATH, or after an installation.
"""
import argparse
import sys

import numpy as np

import qplan


def real_values(info, array):
    """scale * (element - zero_point); the elements themselves where the output is not quantised."""
    if info.scale is None:
        return array.astype(np.float64)
    return info.scale * (array.astype(np.float64) - info.zero_point)


def count(text):
    """A number of names to print."""
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"found {value}, expected at least 1")
    return value


def main():
    parser = argparse.ArgumentParser(description="Classifies .npy arrays with a plan.")
    parser.add_argument("model", help=".qplan, or a .tflite that is packed first")
    parser.add_argument("inputs", nargs="+", help=".npy files, one inference each")
    parser.add_argument("--labels", help="names of the classes, one per line")
    parser.add_argument("--top", type=count, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    plan = qplan.pack(options.model) if options.model.endswith(".tflite") else qplan.Plan(options.model)
    labels = None
    if options.labels:
        with open(options.labels, encoding="utf-8") as file:
            labels = file.read().rstrip("\n").split("\n")

    with qplan.Session(plan, threads=options.threads) as session:
        for path in options.inputs:
            outputs = session.run(np.load(path))
            scores = real_values(plan.outputs[0], outputs[0]).ravel()
            if labels and len(labels) - scores.size not in (0, 1):
                sys.exit(f"classify.py: {options.labels} has {len(labels)} names, the output {scores.size} values")
            # One label more than scores: the first means background.
            names = labels[len(labels) - scores.size :] if labels else range(scores.size)
            best = np.argsort(-scores, kind="stable")[: options.top]
            print(f"{path}:", ", ".join(f"{names[i]} {scores[i]:.6f}" for i in best))


if __name__ == "__main__":
    try:
        main()
    except (qplan.Error, OSError, ValueError) as error:
        sys.exit(f"classify.py: {error}")
