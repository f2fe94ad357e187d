"""qplan.pack, qplan.Plan, qplan.Error."""

import hashlib
import pathlib
import pickle
import tempfile
import unittest
import zipfile

from support import DIGITS, SHARED, numpy, qplan


class Pack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qplan_test_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_returns_a_plan(self):
        plan = qplan.pack(DIGITS)
        self.assertEqual(plan.inputs[0].shape, (1, 16, 16, 1))
        self.assertEqual(plan.inputs[0].dtype, numpy.int8)

    def test_writes_the_same_plan(self):
        path = self.folder / "x.qplan"
        plan = qplan.pack(str(DIGITS), output=path)
        self.assertEqual(path.read_bytes(), bytes(plan))
        self.assertEqual(bytes(qplan.Plan(path)), bytes(plan))

    def test_packs_bytes(self):
        digests = {qplan.pack(model).inspect()["content_digest"] for model in (DIGITS, DIGITS.read_bytes())}
        self.assertEqual(len(digests), 1)

    def test_targets(self):
        plan = qplan.pack(DIGITS, target="cpu,isa=reference", strip_names=True)
        self.assertEqual(plan.outputs[0].shape, (1, 10))
        with self.assertRaisesRegex(qplan.Error, "abacus"):
            qplan.pack(DIGITS, target="abacus")

    def test_errors_tell_status_and_text(self):
        with self.assertRaises(qplan.Error) as caught:
            qplan.pack(self.folder / "none.tflite", self.folder / "x.qplan")
        self.assertEqual(caught.exception.status_name, "QPLAN_FILE_ERROR")
        self.assertEqual(caught.exception.status, -50)
        self.assertIn("none.tflite", str(caught.exception))
        with self.assertRaises(qplan.Error) as caught:
            qplan.pack(b"this is not a model")
        self.assertEqual(caught.exception.status_name, "QPLAN_MODEL_INVALID")
        self.assertEqual(list(self.folder.iterdir()), [])
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.status, again.text), (caught.exception.status, caught.exception.text))

    def test_output_that_cannot_be_written(self):
        with self.assertRaisesRegex(qplan.Error, "none"):
            qplan.pack(DIGITS, self.folder / "none" / "x.qplan")

    def test_import_text(self):
        for canonical in (False, True):
            self.assertIn("def @main", qplan.import_text(DIGITS, canonical))
        with self.assertRaisesRegex(qplan.Error, "none.tflite"):
            qplan.import_text("none.tflite")


class Plan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = qplan.pack(DIGITS)

    def test_tells_inputs_and_outputs(self):
        tensor = self.plan.outputs[0]
        self.assertEqual((tensor.shape, tensor.dtype, tensor.size_bytes), ((1, 10), numpy.dtype("int8"), 10))
        self.assertEqual((tensor.scale, tensor.zero_point), (1 / 256, -128))
        self.assertIn("int8[1, 10]", str(tensor))
        self.assertIn("int8", repr(self.plan))

    def test_inspect_and_disasm(self):
        report = self.plan.inspect()
        self.assertLessEqual({"content_digest", "inputs", "outputs", "memory", "steps"}, set(report))
        self.assertIn(report["steps"][0]["op"], self.plan.disasm())

    def test_opens_bytes_of_every_kind(self):
        data = bytes(self.plan)
        for source in (data, bytearray(data), memoryview(data), memoryview(b"x" + data)[1:], self.plan):
            self.assertEqual(bytes(qplan.Plan(source)), data)

    def test_refuses_damaged_plans(self):
        data = bytes(self.plan)
        texts = {0: "0 bytes are fewer", 10: "10 bytes are fewer", 64: "", len(data) - 1: ""}
        with tempfile.TemporaryDirectory(prefix="qplan_test_") as folder:
            for size, text in texts.items():
                path = pathlib.Path(folder) / "x.qplan"
                path.write_bytes(data[:size])
                for source in (data[:size], path):
                    with self.assertRaisesRegex(qplan.Error, text) as caught:
                        qplan.Plan(source)
                    self.assertEqual(caught.exception.status_name, "QPLAN_PLAN_CORRUPT", size)
        flipped = bytearray(data)
        flipped[-1] ^= 1
        qplan.Plan(flipped)  # a weight: the structure is whole, and the digest is not asked for
        with self.assertRaisesRegex(qplan.Error, "SHA-256") as caught:
            qplan.Plan(flipped, digest=True)
        self.assertEqual(caught.exception.status_name, "QPLAN_PLAN_CORRUPT")

    def test_refuses_missing_files_and_models(self):
        with self.assertRaisesRegex(qplan.Error, "none.qplan.*No such file"):
            qplan.Plan("none.qplan")
        with self.assertRaises(qplan.Error):
            qplan.Plan(DIGITS)
        with self.assertRaises(TypeError):
            qplan.Plan(7)

    def test_outputs_have_no_labels_where_the_model_has_none(self):
        self.assertEqual(self.plan.labels, ((),))

    def test_is_a_context_manager(self):
        with qplan.Plan(self.plan) as plan:
            self.assertEqual(len(plan.inputs), 1)


LABELLED = SHARED / "models" / "mobilenet_v1_0.25_128_quant.tflite"


@unittest.skipUnless(LABELLED.exists(), "no data directory: set QPLAN_SHARED to a folder with models/")
class Labels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.content = bytes(qplan.pack(LABELLED))

    def changed(self, old, new):
        """The plan with other bytes in its metadata, and their digest in its header."""
        self.assertEqual((self.content.count(old), len(old)), (1, len(new)))
        plan = self.content.replace(old, new)
        return qplan.Plan(plan[:32] + hashlib.sha256(plan[64:]).digest() + plan[64:])

    def test_are_those_in_the_model_file(self):
        with zipfile.ZipFile(LABELLED) as files:
            expected = files.read("imagenet_labels.txt").decode().splitlines()
        plan = qplan.Plan(self.content)
        self.assertEqual(plan.labels, (tuple(expected),))
        self.assertEqual(len(plan.labels[0]), plan.outputs[0].shape[-1])
        self.assertIs(plan.labels, plan.labels)

    def test_name_the_best_class(self):
        scores = numpy.zeros(1001, numpy.uint8)
        scores[653] = 255
        self.assertEqual(qplan.Plan(self.content).labels[0][scores.argmax()], "military uniform")

    def test_are_none_without_names(self):
        self.assertEqual(qplan.pack(LABELLED, strip_names=True).labels, ((),))

    def test_cannot_control_a_terminal(self):
        plan = self.changed(b'"military uniform"', b'"\\u001b[3muniform"')
        self.assertEqual(plan.labels[0][653], "?[3muniform")

    def test_of_damaged_metadata_are_an_error_or_none(self):
        with self.assertRaisesRegex(qplan.Error, "its metadata is damaged; pack the model again") as caught:
            self.changed(b'"background"', b'{"backgr":1}').labels
        self.assertEqual(caught.exception.status_name, "QPLAN_PLAN_CORRUPT")
        self.assertEqual(self.changed(b'"background"', b'"background ').labels, ((),))


if __name__ == "__main__":
    unittest.main()
