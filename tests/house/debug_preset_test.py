"""What GCC refuses without optimisation, and only then, compiles in the preset `debug`: the objects of the kernels' queries, which
are built without the flags of their instruction sets.   usage: debug_preset_test.py REPOSITORY
"""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = sys.argv.pop(1)


class DebugPreset(unittest.TestCase):
    def succeed(self, *words):
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_the_queries_of_all_instruction_sets_compile(self):
        with tempfile.TemporaryDirectory() as folder:
            self.succeed("cmake", "--preset", "debug", "-B", folder, "-DQPLAN_WERROR=ON")
            targets = [line.split(":")[0] for line in self.succeed("ninja", "-C", folder, "-t", "targets", "all").splitlines()]
            queries = [target for target in targets if target.endswith("_queries.cc.o")]
            self.assertGreater(len(queries), 5)
            self.succeed("ninja", "-C", folder, *queries)


if __name__ == "__main__":
    unittest.main()
