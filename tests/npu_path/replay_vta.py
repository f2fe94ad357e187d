"""Replays jobs recorded by record=DIR: a second reading of VTA's specification, in NumPy and sharing no line with the
simulator. Executes the stream in program order and compares the bytes that the job checks.

  replay_vta.py DIR/job-0000 ...     exit code 0: all bytes as checked; 1: a difference or a malformed job; 2: no NumPy
"""

import os
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(2)

LOAD, STORE, GEMM, FINISH, ALU = range(5)
UOP, WGT, INP, ACC, OUT, ACC_8BIT = range(6)
# Bytes of one element in DRAM, by memory id.
ELEMENT = {UOP: 4, WGT: 256, INP: 16, ACC: 64, OUT: 16, ACC_8BIT: 16}
# Elements on chip.
SIZE = {UOP: 8192, WGT: 1024, INP: 2048, ACC: 2048}


class Fault(Exception):
    pass


def fields(word, *widths):
    """The bit fields of a 64-bit word from bit 0 on."""
    result = []
    for width in widths:
        result.append(word & ((1 << width) - 1))
        word >>= width
    return result


def wrap32(values):
    return values.astype(np.int64).astype(np.uint64).astype(np.uint32).view(np.int32)


class Machine:
    def __init__(self, base, size):
        self.base = base
        self.dram = np.zeros(size, np.uint8)
        self.uop = np.zeros(SIZE[UOP], np.uint32)
        self.wgt = np.zeros((SIZE[WGT], 16, 16), np.int8)
        self.inp = np.zeros((SIZE[INP], 16), np.int8)
        self.acc = np.zeros((SIZE[ACC], 16), np.int32)
        self.written = {memory: np.zeros(size, bool) for memory, size in SIZE.items()}
        # Tokens by queue, counted in program order.
        self.tokens = {"load->compute": 0, "compute->load": 0, "compute->store": 0, "store->compute": 0}
        self.pushed = dict(self.tokens)
        self.popped = dict(self.tokens)

    # ---- DRAM ----
    def at(self, address, count):
        begin = address - self.base
        if begin < 0 or begin + count > self.dram.size:
            raise Fault(f"access to {count} bytes at {address:#x} outside of the arena")
        return self.dram[begin : begin + count]

    # ---- on chip ----
    def check_range(self, memory, first, count):
        if first + count > SIZE[memory]:
            raise Fault(f"elements {first} .. {first + count - 1} of memory {memory}, which has {SIZE[memory]}")

    def need(self, memory, index, what):
        if index.size and int(index.max()) >= SIZE[memory]:
            raise Fault(f"{what}: element {int(index.max())} of memory {memory}, which has {SIZE[memory]}")
        if not self.written[memory][index].all():
            first = int(index[~self.written[memory][index]][0])
            raise Fault(f"{what}: element {first} of memory {memory} was never written")

    def put(self, memory, first, raw):
        """raw: uint8 [n, element bytes]."""
        n = raw.shape[0]
        target = ACC if memory == ACC_8BIT else memory
        self.check_range(target, first, n)
        raw = np.ascontiguousarray(raw)
        if memory == UOP:
            self.uop[first : first + n] = raw.view("<u4")[:, 0]
        elif memory == WGT:
            self.wgt[first : first + n] = raw.view(np.int8).reshape(n, 16, 16)
        elif memory == INP:
            self.inp[first : first + n] = raw.view(np.int8)
        elif memory == ACC:
            self.acc[first : first + n] = raw.view("<i4")
        elif memory == ACC_8BIT:
            self.acc[first : first + n] = raw.view(np.int8).astype(np.int32)
        else:
            raise Fault(f"load of memory {memory}")
        self.written[target][first : first + n] = True

    # ---- instructions ----
    def execute(self, low, high):
        opcode, pop_prev, pop_next, push_prev, push_next = fields(low, 3, 1, 1, 1, 1)
        module = self.module(opcode, low)
        self.count_tokens(module, pop_prev, pop_next, push_prev, push_next)
        if opcode == LOAD:
            self.load(low, high)
        elif opcode == STORE:
            self.store(low, high)
        elif opcode == GEMM:
            self.gemm(low, high)
        elif opcode == ALU:
            self.alu(low, high)
        elif opcode != FINISH:
            raise Fault(f"opcode {opcode}")
        return opcode == FINISH

    @staticmethod
    def module(opcode, low):
        if opcode == STORE:
            return "store"
        if opcode == LOAD and fields(low, 7, 3)[1] in (INP, WGT):
            return "load"
        return "compute"

    def count_tokens(self, module, pop_prev, pop_next, push_prev, push_next):
        before = {"compute": "load", "store": "compute"}.get(module)
        behind = {"load": "compute", "compute": "store"}.get(module)
        for flag, other, is_pop in (
            (pop_prev, before, True),
            (pop_next, behind, True),
            (push_prev, before, False),
            (push_next, behind, False),
        ):
            if not flag:
                continue
            if other is None:
                raise Fault(f"the {module} module has no neighbour there")
            if is_pop:
                self.popped[f"{other}->{module}"] += 1
            else:
                self.pushed[f"{module}->{other}"] += 1

    def transfer(self, low, high):
        memory, sram, dram = fields(low >> 7, 3, 16, 32)
        y_size, x_size, x_stride, y_pad_0, y_pad_1, x_pad_0, x_pad_1 = fields(high, 16, 16, 16, 4, 4, 4, 4)
        return memory, sram, dram, y_size, x_size, x_stride, y_pad_0, y_pad_1, x_pad_0, x_pad_1

    def load(self, low, high):
        memory, sram, dram, y_size, x_size, stride, top, bottom, left, right = self.transfer(low, high)
        if memory not in ELEMENT or memory == OUT:
            raise Fault(f"load of memory {memory}")
        if x_size == 0:
            return
        element = ELEMENT[memory]
        width = left + x_size + right
        block = np.zeros((top + y_size + bottom, width, element), np.uint8)
        for y in range(y_size):
            row = self.at((dram + y * stride) * element, x_size * element)
            block[top + y, left : left + x_size] = row.reshape(x_size, element)
        self.put(memory, sram, block.reshape(-1, element))

    def store(self, low, high):
        memory, sram, dram, y_size, x_size, stride, *pads = self.transfer(low, high)
        if memory != OUT or any(pads):
            raise Fault(f"store of memory {memory} with padding {pads}")
        index = np.arange(sram, sram + y_size * x_size)
        self.need(ACC, index, "store")
        rows = self.acc[index].astype(np.uint32).astype(np.uint8).reshape(y_size, x_size * 16)
        for y in range(y_size):
            self.at((dram + y * stride) * 16, x_size * 16)[:] = rows[y]

    def loop(self, low, high):
        """Indices in program order: iter_out outermost, micro-ops innermost."""
        reset, begin, end, outer, inner = fields(low >> 7, 1, 13, 14, 14, 14)
        self.need(UOP, np.arange(begin, end), "micro-ops")
        uop = self.uop[begin:end].astype(np.int64)
        y = np.arange(outer)[:, None, None]
        x = np.arange(inner)[None, :, None]

        def index(field, by_outer, by_inner):
            return (field[None, None, :] + y * by_outer + x * by_inner).reshape(-1)

        return reset, uop & 2047, (uop >> 11) & 2047, uop >> 22, index

    def gemm(self, low, high):
        reset, dst, src, wgt, index = self.loop(low, high)
        dfo, dfi, sfo, sfi, wfo, wfi = fields(high, 11, 11, 11, 11, 10, 10)
        d = index(dst, dfo, dfi)
        if d.size and d.max() >= SIZE[ACC]:
            raise Fault(f"gemm: element {d.max()} of the accumulators")
        if reset:
            self.acc[d] = 0
            self.written[ACC][d] = True
            return
        s, w = index(src, sfo, sfi), index(wgt, wfo, wfi)
        self.need(ACC, d, "gemm")
        self.need(INP, s, "gemm")
        self.need(WGT, w, "gemm")
        # Sums of products commute: all at once, in pieces that fit the memory.
        total = self.acc.astype(np.int64)
        for at in range(0, d.size, 4096):
            part = slice(at, at + 4096)
            products = np.einsum("noi,ni->no", self.wgt[w[part]].astype(np.int64), self.inp[s[part]].astype(np.int64))
            np.add.at(total, d[part], products)
        self.acc = wrap32(total)

    def alu(self, low, high):
        _, dst, src, _, index = self.loop(low, high)
        dfo, dfi, sfo, sfi, operation, use_imm, imm = fields(high, 11, 11, 11, 11, 3, 1, 16)
        imm -= (imm & 0x8000) << 1
        d, s = index(dst, dfo, dfi), index(src, sfo, sfi)
        self.need(ACC, d, "alu")
        if not use_imm:
            self.need(ACC, s, "alu")
        # At once where no operation sees the result of another.
        apart = np.unique(d).size == d.size
        if apart and not use_imm:
            apart = bool((~np.isin(s, d) | (s == d)).all())
        if apart:
            b = np.int64(imm) if use_imm else self.acc[s].astype(np.int64)
            self.acc[d] = self.operate(operation, self.acc[d].astype(np.int64), b)
            return
        for at in range(d.size):
            b = np.int64(imm) if use_imm else self.acc[s[at]].astype(np.int64)
            self.acc[d[at]] = self.operate(operation, self.acc[d[at]].astype(np.int64), b)

    @staticmethod
    def operate(operation, a, b):
        if operation == 0:
            return wrap32(np.minimum(a, b))
        if operation == 1:
            return wrap32(np.maximum(a, b))
        if operation == 2:
            return wrap32(a + b)
        if operation == 3:
            if (np.abs(b) > 31).any():
                raise Fault("a shift by more than 31")
            return wrap32(np.where(b >= 0, a >> np.maximum(b, 0), a << np.maximum(-b, 0)))
        if operation == 4:
            return wrap32(a * b)  # the low 32 bits of the low 64
        raise Fault(f"alu operation {operation}")


