"""Every Python test of the tree is one of CTest's: a list of names that loses one loses the test, and nothing fails.

usage: registered_tests_test.py REPOSITORY
"""

import pathlib
import re
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(sys.argv.pop(1))


def unregistered(root):
    """Names of the files tests/**/*_test.py that no list of CMake in their folder, or in one above it, names, with or
    without their ending."""
    result = []
    for path in (root / "tests").rglob("*_test.py"):
        folders = [folder for folder in path.parents if folder.is_relative_to(root / "tests")]
        patterns = ("CMakeLists.txt", "*.cmake")
        lists = [file for folder in folders for pattern in patterns for file in folder.glob(pattern)]
        words = {word for file in lists for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}
        if not {path.stem, path.stem.removesuffix("_test")} & words:
            result.append(path.stem)
    return sorted(result)


class RegisteredTests(unittest.TestCase):
    def test_all_tests_of_the_tree_are_registered(self):
        self.assertEqual(unregistered(REPOSITORY), [])

    def test_one_that_is_not_in_a_list_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests/other").mkdir(parents=True)
            (root / "tests/CMakeLists.txt").write_text("set(names a)\nadd_test(NAME b COMMAND b_test.py)\n")
            (root / "tests/other/CMakeLists.txt").write_text("add_test(NAME c COMMAND c_test.py)\n")
            for name in ("a", "b", "c", "other/a"):
                (root / f"tests/{name}_test.py").write_text("")
            self.assertEqual(unregistered(root), ["c_test"])


if __name__ == "__main__":
    unittest.main()
