"""Session.run(..., tensors=[...]): what steps write, as arrays."""

import os
import signal
import threading
import time
import unittest

from support import DIGITS, digit_input, digit_output, numpy, qplan

CHAIN = b"""#[version = "0.0.5"]
def @main(%x: Tensor[(2), int8]) {
  %0 = qnn.add(%x, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 1f, 0, name="one");
  qnn.add(%0, const(Tensor[(1), int8], [3]), 1f, 0, 1f, 0, 1f, 0, name="four")
}
"""


class Tensors(unittest.TestCase):
    def test_are_arrays_by_name(self):
        with qplan.Session(qplan.pack(CHAIN)) as session:
            (y,), every = session.run(numpy.int8([5, -7]), tensors=all)
            self.assertEqual(y.tolist(), [9, -3])
            self.assertEqual(sorted(tensor.tolist() for tensor in every.values()), [[6, -6], [9, -3]])
            for name, tensor in every.items():
                _, one = session.run(numpy.int8([5, -7]), tensors=[name])
                self.assertEqual(list(one), [name])
                numpy.testing.assert_array_equal(one[name], tensor)

    def test_do_not_change_the_outputs_and_can_be_asked_again(self):
        with qplan.Session(qplan.pack(DIGITS, fuse="off"), threads=2) as session:
            for digit in (3, 8):
                outputs, tensors = session.run(digit_input(digit), tensors=all)
                numpy.testing.assert_array_equal(outputs[0], digit_output(digit))
                self.assertGreater(len(tensors), 3)
                numpy.testing.assert_array_equal(session.run(digit_input(digit))[0], digit_output(digit))

    def test_unknown_names_are_told_with_those_that_exist(self):
        with qplan.Session(qplan.pack(CHAIN)) as session:
            with self.assertRaisesRegex(qplan.Error, "no step writes a tensor 'nobody'; steps write .*fuse='off'"):
                session.run(numpy.int8([1, 2]), tensors=["nobody"])
            session.run(numpy.int8([1, 2]))

    def test_plans_with_states_are_refused(self):
        model = b"""#[version = "0.0.5"]
def @main(%x: Tensor[(2), int8], %s: Tensor[(2), int8], states=[[1, 1]], state_bytes=[[100, 0]]) {
  %0 = qnn.add(%s, %x, 1f, 0, 1f, 0, 1f, 0);
  (%0, %0)
}
"""
        with qplan.Session(qplan.pack(model)) as session:
            with self.assertRaisesRegex(qplan.Error, "--dump-tensors"):
                session.run(numpy.int8([1, 2]), tensors=all)

    def test_an_interrupt_arrives_when_the_run_has_ended(self):
        steps = "".join(
            f"  %{i + 1} = qnn.add(%{i}, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 1f, 0);\n" for i in range(400)
        )
        model = f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1000), int8]) {{
  %0 = clip(%x, a_min=-9f, a_max=9f);
{steps}  clip(%400, a_min=-128f, a_max=127f)
}}
"""
        with qplan.Session(qplan.pack(model.encode(), fuse="off")) as session:
            x = numpy.zeros(1000, numpy.int8)
            began = time.perf_counter()
            session.run(x, tensors=all)
            seconds = time.perf_counter() - began
            for part in range(8):
                # Where the run ended before, it arrives here, too.
                timer = threading.Timer(seconds * part / 8, os.kill, (os.getpid(), signal.SIGINT))
                with self.assertRaises(KeyboardInterrupt):
                    timer.start()
                    session.run(x, tensors=all)
                    time.sleep(10)
                timer.join()

    def test_one_name_is_not_a_list(self):
        with qplan.Session(qplan.pack(CHAIN)) as session:
            with self.assertRaisesRegex(qplan.Error, "tensors is 'one', expected a list of names, or the builtin all"):
                session.run(numpy.int8([1, 2]), tensors="one")

    def test_run_on_the_devices_that_the_session_got(self):
        plan = qplan.pack(DIGITS, target="vta, cpu", cost_gate=False)
        device = qplan.Driver().open()
        with qplan.Session(plan, devices=iter([device])) as session:
            session.run(digit_input(3), tensors=all)
            self.assertTrue(session._observed.regions[0]["on_device"])

    def test_a_closed_session_has_none(self):
        session = qplan.Session(qplan.pack(CHAIN))
        session.run(numpy.int8([1, 2]), tensors=all)
        session.close()
        with self.assertRaisesRegex(qplan.Error, "closed"):
            session.run(numpy.int8([1, 2]), tensors=all)


if __name__ == "__main__":
    unittest.main()
