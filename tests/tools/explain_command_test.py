"""qplan explain: which operator would run where, and why."""

import json
import unittest

from support import DIGITS, SHARED, CommandTest, needs_shared, run


VTA = ("--target", "vta, cpu")


class Explain(CommandTest):
    def test_text_gives_every_device_its_share_and_every_operator_its_reasons(self):
        text = self.succeed("explain", DIGITS, *VTA)
        self.assertIn("placement: vta ", text)
        self.assertIn("[vta.op.softmax]", text)

    def test_what_is_not_worth_the_device_says_so_with_the_figures(self):
        file = self.folder / "targets.json"
        file.write_text('{"targets": [{"target": "vta", "costs": {"clock_mhz": 1}}]}')
        self.assertIn("[vta.cost]", self.succeed("explain", DIGITS, "--target-file", file, "--prefer", "latency"))
        # A device that is named first is wanted, however slow.
        self.assertNotIn("[vta.cost]", self.succeed("explain", DIGITS, "--target-file", file))

    def test_what_the_user_prefers_decides_and_is_told(self):
        for options, expected, by in (
            (("--target", "vta, cpu"), "npu", "npu"),
            (("--target", "cpu, vta"), "latency", "latency"),
            (("--target", "vta, cpu", "--prefer", "latency"), "latency", "latency"),
            (("--target", "vta, cpu", "--prefer", "energy"), "energy", "energy"),
            (("--target", "vta, cpu", "--no-cost-gate"), "none", "none"),
        ):
            report = self.succeed_json("explain", DIGITS, *options, "--json")
            self.assertEqual(report["prefer"], expected, options)
            self.assertTrue(report["decisions"], options)
            self.assertEqual({decision["by"] for decision in report["decisions"]}, {by}, options)
            for decision in report["decisions"]:
                on_device = bool(decision["region"])
                if by == "latency":
                    device = decision["device_ns"] + decision["copy_ns"]
                    self.assertEqual(on_device, device < decision["cpu_ns"] + decision["spared_ns"])
                if by == "energy":
                    device = decision["device_pj"] + decision["copy_pj"]
                    self.assertEqual(on_device, device < decision["cpu_pj"] + decision["spared_pj"])
            for region in report["regions"]:
                self.assertIn("cpu_ns", region)
        self.refused(2, ["--prefer", "npu,latency,energy"], "explain", DIGITS, "--prefer", "speed")

    def test_a_clock_scales_the_devices_times_and_nothing_else(self):
        plans = []
        for clock in ("100MHz", "0.2GHz"):
            options = ("--target", f"vta,clock={clock}, cpu", "--no-cost-gate")
            report = self.succeed_json("explain", DIGITS, *options, "--json")
            plan = self.folder / f"{clock}.qplan"
            self.succeed("pack", DIGITS, "-o", plan, *options, "--strip-names")
            plans.append((report["regions"][0], plan.read_bytes()))
        (slow, slow_plan), (fast, fast_plan) = plans
        self.assertEqual(slow["estimated_cycles"], fast["estimated_cycles"])
        self.assertEqual(slow["estimated_ns"] // 2, fast["estimated_ns"])
        self.assertEqual(slow_plan, fast_plan)
        self.refused(1, ["clock '100'", "with its unit"], "explain", DIGITS, "--target", "vta,clock=100, cpu")

    def test_numbers_in_reasons_are_written_out(self):
        relay = self.file("m.relay", b"def @main(%x: Tensor[(1, 4, 4, 8), int8]) "
                                     b"{ qnn.mul(%x, %x, 0.5f, 0, 0.5f, 0, 0.1f, 0) }")
        text = self.succeed("explain", relay, "--target", "ethos-u55-128, cpu")
        self.assertIn("not on ethos-u55-128: a multiplier of 2.5 [ethosu.mul.range]", text)

    @needs_shared
    def test_memory_compares_the_plans_of_each_way_to_fuse(self):
        model = SHARED / "models" / "person_detect.tflite"
        options = ("--target", "cpu,arch=cortex-m4")
        report = self.succeed_json("explain", model, *options, "--memory", "--json")
        self.assertEqual(report["target_pointer_bits"], 32)
        choices = {choice["fuse"]: choice for choice in report["choices"]}
        self.assertEqual(list(choices), ["off", "auto", "memory", "all"])
        for fuse, choice in choices.items():
            plan = self.folder / f"{fuse}.qplan"
            self.succeed("pack", model, "-o", plan, *options, "--fuse", fuse)
            inspected = self.succeed_json("inspect", plan, "--json")
            self.assertEqual(choice["session_bytes"], inspected["memory"]["session_bytes"]["32_bit"]["1"])
            self.assertEqual(choice["work"], inspected["functions"][0]["work"])
            self.assertEqual(choice["macs"], choices["off"]["macs"])
            places = [(tensor["offset"], tensor["bank"]) for tensor in inspected["tensors"]]
            for step in inspected["steps"]:
                if step["op"] != "chain":
                    continue
                is_in_place = places[step["outputs"][0]] in [places[tensor] for tensor in step["inputs"]]
                self.assertEqual(step["repeated_work"] == 0, is_in_place)
        self.assertLess(choices["memory"]["session_bytes"], choices["auto"]["session_bytes"])
        self.assertLess(choices["auto"]["session_bytes"], choices["off"]["session_bytes"])
        self.assertEqual(choices["off"]["repeated_work"], 0)
        self.assertGreater(choices["memory"]["repeated_work"], 0)
        self.assertGreater(choices["memory"]["work"], choices["off"]["work"])
        text = self.succeed("explain", model, *options, "--memory")
        for choice in choices.values():
            self.assertIn(f"{choice['session_bytes']:,}", text)
        least, default = choices["memory"]["session_bytes"], choices["auto"]["session_bytes"]
        self.assertIn(f"--max-ram from {default:,} on takes the plan of --fuse auto, from {least:,} on", text)
        self.assertIn("with faster cascades where the limit leaves room", text)
        for max_ram, fewest, most in ((default, default, default), (default - 1, least, default - 1), (least, least, least)):
            plan = self.folder / "limited.qplan"
            self.succeed("pack", model, "-o", plan, *options, "--max-ram", str(max_ram))
            session = self.succeed_json("inspect", plan, "--json")["memory"]["session_bytes"]["32_bit"]["1"]
            self.assertTrue(fewest <= session <= most, session)

    def test_memory_compares_models_alone(self):
        plan = self.folder / "digits.qplan"
        self.succeed("pack", DIGITS, "-o", plan)
        self.refused(2, ["--memory", "expected a model"], "explain", plan, "--memory")
        self.refused(2, ["--memory"], "explain", DIGITS, "--memory", "--html", self.folder / "page.html")

    def test_json_accounts_for_every_operator(self):
        report = self.succeed_json("explain", DIGITS, "--target", "vta,sram=quarter, cpu", "--json")
        self.assertEqual(sum(device["ops"] for device in report["devices"]), len(report["nodes"]))

    def test_a_contract_the_device_lacks_is_a_reason(self):
        text = self.succeed("explain", DIGITS, *VTA, "--contract", "f32e")
        self.assertIn(".contract]", text)

    def test_a_plan_for_a_device_remembers_what_was_decided(self):
        plan = self.folder / "digits.qplan"
        options = ("--target", "vta, cpu", "--no-cost-gate")
        packed = self.succeed("pack", DIGITS, "-o", plan, *options)
        text = self.succeed("explain", plan)
        self.assertEqual(text, self.succeed("explain", DIGITS, *options))
        self.assertIn(text.splitlines()[0], packed, "pack prints the same line")
        self.assertEqual(self.succeed_json("explain", plan, "--json"),
                         self.succeed_json("explain", DIGITS, "--json", *options))

    def test_a_plan_for_the_cpu_tells_its_kernels(self):
        text = self.succeed("explain", self.plan)
        steps = self.succeed_json("bench", self.plan, "--per-step", "--runs", "1", "--json")["steps"]
        self.assertRegex(text, rf"^cpu: {len(steps)} steps, ")
        for step in steps:
            self.assertRegex(text, rf"\n +{step['step']} .* {step['kernel']} ")
        report = self.succeed_json("explain", self.plan, "--json")
        self.assertEqual([(step["kernel"], step["name"], step["macs"]) for step in report["steps"]],
                         [(step["kernel"], step["name"], step["macs"]) for step in steps])
        self.refused(1, ["--html", "for the CPU alone"], "explain", self.plan, "--html", self.folder / "x.html")

    def test_without_a_target_a_model_is_for_the_cpu(self):
        self.assertEqual(self.succeed("explain", DIGITS), self.succeed("explain", self.plan))
        self.assertEqual(self.succeed("explain", DIGITS, "--target", "cpu"), self.succeed("explain", self.plan))
        report = self.succeed_json("explain", DIGITS, "--json")
        self.assertEqual([device["target"] for device in report["devices"]], ["cpu"])
        self.assertEqual(report["steps"], self.succeed_json("explain", self.plan, "--json")["steps"])
        page = self.folder / "page.html"
        self.assertEqual(self.succeed("explain", DIGITS, "--html", page), "")
        self.assertIn("<title>digits.tflite: placement</title>", page.read_text(encoding="utf-8"))

    def test_a_model_that_the_cpu_cannot_run_gets_the_report_with_the_reasons(self):
        relay = self.file("m.relay", b"def @main(%x: Tensor[(1, 3), int64]) { %0 = abs(%x); negative(%0) }")
        for options in ((), ("--json",)):
            result = run("explain", relay, *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("[warning] no plan can be made of this model: target 'cpu' cannot run 2 of 2 operators", result.stderr)
            if options:
                report = json.loads(result.stdout)
                self.assertEqual([node["op"] for node in report["nodes"]], ["abs", "negative"])
                self.assertNotIn("steps", report)
            else:
                self.assertIn("cpu 2 of 2 operators", result.stdout)
                for operator in ("abs", "negative"):
                    self.assertIn(f"not on cpu: no kernel computes it on int64 [cpu.op.{operator}]", result.stdout)
        broken = self.file("broken.relay", b"def @main(%x: Tensor[(1, 3), int8]) { nothing(%x) }")
        self.refused(1, ["broken.relay", "nothing"], "explain", broken)

    def test_says_why_a_step_is_slower(self):
        relay = self.file("m.relay", b"def @main(%x: Tensor[(1, 2, 3, 4), int8]) { transpose(%x, axes=[0, 3, 1, 2]) }")
        self.assertIn("copies 0.0 kB into another layout", self.succeed("explain", relay))
        float_input = self.succeed("explain", DIGITS, "--io", "float")
        self.assertIn("converts between float32 and integers", float_input)

    def expect_variants_that_run(self, model):
        """What `inspect` states of each instruction set is what the runtime takes where it is the limit. AVX-512 is not
        beyond AVX-VNNI, so that a plan for one states nothing of the other."""
        plan = self.folder / "variants.qplan"
        isas, checked = self.isas(), set()
        for target in ("cpu", "cpu,isa=avxvnni"):
            self.succeed("pack", model, "-o", plan, "--target", target)
            stated = [{variant["isa"]: variant["kernel"] for variant in step["variants"]}
                      for step in self.succeed_json("inspect", plan, "--json")["steps"]]
            for isa in (set(isas) & set(stated[0])) - checked:
                steps = self.succeed_json("bench", plan, "--per-step", "--runs", "1", "--isa", isa, "--json")["steps"]
                self.assertEqual([stated[step["step"]][isa] for step in steps], [step["kernel"] for step in steps],
                                 (model, target, isa))
                checked.add(isa)
        self.assertEqual(checked, set(isas))

    def test_the_variants_of_each_instruction_set_are_those_that_run(self):
        self.expect_variants_that_run(DIGITS)

    @needs_shared
    def test_the_variants_of_real_models_are_those_that_run(self):
        for name in ("person_detect", "mobilenet_v2_1.0_224_quant", "kws_ref_model"):
            self.expect_variants_that_run(SHARED / "models" / f"{name}.tflite")

    def test_says_which_variants_refuse_a_step(self):
        relay = self.file("m.relay", b"def @main(%x: Tensor[(1, 3), int8]) "
                                     b"{ qnn.softmax(%x, 0.5f, 3, 0.00390625f, -128) }")
        plan = self.folder / "m.qplan"
        self.succeed("pack", relay, "-o", plan)
        reason = "the tensor is too small to gain from it"
        for variant in self.succeed_json("inspect", plan, "--json")["steps"][0]["variants"]:
            refused = variant.get("refused", [])
            self.assertEqual(variant["kernel"], "softmax_ref")
            self.assertEqual({each["reason"] for each in refused}, set() if variant["isa"] == "reference" else {reason})
        page = self.succeed("inspect", plan)
        self.assertIn("kernels:   reference: softmax_ref 1\n", page)
        for isa in self.isas():
            if isa in ("avx2", "sse41"):
                self.assertIn(f"refused:   1 step by softmax_{isa}: {reason}\n", page)
                self.assertIn(f"softmax_{isa} is not used: {reason}\n", self.succeed("explain", relay))

    def test_a_stripped_plan_for_a_device_says_what_to_do(self):
        plan = self.folder / "stripped.qplan"
        self.succeed("pack", DIGITS, "-o", plan, "--target", "vta, cpu", "--strip-names")
        self.refused(1, ["--strip-names"], "explain", plan)

    def test_the_figures_are_those_of_the_plan(self):
        plan = self.folder / "digits.qplan"
        options = ("--target", "vta, cpu", "--no-cost-gate")
        self.succeed("pack", DIGITS, "-o", plan, *options)
        regions = self.succeed_json("inspect", plan, "--json")["regions"]
        self.assertTrue(regions)
        told = self.succeed_json("explain", DIGITS, "--json", *options)["regions"]
        for name in ("copies", "copy_bytes", "blob_bytes", "program_bytes", "estimated_cycles", "macs"):
            self.assertEqual([region[name] for region in regions], [region[name] for region in told], name)

    def test_policies(self):
        self.refused(1, ["placement strict", "[vta.op.softmax]"], "explain", DIGITS, *VTA, "--placement", "strict")
        self.refused(2, ["--placement", "soft or strict"], "explain", DIGITS, "--placement", "hard")
        self.refused(2, ["--pin", "NODE=TARGET"], "explain", DIGITS, "--pin", "conv")
        self.refused(1, ["no operator has this name"], "explain", DIGITS, *VTA, "--pin", "nothing=vta")
        self.refused(2, ["--fallback", "cpu or none"], "explain", DIGITS, "--fallback", "gpu")

    def test_a_target_file_takes_the_place_of_the_list(self):
        file = self.folder / "targets.json"
        file.write_text('{"targets": [{"target": "vta,sram=quarter", "priority": 400}]}')
        devices = self.succeed_json("explain", DIGITS, "--target-file", file, "--json")["devices"]
        self.assertIn("sram=quarter", devices[0]["options"])

    def test_without_fallback_the_summary_tells_what_that_saves(self):
        options = ("--target", "vta, cpu", "--no-cost-gate")
        sizes = []
        for fallback in ("cpu", "none"):
            plan = self.folder / f"{fallback}.qplan"
            text = self.succeed("pack", DIGITS, "-o", plan, *options, "--fallback", fallback)
            self.assertEqual("no CPU fallback, which saves" in text, fallback == "none")
            sizes.append(self.succeed_json("inspect", plan, "--json")["memory"]["constants_bytes"])
        saved = int(text.split("which saves ")[1].split()[0])
        self.assertEqual(sizes[0] - sizes[1], saved)

    def test_html_is_one_page_that_loads_nothing(self):
        page = self.folder / "page.html"
        self.assertEqual(self.succeed("explain", DIGITS, *VTA, "--html", page), "")
        text = page.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        self.assertIn("<title>digits.tflite: placement</title>", text)
        for part in (" src=", " href=", "url("):
            self.assertNotIn(part, text)
        data = text.split('<script type="application/json" id="data">')[1].split("</script>")[0]
        report = self.succeed_json("explain", DIGITS, *VTA, "--json")
        data = json.loads(data)
        plan = self.folder / "npu.qplan"
        self.assertEqual(run("pack", DIGITS, "-o", plan, *VTA).returncode, 0)
        on_cpu = [step for step in self.succeed_json("inspect", plan, "--json")["steps"] if "variants" in step]
        self.assertGreater(len(on_cpu), 0)
        self.assertEqual([(row["op"], row["variants"]) for row in data.pop("cpu_steps") if "." not in row["step"]],
                         [(step["op"], step["variants"]) for step in on_cpu])
        self.assertEqual(data, {**report, "title": "digits.tflite"})

    def test_html_of_a_plan_is_what_was_decided(self):
        plan, page = self.folder / "npu.qplan", self.folder / "page.html"
        self.assertEqual(run("pack", DIGITS, "-o", plan, "--target", "vta, cpu", "--no-cost-gate").returncode, 0)
        self.succeed("explain", plan, "--html", page)
        self.assertIn("qplan_vta_main_0", page.read_text(encoding="utf-8"))

    def test_html_is_written_as_a_whole_or_not_at_all(self):
        self.refused(1, ["page.html"], "explain", DIGITS, "--html", self.folder / "none" / "page.html")
        self.refused(1, ["page.html"], "explain", DIGITS, "--html", self.folder / "page.html", file_size_limit=1000)
        self.refused(2, ["--html"], "explain", DIGITS, "--html", self.folder / "page.html", "--json")
        self.assertEqual(self.left_behind(), [])

    def test_an_unknown_target_is_refused_with_the_known_ones(self):
        self.refused(1, ["'tpu'", "vta"], "explain", DIGITS, "--target", "tpu, cpu")


if __name__ == "__main__":
    unittest.main()
