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
    """Names of the files tests/**/*_test.py that no list of CMake there names, with or without their ending."""
    lists = [path for name in ("CMakeLists.txt", "*.cmake") for path in (root / "tests").rglob(name)]
    words = {word for path in lists for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    names = (path.stem for path in (root / "tests").rglob("*_test.py"))
    return sorted(name for name in names if name not in words and name.removesuffix("_test") not in words)


class RegisteredTests(unittest.TestCase):
    def test_all_tests_of_the_tree_are_registered(self):
        self.assertEqual(unregistered(REPOSITORY), [])

    def test_one_that_is_not_in_a_list_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests").mkdir()
            (root / "tests/CMakeLists.txt").write_text("set(names a)\nadd_test(NAME b COMMAND b_test.py)\n")
            for name in ("a", "b", "c"):
                (root / f"tests/{name}_test.py").write_text("")
            self.assertEqual(unregistered(root), ["c_test"])


if __name__ == "__main__":
    unittest.main()
