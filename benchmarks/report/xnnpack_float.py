"""The float32 layers of models beside XNNPACK's, in turns (benchmarks/xnnpack_float.sh has the options)."""

import argparse
import json
import math
import pathlib
import statistics
import subprocess

WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "pad_top", "pad_left", "groups")
TURN_MS = 300


def text_of(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def layers_of(report):
    """(index of the step, the line that peers/xnnpack_layers.c reads) of each float_conv2d step of an inspected plan."""
    found = []
    for index, step in enumerate(report["steps"]):
        if step["op"] != "float_conv2d":
            continue
        shapes = [[int(extent) for extent in step[key][0].split("x")] for key in ("input_shapes", "output_shapes")]
        # A fully connected layer has rows of any rank, which are pixels.
        source, result = (s if len(s) == 4 else [1, 1, math.prod(s[:-1]), s[-1]] for s in shapes)
        numbers = source[1:] + result[1:] + [int(step["params"][name]) for name in WINDOW]
        found.append((index, "f32 " + " ".join(map(str, numbers))))
    return found


def median_ratio(own, peer):
    return statistics.median(a / b for a, b in zip(own, peer))


class Model:
    def __init__(self, path, arguments):
        self.name = path.stem
        self.arguments = arguments
        self.plan = arguments.folder / f"{self.name}.qplan"
        # Without cascades, in which layers are no steps.
        text_of(arguments.qplan, "pack", path, "-o", self.plan, "--fuse", "off", "--keep-float")
        self.layers = layers_of(json.loads(text_of(arguments.qplan, "inspect", self.plan, "--json")))
        self.own, self.peer = [], []  # a list of the layers' ns for each round

    def run_round(self):
        bench = json.loads(text_of(self.arguments.qplan, "bench", self.plan, "--per-step", "--threads", "1", "--json"))
        times = {step["step"]: step["min_ns"] for step in bench["steps"]}
        self.own.append([times[index] for index, _ in self.layers])
        lines = "\n".join(line for _, line in self.layers)
        self.peer.append([int(ns) for ns in text_of(self.arguments.peer, TURN_MS, input=lines).split()])

    def print(self):
        sums = [[sum(round) for round in side] for side in (self.own, self.peer)]
        own, peer = (statistics.median(side) / 1e6 for side in sums)
        print(f"{self.name:32} {len(self.layers):6} {own:10.4f} {peer:10.4f} {median_ratio(*sums):6.2f}")
        if not self.arguments.layers:
            return
        for i, (index, line) in enumerate(self.layers):
            times = [[round[i] for round in side] for side in (self.own, self.peer)]
            own, peer = (statistics.median(side) / 1e3 for side in times)
            print(f"  {index:4} {line:60} {own:10.1f} {peer:10.1f} us {median_ratio(*times):6.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--qplan", type=pathlib.Path, required=True)
    parser.add_argument("--peer", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--layers", action="store_true")
    arguments = parser.parse_args()
    print(f"{'model':32} {'layers':>6} {'qplan ms':>10} {'XNNPACK ms':>10} {'ratio':>6}")
    for path in arguments.models:
        model = Model(path, arguments)
        for _ in range(arguments.rounds):
            model.run_round()
        model.print()


if __name__ == "__main__":
    main()
