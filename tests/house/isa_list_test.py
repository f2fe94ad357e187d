"""What is written by hand about instruction sets agrees with kernels/isa.def.   usage: isa_list_test.py REPOSITORY"""
import os
import re
import sys
import unittest

ROOT = sys.argv.pop(1)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as text:
        return text.read()


# (architecture, name, NAME, id, base, vectors)
ROWS = re.findall(r"^QPLAN_ISA\(([\w-]+), +(\w+), +(\w+), +(\d+), +(\w+), +(\w+), ", read("kernels/isa.def"), re.MULTILINE)


class IsaList(unittest.TestCase):
    def test_rows_stand_above_their_base(self):
        self.assertTrue(ROWS)
        known = {"REFERENCE": (None, 1)}
        for arch, _, upper, number, base, _ in ROWS:
            self.assertIn(base, known, upper)
            self.assertIn(known[base][0], (None, arch), upper)
            self.assertLess(known[base][1], int(number), upper)
            self.assertLess(int(number), 256, upper)
            known[upper] = (arch, int(number))

    def test_public_header_has_their_numbers(self):
        header = read("include/qplan/qplan.h")
        numbers = dict(re.findall(r"QPLAN_ISA_(\w+) = (\d+)", header))
        self.assertEqual(numbers, {"AUTO": "0", "REFERENCE": "1"} | {row[2]: row[3] for row in ROWS})

    def test_pages_name_them(self):
        for page in ("docs/cli.md", "docs/placement.md", "docs/schedules.md"):
            text = read(page)
            for _, name, *_ in ROWS:
                self.assertIn(f"`{name}`", text, page)


if __name__ == "__main__":
    unittest.main()
