"""`pip install .`: a wheel of this tree, used from outside with an empty environment.   usage: wheel_test.py BUILD_DIRECTORY"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests" / "data" / "digits"
PROGRAM = """
import sys
import numpy
import qplan
from qplan._command import command_path
from qplan._library import library

plan = qplan.pack(sys.argv[1], "digits.qplan")
image = numpy.fromfile(sys.argv[2], numpy.int8).reshape(1, 16, 16, 1)
print(library()._name)
print(command_path())
print(qplan.Session(plan).run(image)[0].argmax())
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=600, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


class Wheel(unittest.TestCase):
    build = ""

    @classmethod
    def setUpClass(cls):
        for module in ("pip", "numpy"):
            if subprocess.run([sys.executable, "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False).returncode:
                raise unittest.SkipTest(f"{module} is not installed (Debian: python3-{module})")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="qplan_wheel_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run(sys.executable, "-m", "pip", "wheel", REPOSITORY, "--no-deps", "--no-build-isolation", "--no-index", "-w", cls.folder,
            "--config-settings", f"build-dir={cls.build}", "--config-settings", "skip-build=1", cwd=cls.folder)
        (cls.wheel,) = cls.folder.glob("qplan-*-py3-none-*.whl")

    def test_contents(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = set(archive.namelist())
            (record,) = [archive.read(name).decode() for name in names if name.endswith("/RECORD")]
        package = {f"qplan/{path.relative_to(REPOSITORY / 'python' / 'qplan')}"
                   for path in (REPOSITORY / "python" / "qplan").rglob("*.py")}
        self.assertLessEqual(package | {"qplan/py.typed", "qplan/lib/libqplan.so", "qplan/bin/qplan"}, names)
        self.assertEqual({line.split(",")[0] for line in record.splitlines()}, names)

    def test_works_without_the_tree(self):
        site = self.folder / "site"
        run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, self.wheel, cwd=self.folder)
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
        text = run(sys.executable, "-c", PROGRAM, REPOSITORY / "samples" / "models" / "digits.tflite",
                   DATA / "digit6_input.bin", cwd=self.folder, env=environment)
        library, command, digit = text.splitlines()
        self.assertEqual(pathlib.Path(library), site / "qplan" / "lib" / "libqplan.so")
        self.assertEqual(pathlib.Path(command), site / "qplan" / "bin" / "qplan")
        self.assertEqual(digit, "6")
        for launcher in ([sys.executable, "-m", "qplan"], [site / "bin" / "qplan"]):
            text = run(*launcher, "inspect", "digits.qplan", cwd=self.folder, env=environment)
            self.assertIn("arena", text)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    Wheel.build = sys.argv.pop(1)
    unittest.main()
