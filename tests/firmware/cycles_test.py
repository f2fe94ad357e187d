"""The counters of samples/firmware/cycles.h, which QEMU does not have: the image for a Cortex-M4 runs in Unicorn, where the
DWT, the PMU and SysTick are the models below. They follow Arm's Architecture Reference Manuals of Armv7-M and Armv8-M, and
count the instructions that Unicorn reports as cycles.

usage: cycles_test.py QPLAN BUILD_DIR    (run by ctest; needs gcc-arm-none-eabi and python3-unicorn)
"""
import os
import re
import shutil
import struct
import sys
import unittest

import firmware_test
from firmware_test import PREFIX, models, run

try:
    import unicorn
    from unicorn import arm_const
except ImportError:
    unicorn = None

CPACR, DEMCR, SYST_CSR, SYST_RVR, SYST_CVR = 0xE000ED88, 0xE000EDFC, 0xE000E010, 0xE000E014, 0xE000E018
DWT_CTRL, DWT_CYCCNT, DWT_LAR = 0xE0001000, 0xE0001004, 0xE0001FB0
PMU_CCNTR, PMU_CNTENSET, PMU_CTRL = 0xE000307C, 0xE0003C00, 0xE0003E04
TRCENA, NOCYCCNT, PMU_CYCLES, KEY = 1 << 24, 1 << 25, 1 << 31, 0xC5ACCE55
SYSTEM, SYSTEM_BYTES = 0xE0000000, 0x100000  # the Private Peripheral Bus
WRITE, EXIT = 0x04, 0x20  # semihosting: SYS_WRITE0, SYS_EXIT_EXTENDED
# Unicorn has no core of Armv8.1-M: this compiles what cycles.h has for it with the instructions of a Cortex-M4.
PMU_BRANCH = "CYCLES_HAS_PMU=1"
NEVER = 0xFFFFFFFE  # no address of an instruction


class Counter:
    """A counter of cycles that counts while it is enabled."""

    def __init__(self, cycles, first):
        self.cycles, self.value, self.since = cycles, first, None

    def enable(self, is_enabled):
        if is_enabled and self.since is None:
            self.since = self.cycles()
        elif not is_enabled and self.since is not None:
            self.value, self.since = self.read(), None

    def read(self):
        return (self.value + (0 if self.since is None else self.cycles() - self.since)) % 2**32


class Registers:
    """The system registers that the image may access; what it does to another one is a fault. The registers of a unit read as
    zero and ignore writes until DEMCR.TRCENA is set; those of a unit that is absent always do."""

    def __init__(self, cycles, unit=None, first=0, is_locked=False):
        self.cycles, self.unit, self.is_locked = cycles, unit, is_locked
        self.counter = Counter(cycles, first)
        self.values = dict.fromkeys((CPACR, DEMCR, SYST_CSR, SYST_RVR, PMU_CNTENSET, PMU_CTRL), 0)
        self.values[DWT_CTRL] = 4 << 28 | (0 if unit == "DWT" else NOCYCCNT)
        self.tick_begin = None
        self.faults, self.reads = [], []  # reads: (register, cycles, value) of counters

    def read(self, address):
        traced = self.values[DEMCR] & TRCENA != 0
        if address == SYST_CVR:
            return self.note(address, self.tick())
        if address in (DWT_CYCCNT, PMU_CCNTR):
            has = self.unit == ("DWT" if address == DWT_CYCCNT else "PMU")
            return self.note(address, self.counter.read() if traced and has else 0)
        if address in (DWT_CTRL, PMU_CNTENSET, PMU_CTRL):
            return self.values[address] if traced else 0
        if address in (CPACR, DEMCR):
            return self.values[address]
        self.faults.append(f"read of 0x{address:08X}")
        return 0

    def write(self, address, value):
        traced = self.values[DEMCR] & TRCENA != 0
        if address == DWT_LAR:
            if traced:
                self.is_locked = self.is_locked and value != KEY
        elif address == DWT_CTRL:
            if traced and not self.is_locked and self.unit == "DWT":
                self.values[DWT_CTRL] = self.values[DWT_CTRL] & ~1 | value & 1  # CYCCNTENA
        elif address == PMU_CNTENSET:
            if traced and self.unit == "PMU":
                self.values[PMU_CNTENSET] |= value  # what is not set stays as it is
        elif address == PMU_CTRL:
            if traced and self.unit == "PMU":
                self.values[PMU_CTRL] = value & 1
        elif address == SYST_CVR:
            self.tick_begin = self.cycles()  # any value clears it
        elif address == SYST_RVR:
            self.values[SYST_RVR] = value & 0xFFFFFF
        elif address == SYST_CSR:
            if value != 5:  # enabled, the processor's clock, no interrupt
                self.faults.append(f"SYST_CSR = {value}")
            self.values[SYST_CSR] = value
            self.tick_begin = self.cycles()
        elif address in (CPACR, DEMCR):
            self.values[address] = value
        else:
            self.faults.append(f"write of 0x{address:08X}")
        counts = self.values[DWT_CTRL] & 1 if self.unit == "DWT" else \
            self.values[PMU_CNTENSET] & PMU_CYCLES and self.values[PMU_CTRL] & 1
        self.counter.enable(bool(self.values[DEMCR] & TRCENA and counts))

    def tick(self):
        """SysTick: the cycle after it was cleared reloads it, and it counts down from there to 0 again and again."""
        passed = self.cycles() - self.tick_begin if self.values[SYST_CSR] & 1 else 0
        return 0 if passed == 0 else self.values[SYST_RVR] - (passed - 1) % (self.values[SYST_RVR] + 1)

    def note(self, address, value):
        self.reads.append((address, self.cycles(), value))
        return value


