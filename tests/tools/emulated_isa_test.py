"""Processors that this machine is not, in QEMU's user mode: the command chooses what they have and executes nothing
above it."""

import json
import platform
import re
import shutil
import subprocess
import unittest

import support

EMULATOR = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")


@unittest.skipUnless(platform.machine() == "x86_64", "the command is not one for x86-64")
@unittest.skipUnless(EMULATOR, "qemu-x86_64 is not installed (Debian: qemu-user)")
class EmulatedIsa(support.CommandTest):
    def run_on(self, cpu, *arguments):
        command = [EMULATOR, "-cpu", cpu, support.COMMAND, "run", self.plan, *arguments]
        return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True, timeout=300, check=False)

    def expect(self, cpu, isa):
        """Digits come out right on the processor, by kernels up to isa."""
        for digit in (0, 7):
            result = self.run_on(cpu, "--input", self.digit_input(digit), "--isa", "auto", "--json",
                                 "--output-dir", self.folder)
            # QEMU itself warns of what it leaves out of a processor.
            said = [line for line in result.stderr.splitlines() if not line.startswith("qemu-")]
            self.assertEqual((result.returncode, said), (0, []), cpu)
            self.assertEqual(json.loads(result.stdout)["isa"], isa)
            self.assertEqual((self.folder / "output0.bin").read_bytes(), self.digit_output(digit), cpu)

    def test_packing_executes_nothing_the_processor_lacks(self):
        # A plan is for x86-64 in general, so that the packer asks about kernels of every instruction set.
        expected = self.plan.read_bytes()
        for cpu in ("core2duo", "Nehalem"):
            plan = self.folder / f"{cpu}.qplan"
            result = subprocess.run([EMULATOR, "-cpu", cpu, support.COMMAND, "pack", support.DIGITS, "-o", plan],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                    timeout=300, check=False)
            self.assertEqual(result.returncode, 0, (cpu, result.stderr))
            self.assertEqual(plan.read_bytes(), expected, cpu)

    def test_without_sse41_the_reference_runs(self):
        self.expect("core2duo", "reference")

    def test_without_avx_sse41_runs(self):
        self.expect("Nehalem", "sse41")

    def test_without_avx512_avx2_runs(self):
        text = subprocess.run([EMULATOR, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        version = re.search(r"version (\d+)\.(\d+)", text)
        if version and (int(version[1]), int(version[2])) < (7, 2):
            self.skipTest("this QEMU does not emulate AVX2 (before 7.2)")
        self.expect("Haswell", "avx2")

    def test_a_limit_that_the_processor_lacks_is_refused(self):
        result = self.run_on("Nehalem", "--input", self.digit_input(0), "--isa", "avx2")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("lacks 'avx2'", result.stderr)
        self.assertIn("reference, sse41", result.stderr)


if __name__ == "__main__":
    unittest.main()
