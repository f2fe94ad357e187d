"""What the tests of boards share: the cross-built tree and the emulator. Their arguments are QPLAN BUILD_DIR ARCH."""
import os
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("QPLAN_SHARED", os.path.join(ROOT, os.pardir, "shared"))
QPLAN, BUILD, ARCH = sys.argv[1:4]
PREFIX = f"{ARCH}-linux-gnu-"
EMULATOR = shutil.which(f"qemu-{ARCH}") or shutil.which(f"qemu-{ARCH}-static")


def needs_tools(test):
    """Skips a test, or a class of them, where the cross compiler or the emulator is missing."""
    compiler = unittest.skipUnless(shutil.which(PREFIX + "g++"), f"{PREFIX}g++ is not installed (Debian: g++-{ARCH}-linux-gnu)")
    return compiler(unittest.skipUnless(EMULATOR, f"qemu-{ARCH} is not installed (Debian: qemu-user)")(test))


def run(*command, check=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done


def emulated(cpu, system=f"/usr/{ARCH}-linux-gnu"):
    """The command before a program of the board; system: the folder that has the board's libraries."""
    return EMULATOR, "-cpu", cpu, "-L", system


def build_tree():
    """The folder of the board's build tree, which is brought up to date."""
    tree = os.path.join(BUILD, "tree")
    os.makedirs(BUILD, exist_ok=True)
    run("cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", ARCH + ".cmake"),
        "-DQPLAN_BUILD_PACKER=OFF", "-DQPLAN_BUILD_TESTS=OFF", "-DQPLAN_WERROR=ON")
    run("cmake", "--build", tree, "--target", "qplan_installed")
    return tree


def pack(name, model, isa, *options):
    """The path of a plan for the board, written by the host's command."""
    plan = os.path.join(BUILD, f"{name}_{isa}.qplan")
    run(QPLAN, "pack", model, "-o", plan, "--target", f"cpu,arch={ARCH},isa={isa}", *options)
    return plan