class Run:
    """An image from its reset to its end. `text` is what it printed, `cycles` are those of the invoke."""

    def __init__(self, image, core, cycles_per_instruction=1, **registers):
        self.executed, self.rate, self.text, self.status = 0, cycles_per_instruction, "", None
        self.begin = self.cycles = self.after = None
        symbols = {fields[2]: int(fields[0], 16) for fields in map(str.split, run(PREFIX + "nm", image).stdout.splitlines())
                   if len(fields) == 3}
        self.machine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        self.machine.ctl_set_cpu_model(getattr(arm_const, "UC_CPU_ARM_CORTEX_" + core))
        for address in (0, 0x20000000):
            self.machine.mem_map(address, 4 << 20)
        self.load(image)
        self.registers = Registers(lambda: self.executed * self.rate, **registers)
        self.machine.mmio_map(SYSTEM, SYSTEM_BYTES, self.read, None, self.write, None)
        self.machine.hook_add(unicorn.UC_HOOK_INTR, self.interrupt)
        # The start-up code clears the arena and main looks at it in the end: only what is between is counted.
        stack, reset = struct.unpack("<II", self.machine.mem_read(0, 8))
        self.machine.reg_write(arm_const.UC_ARM_REG_SP, stack)
        self.machine.emu_start(reset | 1, symbols["qplan_plan_open"])
        assert not self.registers.reads, "a counter was read before instructions are counted"
        counting = self.machine.hook_add(unicorn.UC_HOOK_CODE, self.count)
        invoke = symbols["qplan_session_invoke"]
        self.machine.hook_add(unicorn.UC_HOOK_CODE, self.invoke, begin=invoke, end=invoke)
        self.machine.emu_start(self.machine.reg_read(arm_const.UC_ARM_REG_PC) | 1, NEVER)
        self.machine.hook_del(counting)
        self.machine.emu_start(self.after, NEVER)

    def load(self, image):
        with open(image, "rb") as file:
            elf = file.read()
        table, = struct.unpack_from("<I", elf, 28)
        for i in range(struct.unpack_from("<H", elf, 44)[0]):
            kind, offset, _, address, size = struct.unpack_from("<5I", elf, table + 32 * i)
            if kind == 1:  # PT_LOAD
                self.machine.mem_write(address, elf[offset:offset + size])

    def count(self, *_):
        self.executed += 1

    def invoke(self, *_):
        self.begin = self.executed
        back = self.machine.reg_read(arm_const.UC_ARM_REG_LR) & ~1
        self.machine.hook_add(unicorn.UC_HOOK_CODE, self.returned, begin=back, end=back)

    def returned(self, *_):
        self.cycles = (self.executed - self.begin) * self.rate

    def read(self, _, offset, size, __):
        if size != 4:
            self.registers.faults.append(f"read of {size} bytes")
        return self.registers.read(SYSTEM + offset)

    def write(self, _, offset, size, value, __):
        if size != 4:
            self.registers.faults.append(f"write of {size} bytes")
        self.registers.write(SYSTEM + offset, value)

    def interrupt(self, *_):
        """Semihosting: BKPT 0xAB with the operation in r0 and its argument in r1."""
        at, operation, argument = (self.machine.reg_read(register) for register in (
            arm_const.UC_ARM_REG_PC, arm_const.UC_ARM_REG_R0, arm_const.UC_ARM_REG_R1))
        if bytes(self.machine.mem_read(at, 2)) != b"\xab\xbe" or operation not in (WRITE, EXIT):
            self.registers.faults.append(f"exception at 0x{at:08X}")
            self.machine.emu_stop()
            return
        if operation == EXIT:
            self.status = struct.unpack("<II", self.machine.mem_read(argument, 8))[1]
            self.machine.emu_stop()
            return
        end = argument
        while self.machine.mem_read(end, 1) != b"\0":
            end += 1
        text = self.machine.mem_read(argument, end - argument).decode()
        self.text += text
        if text.startswith("run_stack_bytes"):  # after the invoke
            self.after = at + 2 | 1
            self.machine.emu_stop()
        else:
            self.machine.reg_write(arm_const.UC_ARM_REG_PC, at + 2 | 1)


