"""The runtime on 64-bit Arm: cross-compiled, run in QEMU's user mode on several processors, equal to the golden outputs.

usage: aarch64_test.py QPLAN BUILD_DIR    (run by ctest; needs g++-aarch64-linux-gnu and qemu-user)
  QPLAN_AARCH64_MODELS   all: also the models that take minutes
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("QPLAN_SHARED", os.path.join(ROOT, os.pardir, "shared"))
COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
# Armv8.0 and nothing else, and all that QEMU knows.
CPUS = ("cortex-a53", "max")
SMALL = ("kws_ref_model", "person_detect", "pretrainedResnet_quant", "ad01_int8")
EVERY = SMALL + ("mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.75_192_quant", "mobilenet_v2_1.0_224_quant",
                 "tf2_mobilenet_v2_1.0_224_ptq", "deeplabv3_mnv2_dm05_pascal_quant")
QPLAN = BUILD = None
with open(os.path.join(ROOT, "kernels", "isa.def"), encoding="utf-8") as text:
    ISAS = ["reference"] + re.findall(r"^QPLAN_ISA\(aarch64, +(\w+),", text.read(), re.MULTILINE)


def run(*command, check=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done


def cases():
    """(name, model, input, expected output): digits, the repository's own, and models of the data directory with one
    input and one output."""
    own = os.path.join(ROOT, "tests", "data", "digits")
    yield ("digits", os.path.join(ROOT, "samples", "models", "digits.tflite"),
           os.path.join(own, "digit0_input.bin"), os.path.join(own, "digit0_output.bin"))
    goldens = os.path.join(DATA, "golden")
    if not os.path.isdir(goldens):
        return
    every = os.environ.get("QPLAN_AARCH64_MODELS") == "all"
    for name in EVERY if every else SMALL:
        golden = os.path.join(goldens, name, "rand1")
        model = os.path.join(DATA, "models", name + ".tflite")
        if os.path.exists(model) and os.path.exists(os.path.join(golden, "output0.bin")) \
                and not os.path.exists(os.path.join(golden, "input1.bin")):
            yield name, model, os.path.join(golden, "input0.bin"), os.path.join(golden, "output0.bin")


@unittest.skipUnless(shutil.which(COMPILER), f"{COMPILER} is not installed (Debian: g++-aarch64-linux-gnu)")
@unittest.skipUnless(EMULATOR, "qemu-aarch64 is not installed (Debian: qemu-user)")
class AArch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run("cmake", "-S", ROOT, "-B", os.path.join(BUILD, "tree"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "aarch64.cmake"),
            "-DQPLAN_BUILD_PACKER=OFF", "-DQPLAN_BUILD_TESTS=OFF", "-DQPLAN_WERROR=ON")
        run("cmake", "--build", os.path.join(BUILD, "tree"), "--target", "qplan")
        cls.archive = os.path.join(BUILD, "tree", "lib", "libqplan.a")
        cls.program = os.path.join(BUILD, "qplan_c_api")
        run(COMPILER, "-std=c99", "-O1", "-static", "-I" + os.path.join(ROOT, "include"),
            "-I" + os.path.join(BUILD, "tree", "third_party"), os.path.join(ROOT, "samples", "c_api", "main.c"),
            cls.archive, "-o", cls.program)

    def test_every_instruction_set_gives_the_goldens_on_every_processor(self):
        for name, model, input_file, expected in cases():
            for isa in ISAS:
                if isa == "reference" and name != "digits":
                    continue  # slow, and the same code as on the host
                plan, output = os.path.join(BUILD, f"{name}_{isa}.qplan"), os.path.join(BUILD, "output.bin")
                run(QPLAN, "pack", model, "-o", plan, "--target", f"cpu,arch=aarch64,isa={isa}")
                for cpu in CPUS:
                    with self.subTest(model=name, isa=isa, cpu=cpu):
                        run(EMULATOR, "-cpu", cpu, self.program, plan, input_file, "-o", output)
                        with open(output, "rb") as found, open(expected, "rb") as wanted:
                            self.assertEqual(found.read(), wanted.read())

    def test_the_archive_asks_for_nothing_and_keeps_to_its_own_symbols(self):
        prefix = "aarch64-linux-gnu-"
        checked = run(sys.executable, os.path.join(ROOT, "cmake", "check_symbols.py"), prefix + "nm", prefix + "ld",
                      prefix + "readelf", self.archive, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)


if __name__ == "__main__":
    QPLAN, BUILD = sys.argv[1:3]
    os.makedirs(BUILD, exist_ok=True)
    del sys.argv[1:3]
    unittest.main()
