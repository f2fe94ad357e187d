"""The stack that `inspect` states holds for cascades of two to four layers of every kind, in arenas of all sizes that init
treats differently, on a Cortex-M4 in QEMU: C with the plan as an array, linked with a library that has texts of errors,
which takes the most stack of all forms. With QPLAN_FIRMWARE_CORES=all (or names) also on a Cortex-M55, and of a Cortex-M0+
in QEMU's Cortex-M3.

usage: stack_test.py QPLAN BUILD_DIR    (run by ctest; needs gcc-arm-none-eabi and qemu-system-arm)
"""
import json
import math
import os
import random
import shutil
import subprocess
import sys
import unittest

import emit_c_test
from emit_c_test import ROOT, emit, run, sources

SAMPLE = os.path.join(ROOT, "samples", "firmware")
# Flags of the compiler, the script of the linker, the board.
CORES = {"cortex-m0plus": (["-mcpu=cortex-m0plus"], "mps2", "mps2-an385"),
         "cortex-m4": (["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"], "mps2", "mps2-an386"),
         "cortex-m55": (["-mcpu=cortex-m55", "-mfloat-abi=hard"], "mps3_an547", "mps3-an547")}
# What init has in the memory of activations of 32 bits (src/runtime/prepare.cc): the arguments of a step; these of a cascade,
# those of a layer and what is kept of four; then 40 bytes for each tensor; then what questions share.
ARGS, ROOM, TENSOR, SHARED = 320, 448, 40, 1312
CHOICE = os.environ.get("QPLAN_FIRMWARE_CORES", "")
CHOSEN = list(CORES) if CHOICE == "all" else [core for core in CHOICE.split(",") if core in CORES] or ["cortex-m4"]
BUILD = None


