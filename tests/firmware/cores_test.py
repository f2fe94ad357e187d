"""The runtime on Cortex-M cores beside Cortex-M4, in QEMU: a plan, the plan as C and direct calls give the golden bytes within
the memory and the stack that `inspect` states; damaged plans are refused.

usage: cores_test.py QPLAN BUILD_DIR    (run by ctest; needs gcc-arm-none-eabi and qemu-system-arm)
  QPLAN_FIRMWARE_CORES   all: all cores and models, which take minutes
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

import emit_c_test
from emit_c_test import ROOT, emit, models, run

EVERYTHING = os.environ.get("QPLAN_FIRMWARE_CORES") == "all"
# The board of QEMU that has the core. Cortex-M3 runs the code of Cortex-M0+, for which QEMU has no board of this memory.
BOARDS = {"cortex-m0plus": "mps2-an385", "cortex-m3": "mps2-an385", "cortex-m7": "mps2-an500", "cortex-m33": "mps2-an505",
          "cortex-m55": "mps3-an547"}
# The least core by default: no DSP instructions, floats in software.
CORES = list(BOARDS) if EVERYTHING else ["cortex-m0plus"]
BUILD = None


class Cores(unittest.TestCase):
    def setUp(self):
        for tool in ("arm-none-eabi-gcc", "arm-none-eabi-g++", "qemu-system-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi "
                              "libstdc++-arm-none-eabi-newlib qemu-system-arm)")

    def image(self, core, name, input_file, expected, *settings):
        """Builds an image for a core; all of a core share one tree, so that the runtime is compiled once."""
        tree = os.path.join(BUILD, core, "tree")
        run("cmake", "-S", os.path.join(ROOT, "samples", "firmware"), "-B", tree, "-G", "Ninja", "-UFIRMWARE_C",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", core + ".cmake"),
            "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_WERROR=ON", "-DQPLAN_ERROR_TEXTS=OFF", *settings,
            "-DFIRMWARE_INPUT=" + os.path.abspath(input_file), "-DFIRMWARE_EXPECTED=" + os.path.abspath(expected))
        run("cmake", "--build", tree)
        image = os.path.join(BUILD, core, name + ".elf")
        shutil.copy(os.path.join(tree, "firmware.elf"), image)
        return image

    def execute(self, core, image):
        """(exit status, what the image printed)"""
        done = subprocess.run(["qemu-system-arm", "-M", BOARDS[core], "-nographic", "-monitor", "none", "-serial", "none",
                               "-semihosting-config", "enable=on,target=native", "-kernel", image], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        return done.returncode, done.stdout

    def test_all_forms_give_the_golden_bytes_in_stated_memory_and_stack(self):
        for core in CORES:
            for name, model, input_file, expected in models() if EVERYTHING else models()[:2]:
                for form in ("plan", "array", "aot"):
                    with self.subTest(core=core, model=name, form=form):
                        folder = os.path.join(BUILD, core, f"{name}-{form}")
                        code, plan = emit(folder, model, "cpu,arch=" + core, name, "aot" if form == "aot" else "array")
                        settings = ["-DFIRMWARE_PLAN=" + plan] if form == "plan" \
                            else ["-DFIRMWARE_C=" + code, "-DFIRMWARE_NAME=" + name]
                        image = self.image(core, f"{name}-{form}", input_file, expected, *settings)
                        status, text = self.execute(core, image)
                        self.assertEqual(status, 0, text)
                        said = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
                        print(f"{core} {name} {form}: {said}")
                        self.assertEqual(int(said["output_bytes"]), os.path.getsize(expected))
                        memory = json.loads(run(emit_c_test.QPLAN, "inspect", plan, "--json"))["memory"]
                        if form == "plan":
                            self.assertEqual(int(said["memory_bytes"]), memory["session_bytes"]["32_bit"]["1"])
                        stack = memory["stack_bytes"]["32_bit"]
                        self.assertLessEqual(int(said["init_stack_bytes"]), stack["open"])
                        self.assertLessEqual(int(said["run_stack_bytes"]), stack["invoke"])

    def test_damaged_plans_are_refused_on_the_device(self):
        name, model, input_file, expected = models()[0]
        for core in CORES:
            folder = os.path.join(BUILD, core, "damaged")
            _, plan = emit(folder, model, "cpu,arch=" + core, name, "array")
            with open(plan, "rb") as file:
                content = file.read()
            flipped = content[:len(content) // 2] + bytes([content[len(content) // 2] ^ 1]) + content[len(content) // 2 + 1:]
            for what, damaged in (("flipped", flipped), ("cut", content[:len(content) // 2]), ("begun_late", content[64:])):
                with self.subTest(core=core, damage=what):
                    path = os.path.join(folder, what + ".qplan")
                    with open(path, "wb") as file:
                        file.write(damaged)
                    image = self.image(core, "damaged", input_file, expected, "-DFIRMWARE_PLAN=" + path)
                    status, text = self.execute(core, image)
                    self.assertEqual(status, 1, text)
                    self.assertIn("firmware: open: ", text)


if __name__ == "__main__":
    emit_c_test.QPLAN, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
