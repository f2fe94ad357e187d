"""What the tests of the command share: running it, a folder of their own, a plan of the digits model."""

import hashlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import unittest

try:
    import numpy
except ImportError:
    numpy = None

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("QPLAN_COMMAND", str(REPOSITORY / "build" / "release" / "bin" / "qplan"))
SHARED = pathlib.Path(os.environ.get("QPLAN_SHARED", REPOSITORY.parent / "shared"))
MODELS = REPOSITORY / "samples" / "models"
DIGITS = MODELS / "digits.tflite"
DIGITS_LABELS = MODELS / "digits_labels.txt"
DIGITS_DATA = REPOSITORY / "tests" / "data" / "digits"
PICTURES = REPOSITORY / "samples" / "images"
DIGITS_BYTES = 16 * 16  # of the input, int8 [1,16,16,1]

needs_numpy = unittest.skipIf(numpy is None, "NumPy is not installed")
needs_shared = unittest.skipUnless((SHARED / "models").is_dir(), f"no reference data in '{SHARED}' (QPLAN_SHARED)")


def run(*arguments, file_size_limit=None, address_space=None, stdout=subprocess.PIPE, env=None):
    """The command with these arguments. file_size_limit: bytes that it may write to one file, a full disk.
    address_space: bytes of memory that it may map. env: variables beside those of the test."""

    def limit():
        if file_size_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size_limit, file_size_limit))
        if address_space is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=300,
        env=None if env is None else {**os.environ, **env},
        preexec_fn=limit,
        check=False,
    )


def with_digest(plan):
    """The plan's bytes with the digest that its header should have (format/README.md)."""
    return plan[:32] + hashlib.sha256(plan[64:]).digest() + plan[64:]


class CommandTest(unittest.TestCase):
    """Each test has an empty folder, self.folder; the class has a plan of the digits model, self.plan."""

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(COMMAND):
            raise unittest.SkipTest(f"no command at '{COMMAND}' (QPLAN_COMMAND)")
        cls._class_folder = pathlib.Path(tempfile.mkdtemp(prefix="qplan_test_"))
        cls.addClassCleanup(shutil.rmtree, cls._class_folder)
        cls.plan = cls._class_folder / "digits.qplan"
        result = run("pack", DIGITS, "-o", cls.plan)
        assert result.returncode == 0, result.stderr

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="qplan_test_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def succeed(self, *arguments):
        """Runs the command, which must succeed without a word on stderr; returns its standard output."""
        result = run(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def succeed_json(self, *arguments):
        return json.loads(self.succeed(*arguments))

    def refused(self, exit_code, texts, *arguments, **options):
        """Runs the command, which must end with exit_code, say one line with these texts on stderr (and below it, with
        two blanks before each, the lines of a list), and print nothing."""
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, exit_code, (arguments, result.stderr))
        lines = result.stderr.splitlines()
        self.assertTrue(lines[0].startswith("qplan: "), lines[0])
        for line in lines[1:]:
            self.assertTrue(line.startswith("  "), (arguments, result.stderr))
        for text in texts:
            self.assertIn(text, result.stderr, arguments)
        if options.get("stdout") is None:
            self.assertEqual(result.stdout, "", arguments)

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def digit_input(self, digit):
        return DIGITS_DATA / f"digit{digit}_input.bin"

    def digit_output(self, digit):
        return (DIGITS_DATA / f"digit{digit}_output.bin").read_bytes()

    def isas(self):
        """The instruction sets that the command says this machine has."""
        line = run("run", self.plan, "--input", self.digit_input(0), "--isa", "none").stderr
        names = line.split("this machine has ")[1].split(";")[0].split(", ")
        self.assertIn("reference", names)
        return names

    def left_behind(self):
        """Names of everything in the test's folder."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))
