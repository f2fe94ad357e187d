"""Estimated cycles of the basic blocks of an image, by llvm-mca, beside the instructions that were counted.

What llvm-mca knows is the pipeline: how many cycles a block takes that follows itself again and again, with memory that
never makes it wait. It charges a taken branch like any instruction, which costs a Cortex-M4 one to three cycles more.
The end of a low-overhead loop (LE, LETP) takes no cycle once the core has seen the loop, and llvm-mca does not know the
instruction: it is left out. It charges one cycle, too, for an instruction that loads several registers; on a Cortex-M4
the table has a column of cycles by Arm's manual beside its own.
"""
import functools
import re
import shutil
import subprocess

TRIPLES = {
    "cortex-m0plus": "thumbv6m-none-eabi",
    "cortex-m3": "thumbv7m-none-eabi",
    "cortex-m4": "thumbv7em-none-eabi",
    "cortex-m7": "thumbv7em-none-eabi",
    "cortex-m33": "thumbv8m.main-none-eabi",
    "cortex-m55": "thumbv8.1m.main-none-eabi",
    "cortex-m85": "thumbv8.1m.main-none-eabi",
}
# LLVM 16 has models of the pipelines of these; llvm-mca refuses other cores.
MODELLED = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55")
# Products that an instruction adds up, by the beginning of its name; the first that fits counts. Vectors of Helium have
# 16 bytes. A product alone counts, too: kernels of depthwise convolutions on vectors add up apart.
MACS = [
    (r"(smlad|smlsd|smuad|smusd|smlald)", 2),
    (r"(smla[bt]{2}|smul[bt]{2}|smlal[bt]{2})", 1),
    (r"(mla|mul|muls|mls)(?![a-z])", 1),
    (r"vmla(da)?v\w*\.[su]8", 16), (r"vmla(da)?v\w*\.[su]16", 8), (r"vmla(da)?v\w*\.[su]32", 4),
    (r"vml[as]s?\w?\.[isu]8", 16), (r"vml[as]s?\w?\.[isu]16", 8), (r"vml[as]s?\w?\.[isu]32", 4),
    (r"vmul[tb]?\.[isu]8", 16), (r"vmul[tb]?\.[isu]16", 8), (r"vmul[tb]?\.[isu]32", 4),
]
ITERATIONS = 100


def find_tool(name):
    """The newest of llvm-NAME that is installed, from version 16 on."""
    for version in range(30, 15, -1):
        path = shutil.which(f"{name}-{version}")
        if path:
            return path
    raise SystemExit(f"firmware.sh: --cycles needs {name} of LLVM 16 or newer, found none; apt-get install llvm-16")


def disassemble(image, core):
    """{address: (text, bytes)} of all instructions."""
    attributes = ["--mattr=+mve"] if core in ("cortex-m55", "cortex-m85") else []
    lines = subprocess.run([find_tool("llvm-objdump"), f"--triple={TRIPLES[core]}", f"--mcpu={core}", *attributes, "-d",
                            str(image)], check=True, capture_output=True, text=True).stdout.splitlines()
    instructions = {}
    for line in lines:
        found = re.match(r"\s*([0-9a-f]+):\s+((?:[0-9a-f]{2,4} )+)\s*\t(.*)", line)
        if found:
            size = len(found[2].replace(" ", "")) // 2
            instructions[int(found[1], 16)] = (found[3].split("@")[0].strip().replace("\t", " "), size)
    return instructions


def block_text(instructions, address, length):
    """The instructions of a block, or None where the image has no code there."""
    text = []
    for _ in range(length):
        if address not in instructions:
            return None
        line, size = instructions[address]
        text.append(line)
        address += size
    return tuple(text)


def macs_of(text):
    """Products that a block adds up each time it runs."""
    return sum(next((macs for pattern, macs in MACS if re.match(pattern, line)), 0) for line in text)


@functools.lru_cache(maxsize=None)
def cycles_of(text, core):
    """Cycles that llvm-mca states for a block that follows itself; an instruction that it does not know takes one."""
    lines, unknown = [], 0
    for line in text:
        # Addresses mean nothing here: a branch leads to the end.
        line = re.sub(r"(?:#)?(0x)?[0-9a-f]+ <[^>]*>$", "end", line)
        if re.match(r"(le|letp|wls|wlstp|dls|dlstp)(?![a-z])", line):
            unknown += not line.startswith("le")
        else:
            lines.append(line)
    while lines:
        source = ".syntax unified\n.thumb\n" + "".join(f" {line}\n" for line in lines) + "end:\n"
        run = subprocess.run([find_tool("llvm-mca"), f"-mtriple={TRIPLES[core]}", f"-mcpu={core}",
                              f"-iterations={ITERATIONS}", "-instruction-info=false", "-resource-pressure=false"],
                             input=source, capture_output=True, text=True)
        found = re.search(r"Total Cycles:\s+(\d+)", run.stdout)
        if found:
            return int(found[1]) / ITERATIONS + unknown
        # It names the first instruction that it does not know, or the line that it cannot read.
        note = re.search(r"note: instruction:\s*(.*)", run.stderr)
        line = re.search(r"<stdin>:(\d+):\d+: error", run.stderr)
        known = [re.sub(r"\s+", " ", each) for each in lines]
        if line:
            del lines[int(line[1]) - 3]
        elif note and re.sub(r"\s+", " ", note[1]) in known:
            del lines[known.index(re.sub(r"\s+", " ", note[1]))]
        else:
            return float(len(lines) + unknown)
        unknown += 1
    return float(unknown)


