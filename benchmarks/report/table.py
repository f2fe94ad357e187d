#!/usr/bin/env python3
"""The table of whole models, in Markdown, from results.json of compare.py.

usage: table.py RESULTS.json > table.md
"""

import json
import pathlib
import sys

COLUMNS = (
    "model",
    "MMAC",
    "goal ms",
    "qplan ms (fastest)",
    "goal met",
    "floor ms",
    "ONNX Runtime ms",
    "ratio (of fastest runs)",
    "oneDNN convolutions ms",
    "ratio (of fastest runs)",
    "2 threads: pool, OpenMP",
    "memory KiB (without cascades)",
    "cascades' ratio",
    "session init ms",
    "pack s",
    "other load",
)
LEGEND = """\
- **qplan**: one thread, median of all runs, and the fastest; all layers, exact to the bit. **goal**: for a machine with
  {ports} and a VNNI peak of {peak} GMAC/s. **floor**: time for the plan's MACs at this machine's peak.
- **ratio**: qplan's time to the peer's, the median of the rounds' ratios (below 1: qplan is faster); in brackets that of the
  fastest runs. ONNX Runtime in its fastest form of the model, which is named; oneDNN runs the
  model's convolutions alone, with the channels that plans leave out, goal {of_onednn}.
- **2 threads**: one thread's time to two threads', the fastest of {rounds} alternating rounds, with qplan's pool and OpenMP's;
  measured only while others keep fewer than 0.1 cores busy.
- **memory**: of a session with one worker, and that of a plan without cascades (`pack --fuse off`); **cascades' ratio**:
  the time with them to the time without.
- **other load**: cores that others kept busy during the turns.
"""


def number(value, digits=3):
    """With about so many digits that say something."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.{digits}g}" if value >= 1 else f"{value:.{digits + (value < 0.1)}f}"


def ratio_text(ratio):
    return f"{number(ratio['median'])} ({number(ratio['min'])})"


def threads_text(threads):
    if "speedup" in threads:
        return f"{threads['speedup']['2']:.2f}×, {threads['speedup']['2 openmp']:.2f}×"
    load = threads.get("other_load")
    return f"not measured (other load {number(load, 2)})" if load is not None else "not measured (load unknown)"


def row(model, peak):
    times, ratios = model["times"], model["ratios"]
    qplan = times["qplan"]
    cells = [
        model["name"],
        number(model["macs"] / 1e6),
        f"≤ {model['goal_ms']}",
        f"{number(qplan['median_ms'])} ({number(qplan['min_ms'])})",
        "yes" if qplan["median_ms"] <= model["goal_ms"] else "no",
        number(model["macs"] / 1e6 / peak if peak else None),
    ]
    form = model.get("fastest_form")
    if form is None:
        cells += ["–", "–"]
    else:
        cells += [f"{number(times[form]['median_ms'])} ({form.split()[1]})", ratio_text(ratios[form])]
    if "onednn" in times:
        cells += [number(times["onednn"]["median_ms"]), ratio_text(ratios["onednn"])]
    else:
        cells += ["–", "–"]
    load = model["other_load"]
    return cells + [
        threads_text(model["threads"]),
        f"{number(model['arena_bytes'] / 1024, 4)} ({number(model['unfused_arena_bytes'] / 1024, 4)})",
        ratio_text(ratios["qplan unfused"]) if "qplan unfused" in ratios else "–",
        number(model["init_ms"]),
        number(model["pack"]["seconds"], 2),
        number(load, 2),
    ]


def table(results):
    lines = [" | ".join(COLUMNS), "|".join(["---"] + ["--:"] * (len(COLUMNS) - 1))]
    peak = results["machine"]["peak_gmac_per_s"]
    lines += [" | ".join(row(model, peak)) for model in results["models"]]
    text = "".join(f"| {line} |\n" for line in lines)
    peers = results["peers"]
    text += "\n"
    for key, name in (("onnxruntime", "ONNX Runtime"), ("onednn", "oneDNN")):
        if key not in peers:
            text += f"{name}: not installed.  \n"
        elif results["geometric_means"][key] is not None:
            goal = "; goal 0.5" if key == "onnxruntime" else ""
            mean = number(results["geometric_means"][key])
            text += f"{name} {peers[key]}: geometric mean of the ratios **{mean}**{goal}.  \n"
    met = sum(model["times"]["qplan"]["median_ms"] <= model["goal_ms"] for model in results["models"])
    text += f"Goals met: {met} of {len(results['models'])}.\n"
    return text


def legend(results):
    goals = results["goals_of"]
    ports = "one 512-bit port" if goals["vnni_ports"] == 1 else f"{goals['vnni_ports']} 512-bit ports"
    return LEGEND.format(rounds=results["rounds"], ports=ports, peak=goals["peak_gmac_per_s"], of_onednn=goals["of_onednn"])


def machine_text(results):
    machine = results["machine"]
    reads = ", ".join(f"{name} {rate:.0f}" for name, rate in machine["read_gb_per_s"].items())
    text = f"{machine['isa']}, peak {machine['peak_gmac_per_s']:.1f} GMAC/s of one thread; reads GB/s: {reads}."
    return text + (" A quick run: fewer models, shorter turns." if results["quick"] else "")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    results = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    print("# Whole models\n")
    print(machine_text(results) + "\n")
    print(table(results))
    print(legend(results), end="")


if __name__ == "__main__":
    main()
