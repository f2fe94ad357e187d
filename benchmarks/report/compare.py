#!/usr/bin/env python3
"""Measures whole models against their peers, in turns, and writes results.json.

usage: compare.py --bin FOLDER --shared FOLDER --output FILE [--ort FOLDER] [--models A,B] [--quick]

Each round gives every contender a turn: qplan on one thread, the same without cascades where the packer made any,
oneDNN's sum of convolutions, each form of the model in ONNX Runtime. Ratios are taken within rounds, so that
drift of the machine cancels out.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from load import OtherLoad
from server import Server, ServerError

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1]
ROUNDS = 7
TURN_NS = 100_000_000
THREAD_TURN_NS = 250_000_000
QUICK_DIVISOR = 4
# Two threads on two cores are measured only while others leave the cores alone.
MAX_OTHER_LOAD = 0.1
THREAD_ATTEMPTS = 3
THREADS = {"1": (1, "threads"), "2": (2, "threads"), "2 openmp": (2, "openmp")}
STEP_RUNS = 100


def summary(turns):
    """turns: of each round the times of its runs, in ns."""
    runs = [ns for turn in turns for ns in turn]
    return {"median_ms": statistics.median(runs) / 1e6, "min_ms": min(runs) / 1e6, "runs": len(runs)}


def ratio(turns, peer):
    """Of the first's time to the second's: the median of the rounds' ratios, and of the fastest runs."""
    rounds = [statistics.median(a) / statistics.median(b) for a, b in zip(turns, peer)]
    return {"median": statistics.median(rounds), "min": min(map(min, turns)) / min(map(min, peer))}


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


