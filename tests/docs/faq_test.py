#!/usr/bin/env python3
"""docs/faq.md: its commands give the messages that it shows, and its table has every status of qplan.h.

usage: faq_test.py REPOSITORY BUILD
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
QPLAN = os.path.join(BUILD, "bin", "qplan")
PAGE = open(os.path.join(ROOT, "docs", "faq.md"), encoding="utf-8").read()
NEEDS_PYTHON_LIBRARY = "ImportError"


def onnx_model():
    """An ONNX model of one SplitToSequence, as protobuf's bytes."""

    def field(number, data):
        data = data.encode() if isinstance(data, str) else data
        return bytes([number << 3 | 2]) + bytes([len(data)]) + data

    def number(number_, value):
        return bytes([number_ << 3, value])

    extents = b"".join(field(1, number(1, extent)) for extent in (4, 2))
    tensor = field(1, number(1, 1) + field(2, extents))
    node = field(1, "x") + field(2, "parts") + field(4, "SplitToSequence")
    graph = field(1, node) + field(2, "g") + field(11, field(1, "x") + field(2, tensor)) + field(12, field(1, "parts"))
    return number(1, 8) + field(7, graph) + field(8, field(1, "") + number(2, 13))


class Faq(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = cls.temporary.name
        os.symlink(os.path.join(ROOT, "samples"), os.path.join(cls.folder, "samples"))
        for plan, options in (("digits", []), ("float_io", ["--io", "float", "--io-layout", "nchw"]),
                              ("for_arm", ["--target", "cpu,arch=aarch64"])):
            subprocess.run([QPLAN, "pack", "samples/models/digits.tflite", "-o", plan + ".qplan", *options], check=True,
                           cwd=cls.folder, stdout=subprocess.DEVNULL)
        with open(os.path.join(cls.folder, "digits.qplan"), "rb") as file:
            data = bytearray(file.read())
        data[-1] ^= 1
        header = b"\x93NUMPY\x01\x00" + b"\x76\x00"
        text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 16, 16), }"
        files = {"damaged.qplan": data, "split.onnx": onnx_model(),
                 "float.npy": header + text.ljust(0x75).encode() + b"\n" + bytes(4 * 256)}
        for name, content in files.items():
            with open(os.path.join(cls.folder, name), "wb") as file:
                file.write(content)

    def test_commands_give_these_messages(self):
        blocks = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        shown = [block.splitlines() for block in blocks if block.startswith("$ ")]
        self.assertGreaterEqual(len(shown), 8)
        for command, *messages in shown:
            with self.subTest(command=command):
                done = subprocess.run(command[2:].replace("qplan", QPLAN, 1), shell=True, cwd=self.folder, text=True,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
                for message in messages:
                    self.assertIn(message + "\n", done.stderr)

    def test_the_import_error(self):
        (block,) = (block for block in re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
                    if block.startswith(NEEDS_PYTHON_LIBRARY))
        with open(os.path.join(ROOT, "python", "qplan", "_library.py"), encoding="utf-8") as file:
            source = file.read()
        text = block.strip()[len("ImportError: "):]
        self.assertIn(text, re.sub(r'"\n *"', "", source))  # pieces of a literal, joined

    def test_every_status_has_a_row(self):
        with open(os.path.join(ROOT, "include", "qplan", "qplan.h"), encoding="utf-8") as file:
            header = file.read()
        statuses = header[header.index("typedef int32_t qplan_status"):header.index("qplan_status_name")]
        names = re.findall(r"^  (QPLAN_\w+) = -?\d+", statuses, re.MULTILINE)
        self.assertGreater(len(names), 15)
        self.assertEqual(re.findall(r"^\| `(QPLAN_\w+)` \|", PAGE, re.MULTILINE), names)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
