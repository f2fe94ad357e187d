"""Plans with NPU regions as a user meets them: run, bench, check, and qplan npu."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import time
import unittest

from support import DIGITS, REPOSITORY, SHARED, CommandTest, run

# In the first byte of an output that a job stores, which may be one of its border: in every job, so that one is seen.
SILENT_FLIPS = ";".join(f"at={job}:* kind=silent_bit_flip" for job in range(8))
SILENT_FLIPS = f"faults={SILENT_FLIPS}"
DRIVERS = os.environ.get("QPLAN_TEST_DRIVERS")
needs_drivers = unittest.skipUnless(DRIVERS, "no driver libraries (QPLAN_TEST_DRIVERS)")


def driver(name):
    return pathlib.Path(DRIVERS) / f"{name}.so"


class NpuTest(CommandTest):
    """self.npu_plan: the digits model with regions for VTA; self.plan: for the CPU alone."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.npu_plan = cls._class_folder / "npu.qplan"
        # So small a network is worth no transfer: only on request.
        result = run("pack", DIGITS, "-o", cls.npu_plan, "--target", "vta, cpu", "--no-cost-gate")
        assert result.returncode == 0, result.stderr

    def run_digit(self, digit, *options, plan=None):
        """The report of a run whose output bytes are the oracle's."""
        out = self.folder / "out"
        report = self.succeed_json("run", plan or self.npu_plan, "--input", self.digit_input(digit), "--output-dir", out,
                                   "--json", *options)
        self.assertEqual((out / "output0.bin").read_bytes(), self.digit_output(digit))
        return report

    def run_loud(self, digit, *options):
        """The same where warnings on stderr are expected; the report and what was said."""
        out = self.folder / "out"
        result = run("run", self.npu_plan, "--input", self.digit_input(digit), "--output-dir", out, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((out / "output0.bin").read_bytes(), self.digit_output(digit))
        return result.stdout, result.stderr


class RunOnDevices(NpuTest):
    def test_the_simulator_runs_the_regions_with_the_oracles_bytes(self):
        for digit in range(10):
            npu = self.run_digit(digit)["npu"]
            self.assertEqual([device["driver"] for device in npu["devices"]], ["sim"])
            self.assertGreater(len(npu["regions"]), 0)
            for region in npu["regions"]:
                self.assertEqual((region["device_runs"], region["cpu_runs"], region["failures"]), (1, 0, 0))

    def test_tells_where_regions_ran(self):
        text = self.succeed("run", self.npu_plan, "--input", self.digit_input(3), "--top", "1")
        self.assertRegex(text, r"(?m)^npu: (\d+) of \1 regions? on 'vta' \(sim\), [\d.]+ \w* ?cycles, \d+ cop")

    def test_no_driver_runs_on_the_cpu_and_says_so(self):
        for region in self.run_digit(1, "--driver", "none")["npu"]["regions"]:
            self.assertEqual((region["on_device"], region["ran_on_device"]), (False, False))
            self.assertEqual((region["device_runs"], region["cpu_runs"]), (0, 1))
        text, _ = self.run_loud(1, "--driver", "none")
        self.assertRegex(text, r"npu: 0 of \d+ regions? on 'vta' \(no driver\)")
        self.assertRegex(text, r"npu: (\d+ regions|region '[^']+') on the cpu: .*no device")

    def test_options_reach_the_simulator(self):
        self.run_digit(2, "--npu-options", "explore=4,seed=9,coherent=0", "--npu-verify")
        self.run_digit(2, "--driver", "sim,explore=2")
        self.refused(1, ["--driver", "unknown 'colour'"], "run", self.npu_plan, "--input", self.digit_input(2),
                     "--npu-options", "colour=red")

    def test_a_plan_for_other_memories_gets_the_simulator_that_it_was_made_for(self):
        plan = self.folder / "quarter.qplan"
        self.assertEqual(run("pack", DIGITS, "-o", plan, "--target", "vta,sram=quarter, cpu", "--no-cost-gate").returncode, 0)
        for region in self.run_digit(6, plan=plan)["npu"]["regions"]:
            self.assertEqual(region["device_runs"], 1)
        result = run("run", plan, "--input", self.digit_input(6), "--driver", "sim,sram=default", "--on-npu-failure", "fail")
        self.assertEqual(result.returncode, 1, "another device than the packer assumed")
        self.assertIn("made for", result.stderr)

    def test_failures_follow_the_policy_and_are_told(self):
        fault = ("--npu-options", "faults=at=0:0 kind=bus_error")
        text, _ = self.run_loud(4, *fault)
        self.assertRegex(text, r"npu: region '[^']*' 1 job failed, 1 run on the cpu: .*bus")
        text, _ = self.run_loud(4, *fault, "--on-npu-failure", "retry")
        self.assertRegex(text, r"npu: region '[^']*' 1 job failed, 0 runs on the cpu: ")
        result = run("run", self.npu_plan, "--input", self.digit_input(4), *fault, "--on-npu-failure=fail")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("bus", result.stderr)

    def test_a_device_that_is_absent_follows_the_policy(self):
        absent = ("--npu-options", "faults=at=open:0 kind=absent")
        text, _ = self.run_loud(5, *absent)
        self.assertIn("npu: 0 of ", text)
        result = run("run", self.npu_plan, "--input", self.digit_input(5), *absent, "--on-npu-failure", "fail")
        self.assertEqual(result.returncode, 1)

    def test_runs_that_verify_are_no_fallback(self):
        run_on_both = ("run", self.npu_plan, "--input", self.digit_input(6), "--npu-verify")
        self.assertEqual(len(re.findall("(?m)^npu: ", self.succeed(*run_on_both))), 1)
        for region in self.succeed_json(*run_on_both, "--json")["npu"]["regions"]:
            self.assertEqual((region["on_device"], region["ran_on_device"]), (True, True))
            self.assertEqual((region["device_runs"], region["cpu_runs"]), (1, 1))

    def test_after_a_device_is_lost_regions_are_counted_where_they_ran(self):
        plan = self.folder / "three.qplan"
        pins = (word for name in ("block1/add", "block2/add") for word in ("--pin", f"{name}=cpu"))
        self.assertEqual(run("pack", DIGITS, "-o", plan, "--target", "vta, cpu", "--no-cost-gate", *pins).returncode, 0)
        lost = ("--input", self.digit_input(6), "--npu-options", "faults=at=1:0 kind=device_lost")
        result = run("run", plan, *lost)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^npu: 1 of 3 regions on 'vta'.*, absent$")
        self.assertRegex(result.stdout, r"(?m)^npu: region '[^']*' 1 job failed, 1 run on the cpu: .*device_lost$")
        self.assertRegex(result.stdout, r"(?m)^npu: region '[^']*' on the cpu: .*device_lost$")
        regions = json.loads(run("run", plan, "--json", *lost).stdout)["npu"]["regions"]
        keys = ("ran_on_device", "on_device", "device_runs", "cpu_runs", "failures")
        self.assertEqual([tuple(region[key] for key in keys) for region in regions],
                         [(True, False, 1, 0, 0), (False, False, 0, 1, 1), (False, False, 0, 1, 0)])

    def test_a_job_that_hangs_ends_with_the_timeout(self):
        text, _ = self.run_loud(5, "--npu-options", "faults=at=0:0 kind=hang", "--npu-timeout-ms", "100")
        self.assertIn("1 job failed", text)

    def test_verify_finds_what_no_driver_notices(self):
        out = self.folder / "out"
        result = run("run", self.npu_plan, "--input", self.digit_input(7), "--npu-verify", "--output-dir", out,
                     "--npu-options", SILENT_FLIPS)
        self.assertEqual(result.returncode, 1)
        self.assertIn("other bytes than the cpu", result.stderr)
        self.assertEqual((out / "output0.bin").read_bytes(), self.digit_output(7), "the CPU's bytes stand")

    def test_wrong_options(self):
        given = ("run", self.npu_plan, "--input", self.digit_input(0))
        self.refused(2, ["--on-npu-failure", "'panic'"], *given, "--on-npu-failure", "panic")
        for milliseconds in ("0", "-1", "soon"):
            self.refused(2, ["--npu-timeout-ms"], *given, f"--npu-timeout-ms={milliseconds}")
        self.refused(2, ["--npu-record", "no device runs a job"], *given, "--driver", "none", "--npu-record", self.folder / "x")
        self.refused(2, ["--npu-trace", "only the simulator"], *given, "--driver", "none", "--npu-trace", self.folder / "x")
        self.refused(2, ["--npu-verify", "no device runs a job"], *given, "--driver", "none", "--npu-verify")
        self.refused(2, ["--npu-options", "no device runs a job"], *given, "--driver", "none", "--npu-options", "seed=1")
        self.refused(2, ["comma"], *given, "--npu-record", self.folder / "a,b")
        self.refused(2, ["--driver"], *given, "--driver=")
        self.assertEqual(self.left_behind(), [])

    def test_options_of_devices_need_regions(self):
        for command in (("run", self.plan, "--input", self.digit_input(0)), ("bench", self.plan, "--runs", "1"),
                        ("report", self.plan, "--json"), ("check", self.plan)):
            self.refused(1, ["--npu-options", "no regions for a device"], *command, "--npu-options", "seed=1")
        self.refused(1, ["--npu-trace", "no regions for a device"], "run", self.plan, "--input", self.digit_input(0),
                     "--npu-trace", self.folder / "x")
        self.assertEqual(self.left_behind(), [])

    @needs_drivers
    def test_libraries(self):
        for options in ("", ",explore=2"):
            out, err = self.run_loud(8, "--driver", f"{driver('sim')}{options}", "--on-npu-failure", "fail", "--json")
            self.assertEqual(json.loads(out)["npu"]["devices"][0]["driver"], "sim")
            self.assertRegex(err, r"^qplan: npu: .*: refused the options 'sram=default,mul=on' of the plan's target 'vta'")
            self.assertEqual(len(err.splitlines()), 1)
        given = ("run", self.npu_plan, "--input", self.digit_input(0), "--driver")
        self.refused(1, ["none.so", "No such file"], *given, self.folder / "none.so")
        self.refused(1, ["text.so", "cannot be loaded"], *given, self.file("text.so", b"hello"))
        self.refused(1, ["no_entry.so", "exports no 'qplan_npu_driver_entry'"], *given, driver("no_entry"))
        self.refused(1, ["other_major.so", "is of driver ABI 2.", ", expected 1."], *given, driver("other_major"))
        self.refused(1, ["refuses.so", "does not serve"], *given, driver("refuses"))
        self.refused(1, ["short_table.so", "16 bytes"], *given, driver("short_table"))
        self.refused(1, ["missing_function.so", "lacks a function"], *given, driver("missing_function"))

    def test_bench_and_check(self):
        report = self.succeed_json("bench", self.npu_plan, "--runs", "2", "--per-step", "--json")
        runs = {region["device_runs"] for region in report["npu"]["regions"]}
        self.assertEqual(runs, {7}, "5 to warm up and 2")
        steps = self.succeed_json("inspect", self.npu_plan, "--json")["steps"]
        self.assertEqual(len(report["steps"]), len(steps))
        self.assertIn("npu: ", self.succeed("bench", self.npu_plan, "--runs", "1", "--per-step"))
        self.assertRegex(self.succeed("check", self.npu_plan), r"^OK: .* \d+ regions? loaded \(sim\)")
        self.assertRegex(self.succeed("check", self.npu_plan, "--driver", "none"), r"^OK: (?!.*loaded)")
        result = run("check", self.npu_plan, "--driver", "sim,sram=quarter")
        self.assertEqual(result.returncode, 1)
        self.assertIn("does not load on 'vta'", result.stderr)
        self.assertIn("vta", self.succeed("inspect", self.npu_plan))

    def test_a_plan_for_the_cpu_needs_no_device(self):
        report = self.run_digit(9, plan=self.plan)
        self.assertNotIn("npu", report)
        self.run_digit(9, "--on-npu-failure", "fail", plan=self.plan)


def blob_checksum(blob):
    """FNV-1a over 64-bit words, the checksum's own (at byte 24) as zero: src/vta/isa/vta_blob.h."""
    total = 14695981039346656037
    for at in range(0, len(blob), 8):
        word = 0 if at == 24 else int.from_bytes(blob[at : at + 8], "little")
        total = ((total ^ word) * 1099511628211) % 2**64
    return total


def with_endless_gemm(plan, estimate=None):
    """The plan with the first GEMM of its first VTA blob repeated 16383 x 16383 times; every checksum is right.
    estimate: the cycles that the blob declares, instead of its own."""
    data = bytearray(plan)
    content_bytes = struct.unpack_from("<Q", data, 24)[0]
    for at in (match.start() for match in re.finditer(b"VTA1", data)):  # not all of them begin a blob
        total, checksum, _, regions, instructions = struct.unpack_from("<QQQII", data, at + 16)
        blob = data[at : at + total]
        if len(blob) == total and blob_checksum(blob) == checksum:
            break
    else:
        raise AssertionError("the format has changed")
    for i in range(instructions):
        place = 64 + 48 * regions + 16 * i
        word = struct.unpack_from("<Q", blob, place)[0]
        if word & 7 == 2 and not word >> 7 & 1:  # a GEMM that accumulates
            word = word & (1 << 35) - 1 | 16383 << 35 | 16383 << 49
            struct.pack_into("<QQ", blob, place, word, 0)
            break
    else:
        raise AssertionError("no GEMM")
    if estimate is not None:
        struct.pack_into("<Q", blob, 32, estimate)
    struct.pack_into("<Q", blob, 24, blob_checksum(blob))
    data[at : at + total] = blob
    data[32:64] = hashlib.sha256(data[64:content_bytes]).digest()
    return bytes(data)


class EndlessPrograms(NpuTest):
    """A program may ask for 2^41 micro-ops in an instruction of 16 bytes."""

    SECONDS = 60  # of a loaded machine; unbounded, each of these takes hours

    def setUp(self):
        super().setUp()
        self.begin = time.monotonic()
        self.addCleanup(lambda: self.assertLess(time.monotonic() - self.begin, self.SECONDS))

    def endless(self, estimate=None):
        plan = (REPOSITORY / "tests" / "data" / "plans" / "digits_v1.3_vta.qplan").read_bytes()
        return self.file("endless.qplan", with_endless_gemm(plan, estimate))

    def test_more_work_than_a_program_declares_is_refused_at_load(self):
        plan = self.endless()
        why = ["micro-ops", "cycles that the blob declares"]
        self.refused(1, ["does not load on 'vta'"] + why, "check", plan)
        given = ("run", plan, "--input", self.digit_input(5))
        # disasm prints what comes before the blob; run logs the error too.
        for refusal in (run("npu", "disasm", plan), run(*given, "--on-npu-failure", "fail")):
            self.assertEqual(refusal.returncode, 1)
            for text in why:
                self.assertIn(text, refusal.stderr)
        out = self.folder / "out"
        result = run(*given, "--output-dir", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((out / "output0.bin").read_bytes(), self.digit_output(5), "the CPU's bytes")
        self.assertIn(why[1], result.stdout + result.stderr)

    def test_work_that_is_declared_ends_with_the_timeout(self):
        plan = self.endless(estimate=2**63)
        self.assertRegex(self.succeed("check", plan), r"^OK: ")
        out = self.folder / "out"
        result = run("run", plan, "--input", self.digit_input(5), "--output-dir", out, "--npu-timeout-ms", "200")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((out / "output0.bin").read_bytes(), self.digit_output(5), "the CPU's bytes")
        self.assertIn("did not end in time", result.stderr)
        result = run("run", plan, "--input", self.digit_input(5), "--npu-timeout-ms", "200", "--on-npu-failure", "fail")
        self.assertEqual(result.returncode, 1)
        self.assertIn("did not end in time", result.stderr)

    @unittest.skipUnless((SHARED / "repro").is_dir(), f"no reproducers in '{SHARED}' (QPLAN_SHARED)")
    def test_the_plan_that_once_ran_for_ever(self):
        self.refused(1, ["does not load on 'vta'", "micro-ops"], "check", SHARED / "repro" / "endless_gemm.qplan")


class Records(NpuTest):
    def record(self, *options):
        jobs = self.folder / "jobs"
        npu = self.run_digit(3, "--npu-record", jobs, *options)["npu"]
        return jobs, sum(region["device_runs"] for region in npu["regions"])

    def test_each_job_is_recorded_and_replays(self):
        jobs, ran = self.record()
        self.assertEqual(sorted(path.name for path in jobs.iterdir()), [f"job-{i:04}" for i in range(ran)])
        text = self.succeed("npu", "replay", jobs)
        self.assertEqual(text.count(" OK, "), ran)
        self.assertNotIn("differs", text)
        report = self.succeed_json("npu", "replay", jobs / "job-0000", "--json", "--npu-options", "explore=4")
        self.assertEqual([job["ok"] for job in report], [True])
        self.assertEqual({check["result"] for check in report[0]["checks"]}, {"OK"})

    def test_intermediate_tensors_are_checked_on_request(self):
        def checks(jobs):
            return sum(path.read_text().count("\ncheck ") for path in jobs.glob("job-*/job.txt"))

        few = checks(self.record()[0])
        jobs, _ = self.record("--npu-record-all")
        self.assertGreater(checks(jobs), few)
        self.assertNotIn("differs", self.succeed("npu", "replay", jobs))

    def test_a_second_recording_replaces_the_first_and_nothing_else(self):
        jobs, ran = self.record()
        (jobs / "job-0099").mkdir()
        (jobs / "job-0099" / "job.txt").write_text("target vta\n")
        (jobs / "notes.txt").write_text("mine")
        self.record()
        self.assertEqual(sorted(path.name for path in jobs.iterdir()), [f"job-{i:04}" for i in range(ran)] + ["notes.txt"])

    def test_a_run_that_fails_keeps_the_earlier_recording(self):
        jobs, _ = self.record()
        before = self.left_behind()
        given = ("run", self.npu_plan, "--input", self.digit_input(3), "--npu-record")
        for folder in (jobs, self.folder / "new" / "jobs"):
            for texts, options in (("No such file", ("--driver", self.folder / "none.so")),
                                   ("needs more than", ("--max-work", "1")),
                                   ("no region ran on its device", ("--npu-options", "faults=at=open:0 kind=absent"))):
                result = run(*given, folder, *options)
                self.assertEqual((result.returncode, self.left_behind()), (1, before), result.stderr)
            self.assertEqual(run("run", self.plan, "--input", self.digit_input(3), "--npu-record", folder).returncode, 1)
            self.assertEqual(self.left_behind(), before)

    def test_the_last_outputs_bytes_are_the_cpus(self):
        # Recording implies the comparison with the CPU: the checks are its bytes.
        npu = self.run_digit(3, "--npu-record", self.folder / "jobs")["npu"]
        for region in npu["regions"]:
            self.assertEqual(region["mismatches"], 0)
            self.assertGreaterEqual(region["cpu_runs"] + region["device_runs"], 1)

    @needs_drivers
    def test_the_jobs_of_a_librarys_driver_are_those_of_its_device(self):
        library, jobs = driver("sim"), self.folder / "jobs"
        self.run_loud(3, "--driver", library, "--npu-record", jobs)  # the driver knows no options of the target's
        ran = len(list(jobs.iterdir()))
        self.assertGreater(ran, 0)
        self.assertTrue((jobs / "job-0000" / "job.txt").read_text().startswith("target slots\nformat 0x31415456\n"))
        self.assertEqual(self.succeed("npu", "replay", jobs, "--driver", f"{library},explore=2").count(" OK, "), ran)
        # Ethos-U's have the simulator's form, which needs no driver.
        plan = self.folder / "ethosu.qplan"
        self.assertEqual(run("pack", DIGITS, "-o", plan, "--target", "ethos-u55-128, cpu", "--no-cost-gate").returncode, 0)
        own, others = self.folder / "own", self.folder / "others"
        devices = self.run_digit(3, "--npu-record", own, plan=plan)["npu"]["devices"]
        self.assertEqual([device["driver"] for device in devices], ["sim"])
        result = run("run", plan, "--input", self.digit_input(3), "--npu-record", others, "--driver",
                     f"{library},device=ethos-u55-128")
        self.assertEqual(result.returncode, 0, result.stderr)
        for path in (own / "job-0000").iterdir():
            self.assertEqual((others / "job-0000" / path.name).read_bytes(), path.read_bytes(), path.name)
        self.assertIn(" OK, ", self.succeed("npu", "replay", others))

    @needs_drivers
    def test_a_recording_that_cannot_be_written_says_why(self):
        jobs = self.folder / "jobs"
        jobs.mkdir()
        (jobs / "job-0000").symlink_to(self.folder / "nowhere")
        result = run("run", self.npu_plan, "--input", self.digit_input(3), "--npu-record", jobs, "--driver", driver("sim"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("jobs: record: cannot make '", result.stderr)

    def test_what_differs_from_the_cpu_is_not_kept(self):
        jobs = self.folder / "jobs"
        result = run("run", self.npu_plan, "--input", self.digit_input(3), "--npu-record", jobs, "--npu-options",
                     SILENT_FLIPS)
        self.assertEqual(result.returncode, 1)
        self.assertIn("other bytes", result.stderr)
        self.assertEqual(list(jobs.iterdir()), [])

    def test_nothing_to_record_is_an_error(self):
        self.refused_after("no regions for a device", self.plan)
        self.refused_after("no region ran on its device", self.npu_plan, "--npu-options", "faults=at=open:0 kind=absent")

    def refused_after(self, text, plan, *options):
        result = run("run", plan, "--input", self.digit_input(3), "--npu-record", self.folder / "jobs", *options)
        self.assertEqual(result.returncode, 1)
        self.assertIn("nothing was recorded", result.stderr)
        self.assertIn(text, result.stderr)

    def test_directory_that_cannot_be_made(self):
        path = self.file("file", b"")
        self.refused(1, ["--npu-record", "file"], "run", self.npu_plan, "--input", self.digit_input(3), "--npu-record",
                     path / "below")

    def test_damaged_jobs(self):
        jobs, _ = self.record()
        job = jobs / "job-0000"

        def damaged(texts, change):
            copy = self.folder / "copy"
            shutil.copytree(job, copy)
            change(copy)
            result = run("npu", "replay", copy)
            self.assertEqual(result.returncode, 1, result.stdout)
            for text in texts:
                self.assertIn(text, result.stderr)
            shutil.rmtree(copy)
            return result.stdout

        def flip(path):
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)

        check = sorted(path.name for path in job.iterdir() if path.name.startswith("check"))[0]
        out = damaged(["1 of 1 job failed", f"'{check}'"], lambda copy: flip(copy / check))
        self.assertIn("differs", out)
        damaged(["cannot read", "instructions.bin"], lambda copy: (copy / "instructions.bin").unlink())
        damaged(["16"], lambda copy: (copy / "instructions.bin").write_bytes(b"123"))
        damaged(["no check"], lambda copy: (copy / "job.txt").write_text("target vta\nbase 0x1000\nsize 0x1000\n"))
        damaged(["'dance'"], lambda copy: (copy / "job.txt").write_text("dance\n"))
        damaged(["npu"], lambda copy: (copy / "job.txt").write_bytes(b"\x00\xff\n"))

    def test_records_from_anybody(self):
        job = self.folder / "job"
        job.mkdir()

        def refused(text, *lines):
            (job / "job.txt").write_text("".join(line + "\n" for line in lines))
            result = run("npu", "replay", job)
            self.assertEqual(result.returncode, 1)
            self.assertIn(text, result.stderr)
            self.assertRegex(result.stdout, r"FAILED: replay: .")

        (job / "x").write_bytes(b"\x03" + bytes(15))  # the instruction FINISH
        refused("a second 'size'", "size 0x2000", "load 0x1000 x", "size 0x1000")
        end = ("run x", "check 0x1000 0x10 x")
        refused("outside the job's directory", "size 0x1000", "load 0x1000 /dev/zero", *end)
        (job / "x").unlink()
        os.mkfifo(job / "x")
        refused("'x' is not a regular file", "size 0x1000", *end)
        (job / "job.txt").unlink()
        os.mkfifo(job / "job.txt")
        result = run("npu", "replay", job)
        self.assertEqual(result.returncode, 1)
        self.assertIn("'job.txt' is not a regular file", result.stderr)

    def test_records_of_other_devices_list_no_checks(self):
        job = self.folder / "job-0000"
        job.mkdir()
        (job / "job.txt").write_text("target other\nregion 1 16\nrun x\ncheck 1 0 8 check-0.bin\n")
        result = run("npu", "replay", job)
        self.assertEqual(result.returncode, 1)
        self.assertIn("target 'other', expected 'vta' or 'ethosu'", result.stderr)
        self.assertNotIn("compared", result.stdout)

    @unittest.skipUnless((SHARED / "repro").is_dir(), f"no reproducers in '{SHARED}' (QPLAN_SHARED)")
    def test_records_that_once_did_harm(self):
        for name, text in (("replay_shrunk_arena", "a second 'size'"), ("replay_moved_base", "a second 'base'"),
                           ("replay_dev_zero", "job.txt has no check")):
            result = run("npu", "replay", SHARED / "repro" / name)
            self.assertEqual(result.returncode, 1, name)
            self.assertIn(text, result.stderr)

    def test_a_byte_that_differs_is_in_its_check(self):
        jobs, _ = self.record()
        job = jobs / "job-0000"
        checks = [line.split() for line in (job / "job.txt").read_text().splitlines() if line.startswith("check")]
        name = checks[0][3]
        long = "a" * 100  # longer than what a message quotes
        (job / name).rename(job / long)
        (job / "job.txt").write_text((job / "job.txt").read_text().replace(name, long))
        data = bytearray((job / long).read_bytes())
        data[-1] ^= 1
        (job / long).write_bytes(data)
        result = run("npu", "replay", job)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, rf"(?m)^  {long} .*: differs$")

    def test_what_is_no_record(self):
        self.refused(1, ["nothing", "No such file"], "npu", "replay", self.folder / "nothing")
        self.refused(1, ["file", "not a directory"], "npu", "replay", self.file("file", b""))
        (self.folder / "empty").mkdir()
        self.refused(1, ["empty", "no job.txt"], "npu", "replay", self.folder / "empty")

    def test_trace(self):
        trace = self.folder / "trace.json"
        self.run_digit(3, "--npu-trace", trace)
        self.assertIn("traceEvents", trace.read_text())

    def failed_run(self, *options, **limits):
        result = run("run", self.npu_plan, "--input", self.digit_input(3), *options, **limits)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        return result.stderr

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_trace_that_cannot_be_written_is_an_error(self):
        self.assertIn("trace: file '/dev/full': cannot write: No space left on device",
                      self.failed_run("--npu-trace", "/dev/full"))
        self.assertIn("No such file or directory", self.failed_run("--npu-trace", self.folder / "none" / "x.json"))
        trace = self.folder / "trace.json"
        self.assertIn("File too large", self.failed_run("--npu-trace", trace, "--output-dir", self.folder / "out",
                                                        file_size_limit=1000))
        self.assertEqual(self.left_behind(), [])

    def test_a_record_that_cannot_be_written_is_an_error(self):
        jobs = self.folder / "jobs"
        text = self.failed_run("--npu-record", jobs, file_size_limit=1000)
        self.assertRegex(text, r"--npu-record: '.*jobs' holds 0 of \d+ jobs: .*record: file '.*': cannot write \d+ bytes: "
                         "File too large")
        self.assertEqual(self.left_behind(), [], "no parts of jobs, and no folder for them")


class Listings(NpuTest):
    def test_disasm_lists_every_region_or_one(self):
        text = self.succeed("npu", "disasm", self.npu_plan)
        count = len(self.succeed_json("inspect", self.npu_plan, "--json")["regions"])
        self.assertEqual(text.count("program of region "), count)
        self.assertIn("finish", text.lower())
        one = self.succeed("npu", "disasm", self.npu_plan, "--region", "0")
        self.assertTrue(text.startswith(one))

    def test_disasm_of_what_is_not_there(self):
        self.refused(1, ["no regions for a device"], "npu", "disasm", self.plan)
        self.refused(1, ["no region 99"], "npu", "disasm", self.npu_plan, "--region", "99")
        self.refused(2, ["--region"], "npu", "disasm", self.npu_plan, "--region", "x")

    def test_info(self):
        text = self.succeed("npu", "info")
        self.assertRegex(text, r"(?m)^driver +sim$")
        self.assertRegex(text, r"(?m)^blob_formats +VTA1$")
        default = self.succeed_json("npu", "info", "--json")
        quarter = self.succeed_json("npu", "info", "--json", "--driver", "sim,sram=quarter")
        self.assertEqual(default["onchip_bytes"], [4 * size for size in quarter["onchip_bytes"]])
        self.assertNotEqual(default["capabilities_hash"], quarter["capabilities_hash"])
        self.assertIn("TFL2", default["contracts"])
        self.refused(1, ["no device 9"], "npu", "info", "--device", "9")
        self.refused(2, ["none"], "npu", "info", "--driver", "none")
        self.refused(2, ["npu --help"], "npu")

    @needs_drivers
    def test_info_of_a_library(self):
        self.assertEqual(self.succeed_json("npu", "info", "--driver", driver("sim"), "--json")["driver"], "sim")


if __name__ == "__main__":
    unittest.main()
