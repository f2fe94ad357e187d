"""qplan.Session: arrays in, arrays out."""

import gc
import os
import signal
import threading
import time
import unittest
import warnings
import weakref

from support import DIGITS, SHARED, digit_input, digit_output, numpy, qplan, run_program


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

    def test_states_go_on_from_run_to_run_until_a_reset(self):
        model = b"""#[version = "0.0.5"]
def @main(%x: Tensor[(4), int8], %s: Tensor[(4), int8], %t: Tensor[(4), int8], states=[[1, 1], [2, 2]],
          state_bytes=[[1, 2, 3, 4], [5]]) {
  %0 = qnn.add(%s, %x, 1f, 0, 1f, 0, 1f, 0);
  %1 = qnn.add(%t, %0, 1f, 0, 1f, 0, 1f, 0);
  %2 = qnn.add(%1, %x, 1f, 0, 1f, 0, 1f, 0);
  (%1, %0, %2)
}
"""
        with qplan.Session(qplan.pack(model)) as session:
            for _ in range(2):
                s, t = numpy.array([1, 2, 3, 4], numpy.int8), numpy.full(4, 5, numpy.int8)
                for x in numpy.array([[1, 2, 3, 4], [-9, 8, -7, 6], [0, 0, 0, 0]], numpy.int8):
                    s = s + x
                    numpy.testing.assert_array_equal(session.run(x)[0], t + s)
                    t = t + s + x
                session.reset_state()

    def test_bound_arrays_are_used_where_they_are(self):
        x, y = self.plan.inputs[0].empty(), self.plan.outputs[0].empty()
        self.assertEqual((x.shape, x.dtype), (self.plan.inputs[0].shape, self.plan.inputs[0].dtype))
        with qplan.Session(self.plan) as session:
            session.bind("input", 0, x)
            session.bind("output", 0, y)
            for digit in (4, 9):
                x[...] = digit_input(digit)
                session.invoke()
                numpy.testing.assert_array_equal(y, digit_output(digit))
            session.bind("input", 0, None)
            session.bind("output", 0, None)
            numpy.testing.assert_array_equal(session.run(digit_input(1))[0], digit_output(1))
            numpy.testing.assert_array_equal(y, digit_output(9))

    def test_outputs_that_are_one_tensor_have_one_array(self):
        text = "def @main(%x: Tensor[(4), int8]) {\n  %0 = qnn.add(%x, %x, 1f, 0, 1f, 0, 1f, 0);\n  (%0, %0)\n}\n"
        plan = qplan.pack(text.encode())
        with qplan.Session(plan) as session:
            y = plan.outputs[0].empty()
            session.bind("output", 0, y)
            session.inputs[0].array[...] = 5
            session.invoke()
            self.assertIs(session.outputs[1].array, y)
            self.assertEqual(y.tolist(), [10] * 4)

    def test_a_session_keeps_the_arrays_it_is_bound_to(self):
        x = self.plan.inputs[0].empty()
        x[...] = digit_input(6)
        alive = weakref.ref(x)
        with qplan.Session(self.plan) as session:
            session.bind("input", 0, x)
            del x
            gc.collect()
            self.assertIsNotNone(alive())
            session.invoke()

    def test_says_what_is_wrong_with_bound_arrays(self):
        x = self.plan.inputs[0].empty()
        constant = self.plan.outputs[0].empty()
        constant.flags.writeable = False
        cases = [
            ("input", x.astype(numpy.float32), "QPLAN_DTYPE_MISMATCH", "float32|int8"),
            ("input", x[:, ::2], "QPLAN_INVALID_ARGUMENT", "ascontiguousarray"),
            ("input", x.reshape(16, 16), "QPLAN_SHAPE_MISMATCH", "16"),
            ("output", constant, "QPLAN_INVALID_ARGUMENT", "read-only"),
            ("inputs", x, "QPLAN_INVALID_ARGUMENT", "'input' or 'output'"),
        ]
        with qplan.Session(self.plan) as session:
            for direction, array, status, text in cases:
                with self.assertRaisesRegex(qplan.Error, text) as caught:
                    session.bind(direction, 0, array)
                self.assertEqual(caught.exception.status_name, status)
            with self.assertRaisesRegex(TypeError, "NumPy array.*list"):
                session.bind("input", 0, [1, 2])

    def test_repr_says_what_the_session_is(self):
        with qplan.Session(self.plan, threads=2, isa="reference") as session:
            text = repr(session)
            for part in ("reference", "2 threads", str(session.info.memory_bytes), "int8[1, 16, 16, 1]"):
                self.assertIn(part, text)
        self.assertEqual(repr(session), "<qplan.Session closed>")

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

    def test_numbers_that_c_would_wrap_are_refused(self):
        timeouts = (-1, 0, 0.0001, 4294967.2960, 4294968, 1e300, float("inf"), float("nan"), "1", True)
        for timeout in timeouts:
            with self.assertRaisesRegex(qplan.Error, "npu_timeout_ms is .*expected None or a number from 0.001 to") as caught:
                qplan.Session(self.plan, npu_timeout_ms=timeout)
            self.assertEqual(caught.exception.status_name, "QPLAN_INVALID_ARGUMENT")
        for timeout in (None, 0.001, 1, 2.5, numpy.float32(3), 4294967.295):
            qplan.Session(self.plan, npu_timeout_ms=timeout).close()
        array = self.plan.inputs[0].empty()
        with qplan.Session(self.plan) as session:
            for index in (2**32, -(2**32), 1.0, True, None):
                for memory in (array, None):
                    with self.assertRaisesRegex(qplan.Error, "index is"):
                        session.bind("input", index, memory)
            for index in (2**32, -1):
                with self.assertRaisesRegex(qplan.Error, "index is"):
                    session.recover_device(index)
                with self.assertRaisesRegex(qplan.Error, "device is"):
                    session.buffer((1,), numpy.int8, index)
            with self.assertRaisesRegex(qplan.Error, "extent 0 is"):
                session.buffer((2**64 + 1,), numpy.int8)

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

    def test_a_refused_session_leaves_no_threads(self):
        def count():
            return len(os.listdir("/proc/self/task"))

        before = count()
        for options in ({"npu_timeout_ms": -1}, {"max_work": 1}, {"devices": ["none"]}, {"isa": "sse9"}):
            with self.assertRaises(qplan.Error):
                qplan.Session(self.plan, threads=4, **options)
        self.assertEqual(count(), before)

    def test_exit_ends_the_run_of_another_thread(self):
        # The handler runs after the finalizers of this package, which are registered later: so the thread would meet
        # what they freed.
        program = """
import atexit, threading, time
atexit.register(time.sleep, 0.5)
import numpy, qplan
steps = "".join(f"  %{i + 1} = nn.max_pool2d(%{i}, pool_size=[39, 299], padding=[19, 149, 19, 149]);\\n" for i in range(40))
plan = qplan.pack(f"def @main(%x: Tensor[(1, 40, 300, 8), int8]) {{\\n  %0 = clip(%x, a_min=-9f, a_max=9f);\\n{steps}  clip(%40, a_min=-8f, a_max=8f) }}".encode(), fuse="off")
session = qplan.Session(plan, threads=2)
began = threading.Event()
def work():
    x = numpy.zeros(plan.inputs[0].shape, numpy.int8)
    began.set()
    try:
        while True:
            session.run(x)
    except qplan.Error as error:
        print(error.status_name, flush=True)
threading.Thread(target=work, daemon=True).start()
began.wait()
time.sleep(0.1)
"""
        # So that what is freed is no longer what it was.
        tunables = "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165"
        # The exit may also come between two runs; the next one then finds the session closed.
        ends = ("QPLAN_CANCELLED\n", "QPLAN_INVALID_STATE\n")
        self.assertIn(run_program(program, GLIBC_TUNABLES=tunables), ends)

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

    def test_works_and_closes_in_a_child_of_fork(self):
        for pool in ("threads", "openmp"):
            with self.subTest(pool=pool):
                session = qplan.Session(self.plan, threads=4, pool=pool)
                session.run(digit_input(1))
                child = os.fork()
                if child == 0:
                    signal.alarm(20)  # a child that waits for threads that it does not have
                    status = 1
                    try:
                        same = numpy.array_equal(session.run(digit_input(3))[0], digit_output(3))
                        session.close()
                        with qplan.Session(self.plan, threads=2, pool=pool) as another:
                            same = same and numpy.array_equal(another.run(digit_input(4))[0], digit_output(4))
                        status = 0 if same else 2
                    finally:
                        os._exit(status)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                numpy.testing.assert_array_equal(session.run(digit_input(5))[0], digit_output(5))
                session.close()

    def test_work_has_a_limit(self):
        work = self.plan.work
        self.assertEqual(work, self.plan.inspect()["functions"][0]["work"])
        with qplan.Session(self.plan, max_work=work) as session:
            self.assertEqual(session.info.work, work)
        with self.assertRaisesRegex(qplan.Error, f"max_work {work - 1}") as caught:
            qplan.Session(self.plan, max_work=work - 1)
        self.assertEqual(caught.exception.status_name, "QPLAN_WORK_LIMIT")
        for wrong in (0, -1, 1.5, True, 2**64):
            with self.assertRaisesRegex(qplan.Error, "max_work is"):
                qplan.Session(self.plan, max_work=wrong)

    def test_self_check_names_the_step_whose_weight_lost_a_bit(self):
        with qplan.Session(self.plan) as session:
            with self.assertRaises(qplan.Error) as caught:
                session.self_check()
            self.assertEqual(caught.exception.status_name, "QPLAN_NOT_FOUND")
        data = bytearray(bytes(qplan.pack(DIGITS, self_check=2, fuse="off")))
        with qplan.Session(qplan.Plan(bytes(data)), threads=2) as session:
            session.self_check()
            numpy.testing.assert_array_equal(session.run(digit_input(3))[0], digit_output(3))
        constants = (64 + int.from_bytes(data[12:16], "little") + 63) // 64 * 64  # where they begin: weights come first
        data[constants + 20] ^= 4
        with qplan.Session(qplan.Plan(bytes(data))) as session:
            with self.assertRaisesRegex(qplan.Error, "its constants have checksum") as caught:
                session.self_check()
        self.assertEqual(caught.exception.status_name, "QPLAN_SELF_CHECK_FAILED")
        self.assertGreaterEqual(caught.exception.step, 0)
        self.assertIn(f"step {caught.exception.step}", caught.exception.text)

    def test_cancel_ends_a_run_in_another_thread(self):
        text = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 1, 2000, 64), int8]) {
nn.max_pool2d(%x, pool_size=[1999, 63], padding=[999,31,999,31])
}
"""
        plan = qplan.pack(text.encode())
        array = numpy.zeros(plan.inputs[0].shape, numpy.int8)
        for threads in (1, 2):
            with qplan.Session(plan, threads=threads) as session:
                session.cancel()  # no run: nothing happens
                done = threading.Event()

                def cancel():  # again and again: the first may come before the run
                    while not done.is_set():
                        time.sleep(0.005)
                        session.cancel()

                canceller = threading.Thread(target=cancel)
                canceller.start()
                try:
                    for options in ({}, {"tensors": all}):  # the second runs in a session of its own
                        with self.assertRaises(qplan.Error) as caught:
                            session.run(array, **options)
                        self.assertEqual(caught.exception.status_name, "QPLAN_CANCELLED")
                finally:
                    done.set()
                    canceller.join()
                session.close()
                session.cancel()

    def test_warns_of_plans_for_other_processors(self):
        plan = qplan.pack(DIGITS, target="cpu,arch=cortex-m")
        self.assertEqual((plan.is_for_other_arch, plan.target_options), (True, "arch=cortex-m,isa=reference"))
        with self.assertWarnsRegex(RuntimeWarning, "packed for another processor"):
            session = qplan.Session(plan)
        numpy.testing.assert_array_equal(session.run(digit_input(7))[0], digit_output(7))
        self.assertFalse(self.plan.is_for_other_arch)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            qplan.Session(self.plan)

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
