"""The runtime on cores beside Cortex-M4, in QEMU: a plan, the plan as C and direct calls give the golden bytes within the memory
and the stack that `inspect` states; damaged and misaligned plans are refused.

usage: cores_test.py QPLAN BUILD_DIR    (run by ctest)
  QPLAN_FIRMWARE_CORES   all: all cores and models, which take minutes; or names of cores, as cortex-m7,riscv32
  QPLAN_FIRMWARE_TEXTS   on: plans with a library that has texts of errors; what emit-c writes shows none
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

import emit_c_test
from emit_c_test import ROOT, emit, models, run

QEMU_ARM = ["qemu-system-arm", "-M"]
# What runs images of the core. Cortex-M3 runs the code of Cortex-M0+, for which QEMU has no board of this memory, and
# Cortex-M55 that of Cortex-M85.
EMULATORS = {"cortex-m0plus": [*QEMU_ARM, "mps2-an385"], "cortex-m3": [*QEMU_ARM, "mps2-an385"],
             "cortex-m7": [*QEMU_ARM, "mps2-an500"], "cortex-m33": [*QEMU_ARM, "mps2-an505"],
             "cortex-m55": [*QEMU_ARM, "mps3-an547"], "cortex-m85": [*QEMU_ARM, "mps3-an547"],
             "riscv32": ["qemu-system-riscv32", "-M", "virt", "-bios", "none"]}
TARGETS = {"riscv32": "rv32imc"}  # where not of the core's name
STATED = ("cortex-m0plus", "cortex-m3", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85", "riscv32")  # whose stacks `inspect` states in the goals
PACKAGES = {"arm": "gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm",
            "riscv": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf libstdc++-arm-none-eabi-newlib qemu-system-misc"}
CHOICE = os.environ.get("QPLAN_FIRMWARE_CORES", "")
PLANS, WRITTEN = ("plan", "apart", "least"), ("array", "aot")
FUSE = {"apart": ("--fuse", "off"), "least": ("--fuse", "memory")}
# By default two models on the least core, without DSP instructions and with floats in software, and as C on the one with vectors.
DEFAULT = {"cortex-m0plus": PLANS + WRITTEN, "cortex-m55": WRITTEN}
CHOSEN = [*EMULATORS, "riscv64"] if CHOICE == "all" else CHOICE.split(",") if CHOICE else list(DEFAULT)
HAS_TEXTS = os.environ.get("QPLAN_FIRMWARE_TEXTS") == "on"
CORES = [core for core in CHOSEN if core in EMULATORS]
BUILD = None


def target_of(core):
    return "cpu,arch=" + TARGETS.get(core, core)


class Cores(unittest.TestCase):
    def available_cores(self):
        """Those whose compiler and emulator are installed; skips the test where there are none."""
        cores = []
        for core in CORES:
            compiler = "riscv64-unknown-elf-g++" if core == "riscv32" else "arm-none-eabi-g++"
            if shutil.which(compiler) and shutil.which(EMULATORS[core][0]):
                cores.append(core)
            else:
                print(f"{core}: not tested; on Debian: {PACKAGES['riscv' if core == 'riscv32' else 'arm']}")
        if not cores:
            self.skipTest("no compiler and emulator of these cores is installed")
        return cores

    def image(self, core, name, input_file, expected, *settings):
        """Builds an image for a core; all of a core share one tree, so that the runtime is compiled once."""
        tree = os.path.join(BUILD, core, "tree-texts" if HAS_TEXTS else "tree")
        run("cmake", "-S", os.path.join(ROOT, "samples", "firmware"), "-B", tree, "-G", "Ninja", "-UFIRMWARE_C", "-UFIRMWARE_PLAN_OFFSET",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", core + ".cmake"),
            "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_WERROR=ON", "-DQPLAN_ERROR_TEXTS=" + ("ON" if HAS_TEXTS else "OFF"), *settings,
            "-DFIRMWARE_INPUT=" + os.path.abspath(input_file), "-DFIRMWARE_EXPECTED=" + os.path.abspath(expected))
        run("cmake", "--build", tree)
        image = os.path.join(BUILD, core, name + ".elf")
        shutil.copy(os.path.join(tree, "firmware.elf"), image)
        return image

    def execute(self, core, image):
        """(exit status, what the image printed)"""
        done = subprocess.run([*EMULATORS[core], "-nographic", "-monitor", "none", "-serial", "none",
                               "-semihosting-config", "enable=on,target=native", "-kernel", image], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        return done.returncode, done.stdout

    def test_all_forms_give_the_golden_bytes_in_stated_memory_and_stack(self):
        for core in self.available_cores():
            for name, model, input_file, expected in models() if CHOICE else models()[:2]:
                for form in PLANS if HAS_TEXTS else PLANS + WRITTEN if CHOICE else DEFAULT[core]:
                    if form == "apart" and name != "digits":
                        continue  # without cascades: its sums take the most stack
                    with self.subTest(core=core, model=name, form=form):
                        folder = os.path.join(BUILD, core, f"{name}-{form}")
                        code, plan = emit(folder, model, target_of(core), name, "aot" if form == "aot" else "array",
                                          *FUSE.get(form, ()))
                        settings = ["-DFIRMWARE_PLAN=" + plan] if form in PLANS \
                            else ["-DFIRMWARE_C=" + code, "-DFIRMWARE_NAME=" + name]
                        image = self.image(core, f"{name}-{form}", input_file, expected, *settings)
                        status, text = self.execute(core, image)
                        self.assertEqual(status, 0, text)
                        said = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
                        print(f"{core} {name} {form}: {said}")
                        self.assertEqual(int(said["output_bytes"]), os.path.getsize(expected))
                        memory = json.loads(run(emit_c_test.QPLAN, "inspect", plan, "--json"))["memory"]
                        if form in PLANS:
                            self.assertEqual(int(said["memory_bytes"]), memory["session_bytes"]["32_bit"]["1"])
                        stack = memory["stack_bytes"]["32_bit"]
                        if core in STATED and name in ("kws", "person", "resnet", "ad01"):
                            self.assertLessEqual(stack["open"], 1200)
                            self.assertLessEqual(stack["invoke"], 1024 if core == "cortex-m0plus" else 1000)
                        if core in STATED and form == "apart":  # the goal of runs, where sums are steps of their own
                            self.assertLessEqual(stack["open"], 1024)
                            self.assertLessEqual(int(said["run_stack_bytes"]), 1000)
                        self.assertLessEqual(int(said["init_stack_bytes"]), stack["open"])
                        self.assertLessEqual(int(said["run_stack_bytes"]), stack["invoke"])

    def test_damaged_plans_are_refused_on_the_device(self):
        name, model, input_file, expected = models()[0]
        for core in self.available_cores():
            folder = os.path.join(BUILD, core, "damaged")
            _, plan = emit(folder, model, target_of(core), name, "array")
            with open(plan, "rb") as file:
                content = file.read()
            flipped = content[:len(content) // 2] + bytes([content[len(content) // 2] ^ 1]) + content[len(content) // 2 + 1:]
            for what, damaged, offset in (("flipped", flipped, 0), ("cut", content[:len(content) // 2], 0),
                                          ("begun_late", content[64:], 0), ("misaligned", content, 4)):
                with self.subTest(core=core, damage=what):
                    path = os.path.join(folder, what + ".qplan")
                    with open(path, "wb") as file:
                        file.write(damaged)
                    image = self.image(core, "damaged", input_file, expected, "-DFIRMWARE_PLAN=" + path,
                                       f"-DFIRMWARE_PLAN_OFFSET={offset}")
                    status, text = self.execute(core, image)
                    self.assertEqual(status, 1, text)
                    self.assertIn("firmware: open: ", text)


class Riscv64(unittest.TestCase):
    """A 64-bit core, as a program of Linux: what is written in C. tests/boards runs plans there."""

    def test_written_c_gives_the_golden_bytes(self):
        if "riscv64" not in CHOSEN:
            self.skipTest("not among QPLAN_FIRMWARE_CORES")
        for tool in ("riscv64-linux-gnu-g++", "qemu-riscv64"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: g++-riscv64-linux-gnu qemu-user)")
        tree = os.path.join(BUILD, "riscv64", "tree")
        run("cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_BUILD_PACKER=OFF",
            "-DQPLAN_BUILD_COMMAND=OFF",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "riscv64.cmake"))
        run("cmake", "--build", tree, "--target", "qplan")
        for name, model, input_file, expected in models():
            for form in emit_c_test.FORMS:
                with self.subTest(model=name, form=form):
                    folder = os.path.join(BUILD, "riscv64", f"{name}-{form}")
                    code, _ = emit(folder, model, "cpu,arch=riscv64", "digits", form)
                    main, program = os.path.join(folder, "main.c"), os.path.join(folder, "program")
                    with open(main, "w", encoding="utf-8") as file:
                        file.write(emit_c_test.NATIVE_MAIN)
                    run("riscv64-linux-gnu-gcc", *emit_c_test.STRICT, "-static", "-I" + os.path.join(ROOT, "include"),
                        "-I" + code, main, *emit_c_test.sources(code), os.path.join(tree, "lib", "libqplan.a"),
                        "-Wl,--gc-sections", "-o", program)
                    self.assertEqual(run("qemu-riscv64", program, input_file, binary=True), emit_c_test.read(expected))
                    print(f"riscv64 {name} {form}: equal")


if __name__ == "__main__":
    emit_c_test.QPLAN, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
