"""The package with libqplan_runtime.so, which has no packer: what boards have."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from support import DIGITS, DIGITS_DATA, REPOSITORY, qplan

from qplan import _prototypes

RUNTIME = os.environ.get("QPLAN_RUNTIME_LIBRARY")

_RUN = """
import sys
import numpy
import qplan

plan = qplan.Plan(sys.argv[1])
image = numpy.fromfile(sys.argv[2], numpy.int8).reshape(plan.inputs[0].shape)
(scores,) = qplan.Session(plan, threads=2, step_times=True).run(image)
scores.tofile(sys.argv[3])
assert qplan.check(plan, [image], [scores])
calls = [
    lambda: qplan.pack(sys.argv[4]),
    lambda: qplan.explain(sys.argv[4]),
    lambda: qplan.import_text(sys.argv[4]),
    lambda: plan.inspect(),
    lambda: plan.disasm(),
    lambda: plan.labels,
    lambda: qplan.Session(plan).run(image, tensors=all),
    lambda: qplan.passes.op("clip"),
    lambda: qplan.Driver("sim"),
]
for call in calls:
    try:
        call()
    except qplan.Error as error:
        print(error)
    else:
        sys.exit("expected an error")
"""


class RuntimeLibrary(unittest.TestCase):
    @unittest.skipUnless(RUNTIME, "QPLAN_RUNTIME_LIBRARY names no library")
    def test_runs_plans_and_says_what_it_lacks(self):
        with tempfile.TemporaryDirectory(prefix="qplan_test_") as folder:
            plan, output = (os.path.join(folder, name) for name in ("digits.qplan", "output.bin"))
            qplan.pack(DIGITS, plan)
            environment = {**os.environ, "QPLAN_LIBRARY": RUNTIME, "PYTHONPATH": str(REPOSITORY / "python")}
            done = subprocess.run(
                [sys.executable, "-B", "-c", _RUN, plan, DIGITS_DATA / "digit8_input.bin", output, DIGITS],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(pathlib.Path(output).read_bytes(), (DIGITS_DATA / "digit8_output.bin").read_bytes())
            lines = done.stdout.splitlines()
            self.assertEqual(len(lines), 9, done.stdout)
            for line in lines:
                self.assertRegex(line, r"is the runtime alone and lacks qplan_\w+: .*QPLAN_MODEL_UNSUPPORTED")
                self.assertIn("Plan.labels, run(tensors=...) and simulator", line)

    def test_what_it_lacks_is_what_the_packers_headers_declare(self):
        declared = set()
        for header in ("pack.h", "npu_sim.h"):
            text = (REPOSITORY / "include" / "qplan" / header).read_text(encoding="utf-8")
            declared |= set(re.findall(r"^QPLAN_API[^;]*?\b(qplan_\w+)\(", text, re.MULTILINE))
        self.assertTrue(set(_prototypes.PACKER) <= declared, set(_prototypes.PACKER) - declared)
        self.assertFalse(set(_prototypes.RUNTIME) & declared, set(_prototypes.RUNTIME) & declared)


if __name__ == "__main__":
    unittest.main()
