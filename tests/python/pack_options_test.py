"""Options of qplan.pack and qplan.import_text, on Relay text."""

import json
import logging
import re
import signal
import tempfile
import unittest
from pathlib import Path

from support import DIGITS, numpy, qplan
from qplan._attrs import c_attr

LAYER = b"""\
%0 = qnn.quantize(%input, 0.5f, 3, out_dtype="uint8", axis=1);
%1 = qnn.quantize(%weight, 0.25f, 0, out_dtype="int8", axis=0);
%2 = qnn.conv2d(%0, %1, 3, 0, 0.5f, 0.25f, channels=2, kernel_size=[1, 1], out_dtype="int32");
%3 = qnn.requantize(%2, 0.125f, 0, 1f, 0, axis=1, out_dtype="uint8");
"""
SHAPE = {"input": (1, 2, 2, 2)}
WEIGHT = numpy.array([1, -2, 0.5, 4], numpy.float32).reshape(2, 2, 1, 1)
INPUT = numpy.arange(1, 9, dtype=numpy.float32).reshape(1, 2, 2, 2)


class Options(unittest.TestCase):
    def run_plan(self, plan):
        with qplan.Session(plan) as session:
            return session.run(INPUT)[0]

    def test_bound_weights_compute(self):
        plan = qplan.pack(LAYER, input_types=SHAPE, bindings={"weight": WEIGHT})
        # x0 - 2 x1 is never positive; 0.5 x0 + 4 x1, halves away from zero
        expected = [[[[0, 0], [0, 0]], [[21, 25], [30, 34]]]]
        self.assertEqual(self.run_plan(plan).tolist(), expected)

    def test_bindings_may_have_strides(self):
        transposed = numpy.ascontiguousarray(WEIGHT.transpose(1, 0, 2, 3)).transpose(1, 0, 2, 3)
        plans = [qplan.pack(LAYER, input_types=SHAPE, bindings={"weight": w}) for w in (WEIGHT, transposed)]
        self.assertEqual(bytes(plans[0]), bytes(plans[1]))

    def test_types_with_a_dtype(self):
        types = {"input": ((1, 2, 2, 2), "float32")}
        self.assertEqual(qplan.pack(LAYER, input_types=types, synthesize_constants=3).inputs[0].shape, (1, 2, 2, 2))
        with self.assertRaisesRegex(qplan.Error, "int8"):
            qplan.pack(LAYER, input_types={"input": ((1, 2, 2, 2), "int8")})

    def test_a_model_in_two_parts_computes_what_it_computes_whole(self):
        first, second = qplan.pack(DIGITS, end_at=["pool"]), qplan.pack(DIGITS, begin_at=["pool"])
        self.assertEqual([tensor.name for tensor in (*first.outputs, *second.inputs)], ["pool", "pool"])
        image = numpy.random.default_rng(3).integers(-128, 128, (1, 16, 16, 1)).astype(numpy.int8)
        with qplan.Session(first) as one, qplan.Session(second) as two, qplan.Session(qplan.pack(DIGITS)) as whole:
            numpy.testing.assert_array_equal(two.run(one.run(image)[0])[0], whole.run(image)[0])
        with self.assertRaisesRegex(qplan.Error, "the model has no such tensor"):
            qplan.pack(DIGITS, end_at=["nothing"])
        with self.assertRaisesRegex(qplan.Error, "end_at is 'pool', expected a list"):
            qplan.pack(DIGITS, end_at="pool")

    def test_synthesised_constants_follow_the_seed(self):
        plans = [bytes(qplan.pack(LAYER, input_types=SHAPE, synthesize_constants=seed)) for seed in (0, 0, 1)]
        self.assertEqual(plans[0], plans[1])
        self.assertNotEqual(plans[0], plans[2])

    def test_numbers_that_c_would_wrap_are_refused(self):
        cases = [
            ("max_ram", (2**64 + 1000000, -1, 1.5, True)),
            ("self_check", (2**32 + 1, 65, -1, 1.5, True)),
            ("tuning_threads", (2**32 + 1, -1)),
            ("synthesize_constants", (2**64, -1, True)),
        ]
        for name, values in cases:
            for value in values:
                with self.assertRaisesRegex(qplan.Error, f"{name} is .*, expected a number from 0 to") as raised:
                    qplan.pack(DIGITS, **{name: value})
                self.assertEqual(raised.exception.status_name, "QPLAN_INVALID_ARGUMENT")
        for value in (2**63, [1, -(2**63) - 1], [[2**64]]):
            with self.assertRaisesRegex(qplan.Error, "attribute 'axis' is"):
                c_attr("axis", value)
        self.assertEqual(c_attr("axis", -(2**63)).integer, -(2**63))
        for name in ("strip_names", "keep_float"):
            plans = [bytes(qplan.pack(DIGITS, **{name: value})) for value in (True, 2**32)]
            self.assertEqual(*plans)
        with self.assertRaisesRegex(qplan.Error, "input_types: extent 1 of 'x' is"):
            qplan.pack(LAYER, input_types={"x": (1, 2**64 + 2, 2, 2)}, synthesize_constants=3)

    def test_max_ram_is_a_limit_that_names_the_largest_step(self):
        target = "cpu,arch=cortex-m4"
        least = qplan.pack(DIGITS, target=target, fuse="memory")
        self.assertEqual(bytes(qplan.pack(DIGITS, target=target, max_ram=1 << 20)), bytes(qplan.pack(DIGITS, target=target)))
        with self.assertRaisesRegex(qplan.Error, r"^max_ram: .* takes (\d+) bytes, expected at most 1: step \d+ '") as raised:
            qplan.pack(DIGITS, target=target, max_ram=1)
        needed = int(re.search(r"takes (\d+) bytes", str(raised.exception)).group(1))
        self.assertEqual(bytes(qplan.pack(DIGITS, target=target, fuse="off", max_ram=needed)), bytes(least))

    def test_refusals(self):
        with self.assertRaisesRegex(qplan.Error, "--input-shape input="):
            qplan.pack(LAYER)
        with self.assertRaisesRegex(qplan.Error, "no input or free variable 'w'"):
            qplan.pack(LAYER, input_types=SHAPE, bindings={"w": WEIGHT})
        with self.assertRaisesRegex(qplan.Error, "no pass or rewrite 'nothing'"):
            qplan.pack(DIGITS, skip=["nothing"])
        with self.assertRaisesRegex(TypeError, "dtype"):
            qplan.pack(LAYER, input_types={"input": ((1,), "U3")})

    def test_unknown_options_are_named_as_the_caller_wrote_them(self):
        with self.assertRaisesRegex(TypeError, r"^qplan\.pack\(\) has no option 'fused'; did you mean 'fuse'\?$"):
            qplan.pack(DIGITS, fused="off")
        with self.assertRaisesRegex(TypeError, r"^qplan\.pack\(\) has no option 'zzz'; expected one of .*contract"):
            qplan.pack(DIGITS, zzz=1)
        with self.assertRaisesRegex(TypeError, r"^qplan\.import_text\(\) has no option 'bodi'; did you mean 'body'\?$"):
            qplan.import_text(DIGITS, canonical=True, bodi=True)

    def test_ctrl_c_ends_packing_wherever_it_arrives(self):
        # The signal is raised inside the log callback of each pass in turn, which is where Python used to lose it.
        with self.assertLogs("qplan", logging.DEBUG) as log:
            qplan.pack(DIGITS)
        num_records = len(log.records)
        for ordinal in (0, 3, 10):
            seen = []

            def interrupt(record):
                seen.append(record)
                if len(seen) == ordinal + 1:
                    signal.raise_signal(signal.SIGINT)
                return False

            logger = logging.getLogger("qplan")
            level = logger.level
            handler = logging.NullHandler()
            logger.addFilter(interrupt)
            logger.addHandler(handler)
            logger.setLevel(logging.DEBUG)
            try:
                with self.assertRaises(KeyboardInterrupt):
                    qplan.pack(DIGITS)
            finally:
                logger.removeFilter(interrupt)
                logger.removeHandler(handler)
                logger.setLevel(level)
            self.assertLess(len(seen), num_records // 2)  # it ended early, not after the work was done
            self.assertEqual(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        self.assertGreater(len(bytes(qplan.pack(DIGITS))), 1000)  # and the next call is not ended

    def test_an_exception_of_a_log_handler_ends_packing_and_is_raised(self):
        def fail(_record):
            raise ValueError("the handler is broken")

        logger = logging.getLogger("qplan")
        level = logger.level
        logger.addFilter(fail)
        logger.setLevel(logging.DEBUG)
        try:
            with self.assertRaisesRegex(ValueError, "the handler is broken"):
                qplan.pack(DIGITS)
        finally:
            logger.removeFilter(fail)
            logger.setLevel(level)

    def test_dump_after(self):
        dumps = []
        qplan.pack(DIGITS, dump_after="import", dump=dumps.append)
        self.assertEqual(len(dumps), 1)
        self.assertTrue(dumps[0].startswith("// after import\n"))

    def test_log_follows_the_level_of_the_logger(self):
        with self.assertLogs("qplan", logging.DEBUG) as log:
            qplan.pack(DIGITS)
        self.assertTrue(any(record.levelno == logging.INFO for record in log.records))
        self.assertTrue(any(record.levelno == logging.DEBUG for record in log.records))

    def test_why_not_and_body(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "layer.relay"
            path.write_bytes(LAYER)
            report = qplan.import_text(path, input_types=SHAPE, why_not="quantize_constant")
            self.assertIn("expected constant, found parameter '%weight'", report)
            body = qplan.import_text(path, True, input_types=SHAPE, bindings={"weight": WEIGHT}, body=True)
            self.assertIn("def @body(", body)

    def test_operators_that_come_with_qplan_need_no_library(self):
        # Two boxes around their anchors, which are disjoint: both stay, the better one first.
        options = {"max_detections": [2.0], "num_classes": [1.0], "nms_iou_threshold": [0.5],
                   **{f"{axis}_scale": [1.0] for axis in "yxhw"}}
        quoted = json.dumps(options).replace('"', '\\"')
        text = f"""#[version = "0.0.5"]
def @main(%boxes: Tensor[(1, 2, 4), float32], %scores: Tensor[(1, 2, 1), float32], %anchors: Tensor[(2, 4), float32],
          output_names=["a", "b", "c", "d"]) {{
  %0 = custom((%boxes, %scores, %anchors), operator="TFLite_Detection_PostProcess", options="{quoted}",
              shapes=[[1, 2, 4], [1, 2], [1, 2], [1]], dtypes="float32,float32,float32,float32",
              scales="[0,0,0,0,0,0,0]", zero_points=[0, 0, 0, 0, 0, 0, 0], scratch_bytes=1024);
  (%0.0, %0.1, %0.2, %0.3)
}}"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "detector.relay"
            path.write_text(text, encoding="utf-8")
            plan = qplan.pack(path)
        anchors = numpy.array([[0.25, 0.25, 0.5, 0.5], [0.75, 0.75, 0.25, 0.5]], numpy.float32)
        with qplan.Session(plan) as session:
            boxes, classes, scores, count = session.run(
                numpy.zeros((1, 2, 4), numpy.float32), numpy.array([[[0.5], [0.75]]], numpy.float32), anchors)
        self.assertEqual(boxes.tolist(), [[[0.625, 0.5, 0.875, 1.0], [0.0, 0.0, 0.5, 0.5]]])
        self.assertEqual((classes.tolist(), scores.tolist(), count.tolist()), ([[0, 0]], [[0.75, 0.5]], [2]))


if __name__ == "__main__":
    unittest.main()
