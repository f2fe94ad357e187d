"""qplan eval: accuracy over a folder, the most frequent mistakes, and comparisons of answers."""

import csv
import json
import math
import shutil
import struct
import unittest

from support import DIGITS, DIGITS_LABELS, CommandTest

ADD = "add(%x, %x)"


class Eval(CommandTest):
    """The ten digits, whose answers follow from the oracle's outputs."""

    def setUp(self):
        super().setUp()
        self.images = self.folder / "images"
        (self.images / "odd").mkdir(parents=True)
        self.answers = {}
        for digit in range(10):
            name = f"odd/d{digit}.bin" if digit % 2 else f"d{digit}.bin"
            shutil.copy(self.digit_input(digit), self.images / name)
            scores = [(byte + 128) % 256 for byte in self.digit_output(digit)]  # int8 as 0..255, in the same order
            self.answers[name] = scores.index(max(scores))

    def table(self, name, rows, heading="file,class\n"):
        return self.file(name, (heading + "".join(f"{file},{value}\n" for file, value in rows.items())).encode())

    def test_counts_right_answers_and_lists_mistakes(self):
        wrong = dict(self.answers)
        first, second = list(wrong)[:2]
        wrong[first], wrong[second] = 9, 9
        expected = {(9, self.answers[first]), (9, self.answers[second])}
        labels = self.table("labels.csv", wrong)
        report = self.succeed_json("eval", self.plan, "--images", self.images, "--labels", labels, "--json")
        self.assertEqual((report["pictures"], report["labelled"], report["right"]), (10, 10, 8))
        self.assertAlmostEqual(report["top1"], 0.8)
        self.assertEqual({(c["label"], c["answer"]) for c in report["confusions"]}, expected)
        all_right = self.succeed("eval", self.plan, "--images", self.images, "--labels", self.table("r.csv", self.answers))
        self.assertIn("top-1  100.00 % (10 of 10)", all_right)
        ten = self.succeed_json("eval", self.plan, "--images", self.images, "--labels", labels, "--top", "10", "--json")
        self.assertEqual(ten["topk"], 1.0)

    def test_classes_may_be_names_and_files_without_folders(self):
        names = DIGITS_LABELS.read_text().splitlines()
        rows = {file.split("/")[-1]: names[value] for file, value in self.answers.items()}
        labels = self.table("labels.csv", rows, heading="")
        text = self.succeed("eval", self.plan, "--images", self.images, "--labels", labels, "--names", DIGITS_LABELS)
        self.assertIn("top-1  100.00 %", text)
        shifted = self.table("shifted.csv", {file: value - 1 for file, value in self.answers.items()}, heading="")
        self.succeed("eval", self.plan, "--images", self.images, "--labels", shifted, "--label-offset", "1")
        self.refused(1, ["has class -1", "--label-offset"], "eval", self.plan, "--images", self.images, "--labels", shifted)

    def test_answers_are_compared_with_plans_models_and_files(self):
        answers = dict(self.answers)
        answers["d0.bin"] = (answers["d0.bin"] + 1) % 10
        file = self.table("answers.csv", answers)
        report = self.succeed_json("eval", self.plan, "--images", self.images, "--against", file, "--json")
        self.assertAlmostEqual(report["agreement"], 0.9)
        for other in (self.plan, DIGITS):
            report = self.succeed_json("eval", self.plan, "--images", self.images, "--against", other, "--json")
            self.assertEqual(report["agreement"], 1.0)
        table = self.folder / "out.csv"
        self.succeed("eval", self.plan, "--images", self.images, "--against", file, "--csv", table)
        with open(table, newline="") as lines:
            rows = {row["file"]: row for row in csv.DictReader(lines)}
        self.assertEqual({name: int(row["answer"]) for name, row in rows.items()}, self.answers)
        self.assertEqual({name: int(row["answer_of_other"]) for name, row in rows.items()}, answers)

    def test_states_begin_anew_with_each_file(self):
        # kept = kept + x: the largest of the first picture would stay the largest.
        model = self.file("kept.relay", b"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), int8], %s: Tensor[(1, 4), int8], states=[[1, 1]], state_bytes=[[0, 0, 0, 0]]) {
  %0 = qnn.add(%s, %x, 1f, 0, 1f, 0, 1f, 0);
  (%0, %0)
}
""")
        folder = self.folder / "sequences"
        folder.mkdir()
        (folder / "a.bin").write_bytes(bytes([100, 0, 0, 0]))
        (folder / "b.bin").write_bytes(bytes([0, 0, 7, 0]))
        labels = self.file("labels.csv", b"a.bin,0\nb.bin,2\n")
        plan = self.folder / "kept.qplan"
        self.succeed("pack", model, "-o", plan)
        result = self.succeed_json("eval", plan, "--images", folder, "--labels", labels, "--against", plan, "--json")
        self.assertEqual((result["right"], result["agreement"]), (2, 1))

    def test_a_name_of_two_classes_is_refused(self):
        names = self.file("names.txt", b"crane\n" + b"x\n" * 8 + b"crane\n")
        folder = self.folder / "cranes"
        folder.mkdir()
        (folder / "a.bin").write_bytes(self.digit_input(3).read_bytes())
        labels = self.file("labels.csv", b"file,class\na.bin,crane\n")
        self.refused(1, ["line 2: 'crane' is the name of two classes in --names"], "eval", self.plan, "--images", folder, "--labels",
                     labels, "--names", names)

    def test_errors(self):
        images = ("--images", self.images)
        self.refused(2, ["--labels CSV, --against"], "eval", self.plan, *images)
        self.refused(1, ["has no pictures"], "eval", self.plan, "--images", self.tmp("empty"), "--against", DIGITS)
        del self.answers["d0.bin"]
        few = self.table("few.csv", self.answers)
        self.refused(1, ["no class for 1 picture, the first is 'd0.bin'"], "eval", self.plan, *images, "--labels", few)
        self.answers.update({"d0.bin": 0, "gone.bin": 1})
        many = self.table("many.csv", self.answers)
        self.refused(1, ["names 1 file that", "'gone.bin'"], "eval", self.plan, *images, "--labels", many)
        names = self.file("bad.csv", b"file,class\nd2.bin,two\n")
        self.refused(1, ["line 2: 'two' is no number; --names"], "eval", self.plan, *images, "--labels", names)

    def test_malformed_tables_are_refused(self):
        def refuse(text, table, *options):
            labels = self.file("labels.csv", table)
            self.refused(1, [text], "eval", self.plan, "--images", self.images, "--labels", labels, *options)

        refuse("line 1: '9x' is no number", b"d0.bin,9x\nd2.bin,2\n")
        refuse("line 4: '2x' is no number", b"file,class\n\nd0.bin,0\nd2.bin,2x\n")
        refuse("line 2: a quotation mark begins a field", b'file,class\n"d0.bin,0\nd2.bin,2\n')
        refuse("line 4: expected a comma or the end", b'file,class\n"d0.bin,0\nd2.bin",2\n"d4.bin"x,4\n')
        names = self.file("names.txt", b"zero\n\ntwo\n")
        refuse("line 2: '' is no number and not in --names", b"d2.bin,two\nd0.bin,\n", "--names", names)

    def test_quotation_marks_and_byte_order_marks(self):
        mark = "\ufeff".encode()
        rows = dict(self.answers)
        rows['"odd/d1.bin"'] = rows.pop("odd/d1.bin")
        labels = self.file("labels.csv", mark + "".join(f"{file},{value}\r\n\r\n" for file, value in rows.items()).encode())
        report = self.succeed_json("eval", self.plan, "--images", self.images, "--labels", labels, "--json")
        self.assertEqual((report["labelled"], report["top1"]), (10, 1.0))
        names = self.file("names.txt", mark + DIGITS_LABELS.read_bytes())
        first = DIGITS_LABELS.read_text().splitlines()[0]
        wrong = {**self.answers, "d2.bin": first}
        text = self.succeed("eval", self.plan, "--images", self.images, "--names", names, "--labels", self.table("w.csv", wrong))
        self.assertIn(f"'{first}' taken for", text)
        shown = self.succeed("run", self.plan, "--input", self.digit_input(0), "--labels", names, "--top", 10)
        self.assertNotIn("\ufeff", shown)

    def scores(self, result, *options):
        """The report on two files of scores, of which the first has no number."""
        folder = self.folder / "scores"
        folder.mkdir(exist_ok=True)
        for name, values in {"a.bin": [math.nan] * 4, "b.bin": [math.nan, 0, 3, 0]}.items():
            (folder / name).write_bytes(struct.pack("<4f", *values))
        labels = self.file("labels.csv", b"a.bin,0\nb.bin,2\n")
        model = self.file("scores.relay", f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), float32]) {{
  {result}
}}
""".encode())
        return self.succeed("eval", model, "--images", folder, "--labels", labels, *options)

    def test_a_nan_is_no_answer(self):
        table = self.folder / "answers.csv"
        report = json.loads(self.scores(ADD, "--json", "--csv", table))
        self.assertEqual((report["right"], report["topk"]), (1, 0.5))
        self.assertEqual([(c["label"], c["answer_name"]) for c in report["confusions"]], [(0, "no answer")])
        self.assertEqual(table.read_text().splitlines()[1], "a.bin,-1,,0,0,")
        self.assertIn("1 x  0 taken for no answer", self.scores(ADD))

    def test_booleans_are_scores(self):
        report = json.loads(self.scores('cast(%x, dtype="bool")', "--json"))  # NaN is true
        self.assertEqual((report["right"], report["topk"]), (1, 1.0))
        self.assertEqual([(c["label"], c["answer"]) for c in report["confusions"]], [(2, 0)])

    def tmp(self, name):
        (self.folder / name).mkdir()
        return self.folder / name


if __name__ == "__main__":
    unittest.main()
