"""check_units.py finds what it is there for, and nothing else.   usage: check_units_test.py CHECK"""
import os
import subprocess
import sys
import tempfile
import unittest

CHECK = sys.argv.pop(1)


def check(own, other, folders=("src/packer/passes", "src/packer/passes")):
    with tempfile.TemporaryDirectory() as root:
        for folder, name, text in ((folders[0], "own.cc", own), (folders[1], "other.cc", other)):
            os.makedirs(os.path.join(root, folder), exist_ok=True)
            with open(os.path.join(root, folder, name), "w", encoding="utf-8") as out:
                out.write(text)
        done = subprocess.run([sys.executable, CHECK, root], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


LIMIT = "namespace qplan::pass {\nnamespace {\nconstexpr uint32_t kLimit = 8;\n}  // namespace\n}\n"


class CheckUnits(unittest.TestCase):
    def refused(self, own, other, name):
        status, message = check(own, other)
        self.assertEqual(status, 1, message)
        self.assertIn(f"src/packer/passes/own.cc: '{name}' is also mentioned by src/packer/passes/other.cc", message)

    def accepted(self, own, other, **options):
        status, message = check(own, other, **options)
        self.assertEqual(status, 0, message)

    def test_constants(self):
        self.refused(LIMIT, "namespace qplan::pass {\nbool fits(uint32_t n) { return n < kLimit; }\n}", "kLimit")
        self.refused("namespace {\nconstexpr int kSizes[] = {1, 2};\n}", "int f() { return kSizes[0]; }", "kSizes")

    def test_enumerators(self):
        self.refused("namespace {\nenum Place : uint32_t { kData, kWeights };\n}", "use(kWeights);", "kWeights")
        self.accepted("namespace {\nenum { kData };\n}", "namespace {\nenum { kData, kBias };\nint f() { return kData; }\n}")
        self.accepted("namespace {\nenum class Place { kData };\n}", "use(kData);")

    def test_types(self):
        self.refused("namespace {\nint f() { return 1; }\nstruct Part {\n  int x = 0;\n};\n}", "void g(const Part& part);", "Part")
        self.refused("namespace {\nclass Reader final : public Base {};\n}", "Reader reader;", "Reader")

    def test_what_the_other_file_defines_itself(self):
        self.accepted(LIMIT, "void f() { constexpr int64_t kLimit = 3; use(kLimit); }")
        self.accepted("namespace {\nstruct Part {};\n}", "namespace other { struct Part {}; Part part; }")

    def test_what_says_where_it_is_from(self):
        self.accepted(LIMIT, "bool fits(uint32_t n) { return n < isa::kLimit; }")
        self.accepted("namespace {\nusing target::Part;\n}", "void g(const Part& part);")

    def test_members_comments_and_texts(self):
        self.accepted(LIMIT, 'const char* f() { return "kLimit"; }  // kLimit')
        self.accepted("namespace {\nstruct Outer {\n  struct Inner {};\n};\n}", "void g(Inner inner);")

    def test_namespaces(self):
        use = "bool fits(uint32_t n) { return n < kLimit; }"
        self.refused(LIMIT, "namespace qplan::pass::detail {\n" + use + "\n}", "kLimit")
        self.accepted(LIMIT, "namespace qplan::passes {\n" + use + "\n}")
        self.accepted(LIMIT, "namespace qplan {\n" + use + "\n}")

    def test_functions_that_two_files_define(self):
        own = "namespace {\nvoid begin(void* user, const Event& event) {\n  use(user);\n}\n}"
        status, message = check(own, "namespace {\nvoid begin(void* data, const Event& e) {}\n}", ("src/host", "src/host"))
        self.assertEqual(status, 1, message)
        self.assertIn("src/host/own.cc: 'begin(void*, const Event&)' is also defined by src/host/other.cc", message)
        self.accepted(own, "namespace {\nvoid begin(int32_t user, const Event& event) {}\n}")
        self.accepted(own, "namespace qplan {\nnamespace {\nvoid begin(void* user, const Event& event) {}\n}\n}")
        self.accepted(own, "namespace {\nvoid begin(void* user, const Event& event);\n}")

    def test_functions_of_tests(self):
        own = "namespace {\nint f() {\n  return 1;\n}\n}"
        with tempfile.TemporaryDirectory() as root:
            for path in ("kernels/add/own_test.cc", "kernels/sub/other_test.cc", "runtime/other_test.cc", "fuzz/x.cc", "fuzz/y.cc"):
                os.makedirs(os.path.join(root, "tests", os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, "tests", path), "w", encoding="utf-8") as out:
                    out.write(own)
            done = subprocess.run([sys.executable, CHECK, root], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.stdout, "tests/kernels/sub/other_test.cc: 'f()' is also defined by tests/kernels/add/own_test.cc\n"
                         "1 names that a unit could mix up\n")

    def test_folders_of_one_target_and_of_two(self):
        use = "namespace qplan::pass {\nbool fits(uint32_t n) { return n < kLimit; }\n}"
        status, message = check(LIMIT, use, folders=("src/packer/passes", "src/packer/op"))
        self.assertEqual(status, 1, message)
        self.accepted(LIMIT, use, folders=("src/packer/passes", "tools"))

    def test_files_without_anonymous_namespace(self):
        self.accepted("namespace qplan {\nconstexpr int kLimit = 8;\n}", "int f() { return kLimit; }")


if __name__ == "__main__":
    unittest.main()