class Net:
    """Relay of a small int8 network, whose layers are appended one after another."""

    def __init__(self, height, width, channels, dtype="int8"):
        self.draw = random.Random(1)
        self.lines, self.count, self.at, self.channels = [], 0, "%x", channels
        self.head = f"def @main(%x: Tensor[(1, {height}, {width}, {channels}), {dtype}])"

    def constant(self, shape):
        values = ", ".join(str(self.draw.randint(-100, 100)) for _ in range(math.prod(shape)))
        return f"const(Tensor[({', '.join(map(str, shape))}), int8], [{values}])"

    def append(self, call):
        self.lines.append(f"  %{self.count} = {call};")
        self.at = f"%{self.count}"
        self.count += 1
        return self

    def conv(self, channels, kernel=1, groups=1, dilation=1):
        pad = dilation * (kernel // 2)
        weights = self.constant((channels, kernel, kernel, self.channels // groups))
        self.append(f"qnn.conv2d({self.at}, {weights}, 0, 0, 1f, 1f, padding=[{pad}, {pad}, {pad}, {pad}], groups={groups}, "
                    f'dilation=[{dilation}, {dilation}], data_layout="NHWC", kernel_layout="OHWI")')
        self.channels = channels
        return self.append(f"qnn.requantize({self.at}, 1f, 0, {100 * kernel}f, 0)")

    def depthwise(self, kernel=3):
        return self.conv(self.channels, kernel, self.channels)

    def add(self, other="%x"):
        return self.append(f"qnn.add({self.at}, {other}, 1f, 0, 1f, 0, 1.5f, 0)")

    def sub(self, other="%x"):
        return self.append(f"qnn.subtract({self.at}, {other}, 1f, 0, 1f, 0, 1.5f, 0)")

    def pool(self, kind):
        scales = ", 1f, 0, 1f, 0" if kind == "qnn.avg_pool2d" else ""
        return self.append(f'{kind}({self.at}{scales}, pool_size=[3, 3], strides=[1, 1], padding=[1, 1, 1, 1], layout="NHWC")')

    def sigmoid(self):
        self.append(f"qnn.dequantize({self.at}, 0.1f, 3)").append(f"sigmoid({self.at})")
        return self.append(f'qnn.quantize({self.at}, 0.00390625f, -128, out_dtype="int8")')

    def resize(self, size):
        return self.append(f'image.resize2d({self.at}, size=[{size}, {size}], layout="NHWC", method="linear", '
                           'coordinate_transformation_mode="half_pixel", contract="tfl2")')

    def quantize(self):
        return self.append(f'qnn.quantize({self.at}, 0.05f, 0, out_dtype="int8")')

    def arg_max(self):
        return self.append(f"argmax({self.at}, axis=3)")

    def text(self):
        return f'#[version = "0.0.5"]\n{self.head} {{\n' + "\n".join(self.lines) + f"\n  {self.at}\n}}\n"


def networks():
    """(name, network, --fuse)"""
    for size in (4, 8, 12, 32):
        for fuse in ("all", "memory"):
            yield f"conv2-{size}", Net(size, size, 4).conv(8, 3).conv(4, 1), fuse
            yield f"conv3-{size}", Net(size, size, 4).conv(8, 3).depthwise().conv(4, 1), fuse
            yield f"conv4-{size}", Net(size, size, 4).conv(8, 3).depthwise().conv(8, 3).conv(4, 3), fuse
            yield f"sums-{size}", Net(size, size, 4).conv(4, 3).sub().conv(4, 3).add(), fuse
            yield f"wide-{size}", Net(size, size, 4).conv(16, 3).conv(4, 3).sub().add(), fuse
    for size in (6, 12):
        yield f"resize-{size}", Net(size // 2, size // 2, 4).resize(size).conv(4).conv(4, 3).arg_max(), "all"
        yield f"lut-{size}", Net(size, size, 3, "float32").quantize().conv(4, 3).sigmoid().conv(4), "all"
        yield f"pools-{size}", Net(size, size, 4).conv(4, 3).pool("nn.max_pool2d").conv(4).pool("qnn.avg_pool2d"), "all"
        yield f"dilated-{size}", Net(size, size, 4).conv(4, 3, dilation=2).depthwise(5).conv(4, 3).conv(4, 5), "all"
    # Activations that have no room for what is kept of layers, or for the arguments of a step.
    yield "tiny-cascade", Net(4, 4, 1).conv(4).conv(1), "all"
    yield "tiny", Net(4, 4, 4).conv(4).add(), "off"
    # The same kernels as steps.
    yield "steps", Net(12, 12, 4).conv(8, 3).depthwise().conv(4, 3).add(), "off"


class Stack(unittest.TestCase):
    def setUp(self):
        for tool in ("arm-none-eabi-gcc", "arm-none-eabi-g++", "qemu-system-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi "
                              "libstdc++-arm-none-eabi-newlib qemu-system-arm)")

    @staticmethod
    def build_runtime(core):
        tree = os.path.join(BUILD, core, "tree")
        run("cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_BUILD_PACKER=OFF",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", core + ".cmake"), "-DQPLAN_BUILD_TESTS=OFF",
            "-DQPLAN_BUILD_COMMAND=OFF", "-DQPLAN_WERROR=ON", "-DQPLAN_ERROR_TEXTS=ON")
        run("cmake", "--build", tree, "--target", "qplan")
        return os.path.join(tree, "lib", "libqplan.a")

    @staticmethod
    def execute(core, library, code, input_file, expected):
        """What an image of the C in the folder prints."""
        flags, script, board = CORES[core]
        image = os.path.join(code, "firmware.elf")
        run("arm-none-eabi-gcc", "-std=gnu99", "-Os", "-mthumb", *flags, "-ffunction-sections", "-I" + code,
            "-I" + os.path.join(ROOT, "include"), "-DMODEL=m", "-DFIRMWARE_WITHOUT_PLAN", f'-DFIRMWARE_INPUT="{input_file}"',
            f'-DFIRMWARE_EXPECTED="{expected}"', *(os.path.join(SAMPLE, file) for file in ("emitted.c", "startup.c", "data.S")),
            *sources(code), library, "-nostartfiles", "--specs=nano.specs", "-L" + SAMPLE, f"-T{SAMPLE}/{script}.ld",
            "-Wl,--gc-sections", "-o", image)
        text = run("qemu-system-arm", "-M", board, *emit_c_test.QEMU[3:], image)
        return dict(line.split() for line in text.splitlines() if len(line.split()) == 2)

    def one(self, core, library, name, network, fuse):
        """Checks one network; (layers of its cascade, how init treats its arena, stack of init and of a run)."""
        folder = os.path.join(BUILD, core, f"{name}-{fuse}")
        os.makedirs(folder, exist_ok=True)
        model = os.path.join(folder, "m.relay")
        with open(model, "w", encoding="utf-8") as file:
            file.write(network.text())
        code, plan = emit(folder, model, "cpu,arch=" + core, "m", "array", "--fuse", fuse)
        inspected = json.loads(run(emit_c_test.QPLAN, "inspect", plan, "--json"))
        input_file = os.path.join(folder, "input.bin")
        with open(input_file, "wb") as file:
            file.write(random.Random(2).randbytes(inspected["inputs"][0]["bytes"]))
        run(emit_c_test.QPLAN, "run", plan, "--isa", "reference", "--input", input_file, "--output-dir", folder)
        said = self.execute(core, library, code, input_file, os.path.join(folder, "output0.bin"))
        self.assertEqual(int(said["different"]), 0)
        stack, arena = inspected["memory"]["stack_bytes"]["32_bit"], inspected["memory"]["arena_bytes"]
        table = ROOM + TENSOR * len(inspected["tensors"])
        begins = (ARGS, ROOM, table, table + SHARED)
        kind = ("args on stack", "layers on stack", "no table", "not shared", "shared")[sum(arena >= at for at in begins)]
        layers = max((len(step["layers"]) for step in inspected["steps"] if step["op"] == "chain"), default=0)
        used = int(said["init_stack_bytes"]), int(said["run_stack_bytes"])
        print(f"{core} {name} {fuse}: {layers} layers, arena {arena} ({kind}), init {used[0]} of {stack['open']}, "
              f"run {used[1]} of {stack['invoke']}")
        self.assertLessEqual(used[0], stack["open"])
        self.assertLessEqual(used[1], stack["invoke"])
        if layers:
            self.assertLessEqual(stack["open"] if arena >= ROOM else 0, 1248, "what is stated stays even")
        return layers, kind, *used

    def test_cascades_stay_within_what_inspect_states(self):
        for core in CHOSEN:
            library = self.build_runtime(core)
            seen = set()
            for name, network, fuse in networks():
                with self.subTest(core=core, network=name, fuse=fuse):
                    layers, kind, _, _ = self.one(core, library, name, network, fuse)
                    seen |= {layers, kind}
            self.assertLessEqual({0, 2, 3, 4, "args on stack", "layers on stack", "no table", "not shared", "shared"}, seen)


if __name__ == "__main__":
    emit_c_test.QPLAN, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
