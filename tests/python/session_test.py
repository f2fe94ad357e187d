"""qplan.Session: arrays in, arrays out."""

import gc
import threading
import unittest
import weakref

from support import DIGITS, SHARED, digit_input, digit_output, numpy, qplan


class Session(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = qplan.pack(DIGITS)

    def test_gives_the_oracles_bytes(self):
        with qplan.Session(self.plan) as session:
            for digit in range(10):
                outputs = session.run(digit_input(digit))
                self.assertIsInstance(outputs, tuple)
                self.assertEqual(outputs[0].dtype, numpy.int8)
                numpy.testing.assert_array_equal(outputs[0], digit_output(digit))

    def test_results_do_not_depend_on_isa_pool_or_threads(self):
        self.assertIn("reference", qplan.available_isas())
        for isa in [*qplan.available_isas(), "auto"]:
            for pool in ("threads", "openmp"):
                for threads in (1, 2, 3):
                    with self.subTest(isa=isa, pool=pool, threads=threads):
                        with qplan.Session(self.plan, threads=threads, isa=isa, pool=pool) as session:
                            numpy.testing.assert_array_equal(session.run(digit_input(3))[0], digit_output(3))
                            self.assertEqual(session.info.threads, threads)

    def test_accepts_any_strides(self):
        array = digit_input(8)
        wide = numpy.zeros((2, 32, 16, 3), numpy.int8)
        wide[1:, ::-2, ::-1, 1:2] = array
        record = numpy.zeros((1, 16, 16, 1), [("pad", "u1"), ("x", "i1"), ("more", "u2")])
        record["x"] = array
        fortran = numpy.asfortranarray(array)
        constant = numpy.broadcast_to(numpy.int8(5), array.shape)
        with qplan.Session(self.plan) as session:
            for view in (wide[1:, ::-2, ::-1, 1:2], record["x"], fortran, array.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)):
                numpy.testing.assert_array_equal(session.run(view)[0], digit_output(8))
            numpy.testing.assert_array_equal(session.run(constant)[0], session.run(constant.copy())[0])

    def test_inputs_by_name(self):
        name = self.plan.inputs[0].name
        with qplan.Session(self.plan) as session:
            numpy.testing.assert_array_equal(session.run({name: digit_input(2)})[0], digit_output(2))
            with self.assertRaisesRegex(qplan.Error, "nobody"):
                session.run({"nobody": digit_input(2)})
            with self.assertRaises(qplan.Error):
                session.run({})

    def test_says_what_is_wrong_with_inputs(self):
        array = digit_input(0)
        cases = [
            ((array.astype(numpy.uint8),), "QPLAN_DTYPE_MISMATCH", "uint8.*int8"),
            ((array.astype(numpy.float32),), "QPLAN_DTYPE_MISMATCH", "float32.*int8"),
            (([[1, 2]],), "QPLAN_DTYPE_MISMATCH", "int64"),
            ((array[0],), "QPLAN_SHAPE_MISMATCH", r"\(16, 16, 1\).*\(1, 16, 16, 1\)"),
            ((array[:, :15],), "QPLAN_SHAPE_MISMATCH", r"\(1, 15, 16, 1\)"),
            ((), "QPLAN_INVALID_ARGUMENT", "found 0"),
            ((array, array), "QPLAN_INVALID_ARGUMENT", "found 2"),
        ]
        with qplan.Session(self.plan) as session:
            for inputs, status, text in cases:
                with self.assertRaisesRegex(qplan.Error, text) as caught:
                    session.run(*inputs)
                self.assertEqual(caught.exception.status_name, status)

    def test_says_what_is_wrong_with_options(self):
        for options in ({"threads": 0}, {"threads": -1}, {"threads": 1.5}, {"isa": "sse9"}, {"pool": "tide"}):
            with self.assertRaises(qplan.Error) as caught:
                qplan.Session(self.plan, **options)
            self.assertEqual(caught.exception.status_name, "QPLAN_INVALID_ARGUMENT")
        with self.assertRaisesRegex(qplan.Error, "this machine has .*reference"):
            qplan.Session(self.plan, isa="sse9")

    def test_outputs_are_the_callers_own(self):
        with qplan.Session(self.plan) as session:
            first = session.run(digit_input(1))[0]
            session.run(digit_input(2))
            numpy.testing.assert_array_equal(first, digit_output(1))
        numpy.testing.assert_array_equal(first, digit_output(1))

    def test_keeps_its_plan(self):
        session = qplan.Session(bytes(self.plan), threads=2)
        gc.collect()
        numpy.testing.assert_array_equal(session.run(digit_input(9))[0], digit_output(9))
        plan = weakref.ref(session.plan)
        session.close()
        session.close()
        with self.assertRaises(qplan.Error) as caught:
            session.run(digit_input(9))
        self.assertEqual(caught.exception.status_name, "QPLAN_INVALID_STATE")
        with self.assertRaises(qplan.Error):
            session.info
        del session
        gc.collect()
        self.assertIsNone(plan())

    def test_dropped_sessions_release_everything(self):
        for _ in range(50):
            qplan.Session(self.plan, threads=2).run(digit_input(0))
        gc.collect()
        self.assertLess(threading_count(), 30)

    def test_serves_several_threads(self):
        failures = []
        with qplan.Session(self.plan, threads=2) as session:

            def work(digit):
                for _ in range(20):
                    if not numpy.array_equal(session.run(digit_input(digit))[0], digit_output(digit)):
                        failures.append(digit)

            workers = [threading.Thread(target=work, args=(digit,)) for digit in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        self.assertEqual(failures, [])

    def test_info(self):
        with qplan.Session(self.plan, isa="reference") as session:
            info = session.info
        self.assertEqual((info.isa, info.threads), ("reference", 1))
        self.assertEqual(info.steps, len(self.plan.inspect()["steps"]))
        self.assertGreater(info.macs, 0)
        self.assertGreater(info.memory_bytes, 0)

    @unittest.skipUnless((SHARED / "models").is_dir(), f"no reference data in '{SHARED}' (QPLAN_SHARED)")
    def test_several_inputs_and_outputs(self):
        plan = qplan.pack(SHARED / "models" / "split_concat.tflite")
        golden = SHARED / "golden" / "split_concat" / "rand1"

        def load(kind, index, info):
            return numpy.fromfile(golden / f"{kind}{index}.bin", info.dtype).reshape(info.shape)

        inputs = [load("input", i, info) for i, info in enumerate(plan.inputs)]
        with qplan.Session(plan) as session:
            outputs = session.run(*inputs)
            by_name = session.run({info.name: array for info, array in zip(plan.inputs, inputs)})
        self.assertEqual(len(outputs), len(plan.outputs))
        for i, info in enumerate(plan.outputs):
            numpy.testing.assert_array_equal(outputs[i], load("output", i, info))
            numpy.testing.assert_array_equal(by_name[i], outputs[i])


def threading_count():
    """Threads of this process, the library's too."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return int(next(line for line in status if line.startswith("Threads:")).split()[1])


if __name__ == "__main__":
    unittest.main()
