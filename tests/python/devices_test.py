"""qplan.Driver, Device, Buffer: sessions with regions on the simulator."""

import gc
import os
import pathlib
import threading
import unittest
import unittest.mock
import weakref

from support import DIGITS, digit_input, digit_output, numpy, qplan, run_program

from qplan import _capi, _resources

DRIVERS = os.environ.get("QPLAN_TEST_DRIVERS")


class Devices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # So small a network is worth no transfer: only on request.
        cls.plan = qplan.pack(DIGITS, target="vta, cpu", cost_gate=False)

    def test_regions_run_on_the_simulator_with_the_same_bytes(self):
        with qplan.Driver("sim").open() as device:
            with qplan.Session(self.plan, devices=[device]) as session:
                for digit in range(10):
                    numpy.testing.assert_array_equal(session.run(digit_input(digit))[0], digit_output(digit))
                self.assertGreater(len(session.regions), 0)
                for region in session.regions:
                    self.assertEqual((region["target"], region["on_device"], region["text"]), ("vta", True, ""))
                    self.assertEqual((region["device_runs"], region["cpu_runs"]), (10, 0))
                    self.assertGreater(region["last_cycles"], 0)
                (info,) = session.devices
                self.assertEqual((info["driver"], info["state"]), ("sim", "present"))
                self.assertEqual(info["jobs"], 10 * len(session.regions))

    def test_latency_keeps_so_small_a_network_on_the_cpu(self):
        for prefer, regions in ((None, True), ("npu", True), ("latency", False)):
            with qplan.Session(qplan.pack(DIGITS, target="vta, cpu", prefer=prefer)) as session:
                self.assertEqual(len(session.regions) > 0, regions, prefer)
        with self.assertRaisesRegex(ValueError, "prefer: found 'speed'"):
            qplan.pack(DIGITS, target="vta, cpu", prefer="speed")

    def test_without_a_device_the_cpu_runs_them_and_says_so(self):
        with qplan.Session(self.plan) as session:
            numpy.testing.assert_array_equal(session.run(digit_input(3))[0], digit_output(3))
            for region in session.regions:
                self.assertFalse(region["on_device"])
                self.assertEqual(region["cpu_runs"], 1)
                self.assertNotEqual(region["text"], "")
            self.assertEqual(session.devices[0]["state"], "absent")
        with self.assertRaisesRegex(qplan.Error, "QPLAN_DRIVER_MISSING"):
            qplan.Session(self.plan, on_npu_failure="fail")

    def test_failures_follow_the_policy(self):
        driver = qplan.Driver()
        fault = "faults=at=0:0 kind=bus_error"
        with qplan.Session(self.plan, devices=[driver.open(options=fault)]) as session:
            numpy.testing.assert_array_equal(session.run(digit_input(4))[0], digit_output(4))
            self.assertEqual(session.devices[0]["fallbacks"], 1)
            self.assertIn("bus", session.devices[0]["text"])
        with qplan.Session(self.plan, devices=[driver.open(options=fault)], on_npu_failure="retry") as session:
            numpy.testing.assert_array_equal(session.run(digit_input(4))[0], digit_output(4))
            self.assertEqual((session.devices[0]["retries"], session.devices[0]["fallbacks"]), (1, 0))
        with qplan.Session(self.plan, devices=[driver.open(options=fault)], on_npu_failure="fail") as session:
            with self.assertRaisesRegex(qplan.Error, "QPLAN_DEVICE_ERROR"):
                session.run(digit_input(4))

    def test_memory_that_a_device_may_still_write_is_not_freed(self):
        class Memory:
            session = None

        class Library:  # of a session whose job nothing ends; the simulator's jobs all end
            def __init__(self, status):
                self.qplan_session_deinit = lambda session: status

        for status, is_kept in ((_capi.OK, False), (_capi.DEVICE_ERROR, True)):
            memory = Memory()
            left = weakref.ref(memory)
            resources = _resources.Resources(memory, None, None, threading.Lock(), threading.RLock(), None, (), None)
            with unittest.mock.patch.object(_resources, "library", lambda: Library(status)):
                resources.end()
            del memory, resources
            gc.collect()
            self.assertEqual(left() is not None, is_kept)
        _resources._abandoned.clear()

    def test_the_garbage_collector_frees_a_session_with_bound_buffers(self):
        device = qplan.Driver().open()
        session = qplan.Session(self.plan, devices=[device])
        session.bind("input", 0, session.buffer(self.plan.inputs[0].shape, self.plan.inputs[0].dtype))
        session.invoke()
        left = weakref.ref(session)
        del session
        gc.collect()
        self.assertIsNone(left())
        device.close()

    def test_a_session_is_not_closed_while_a_buffer_is_accessed(self):
        session = qplan.Session(self.plan, devices=[qplan.Driver().open()])
        with session.buffer((4,), numpy.int8).access("rw") as array:
            with self.assertRaisesRegex(qplan.Error, "is being accessed; leave its with block first"):
                session.close()
            array[...] = 1
            self.assertFalse(session.is_closed)
        session.close()
        self.assertTrue(session.is_closed)

    def test_a_forked_child_that_only_exits_leaves_the_devices_to_its_parent(self):
        program = f"""
import os, signal, sys, qplan
plan = qplan.pack({str(DIGITS)!r}, target="vta, cpu", cost_gate=False)
session = qplan.Session(plan, devices=[qplan.Driver().open()])
x = plan.inputs[0].empty()
x[...] = 0
y = session.run(x)[0]
child = os.fork()
if child == 0:
    signal.alarm(60)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0, "the child"
assert (session.run(x)[0] == y).all() and session.regions[0]["on_device"]
"""
        run_program(program)

    def test_verify_counts_what_differs(self):
        # In the first byte of an output that a job stores, which may be one of its border: in every job.
        flips = "faults=" + ";".join(f"at={job}:* kind=silent_bit_flip" for job in range(8))
        device = qplan.Driver().open(options=flips)
        with qplan.Session(self.plan, devices=[device], npu_verify=True) as session:
            numpy.testing.assert_array_equal(session.run(digit_input(5))[0], digit_output(5))
            self.assertGreater(sum(region["mismatches"] for region in session.regions), 0)

    def test_buffers_are_read_and_written_in_place(self):
        (given,), (made,) = self.plan.inputs, self.plan.outputs
        device = qplan.Driver().open(options="coherent=0")
        with qplan.Session(self.plan, devices=[device]) as session:
            x, y = session.buffer(given.shape, given.dtype), session.buffer(made.shape, made.dtype)
            session.bind("input", 0, x)
            session.bind("output", 0, y)
            for digit in range(10):
                with x.access("w") as array:
                    array[...] = digit_input(digit)
                session.invoke()
                with y.access() as array:
                    numpy.testing.assert_array_equal(array, digit_output(digit))
                    with self.assertRaises(ValueError):
                        array[...] = 0
            session.bind("input", 0, None)
            session.bind("output", 0, None)
            numpy.testing.assert_array_equal(session.run(digit_input(6))[0], digit_output(6))

    def test_misuse_is_an_error(self):
        device = qplan.Driver().open()
        with self.assertRaisesRegex(qplan.Error, "expected one of fallback"):
            qplan.Session(self.plan, on_npu_failure="panic")
        with self.assertRaisesRegex(qplan.Error, "at most one"):
            qplan.Session(self.plan, devices=[device, device])
        with self.assertRaisesRegex(qplan.Error, "expected what Driver.open"):
            qplan.Session(self.plan, devices=["sim"])
        with qplan.Session(self.plan, devices=[device]) as session:
            with self.assertRaisesRegex(qplan.Error, "used by a session"):
                device.close()
            buffer = session.buffer((4,), numpy.int8)
            with self.assertRaises(qplan.Error):
                session.bind("input", 0, buffer)  # another size
            with buffer.access("w"), self.assertRaises(qplan.Error):
                with buffer.access("w"):
                    pass
        with self.assertRaisesRegex(qplan.Error, "the session is closed"):
            with buffer.access():
                pass
        device.close()
        with self.assertRaisesRegex(qplan.Error, "the device is closed"):
            qplan.Session(self.plan, devices=[device])
        with self.assertRaisesRegex(qplan.Error, "unknown 'colour'"):
            qplan.Driver().open(options="colour=red")
        with self.assertRaisesRegex(qplan.Error, "none.so"):
            qplan.Driver("/nowhere/none.so")

    @unittest.skipUnless(DRIVERS, "no driver libraries (QPLAN_TEST_DRIVERS)")
    def test_a_driver_from_a_library(self):
        device = qplan.Driver(pathlib.Path(DRIVERS) / "sim.so").open()
        with qplan.Session(self.plan, devices=[device], on_npu_failure="fail") as session:
            numpy.testing.assert_array_equal(session.run(digit_input(7))[0], digit_output(7))
        device.close()
        with self.assertRaisesRegex(qplan.Error, "qplan_npu_driver_entry"):
            qplan.Driver(pathlib.Path(DRIVERS) / "no_entry.so")


if __name__ == "__main__":
    unittest.main()