class Comparison:
    def __init__(self, options):
        self.options = options
        self.divisor = QUICK_DIVISOR if options.quick else 1
        self.peers = {}  # their versions
        self.qplan = Server(options.bin / "model_benchmark")
        onednn = options.bin / "onednn_benchmark"
        self.onednn = Server(onednn) if onednn.exists() else None
        self.ort = None
        if options.ort is not None:
            self.ort = Server("node", BENCHMARKS / "peers" / "onnxruntime_benchmark.js", options.ort)

    def servers(self):
        return [server for server in (self.qplan, self.onednn, self.ort) if server is not None]

    def contenders(self, model, loaded, unfused):
        """Functions that run a turn, by name: "qplan", "qplan unfused", "onednn", "onnxruntime A"."""
        name = model["name"]
        found = {"qplan": lambda ns: self.qplan.ask("run", name, 1, "threads", ns)["ns"]}
        if unfused is not None:
            found["qplan unfused"] = lambda ns: self.qplan.ask("run", unfused, 1, "threads", ns)["ns"]
        if self.onednn is not None and loaded["layers"]:
            answer = self.onednn.ask("load", name, len(loaded["layers"]), lines=loaded["layers"])
            self.peers["onednn"] = answer["version"]
            found["onednn"] = lambda ns: self.onednn.ask("run", name, ns)["ns"]
        if self.ort is not None and "onnx" in model:
            for path in sorted(self.options.shared.glob(model["onnx"])):
                form = path.stem.rsplit("_", 1)[1]
                key = f"{name} {form}"
                self.peers["onnxruntime"] = self.ort.ask("load", key, path)["version"]
                found[f"onnxruntime {form}"] = lambda ns, key=key: self.ort.ask("run", key, ns)["ns"]
        return found

    def in_turns(self, contenders):
        turns = {name: [] for name in contenders}
        for _ in range(ROUNDS):
            for name, turn in contenders.items():
                turns[name].append(turn(TURN_NS // self.divisor))
        return turns

    def threads(self, name):
        """The fastest of alternating rounds of one and two threads; the load alone where others were at work."""
        result = {}
        for _ in range(1 if self.options.quick else THREAD_ATTEMPTS):
            load = OtherLoad(self.qplan.pid)
            rounds = {kind: [] for kind in THREADS}
            for _ in range(ROUNDS):
                for kind, (threads, pool) in THREADS.items():
                    answer = self.qplan.ask("run", name, threads, pool, THREAD_TURN_NS // self.divisor)
                    rounds[kind].append(statistics.median(answer["ns"]))
            result = {"other_load": load.cores()}
            if result["other_load"] is not None and result["other_load"] < MAX_OTHER_LOAD:
                fastest = {kind: min(medians) for kind, medians in rounds.items()}
                result["ms"] = {kind: ns / 1e6 for kind, ns in fastest.items()}
                result["speedup"] = {kind: fastest["1"] / ns for kind, ns in fastest.items() if kind != "1"}
                break
        return result

    def pack(self, path, plan):
        """Seconds and resident memory of `qplan pack`, a process of its own."""
        command = [str(self.options.bin / "qplan"), "pack", str(path), "-o", str(plan)]
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise ServerError(f"{' '.join(command)} ended with status {process.returncode}")
        return {"seconds": time.monotonic() - begin, "max_rss_bytes": usage.ru_maxrss * 1024}

    def steps(self, plan):
        command = [self.options.bin / "qplan", "bench", plan, "--per-step", "--json", "--runs"]
        command.append(str(STEP_RUNS // self.divisor))
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        return {"peak_gmac_per_s": report["peak_gmac_per_s"], "isa": report["isa"], "steps": report["steps"]}

    def measure(self, model, folder):
        name = model["name"]
        path = self.options.shared / model["file"]
        loaded = self.qplan.ask("load", name, path, "auto")
        result = {"name": name}
        result.update((key, loaded[key]) for key in ("macs", "arena_bytes", "plan_bytes"))
        # The same without cascades, where the packer made any.
        unfused = f"{name} unfused"
        result["unfused_arena_bytes"] = self.qplan.ask("load", unfused, path, "off")["arena_bytes"]
        if result["unfused_arena_bytes"] == result["arena_bytes"]:
            unfused = None
        contenders = self.contenders(model, loaded, unfused)
        load = OtherLoad(*(server.pid for server in self.servers()))
        turns = self.in_turns(contenders)
        result["other_load"] = load.cores()
        result["times"] = {contender: summary(times) for contender, times in turns.items()}
        result["ratios"] = {peer: ratio(turns["qplan"], times) for peer, times in turns.items() if peer != "qplan"}
        forms = [peer for peer in turns if peer.startswith("onnxruntime")]
        if forms:
            result["fastest_form"] = min(forms, key=lambda form: result["times"][form]["median_ms"])
        result["threads"] = self.threads(name)
        for key, times in self.qplan.ask("init", name).items():
            result[key.replace("_ns", "_ms")] = statistics.median(times) / 1e6
        plan = folder / f"{name}.qplan"
        result["pack"] = self.pack(path, plan)
        result.update(self.steps(plan))
        return result

    def close(self):
        for server in self.servers():
            server.close()


def machine_of(machines, peak):
    """The index of the machine whose goals hold: the last whose peak, in GMAC/s, is reached, else the first."""
    return max((i for i, machine in enumerate(machines) if machine["peak_gmac_per_s"] <= (peak or 0)), default=0)


def geometric_means(models):
    means = {}
    for peer in ("onednn", "onnxruntime"):
        names = [model.get("fastest_form") if peer == "onnxruntime" else peer for model in models]
        ratios = [m["ratios"][name]["median"] for m, name in zip(models, names) if name in m["ratios"]]
        means[peer] = geometric_mean(ratios)
    return means


def chosen_models(models, options):
    if not options.models:
        return [model for model in models if model.get("quick") or not options.quick]
    wanted = options.models.split(",")
    unknown = set(wanted) - {model["name"] for model in models}
    if unknown:
        sys.exit(f"compare: unknown models {sorted(unknown)}; known: {[model['name'] for model in models]}")
    return [model for model in models if model["name"] in wanted]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs that were built")
    parser.add_argument("--shared", type=pathlib.Path, required=True, help="folder of the reference data")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="results.json")
    parser.add_argument("--ort", type=pathlib.Path, help="folder where onnxruntime-node was installed")
    parser.add_argument("--models", default="", help="names, with commas")
    parser.add_argument("--quick", action="store_true", help="three models, shorter turns")
    return parser.parse_args()


def main():
    options = read_options()
    listed = json.loads((BENCHMARKS / "models.json").read_text(encoding="utf-8"))
    models = chosen_models(listed["models"], options)
    comparison = Comparison(options)
    results = {"quick": options.quick, "rounds": ROUNDS, "machine": comparison.qplan.ask("machine"), "models": []}
    machine = machine_of(listed["machines"], results["machine"]["peak_gmac_per_s"])
    results["goals_of"] = listed["machines"][machine]
    with tempfile.TemporaryDirectory(prefix="qplan_benchmark_") as folder:
        for number, model in enumerate(models, 1):
            if not (options.shared / model["file"]).exists():
                print(f"compare: '{options.shared / model['file']}' is missing, left out", file=sys.stderr)
                continue
            print(f"[{number}/{len(models)}] {model['name']}", file=sys.stderr, flush=True)
            try:
                result = comparison.measure(model, pathlib.Path(folder))
                results["models"].append(result | {"goal_ms": model["goal_ms"][machine]})
            except ServerError as error:
                sys.exit(f"compare: {model['name']}: {error}")
    comparison.close()
    results["peers"] = comparison.peers
    results["geometric_means"] = geometric_means(results["models"])
    options.output.write_text(json.dumps(results) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
