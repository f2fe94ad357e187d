#!/usr/bin/env python3
"""The table of kernel variants from Google Benchmark's JSON: a line for each step, a column for each instruction set.

usage: kernels.py BENCHMARK.json > kernels.txt
"""

import collections
import json
import pathlib
import re
import sys

ISA_DEF = pathlib.Path(__file__).resolve().parents[2] / "kernels" / "isa.def"
ISAS = (*reversed(re.findall(r"^QPLAN_ISA\([\w-]+, (\w+),", ISA_DEF.read_text(encoding="utf-8"), re.MULTILINE)), "ref")
HEAD = """\
Medians of one thread, in microseconds of processor time; in brackets GMAC/s, or GB/s of inputs, constants and outputs
where there is nothing to multiply. Names: family/model/step/shape. Where an instruction set has several variants, the
best is in its column and all of them are after the name.
"""


def isa_of(variant):
    return variant.rsplit("_", 1)[-1]


def rows(report):
    """(name without the variant) -> variant -> (microseconds, rate)."""
    found = collections.OrderedDict()
    factor = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
    for run in report["benchmarks"]:
        if run.get("aggregate_name", "median") != "median" or run.get("error_occurred"):
            continue
        family, variant, place = run["run_name"].split("/", 2)
        rate = run.get("GMAC/s", run.get("GB/s", 0))
        time = run["cpu_time"] * factor[run["time_unit"]]
        found.setdefault(f"{family}/{place}", {})[variant] = (time, rate)
    return found


def sort_key(name):
    family, model, step, shape = (name.split("/", 3) + ["", ""])[:4]
    return family, model, int(step) if step.isdigit() else 0, shape


def table(found):
    isas = [isa for isa in ISAS if any(isa_of(variant) == isa for cells in found.values() for variant in cells)]
    lines = ["".join(f"{isa:>26}" for isa in isas) + "  step"]
    family = None
    for name in sorted(found, key=sort_key):
        cells, line, several = found[name], "", []
        if name.split("/")[0] != family:
            family = name.split("/")[0]
            lines.append("")
        for isa in isas:
            of_isa = {variant: cell for variant, cell in cells.items() if isa_of(variant) == isa}
            if not of_isa:
                line += f"{'-':>26}"
                continue
            time, rate = min(of_isa.values())
            line += f"{time:>17.2f} ({rate:>6.1f})"
            if len(of_isa) > 1:
                several += [f"{variant} {cell[0]:.2f}" for variant, cell in sorted(of_isa.items(), key=lambda v: v[1])]
        lines.append(f"{line}  {name}" + (f"  [{', '.join(several)}]" if several else ""))
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    report = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(HEAD)
    print(table(rows(report)), end="")


if __name__ == "__main__":
    main()
