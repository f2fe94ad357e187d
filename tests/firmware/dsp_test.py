"""The kernels of Arm's DSP instructions by the cases of tests/kernels/scalar, in QEMU: on a Cortex-A7, which has the same
instructions in Thumb as a Cortex-M4, fused multiply-adds too, and an operating system under which the tests run.

usage: dsp_test.py BUILD_DIR OUTPUT_DIR    (run by ctest; needs g++-arm-linux-gnueabihf, qemu-arm, googletest's sources)
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPILER = "arm-linux-gnueabihf-g++"
CORE = ["-mcpu=cortex-a7", "-mthumb", "-mfpu=vfpv4"]
GOOGLETEST = "/usr/src/googletest/googletest"
# Headers without code of the machine that installed them.
HEADERS = ("xtensor", "xtl")
FAMILIES = {"conv2d": "conv2d", "depthwise_conv2d": "depthwise_conv2d", "fully_connected": "matmul"}  # and their folders
BUILD = OUTPUT = None


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


class Dsp(unittest.TestCase):
    def setUp(self):
        for tool in (COMPILER, "qemu-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: g++-arm-linux-gnueabihf qemu-user)")
        for folder in (GOOGLETEST, *("/usr/include/" + name for name in HEADERS)):
            if not os.path.isdir(folder):
                self.skipTest(f"{folder} is not installed (Debian: libgtest-dev libxtensor-dev)")

    def test_kernels_equal_the_oracle(self):
        os.makedirs(OUTPUT, exist_ok=True)
        includes = ["-I" + os.path.join(BUILD, "generated"), "-I" + ROOT, "-I" + os.path.join(ROOT, "include"),
                    "-isystem", os.path.join(BUILD, "third_party"), "-I" + os.path.join(GOOGLETEST, "include")]
        objects = []
        with tempfile.TemporaryDirectory() as headers:
            for name in HEADERS:
                os.symlink("/usr/include/" + name, os.path.join(headers, name))

            def compile_file(source, name, *options):
                objects.append(os.path.join(OUTPUT, name + ".o"))
                run(COMPILER, *CORE, *options, *includes, "-I" + headers, "-I" + GOOGLETEST, "-c", source, "-o", objects[-1])

            for family, folder in FAMILIES.items():
                for form in ((), ("-DQPLAN_SCALAR_FORM=1", "-DQPLAN_SCALAR_ISA=dsp_form")):
                    compile_file(os.path.join(ROOT, "kernels", folder, family + "_scalar.cc"), family + "_form" * bool(form),
                                 "-std=c++17", "-O2", "-fno-schedule-insns", "-fno-schedule-insns2", *form)
            # Tests of layers in place compare with the references.
            for family in ("conv2d", "depthwise_conv2d"):
                compile_file(os.path.join(ROOT, "kernels", family, family + "_ref.cc"), family + "_ref", "-std=c++17", "-O2")
            compile_file(os.path.join(ROOT, "tests", "kernels", "scalar", "scalar_test.cc"), "scalar_test", "-std=c++20", "-O1")
            for name in ("gtest-all", "gtest_main"):
                compile_file(os.path.join(GOOGLETEST, "src", name + ".cc"), name, "-std=c++17", "-O1")
        program = os.path.join(OUTPUT, "scalar_test")
        run(COMPILER, *CORE, "-static", *objects, "-lpthread", "-o", program)
        self.assertIn("smlad", run("arm-linux-gnueabihf-objdump", "-d", objects[0]), "the kernels have no DSP instruction")
        said = run("qemu-arm", "-cpu", "cortex-a7", program)
        print(said.splitlines()[-1])
        self.assertIn("PASSED", said)


if __name__ == "__main__":
    BUILD, OUTPUT = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
