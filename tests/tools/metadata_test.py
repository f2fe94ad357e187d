"""Labels and normalisation that a TFLite model brings along: run needs no --labels, --mean and --std then."""

import unittest
import zipfile

from support import DIGITS, SHARED, CommandTest, needs_shared, with_digest

MODEL = SHARED / "models" / "mobilenet_v1_0.25_128_quant.tflite"
PICTURE = SHARED / "images" / "grace_hopper.bmp"


class Metadata(CommandTest):
    def test_a_model_without_metadata_has_none(self):
        self.assertIsNone(self.succeed_json("inspect", self.plan, "--json")["metadata"])
        self.assertNotIn("tench", self.succeed("run", self.plan, "--input", self.digit_input(1)))
        self.assertEqual(DIGITS.read_bytes().count(b"TFLITE_METADATA"), 0)

    def packed(self, *options):
        plan = self.folder / "model.qplan"
        self.succeed("pack", MODEL, "-o", plan, *options)
        return plan

    @needs_shared
    def test_the_labels_of_a_published_model_name_its_classes(self):
        plan = self.packed()
        with zipfile.ZipFile(MODEL) as files:  # the associated files after the model
            labels = self.file("labels.txt", files.read("imagenet_labels.txt"))
        named = self.succeed("run", plan, "--input", PICTURE, "--labels", labels)
        self.assertEqual(self.succeed("run", plan, "--input", PICTURE), named)
        self.assertIn("military uniform", named)
        metadata = self.succeed_json("inspect", plan, "--json")["metadata"]
        self.assertEqual(metadata["outputs"][0]["labels"], labels.read_text().splitlines())
        top = self.succeed_json("run", plan, "--input", PICTURE, "--json")["outputs"][0]["top"]
        self.assertEqual(len(top), 5)

    @needs_shared
    def test_the_normalisation_is_that_of_mean_and_std(self):
        plan = self.packed("--io", "float")
        normalisation = self.succeed_json("inspect", plan, "--json")["metadata"]["inputs"][0]
        given = [",".join(str(value) for value in normalisation[name]) for name in ("mean", "std")]
        expected = self.succeed("run", plan, "--input", PICTURE, "--mean", given[0], "--std", given[1])
        self.assertEqual(self.succeed("run", plan, "--input", PICTURE), expected)
        self.assertNotEqual(self.succeed("run", plan, "--input", PICTURE, "--mean", "0", "--std", "255"), expected)

    @needs_shared
    def test_labels_cannot_control_the_terminal(self):
        content = self.packed().read_bytes()
        self.assertEqual(content.count(b'"military uniform"'), 1)
        plain, escape = b'"military uniform"', b'"\\u001b[3muniform"'
        self.assertEqual(len(plain), len(escape))
        hostile = self.file("hostile.qplan", with_digest(content.replace(plain, escape)))
        text = self.succeed("run", hostile, "--input", PICTURE)
        self.assertNotIn("\x1b", text)
        self.assertIn("uniform", text)

    @needs_shared
    def test_damaged_metadata_is_an_error_or_none(self):
        content = self.packed().read_bytes()
        self.assertEqual(content.count(b'"background"'), 1)
        number = self.file("number.qplan", with_digest(content.replace(b'"background"', b'{"backgr":1}')))
        self.refused(1, ["its metadata is damaged", "pack the model again"], "run", number, "--input", PICTURE)
        no_json = self.file("no_json.qplan", with_digest(content.replace(b'"background"', b'"background ')))
        self.assertIsNone(self.succeed_json("inspect", no_json, "--json")["metadata"])
        self.assertNotIn("uniform", self.succeed("run", no_json, "--input", PICTURE))


if __name__ == "__main__":
    unittest.main()
