"""What else the machine does while something is measured."""

import os
import time

# Columns of the line "cpu" in /proc/stat: user nice system idle iowait irq softirq steal, in ticks.
_BUSY = (0, 1, 2, 5, 6, 7)


def _busy_seconds():
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    return sum(ticks[i] for i in _BUSY if i < len(ticks)) / os.sysconf("SC_CLK_TCK")


def _own_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])  # utime, stime
    return total / os.sysconf("SC_CLK_TCK")


class OtherLoad:
    """Cores that others kept busy since this was made: /proc/stat less the time of the processes named."""

    def __init__(self, *pids):
        self._pids = (os.getpid(), *pids)
        self._begin = self._now()

    def _now(self):
        try:
            return time.monotonic(), _busy_seconds() - _own_seconds(self._pids)
        except OSError:
            return None

    def cores(self):
        """None where the system does not report it."""
        now = self._now()
        if self._begin is None or now is None:
            return None
        return max(0.0, (now[1] - self._begin[1]) / max(now[0] - self._begin[0], 1e-9))
