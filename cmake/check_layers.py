#!/usr/bin/env python3
"""Checks who includes whom: every #include line of the project against the layers below.

usage: check_layers.py REPOSITORY
Exit status 1 and one line per offence: file:line: layer 'x' may not include "y" (layer 'z').
"""
import os
import re
import sys

def isa_names():
    """The names of kernels/isa.def, the list of instruction sets."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kernels", "isa.def")
    with open(path, encoding="utf-8") as text:
        return re.findall(r"^QPLAN_ISA\([\w-]+, (\w+),", text.read(), re.MULTILINE)


ISAS = "|".join(isa_names())
# Layer of a path (first match wins), and the layers it may include. Kernels know neither plans nor flatbuffers:
# "runtime/bind" turns steps of a plan into arguments of kernels, and holds the table of families and the executor of
# cascades; "kernels/isa" the files with an instruction set as suffix.
LAYERS = [
    ("include", r"^(include/)?qplan/", []),
    ("schema", r"^format/\w+_generated\.h$|^format/flatbuffers_assert\.h$", []),
    ("tflite_schema", r"^src/packer/import/tflite/\w+_generated\.h$", []),
    ("embedded", r"^(src/packer/partition|tools)/embedded\.h$", []),
    ("texts", r"^src/base/(text|listing)\.h$", []),
    ("base", r"^src/base/", ["include", "texts"]),
    ("layout", r"^format/kernels\.def$|^format/(container|memory_layout)\.h$", ["base"]),
    ("format", r"^format/", ["base", "include", "schema", "layout"]),
    ("kernels/numeric", r"^kernels/numeric/", []),
    ("kernels/contract", r"^kernels/(kernel\.h|variant\.h|kernel\.cc|layout\.h|layouts\.def|cpu\.h|cpu\.cc|isa\.def|isas\.h)$",
     ["include", "kernels/numeric"]),
    ("runtime/bind", r"^src/runtime/(bind/|cascade(_layers|_run)?\.(h|cc)$)",
     ["kernels/contract", "kernels/family", "kernels/numeric", "include", "base", "schema", "format", "layout"]),
    ("kernels/isa", rf"^kernels/(simd/|scalar/|.*_({ISAS})\.(cc|inl|h)$|.*_(simd|scalar)\.(cc|h)$)",
     ["kernels/family", "kernels/numeric", "kernels/isa"]),
    ("kernels/family", r"^kernels/", ["kernels/contract", "kernels/numeric", "base"]),
    ("vta/isa", r"^src/vta/isa/", ["include", "base"]),
    ("host/trace_events", r"^src/host/trace_events\.h$", []),
    ("vta/sim", r"^src/vta/(sim|sim_library)/", ["include", "vta/isa", "kernels/numeric", "host/trace_events", "base"]),
    ("ethosu/isa", r"^src/ethosu/isa/", ["include", "base"]),
    # The books of a simulated device (buffers, scripts of faults, files of jobs) are those of VTA's simulator.
    ("ethosu/sim", r"^src/ethosu/sim/", ["include", "ethosu/isa", "vta/sim"]),
    ("npu_sim", r"^src/npu_sim/", ["include", "vta/sim", "ethosu/sim", "vta/isa", "ethosu/isa"]),
    ("runtime", r"^src/runtime/", ["kernels/contract", "runtime/bind", "format", "schema", "layout", "base",
                                          "include"]),
    ("host", r"^src/host/", ["base", "include", "host/trace_events"]),
    ("packer/ir", r"^src/packer/(ir/|(aligned_bytes|error|log)\.h)", ["packer/op_def"]),
    ("packer/op_def", r"^src/packer/op/op_def\.h", ["packer/ir"]),
    ("packer/text", r"^src/packer/text/", ["packer/ir", "packer/op"]),
    ("packer/op", r"^src/packer/op/", ["packer/ir"]),
    ("packer/pattern", r"^src/packer/pattern/", ["packer/ir", "packer/op", "packer/text"]),
    ("packer/passes", r"^src/packer/passes/", ["packer/layer", "packer/pattern", "packer/op", "packer/text",
                                                "packer/ir"]),
    ("packer/import", r"^src/packer/import/", ["packer/pattern", "packer/op", "packer/text", "packer/ir",
                                                "tflite_schema", "ethosu/isa"]),
    ("packer/layer", r"^src/packer/layer/", ["packer/op", "packer/ir"]),
    # What the packer brings itself; the interface that other devices see is "packer/target".
    ("packer/target/own", r"^src/packer/target/(cpu|external)/", ["packer/target", "packer/layer", "packer/pattern",
                                                                  "packer/op", "packer/text", "packer/ir"]),
    ("packer/target", r"^src/packer/target/", ["packer/target/own", "packer/layer", "packer/passes", "packer/pattern",
                                                "packer/op", "packer/text", "packer/ir"]),
    ("vta/compiler", r"^src/vta/compiler/", ["vta/isa", "packer/target", "packer/layer", "packer/pattern", "packer/op",
                                            "packer/ir"]),
    ("ethosu/compiler", r"^src/ethosu/compiler/", ["ethosu/isa", "packer/target", "packer/layer", "packer/pattern",
                                                  "packer/op", "packer/ir"]),
    ("packer/partition", r"^src/packer/partition/", ["embedded", "packer/target", "packer/passes", "packer/pattern", "packer/op",
                                                      "packer/text", "packer/ir"]),
    ("packer/memory", r"^src/packer/memory/", ["packer/partition", "packer/target", "packer/op", "packer/ir"]),
    ("packer/inspect", r"^src/packer/inspect/", ["packer/target", "packer/ir"]),
    ("packer/emit", r"^src/packer/emit/", ["packer/inspect", "packer/target", "packer/ir"]),
    ("packer/schedule", r"^src/packer/schedule/", ["packer/inspect", "packer/memory", "packer/target", "packer/ir"]),
    ("packer/write", r"^src/packer/write/", ["packer/memory", "packer/target", "packer/ir"]),
    ("packer/evaluate", r"^src/packer/evaluate/", ["packer/write", "packer/schedule", "packer/inspect",
                                                    "packer/memory", "packer/target", "packer/op", "packer/ir"]),
    # The composition root: the only place of the packer that knows a device by name.
    ("packer/pipeline", r"^src/packer/pipeline/", ["vta/compiler", "ethosu/compiler", "packer/target/own",
                                                    "packer/evaluate", "packer/write", "packer/schedule",
                                                    "packer/inspect", "packer/memory", "packer/partition",
                                                    "packer/target", "packer/passes", "packer/import",
                                                    "packer/pattern", "packer/op", "packer/text", "packer/ir"]),
    ("capi/pack", r"^capi/pack[^/]*\.(cc|h)$",
     ["runtime", "packer/pipeline", "packer/emit", "packer/schedule", "packer/inspect", "packer/target", "packer/import", "packer/passes", "packer/pattern", "packer/op_def", "packer/ir",
      "format", "include", "base"]),
    ("capi", r"^capi/", ["runtime", "runtime/bind", "kernels/contract", "format", "schema", "layout", "base",
                          "include"]),
    ("tools", r"^tools/", ["embedded", "include", "texts"]),
    # A driver that reads blobs with the code that wrote their rules; its fake hardware is the simulator.
    ("samples/ethosu_driver", r"^samples/ethosu_driver/", ["include", "ethosu/isa", "ethosu/sim"]),
    ("samples", r"^samples/", ["include"]),
    ("python", r"^python/", []),
    ("tests", r"^(tests|benchmarks)/", None),  # anything
]
# Layers that every part of the packer may include.
PACKER_BELOW = ["kernels/contract", "runtime/bind", "kernels/family", "kernels/numeric", "runtime", "format", "schema",
                "layout", "host", "base", "include", "packer/op_def", "packer/ir"]
# The families' contract headers may be seen by glue (and the packer); their references may not see plan or runtime.
# Libraries that one folder hides from the rest: headers, who may include them.
HIDDEN = [("protobuf and ONNX's schema", r"^(onnx/onnx|google/protobuf/)", r"^(src/packer/import/onnx|tests/fuzz)/")]
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^">]+)[">]')
OURS = re.compile(r"^(qplan|include|src|format|kernels|capi|tools|tests|samples|benchmarks)/")
SOURCES = (".cc", ".h", ".c", ".hpp", ".inl", ".def")


def layer_of(path):
    for name, pattern, _ in LAYERS:
        if re.search(pattern, path):
            return name
    return None


def allowed(layer):
    for name, _, may in LAYERS:
        if name == layer:
            if may is None:
                return None
            below = PACKER_BELOW if name.startswith(("packer/", "vta/compiler", "ethosu/compiler")) else []
            return set(may) | set(below) | {name} | ({"texts"} if "base" in may or below else set())
    raise KeyError(layer)


def isa_file_includes(path):
    """ISA files may name, beside their contract, only freestanding headers and intrinsics."""
    return layer_of(path) == "kernels/isa"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    offences, files = [], 0
    for top in ("include", "src", "capi", "kernels", "format", "tests", "samples", "tools", "benchmarks"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not name.endswith(SOURCES):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root)
                layer = layer_of(path)
                if layer is None:
                    offences.append(f"{path}:1: belongs to no layer of cmake/check_layers.py")
                    continue
                files += 1
                may = allowed(layer)
                with open(os.path.join(root, path), encoding="utf-8") as text:
                    for number, line in enumerate(text, 1):
                        match = INCLUDE.match(line)
                        if not match:
                            continue
                        target = match.group(1)
                        for what, header, home in HIDDEN:
                            if re.match(header, target) and not re.match(home, path):
                                offences.append(f"{path}:{number}: only {home[1:]} may include {what}")
                        if isa_file_includes(path) and not OURS.match(target):
                            if target not in ("stdint.h", "stddef.h", "immintrin.h", "arm_neon.h", "arm_mve.h",
                                              "riscv_vector.h"):
                                offences.append(f"{path}:{number}: an ISA file may not include <{target}>: inline "
                                                "functions compiled for one ISA would reach the others")
                            continue
                        if may is None or not OURS.match(target):
                            continue
                        other = layer_of(target)
                        if other not in may:
                            offences.append(f"{path}:{number}: layer '{layer}' may not include \"{target}\" "
                                            f"(layer '{other}')")
    for offence in offences:
        print(offence)
    print(f"{files} files, {len(offences)} offences")
    sys.exit(1 if offences or files == 0 else 0)


if __name__ == "__main__":
    main()
