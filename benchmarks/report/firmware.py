"""Tables of what benchmarks/firmware.sh counted.

usage: firmware.py FOLDER CORE [--start] [--no-digest] [--steps] [--functions] [--cycles] MODEL...

FOLDER/MODEL has counts.txt (benchmarks/qemu/insn_count.c), symbols.txt (nm), inspect.json and run.txt, for --cycles
firmware.elf, too.
"""
import bisect
import collections
import json
import pathlib
import re
import sys

import firmware_cycles

# Instructions of one invoke, millions, by core: the goal; TensorFlow Lite Micro with its reference kernels, and with
# CMSIS-NN at -O2 (2026-11, the same method).
GOALS = {
    "cortex-m4": {
        "kws_ref_model": (3.9, 43.0, 7.70),
        "person_detect": (9.0, 95.7, 22.9),
        "pretrainedResnet_quant": (14.5, 107.4, 29.9),
        "ad01_int8": (0.33, 1.95, 0.583),
    },
    "cortex-m55": {
        "kws_ref_model": (1.1, "-", 1.81),
        "person_detect": (3.6, "-", 6.51),
        "pretrainedResnet_quant": (2.8, "-", 4.91),
        "ad01_int8": (0.075, "-", 0.150),
    },
}
# MACs that one instruction adds up at most: SMLAD two, VMLADAVA those of a vector of bytes, else a product and a sum.
# What a network's MACs take at that rate is the limit, to which loads, requantisation and all else are added.
MACS_PER_INSTRUCTION = {"cortex-m4": 2, "cortex-m7": 2, "cortex-m33": 2, "cortex-m55": 16, "cortex-m85": 16}
# What opening a plan and init take together, as above: with the plan's digest, and without.
START_GOALS = {"cortex-m4": {"person_detect": (10, "-", "-")}}
START_GOALS_NO_DIGEST = {"cortex-m4": {"person_detect": (0.3, "-", "-")}}


class Symbols:
    """Functions by address."""

    def __init__(self, path):
        self.starts, self.names = [], []
        for line in path.read_text(encoding="utf-8").splitlines():
            found = re.match(r"([0-9a-f]+) (?:[0-9a-f]+ )?[tTwW] (.*)", line)
            if found and not found[2].startswith("$"):
                self.starts.append(int(found[1], 16) & ~1)
                self.names.append(found[2])

    def name(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        return self.names[at] if at >= 0 else hex(address)


def short_name(name):
    name = re.sub(r"\(anonymous namespace\)::|qplan::|\(.*\)( const)?|\[clone [^]]*\]", "", name)
    return re.sub(r"<.*>", "<>", name).strip()


def family_of(name):
    """The family of a layer, by the arguments that its binding fills: those of depthwise convolutions are Conv2d, too."""
    found = re.search(r"make_family<(?:qplan::)?(\w+)Args", name)
    return found[1] if found else None


def read_counts(path):
    """(segments, blocks, total): [(address, counts)], {address: (instructions, those of the block)}, counts."""
    segments, blocks, total = [], {}, None
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, *fields = line.split()
        if kind == "segment":
            segments.append((int(fields[0], 16), tuple(map(int, fields[1:]))))
        elif kind == "block":
            blocks[int(fields[0], 16)] = tuple(map(int, fields[1:]))
        else:
            total = tuple(map(int, fields))
    return segments, blocks, total


def per_mac(instructions, macs, core):
    """Cells: instructions a MAC, and the limit in percent of the instructions."""
    if not macs or not instructions:
        return "-", "-"
    limit = macs / MACS_PER_INSTRUCTION.get(core, 1)
    return f"{instructions / macs:.2f}", f"{100 * limit / instructions:.0f}"


def print_table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [str(cell).rjust(width) for cell, width in zip(row, widths)]
        print("  ".join([str(row[0]).ljust(widths[0]), *cells[1:]]).rstrip())
    print()


def steps_table(segments, symbols, steps, core):
    """In order, with the rest of an invoke. A cascade has its layers' instructions."""
    parts, layers = [[0, 0, 0]], [collections.Counter()]
    for address, counts in segments:
        name = symbols.name(address)
        if "run_unkept_step" in name or "BeginEvent" in name:
            parts.append([0, 0, 0])
            layers.append(collections.Counter())
        family = family_of(name)
        if family:
            layers[-1][family] += 1
        parts[-1] = [sum(pair) for pair in zip(parts[-1], counts)]
    rows = [("step", "kernel", "instructions", "loads", "stores", "MACs", "a MAC", "% of limit", "layers bound")]
    for i, (counts, bound) in enumerate(zip(parts, layers)):
        step = steps[i - 1] if 0 < i <= len(steps) else {}
        name = step.get("name", "").split("/")[-1][:40] if i else "begin"
        bound = "" if step.get("op") != "chain" else ", ".join(f"{count} {family}" for family, count in bound.items())
        macs = step.get("macs", 0)
        rows.append((f"{i - 1} {name}" if i else name, step.get("op", ""), *(f"{count:,}" for count in counts),
                     f"{macs:,}" if macs else "-", *per_mac(counts[0], macs, core), bound))
    print_table(rows)


def functions_table(blocks, symbols, total):
    functions = collections.Counter()
    for address, (count, _) in blocks.items():
        functions[short_name(symbols.name(address))] += count
    rows = [("function", "instructions", "%")]
    rows += [(name[:80], f"{count:,}", f"{100 * count / total:.1f}") for name, count in functions.most_common(25)]
    print_table(rows)


def main():
    folder, core = pathlib.Path(sys.argv[1]), sys.argv[2]
    options = {argument for argument in sys.argv[3:] if argument.startswith("--")}
    rows = [("model", "M instructions", "M loads", "M stores", "a MAC", "% of limit", "goal", "TFLM", "TFLM+CMSIS-NN",
             "memory", "output")]
    failed = False
    start_goals = START_GOALS_NO_DIGEST if "--no-digest" in options else START_GOALS
    goals = (start_goals if "--start" in options else GOALS).get(core, {})
    for model in (argument for argument in sys.argv[3:] if not argument.startswith("--")):
        of_model = folder / model
        lines = [line.split() for line in (of_model / "run.txt").read_text(encoding="utf-8").splitlines()]
        said = dict(line for line in lines if len(line) == 2)
        # The operators of a peer, in order.
        operators = [{"name": line[1], "op": "operator"} for line in lines if line[:1] == ["operator"]]
        inspected = json.loads((of_model / "inspect.json").read_text(encoding="utf-8"))
        macs = sum(step.get("macs", 0) for step in inspected["steps"])
        counts = of_model / "counts.txt"
        segments, blocks, total = read_counts(counts) if counts.exists() else ([], {}, None)
        equal = said.get("different") == "0"
        failed |= not equal or total is None
        goal, reference, cmsis = goals.get(model, ("-", "-", "-"))
        total = total or (0, 0, 0)
        rows.append((model, *(f"{count / 1e6:.3f}" for count in total), *per_mac(total[0], macs, core), goal, reference, cmsis,
                     said.get("memory_bytes", "-"), "equal" if equal else "DIFFERENT"))
        symbols = Symbols(of_model / "symbols.txt")
        if "--steps" in options:
            print(model)
            steps_table(segments, symbols, operators or inspected["steps"], core)
        if "--functions" in options:
            print(model)
            functions_table(blocks, symbols, total[0] or 1)
        if "--cycles" in options:
            print(model)
            for table in firmware_cycles.tables(of_model / "firmware.elf", core, blocks,
                                                lambda address, of=symbols: short_name(of.name(address)), macs):
                print_table(table)
    print_table(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