def registers_of(operands):
    """How many registers a list in braces has."""
    count = 0
    for part in re.search(r"\{(.*?)\}", operands)[1].split(","):
        first, _, last = part.strip().partition("-")
        count += int(re.sub(r"\D", "", last)) - int(re.sub(r"\D", "", first)) + 1 if last else 1
    return count


def manual_cycles_of(text):
    """Cycles of a block on a Cortex-M4 without wait states, whose branch at the end is taken.

    Cortex-M4 Technical Reference Manual, Instruction set summary: 1 + N for N registers of one instruction; 2 for a load,
    1 where it follows another; 1 for a store; 1 + P for a taken branch, P of 1 to 3, here 2; 2 to 12 for a division,
    here 7; floats 1, but 3 for a product with a sum and 14 for a division or a root.
    """
    cycles, after_load = 0, False
    for line in text:
        name, _, operands = line.partition(" ")
        is_load = re.match(r"(v?ldr)(?!d)", name) is not None
        if re.match(r"(v?ldm|v?stm|v?push|v?pop)", name) and "{" in operands:
            cycles += 1 + registers_of(operands)
        elif re.match(r"(ldrd|strd)", name):
            cycles += 3
        elif is_load:
            cycles += 1 if after_load else 2
        elif re.match(r"(b|bl|bx|blx|cbz|cbnz|b(eq|ne|lo|hs|hi|ls|lt|le|gt|ge|mi|pl|cc|cs))(\.[nw])?$", name):
            cycles += 3
        elif re.match(r"[su]div", name):
            cycles += 7
        elif re.match(r"(vdiv|vsqrt)", name):
            cycles += 14
        elif re.match(r"vf?n?ml[as]", name):
            cycles += 3
        else:
            cycles += 1
        after_load = is_load
    return float(cycles)


def tables(image, core, blocks, name_of, macs):
    """(rows of the hottest blocks with products, rows of the sum). blocks: {address: (instructions, length)}."""
    if core not in MODELLED:
        raise SystemExit(f"firmware.sh: --cycles: llvm-mca has no model of '{core}'; known: {', '.join(MODELLED)}")
    ways = {"llvm-mca": functools.partial(cycles_of, core=core)}
    if core == "cortex-m4":
        ways["manual"] = manual_cycles_of
    instructions = disassemble(image, core)
    total = sum(count for count, _ in blocks.values())
    cycles, estimated, loops = dict.fromkeys(ways, 0.0), 0, {}
    for address, (count, length) in sorted(blocks.items(), key=lambda block: -block[1][0]):
        text = block_text(instructions, address, length)
        # The rest is many small blocks that run once or a few times: a cycle for each instruction.
        is_known = text is not None and estimated <= 0.98 * total
        each = {way: estimate(text) if is_known else float(length) for way, estimate in ways.items()}
        for way in ways:
            cycles[way] += each[way] * count / length
        estimated += count if is_known else 0
        products = macs_of(text) if is_known else 0
        if products >= 2 and count >= 0.02 * total:
            loops.setdefault(name_of(address), (count, length, products, each))  # the hottest of its function
    heads = [cell for way in ways for cell in (f"cycles, {way}", "a product")]
    rows = [("block of", "instructions", "products", "a product", *heads, "% of all instructions")]
    for name, (count, length, products, each) in loops.items():
        estimates = [cell for way in ways for cell in (f"{each[way]:.1f}", f"{each[way] / products:.3f}")]
        rows.append((name[:60], length, products, f"{length / products:.3f}", *estimates, f"{100 * count / total:.1f}"))
    sums = [cell for count in (total, *cycles.values())
            for cell in (f"{count / 1e6:.3f}", f"{count / macs:.2f}" if macs else "-")]
    return rows, [("", "instructions", "a MAC", *(cell for way in ways for cell in (f"cycles, {way}", "a MAC"))),
                  ("whole invoke, millions", *sums)]