def replay(directory):
    """The number of bytes compared. Fault where they differ or the job is malformed."""

    def read(name):
        with open(os.path.join(directory, name), "rb") as file:
            return np.frombuffer(file.read(), np.uint8)

    machine, base, compared, ran = None, None, 0, False
    with open(os.path.join(directory, "job.txt"), encoding="ascii") as file:
        lines = [line.split() for line in file if line.strip()]
    for words in lines:
        if words[0] == "target":
            if words[1:] != ["vta"]:
                raise Fault(f"target {words[1:]}")
        elif words[0] == "base":
            base = int(words[1], 0)
        elif words[0] == "size":
            machine = Machine(base, int(words[1], 0))
        elif words[0] == "load":
            data = read(words[2])
            machine.at(int(words[1], 0), data.size)[:] = data
        elif words[0] == "run":
            stream = read(words[1]).view("<u8").reshape(-1, 2)
            for number, (low, high) in enumerate(stream):
                try:
                    finished = machine.execute(int(low), int(high))
                except Fault as fault:
                    raise Fault(f"instruction {number}: {fault}") from None
                if finished != (number + 1 == len(stream)):
                    raise Fault(f"instruction {number}: FINISH must be the last one")
            if machine.pushed != machine.popped:
                raise Fault(f"tokens pushed {machine.pushed}, popped {machine.popped}")
            ran = True
        elif words[0] == "check":
            if not ran:
                raise Fault("check before run")
            expected = read(words[3])
            found = machine.at(int(words[1], 0), int(words[2], 0))
            if expected.size != found.size:
                raise Fault(f"{words[3]} has {expected.size} bytes, not {found.size}")
            different = np.flatnonzero(expected != found)
            if different.size:
                at = int(different[0])
                raise Fault(
                    f"{different.size} of {found.size} bytes at {words[1]} differ, the first at offset {at}: "
                    f"{found[at]}, expected {expected[at]}"
                )
            compared += found.size
        else:
            raise Fault(f"directive {words[0]}")
    if compared == 0:
        raise Fault("nothing was checked")
    return compared


def main(directories):
    failed = 0
    for directory in directories:
        try:
            print(f"{directory}: {replay(directory)} bytes as checked")
        except Fault as fault:
            print(f"{directory}: {fault}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
