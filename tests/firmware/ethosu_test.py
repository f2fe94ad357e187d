"""A Cortex-M55 with an Ethos-U, in QEMU: firmware, session, the driver of samples/ethosu_driver and a command stream give the
golden bytes. The fake core driver of the sample is in the place of Arm's; its hardware is the simulator, in the same image.

usage: ethosu_test.py QPLAN BUILD_DIR    (run by ctest; needs gcc-arm-none-eabi and qemu-system-arm)
"""
import os
import sys
import unittest

import firmware_test
from firmware_test import DATA, PREFIX, ROOT, run

CONFIG = "ethos-u55-128"
QPLAN = BUILD = None


def models():
    """(name, model, input, expected output)"""
    own = os.path.join(ROOT, "tests", "data", "digits")
    cases = [("digits", os.path.join(ROOT, "samples", "models", "digits.tflite"),
              os.path.join(own, "digit0_input.bin"), os.path.join(own, "digit0_output.bin"))]
    for model in ("kws_ref_model", "ad01_int8", "person_detect"):
        golden = os.path.join(DATA, "golden", model, "rand1")
        if os.path.isdir(golden):
            cases.append((model, os.path.join(DATA, "models", model + ".tflite"),
                          os.path.join(golden, "input0.bin"), os.path.join(golden, "output0.bin")))
    return cases


class EthosU(unittest.TestCase):
    setUp = firmware_test.Firmware.setUp  # skips where a tool is missing

    def start(self, name, model, input_file, expected, hardware=CONFIG):
        """(exit status, the lines that the image printed); hardware: what the fake core driver has."""
        plan = os.path.join(BUILD, name + ".qplan")
        run(QPLAN, "pack", model, "-o", plan, "--target", f"{CONFIG}, cpu,arch=cortex-m55")
        tree = os.path.join(BUILD, "tree")
        run("cmake", "-S", os.path.join(ROOT, "samples", "ethosu_driver"), "-B", tree, "-G", "Ninja",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "cortex-m55.cmake"),
            "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_WERROR=ON", "-DETHOSU_CONFIG=" + hardware, "-DFIRMWARE_PLAN=" + plan,
            "-DFIRMWARE_INPUT=" + os.path.abspath(input_file), "-DFIRMWARE_EXPECTED=" + os.path.abspath(expected))
        run("cmake", "--build", tree)
        self.image = os.path.join(tree, "firmware.elf")
        self.tree = tree
        done = run("qemu-system-arm", "-M", "mps3-an547", "-nographic", "-monitor", "none", "-serial", "none",
                   "-semihosting-config", "enable=on,target=native", "-kernel", self.image, check=False)
        print(f"{name} on {hardware}: {' '.join(done.stdout.split())}")
        return done.returncode, done.stdout

    def test_networks_give_the_golden_bytes_and_stay_in_flash(self):
        for name, model, input_file, expected in models():
            with self.subTest(name):
                status, text = self.start(name, model, input_file, expected)
                self.assertEqual(status, 0, text)
                said = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
                self.assertEqual(int(said["output_bytes"]), os.path.getsize(expected))
                self.assertEqual(int(said["different"]), 0)
                self.assertEqual(said["npu_jobs"], said["regions"])
                self.assertGreater(int(said["npu_cycles"]), 1000)
                # No copy of command streams or weights.
                self.assertLess(int(said["driver_bytes"]), 1024)

    def test_an_npu_of_another_configuration_is_refused(self):
        status, text = self.start(*models()[0], hardware="ethos-u55-256")
        self.assertEqual(status, 1, text)
        self.assertIn("does not run on 'ethos-u55-128'", text)

    def test_wrong_bytes_are_noticed(self):
        name, model, input_file, expected = models()[0]
        with open(expected, "rb") as file:
            content = bytearray(file.read())
        content[0] ^= 1
        os.makedirs(BUILD, exist_ok=True)
        other = os.path.join(BUILD, "other.bin")
        with open(other, "wb") as file:
            file.write(content)
        status, text = self.start(name, model, input_file, other)
        self.assertEqual(status, 2, text)
        self.assertIn("different 1\n", text)

    def test_the_driver_needs_no_heap_and_no_static_constructors(self):
        self.start(*models()[0])
        symbols = run(PREFIX + "nm", os.path.join(self.tree, "libethosu_shim.a"), os.path.join(self.tree, "libethosu_isa.a")).stdout
        self.assertEqual(firmware_test.HEAP.findall(symbols), [], "heap, exceptions or stdio in the driver")
        for line in run(PREFIX + "readelf", "-SW", self.image).stdout.splitlines():
            if ".init_array" in line:
                self.assertRegex(line, r"\s000000\s", "a static constructor in the image")


if __name__ == "__main__":
    QPLAN, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:3])
    os.makedirs(BUILD, exist_ok=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)
