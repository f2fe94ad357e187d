"""The structs of _capi.py against those of the headers: names and order of fields, and what a C compiler makes of them."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import REPOSITORY
from qplan import _capi

INCLUDE = REPOSITORY / "include"
SOURCE = (REPOSITORY / "python" / "qplan" / "_capi.py").read_text(encoding="utf-8")
HEADERS = ("qplan.h", "host.h", "npu_driver.h", "pack.h", "custom_operator.h")
OTHER_NAMES = {
    "PreValueHandle": "qplan_pre_value",
    "PreNodeHandle": "qplan_pre_node",
    "PostValueHandle": "qplan_post_value",
    "DLDevice": "DLDevice",
    "DLDataType": "DLDataType",
    "DLTensor": "DLTensor",
}
DLPACK = os.environ.get("QPLAN_TEST_THIRD_PARTY", REPOSITORY / "build" / "release" / "third_party")
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def structs():
    """Each struct with fields by its name in C."""
    found = {}
    for name, struct in vars(_capi).items():
        if isinstance(struct, type) and issubclass(struct, ctypes.Structure) and hasattr(struct, "_fields_"):
            words = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
            found[OTHER_NAMES.get(name, f"qplan_{words}")] = struct
    return found


class Layout(unittest.TestCase):
    def test_every_struct_is_compared(self):
        names = set(re.findall(r"^class (\w+)\((?:c\.Structure|Sized)\):\n(?:    \"\"\".*\"\"\"\n)?    _fields_", SOURCE, re.M))
        self.assertEqual(names, {struct.__name__ for struct in structs().values()})
        self.assertGreaterEqual(len(names), 33)

    def test_fields_are_those_of_the_headers(self):
        text = "".join((INCLUDE / "qplan" / name).read_text() for name in HEADERS)
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for name, struct in structs().items():
            if name.startswith("DL"):  # of DLPack: the compiler's test has them
                continue
            with self.subTest(name):
                body = re.search(rf"typedef struct {name} \{{([^{{}}]*)\}} {name};", text).group(1)
                expected = []
                for declaration in filter(None, map(str.strip, body.split(";"))):
                    pointer, plain = re.search(r"\(\*(\w+)\)|(\w+)(?:\[\w+\])?$", declaration).groups()
                    expected.append(pointer or plain)
                self.assertEqual([field[0] for field in struct._fields_], expected)

    @unittest.skipUnless(COMPILER, "there is no C compiler: cc, gcc or clang")
    @unittest.skipUnless(os.path.exists(f"{DLPACK}/dlpack/dlpack.h"), f"{DLPACK} has no dlpack/dlpack.h: set QPLAN_TEST_THIRD_PARTY")
    def test_sizes_and_offsets_are_those_of_c(self):
        lines = [f"#include <qplan/{name}>" for name in HEADERS]
        lines += ["#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
        expected = []
        for name, struct in structs().items():
            lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
            expected.append(f"{name} {ctypes.sizeof(struct)}")
            for field, *_ in struct._fields_:
                place = getattr(struct, field)
                lines.append(f'  printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));')
                expected.append(f"{name}.{field} {place.offset} {place.size}")
        lines.append("  return 0;\n}\n")
        with tempfile.TemporaryDirectory(prefix="qplan_test_") as folder:
            source, program = pathlib.Path(folder) / "layout.c", pathlib.Path(folder) / "layout"
            source.write_text("\n".join(lines))
            compiled = subprocess.run(
                [COMPILER, "-std=c99", f"-I{INCLUDE}", f"-I{DLPACK}", str(source), "-o", str(program)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )
            self.assertEqual(compiled.returncode, 0, compiled.stdout)
            found = subprocess.run([str(program)], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        self.assertEqual(found, expected)


if __name__ == "__main__":
    unittest.main()
