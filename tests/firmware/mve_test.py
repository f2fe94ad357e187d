"""The kernels of Armv8.1-M's vectors (MVE) in QEMU, on a Cortex-M55: those of layers with weights by the cases of
tests/kernels/scalar/mve_test.cc, the others by the tests of their families.

usage: mve_test.py BUILD_DIR OUTPUT_DIR    (run by ctest; needs g++ and newlib for arm-none-eabi, qemu-system-arm, googletest's
sources)
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER = "arm-none-eabi-g++"
CORE = ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"]
GOOGLETEST = "/usr/src/googletest/googletest"
# Headers without code of the machine that installed them.
HEADERS = ("xtensor", "xtl")
TESTS = ("scalar/mve_test.cc", "elementwise/add_test.cc", "elementwise/mul_test.cc", "elementwise/lut8_test.cc", "reduction/mean_test.cc",
         "reduction/mean_f32e_test.cc", "spatial/pool2d_test.cc", "spatial/avg_pool2d_f32e_test.cc")
# newlib has no threads, no folders and no second process.
TEST_OPTIONS = ["-std=gnu++20", "-O1", "-D_GNU_SOURCE", "-D_POSIX_PATH_MAX=256", "-DGTEST_HAS_PTHREAD=0",
                "-DGTEST_HAS_DEATH_TEST=0", "-DGTEST_HAS_STREAM_REDIRECTION=0", "-DGTEST_HAS_POSIX_RE=0"]
BUILD = OUTPUT = None


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1500, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


class Mve(unittest.TestCase):
    def setUp(self):
        for tool in (COMPILER, "qemu-system-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi "
                              "libstdc++-arm-none-eabi-newlib qemu-system-arm)")
        for folder in (GOOGLETEST, *("/usr/include/" + name for name in HEADERS)):
            if not os.path.isdir(folder):
                self.skipTest(f"{folder} is not installed (Debian: libgtest-dev libxtensor-dev)")

    def test_kernels_equal_the_oracle(self):
        os.makedirs(OUTPUT, exist_ok=True)
        library = os.path.join(OUTPUT, "library")
        run("cmake", "-S", ROOT, "-B", library, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DQPLAN_BUILD_PACKER=OFF",
            "-DQPLAN_BUILD_TESTS=OFF", "-DQPLAN_WERROR=ON",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "cortex-m55.cmake"))
        run("cmake", "--build", library, "--target", "qplan")
        objects = []
        with tempfile.TemporaryDirectory() as headers:
            for name in HEADERS:
                os.symlink("/usr/include/" + name, os.path.join(headers, name))
            includes = ["-I" + headers, "-I" + os.path.join(library, "generated"), "-I" + ROOT,
                        "-I" + os.path.join(ROOT, "include"), "-isystem", os.path.join(BUILD, "third_party"),
                        "-I" + os.path.join(GOOGLETEST, "include"), "-I" + GOOGLETEST]
            sources = [os.path.join(ROOT, "tests", "kernels", name) for name in TESTS]
            for source in (*sources, *(os.path.join(GOOGLETEST, "src", name) for name in ("gtest-all.cc", "gtest_main.cc"))):
                objects.append(os.path.join(OUTPUT, os.path.splitext(os.path.basename(source))[0] + ".o"))
                run(COMPILER, *CORE, *TEST_OPTIONS, *includes, "-c", source, "-o", objects[-1])
        board = os.path.join(OUTPUT, "mve_board.o")
        run("arm-none-eabi-gcc", *CORE, "-O1", "-Wall", "-Wextra", "-c", os.path.join(HERE, "mve_board.c"), "-o", board)
        program = os.path.join(OUTPUT, "mve_test.elf")
        run(COMPILER, *CORE, "--specs=rdimon.specs", "-Wl,-e,reset_handler", "-Wl,--wrap=_sbrk",
            "-Wl,-Ttext-segment=0x31000000", "-Wl,--section-start=.vectors=0x10000000", *objects, board, os.path.join(library, "lib", "libqplan.a"), "-o", program)
        said = run("qemu-system-arm", "-M", "mps3-an547", "-nographic", "-monitor", "none", "-serial", "none",
                   "-semihosting-config", "enable=on,target=native", "-kernel", program)
        print(said.splitlines()[-1])
        self.assertIn("PASSED", said)
        self.assertNotIn("FAILED", said)


if __name__ == "__main__":
    BUILD, OUTPUT = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
