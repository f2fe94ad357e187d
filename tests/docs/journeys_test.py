"""journeys.py finds files that are gone, names that moved and journeys that became longer.   usage: journeys_test.py JOURNEYS"""
import os
import subprocess
import sys
import tempfile
import unittest

JOURNEYS = sys.argv.pop(1)


def check(table, limit=2):
    with tempfile.TemporaryDirectory() as root:
        pages = {
            "docs/architecture.md": f"### Journey: a layer, at most {limit} files\n| | file | name | what |\n|---|---|---|---|\n{table}",
            "src/a.cc": "void run_all();\n",
            "src/b.cc": "struct Layer {};\n",
        }
        for name, content in pages.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as out:
                out.write(content)
        done = subprocess.run([sys.executable, JOURNEYS, root], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


class Journeys(unittest.TestCase):
    GOOD = "| 1 | `src/a.cc` | `run_all` | runs |\n| 2 | `src/b.cc` | `Layer` | holds |\n"

    def refused(self, table, text, limit=2):
        status, message = check(table, limit)
        self.assertEqual(status, 1)
        self.assertIn(text, message)

    def test_a_good_journey_passes(self):
        status, message = check(self.GOOD)
        self.assertEqual((status, message), (0, "a layer: 2 files, at most 2\n"))

    def test_a_file_that_is_gone(self):
        self.refused("| 1 | `src/c.cc` | `run_all` | runs |\n", "src/c.cc: No such file or directory")

    def test_a_name_that_is_gone_or_part_of_another(self):
        self.refused("| 1 | `src/a.cc` | `run` | runs |\n", "src/a.cc does not contain 'run'")

    def test_too_many_files(self):
        self.refused(self.GOOD, "has 2 files, expected 1 to 1", limit=1)

    def test_wrong_numbers_and_files_listed_twice(self):
        self.refused("| 1 | `src/a.cc` | `run_all` | runs |\n| 3 | `src/a.cc` | `run_all` | runs |\n", "row 3, expected 2")
        self.refused("| 1 | `src/a.cc` | `run_all` | runs |\n| 2 | `src/a.cc` | `run_all` | runs |\n", "is listed twice")

    def test_a_page_without_journeys(self):
        self.refused("", "has 0 files")


if __name__ == "__main__":
    unittest.main()
