"""Every kernel family has what proves it: the table of tests/kernels/README.md.   usage: kernel_proofs_test.py REPOSITORY"""
import json
import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
SHARED = pathlib.Path(os.environ["QPLAN_SHARED"]) if "QPLAN_SHARED" in os.environ else ROOT.parent / "shared"
# Operators of the application, whose kernels a plan by hand has not.
WITHOUT_SEED = {"custom"}


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


# name -> its descriptor
FAMILIES = dict(re.findall(r"^QPLAN_KERNEL\( *\d+, (\w+), +(\w+),", read("format/kernels.def"), re.MULTILINE))
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split("|")]
    for line in read("tests/kernels/README.md").splitlines()
    if line.startswith("| ") and not line.startswith("| family ")
]


def tests_by_name():
    """ "Suite.Name" -> the texts of the files that have it."""
    found = {}
    for path in (ROOT / "tests").rglob("*_test.cc"):
        text = path.read_text(encoding="utf-8")
        for suite, name in re.findall(r"^TEST(?:_P|_F)?\(\s*(\w+),\s*(\w+)\)", text, re.MULTILINE):
            found.setdefault(f"{suite}.{name}", []).append(text)
    return found


TESTS = tests_by_name()


# Families whose variants are listed under another name, and the family that runs those of its layers.
SHARED_LISTS = {"maximum": "minmax", "minimum": "minmax", "reduce_max": "reduce", "reduce_min": "reduce",
                "reduce_prod": "reduce"}
VARIANTS = dict(re.findall(r"#define QPLAN_(\w+)_VARIANTS\b((?:.*\\\n)*.*)", "".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "kernels").rglob("*.h"))))


def has_vector_variants(family):
    rows = VARIANTS.get(SHARED_LISTS.get(family, family).upper())
    return family == "chain" if rows is None else "_VARIANTS" in rows


class KernelProofs(unittest.TestCase):
    def test_every_family_has_a_row(self):
        self.assertEqual([row[0] for row in ROWS], list(FAMILIES),
                         "tests/kernels/README.md has a row for each family of format/kernels.def, in the same order")
        self.assertEqual({len(row) for row in ROWS}, {4})

    def expect_proof(self, family, proof):
        kind, _, name = proof.partition(":")
        if kind == "golden":
            self.assertIn("GoldenCases.AreCountedOneByOne", TESTS)
            if not SHARED.exists():
                self.skipTest(f"no data directory '{SHARED}' (QPLAN_SHARED), which has the model that proves {family}")
            else:
                self.assertIn(name, (SHARED / "golden" / "index.json").read_text(encoding="utf-8"), family)
        elif name:
            cases = json.loads(read(f"tests/data/operators/{kind}.json"))
            self.assertIn(name, {operator["op"] for case in cases for operator in case["operators"]}, family)
        else:
            self.assertTrue(proof in TESTS, f"{proof}, which is to prove {family}, does not exist")
            own = re.compile(rf"\bkKernel_{family}\b|\b{FAMILIES[family]}\b|\b{family}_ref\b")
            self.assertTrue(any(own.search(text) for text in TESTS[proof]), f"{proof} does not name {family}")

    def test_tests_exist_and_name_their_family(self):
        for family, oracle, variants, hostile in ROWS:
            with self.subTest(family):
                self.expect_proof(family, oracle)
                self.expect_proof(family, hostile)
                if variants != "—":
                    self.expect_proof(family, variants)

    def test_vector_kernels_are_compared(self):
        found = {family: has_vector_variants(family) for family in FAMILIES}
        self.assertGreater(sum(found.values()), 25, "the lists of variants were not found")
        for family, _, variants, _ in ROWS:
            self.assertFalse(found[family] and variants == "—", f"no test compares the variants of {family}")

    def test_the_fuzz_seed_has_a_step_of_each(self):
        text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/fuzz").glob("*.h"))
        missing = {family for family in FAMILIES if not re.search(rf"\bk_{family}\b", text)}
        self.assertEqual(missing, WITHOUT_SEED, "tests/fuzz/all_kernels_plan.h has a step of each family")


if __name__ == "__main__":
    unittest.main()
