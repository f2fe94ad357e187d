"""count_additions.py counts what a commit touched and finds what is beyond its limit.   usage: count_additions_test.py COUNT"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

COUNT = sys.argv.pop(1)
HEADER = "| kind | limit | product | tests | docs |\n|---|---|---|---|---|\n"


@unittest.skipIf(shutil.which("git") is None, "git is not installed")
class CountAdditions(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        os.mkdir(os.path.join(self.root, "cmake"))
        self.count = shutil.copy(COUNT, os.path.join(self.root, "cmake"))
        self.git("init", "-q")
        self.commit("begin", [])

    def git(self, *arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", self.root, *identity, *arguments], check=True, capture_output=True)

    def commit(self, message, files):
        for name in files:
            path = os.path.join(self.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "a", encoding="utf-8") as out:
                out.write("one\ntwo\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def check(self, rows):
        page = os.path.join(self.root, "page.txt")
        with open(page, "w", encoding="utf-8") as out:
            out.write(HEADER + rows)
        done = subprocess.run([sys.executable, self.count, "--check", page], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout

    def test_counts_files_and_lines_of_each_part(self):
        self.commit("one\n\nAdds: rewrite\n", ["src/a.cc", "src/b.cc", "tests/a_test.cc", "docs/a.md", "src/README.md"])
        row = "| rewrite | 3 | 2 (4) | 1 (2) | 2 (4) |"
        status, text = self.check(row + "\n")
        self.assertEqual(status, 0, text)
        self.assertIn(row, text)

    def test_a_page_with_other_figures_is_an_error(self):
        self.commit("one\n\nAdds: rewrite\n", ["src/a.cc"])
        self.assertEqual(self.check("| rewrite | 3 | 2 (4) | 0 (0) | 0 (0) |\n")[0], 1)
        self.assertEqual(self.check("")[0], 1)

    def test_the_last_example_counts_and_its_limit_holds(self):
        self.commit("small\n\nAdds: npu-constraint\n", ["src/a.cc"])
        self.commit("large\n\nAdds: npu-constraint\n", ["src/a.cc", "src/b.cc"])
        status, text = self.check("| npu-constraint | 1 | 2 (4) | 0 (0) | 0 (0) |\n")
        self.assertEqual(status, 1)
        self.assertIn("touches 2 files of the product, at most 1 are allowed", text)

    def test_an_unknown_kind_is_an_error(self):
        self.commit("one\n\nAdds: rewirte\n", ["src/a.cc"])
        status, text = self.check("")
        self.assertEqual(status, 1)
        self.assertIn("'Adds: rewirte' is no kind", text)

    def test_a_tree_without_history_compares_the_page_with_the_limits(self):
        shutil.rmtree(os.path.join(self.root, ".git"))
        self.assertEqual(self.check("| operator | 14 | 14 (400) | 0 (0) | 0 (0) |\n")[0], 0)
        self.assertEqual(self.check("| operator | 14 | 15 (400) | 0 (0) | 0 (0) |\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