class Cycles(unittest.TestCase):
    def setUp(self):
        if unicorn is None or not shutil.which(PREFIX + "g++"):
            self.skipTest("not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib "
                          "python3-unicorn)")
        self.name, *self.files = models()[0]

    def image(self, definitions=""):
        return firmware_test.Firmware.build(self.name + "_cycles" + definitions, *self.files, profile=True,
                                            definitions=definitions)[1]

    def profile(self, image, counter, register, core, **options):
        """The cycles that the image printed for its steps, which are those that the model of the counter passed."""
        done = Run(image, core, **options)
        self.assertEqual(done.registers.faults, [])
        self.assertEqual(done.status, 0, done.text)
        self.assertIn("\ndifferent 0\n", done.text)
        self.assertIn(f"\ncycles by {counter}: ", done.text)
        printed = [int(line.split()[1]) for line in done.text.splitlines() if line.startswith("step ")]
        reads = [(cycles, value) for address, cycles, value in done.registers.reads if address == register]
        reads = reads[-2 * len(printed):]  # one before each step, and one after it
        self.assertEqual(printed, [end[0] - begin[0] for begin, end in zip(reads[::2], reads[1::2])])
        self.assertGreater(min(printed), 0)
        self.assertEqual(int(re.search(r"(?m)^cycles (\d+)$", done.text)[1]), sum(printed))
        print(f"{counter} on {core} {options}: steps {printed}, sum {sum(printed)}, invoke {done.cycles}")
        self.assertLess(sum(printed), done.cycles)
        self.assertGreater(sum(printed), 0.9 * done.cycles)
        return printed, [value for _, value in reads]

    def counts(self, image, counter, register, core, **options):
        """The counter of a unit begins at 0, and then so that it wraps in the middle of the second step."""
        printed, values = self.profile(image, counter, register, core, **options)
        first = 2**32 - (values[2] + values[3]) // 2
        again, values = self.profile(image, counter, register, core, first=first, **options)
        self.assertGreater(values[2], values[3])
        self.assertEqual(again, printed)

    def test_the_dwt_counts_when_it_is_enabled_across_a_wrap(self):
        self.counts(self.image(), "DWT", DWT_CYCCNT, "M4", unit="DWT")

    def test_the_dwt_of_a_cortex_m7_is_unlocked(self):
        self.counts(self.image(), "DWT", DWT_CYCCNT, "M7", unit="DWT", is_locked=True)

    def test_the_pmu_counts_when_it_is_enabled_across_a_wrap(self):
        self.counts(self.image(PMU_BRANCH), "PMU", PMU_CCNTR, "M33", unit="PMU")

    def test_each_core_has_the_unit_of_its_architecture(self):
        for core, unit in (("m0plus", None), ("m3", "DWT"), ("m4", "DWT"), ("m7", "DWT"), ("m33", "DWT"), ("m55", "PMU")):
            with self.subTest(core=core):
                floats = "hard" if core == "m55" else "soft"
                text = run(PREFIX + "gcc", "-mcpu=cortex-" + core, "-mthumb", "-mfloat-abi=" + floats, "-E", "-P",
                           os.path.join(firmware_test.ROOT, "samples", "firmware", "cycles.h")).stdout
                self.assertEqual([name for name in ("DWT", "PMU") if f'"{name}"' in text], [unit] if unit else [])
                self.assertIn('"SysTick"', text)

    def test_systick_counts_where_the_unit_has_no_counter_across_wraps(self):
        for definitions in ("", PMU_BRANCH):
            with self.subTest(definitions=definitions):
                printed, values = self.profile(self.image(definitions), "SysTick", SYST_CVR, "M33", cycles_per_instruction=100)
                # Each step is shorter than the 24 bits of the counter, which counts down and wraps in two of them.
                self.assertLess(max(printed), 1 << 24)
                self.assertGreater(sum(printed), 2 << 24)
                self.assertGreater(sum(begin < end for begin, end in zip(values[::2], values[1::2])), 1)

    def test_qemu_executes_the_instructions_that_the_model_counts(self):
        if not shutil.which("qemu-system-arm"):
            self.skipTest("qemu-system-arm is not installed")
        image = self.image()
        printed, _ = self.profile(image, "SysTick", SYST_CVR, "M4")
        # An instruction takes 32 ns of QEMU's clock, by which SysTick counts 25 MHz: 0.8 of a cycle.
        steps = re.findall(r"(?m)^step (\d+)", firmware_test.Firmware.start(image, "-icount", "shift=5").stdout)
        self.assertEqual(len(steps), len(printed))
        for cycles, instructions in zip(map(int, steps), printed):
            # QEMU counts those whose condition fails, too, of which Unicorn reports nothing.
            self.assertGreater(cycles, 0.8 * instructions - 1)
            self.assertLess(cycles, 0.8 * 1.03 * instructions + 1)


if __name__ == "__main__":
    firmware_test.QPLAN, firmware_test.BUILD = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
