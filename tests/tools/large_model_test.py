"""Models of hundreds of megabytes: the memory that packing them takes, and what a person sees meanwhile.

QPLAN_LARGE_MODEL_MB=200 takes a model of that size; without it the test uses a small one, which packs in a moment.
"""

import os
import pathlib
import pty
import shutil
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from support import COMMAND, CommandTest
from large_model import write_model

MEGABYTES = float(os.environ.get("QPLAN_LARGE_MODEL_MB", "20"))
MEMORY_FACTOR = 3


def run_measured(*arguments):
    """Exit status and the most resident memory in bytes."""
    process = subprocess.Popen([COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024


def run_on_terminal(*arguments):
    """Exit status and what came on stderr, which is a terminal."""
    master, slave = pty.openpty()
    shown = bytearray()

    def read():
        try:
            while data := os.read(master, 4096):
                shown.extend(data)
        except OSError:  # the other end is closed
            pass

    process = subprocess.Popen([COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    reader = threading.Thread(target=read)
    reader.start()
    status = process.wait()
    reader.join()
    os.close(master)
    return status, shown.decode("utf-8", errors="replace")


@unittest.skipIf(shutil.which("flatc") is None, "flatc is not installed")
class LargeModel(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls._class_folder / "large.tflite"
        write_model(cls.model, MEGABYTES)

    def test_packing_takes_less_than_three_times_the_model(self):
        plan = self.folder / "large.qplan"
        status, memory = run_measured("pack", self.model, "-o", plan)
        self.assertEqual(status, 0)
        size = self.model.stat().st_size
        self.assertGreater(plan.stat().st_size, 0.99 * size)  # all of its weights
        self.assertLess(memory, MEMORY_FACTOR * size, f"{memory / size:.2f} times the model's {size} bytes")

    def test_the_plan_runs(self):
        plan = self.folder / "large.qplan"
        self.succeed("pack", self.model, "-o", plan)
        report = self.succeed_json("bench", plan, "--runs", "1", "--json")
        self.assertEqual(report["macs"], round(self.model.stat().st_size / (2048 * 2049)) * 2048 * 2048)


class ProgressOnATerminal(CommandTest):
    def test_long_work_shows_how_far_it_is(self):
        status, shown = run_on_terminal("bench", self.plan, "--isa", "reference", "--runs", "5000")
        self.assertEqual(status, 0)
        self.assertRegex(shown, r"\r\x1b\[Kqplan: run \[#*\.*\] \d+/5000, [1-9]\d* s, about \d+ s left")
        self.assertTrue(shown.endswith("\r\x1b[K"), "the line disappears")

    def test_short_work_shows_nothing(self):
        self.assertEqual(run_on_terminal("inspect", self.plan), (0, ""))

    @unittest.skipIf(MEGABYTES < 200, "packs in a moment; QPLAN_LARGE_MODEL_MB=200")
    def test_packing_shows_its_stages(self):
        model = self.folder / "large.tflite"
        write_model(model, MEGABYTES)
        status, shown = run_on_terminal("pack", model, "-o", self.folder / "large.qplan")
        self.assertEqual(status, 0)
        self.assertRegex(shown, r"qplan: (import|lower|plan memory and write) \[#*\.*\] \d+/\d+, [1-9]\d* s")


if __name__ == "__main__":
    unittest.main()
