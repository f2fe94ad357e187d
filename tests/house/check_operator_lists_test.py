"""check_operator_lists.py finds what it is there for, and nothing else.   usage: check_operator_lists_test.py CHECK"""
import os
import subprocess
import sys
import tempfile
import unittest

CHECK = sys.argv.pop(1)
OPS = "".join(f"QPLAN_OP({name})\n" for name in ("add", "clip", "mean", "reshape", "qnn_add", "nn_pad", "image_resize2d"))


def check(text, path="src/packer/passes/fold.cc"):
    with tempfile.TemporaryDirectory() as root:
        for name, content in {"src/packer/op/ops.def": OPS, path: text}.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as out:
                out.write(content)
        done = subprocess.run([sys.executable, CHECK, root], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


class CheckOperatorLists(unittest.TestCase):
    def refused(self, text, line=1):
        status, message = check(text)
        self.assertEqual(status, 1, message)
        self.assertIn(f"src/packer/passes/fold.cc:{line}: a list of operators", message)

    def accepted(self, text, path="src/packer/passes/fold.cc"):
        status, message = check(text, path)
        self.assertEqual(status, 0, message)

    def test_lists_of_names(self):
        self.refused('constexpr const char* kMoves[] = {"reshape", "nn.pad", "clip", "mean"};')
        self.refused('\nfor (const char* name : {"qnn.add", "add", "image.resize2d", "clip"}) use(name);', 2)

    def test_tables_of_rows(self):
        self.refused('Row kRows[] = {{"reshape", 1}, {"nn.pad", 2}, {"clip", 3}, {"mean", 4}};')

    def test_chains_of_comparisons(self):
        self.refused('bool f(Node n) { return n.is("add") || n.is("clip") || n.is("mean") || n.is("nn.pad"); }')
        self.refused('bool f() { return name == "add" || name == "clip" || name == "mean" || name == "nn.pad"; }')
        self.refused('bool f() { return is(n, "add") || is(n, "clip") || is(n, "mean") || is(n, "nn.pad"); }')

    def test_a_few_names_are_no_list(self):
        self.accepted('constexpr const char* kSums[] = {"add", "qnn.add", "mean"};')
        self.accepted('void f() { if (n.is("add")) a(); if (n.is("clip")) b(); if (n.is("mean")) c(); if (n.is("nn.pad")) d(); }')

    def test_statements_of_their_own_are_no_list(self):
        self.accepted('void f() { if (n.is("add")) { a(); } if (n.is("clip")) { b(); } if (n.is("mean")) { c(); } if (n.is("nn.pad")) { d(); } }')

    def test_patterns_are_about_their_operators(self):
        self.accepted('const Pattern p = one_of({"add", "clip", "mean", "nn.pad"});')
        self.accepted('const Row r = {"x", op("add", {op("clip", {op("mean", {op("nn.pad")})})}), build};')
        self.accepted('void f() { a = post.call("add"); b = post.call("clip"); c = post.call("mean"); d = post.call("nn.pad"); }')

    def test_other_words_and_comments_are_none(self):
        self.accepted('const char* kWords[] = {"axis", "layout", "contract", "strides"};')
        self.accepted('int x;  // {"add", "clip", "mean", "nn.pad"}\n')

    def test_tables_with_a_reason_stay(self):
        self.accepted('// operator list: each has its function\nRow r[] = {{"add", a}, {"clip", b}, {"mean", c}, {"nn.pad", d}};')

    def test_definitions_and_importers_name_operators(self):
        for path in ("src/packer/op/elementwise.cc", "src/packer/import/onnx/op_elementwise.cc"):
            self.accepted('const char* k[] = {"add", "clip", "mean", "nn.pad"};', path)


if __name__ == "__main__":
    unittest.main()
