"""qplan explain: which operator would run where, and why."""

import unittest

from support import DIGITS, CommandTest


class Explain(CommandTest):
    def test_text_gives_every_device_its_share_and_every_operator_its_reasons(self):
        text = self.succeed("explain", DIGITS)
        self.assertIn("placement: vta ", text)
        self.assertIn("[vta.cost]", text, "so small a network is not worth the transfers")
        self.assertIn("[vta.op.softmax]", text)

    def test_json_accounts_for_every_operator(self):
        report = self.succeed_json("explain", DIGITS, "--target", "vta,sram=quarter, cpu", "--json")
        self.assertEqual(sum(device["ops"] for device in report["devices"]), len(report["nodes"]))

    def test_a_contract_the_device_lacks_is_a_reason(self):
        text = self.succeed("explain", DIGITS, "--contract", "f32e")
        self.assertIn(".contract]", text)

    def test_an_unknown_target_is_refused_with_the_known_ones(self):
        self.refused(1, ["'tpu'", "vta"], "explain", DIGITS, "--target", "tpu, cpu")


if __name__ == "__main__":
    unittest.main()
