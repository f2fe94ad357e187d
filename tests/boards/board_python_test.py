"""Python on a board: the package with libqplan_runtime.so, as it is installed there, in QEMU's user mode.

usage: board_python_test.py QPLAN BUILD_DIR ARCH    (run by ctest)
  QPLAN_BOARD_SYSROOT   a folder with the board's Python and NumPy, as tests/boards/sysroot.sh fills it
                        (default: build/sysroot/<ARCH> of the repository)
"""
import os
import re
import shutil
import sys
import unittest

from board import ARCH, BUILD, DATA, ROOT, build_tree, emulated, needs_tools, pack, run

SYSROOT = os.environ.get("QPLAN_BOARD_SYSROOT") or os.path.join(ROOT, "build", "sysroot", ARCH)
BEST_ISA = {"aarch64": "i8mm"}[ARCH]


@needs_tools
@unittest.skipUnless(os.path.exists(os.path.join(SYSROOT, ".qplan_sysroot")),
                     f"{SYSROOT} has no Python; bash tests/boards/sysroot.sh {SYSROOT}")
class BoardPython(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = os.path.join(BUILD, "python_prefix")
        shutil.rmtree(cls.prefix, ignore_errors=True)
        run("cmake", "--install", build_tree(), "--prefix", cls.prefix)

    def python(self, *arguments):
        # The package finds libqplan_runtime.so beside itself, in the installation.
        package = os.path.join(self.prefix, "lib", "python3", "dist-packages")
        return run(*emulated("max", SYSROOT), "-E", "PYTHONPATH=" + package, "-E", "OPENBLAS_NUM_THREADS=1",
                   os.path.join(SYSROOT, "usr", "bin", "python3"), "-B", *arguments).stdout

    def test_digits_gives_its_golden_and_packing_says_where_it_works(self):
        data = os.path.join(ROOT, "tests", "data", "digits", "digit7_")
        model = os.path.join(ROOT, "samples", "models", "digits.tflite")
        text = self.python("-c", """
import sys, numpy, qplan
plan = qplan.Plan(sys.argv[1])
image = numpy.fromfile(sys.argv[2] + "input.bin", numpy.int8).reshape(plan.inputs[0].shape)
expected = numpy.fromfile(sys.argv[2] + "output.bin", numpy.int8).reshape(plan.outputs[0].shape)
session = qplan.Session(plan, threads=2)
assert numpy.array_equal(session.run(image)[0], expected)
print(session.info.isa, qplan.available_isas())
try:
    qplan.pack(sys.argv[3])
except qplan.Error as error:
    print(error)
""", pack("digits", model, BEST_ISA), data, model)
        first, second = text.splitlines()
        self.assertTrue(first.startswith(BEST_ISA + " "), first)
        self.assertIn("is the runtime alone and lacks qplan_pack_file", second)

    def test_a_picture_is_classified_with_its_label(self):
        name = "mobilenet_v2_1.0_224_quant"
        model, golden, labels = (os.path.join(DATA, *path) for path in (
            ("models", name + ".tflite"), ("golden", name, "cat"), ("images", "imagenet_labels.txt")))
        if not all(map(os.path.exists, (model, os.path.join(golden, "input0.bin"), labels))):
            self.skipTest(f"{DATA} lacks the network, its golden or its labels")
        with open(os.path.join(golden, "output0.bin"), "rb") as scores, open(labels, encoding="utf-8") as lines:
            best = max(enumerate(scores.read()), key=lambda score: score[1])[0]
            expected = lines.read().splitlines()[best]
        array = os.path.join(BUILD, "cat.npy")
        self.python("-c", "import sys, numpy; numpy.save(sys.argv[1], numpy.fromfile(sys.argv[2], numpy.uint8).reshape(1, 224, 224, 3))",
                    array, os.path.join(golden, "input0.bin"))
        text = self.python(os.path.join(ROOT, "samples", "python", "classify.py"), pack(name, model, BEST_ISA), array,
                           "--labels", labels, "--top", "1")
        self.assertRegex(text, rf"^{re.escape(array)}: {re.escape(expected)} [0-9.]+\n$")


if __name__ == "__main__":
    del sys.argv[1:4]
    unittest.main()
