#!/usr/bin/env python3
"""Every code block of the documentation is compiled or run.

usage: blocks_test.py REPOSITORY BUILD
- sh: lines that call qplan, cc or qplan's own scripts by python run one after the other, in a folder with the files that
  the pages speak of (models are the digits network). Other lines name programs that other tests run.
- without a language: commands after "$ " run, too (docs/faq.md has a test of its own, which also compares what they print);
  there are no commands without "$ ".
- python: blocks that are whole programs run; fragments are parsed.
- c, cpp: compiled, fragments inside the function of FRAGMENTS.
- json: parsed. cmake: its targets are those of the installed package.
"""
import ast
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
PAGES = ["README.md", "README.zh.md", *sorted(os.path.relpath(path, ROOT) for path in
                             glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
                             + glob.glob(os.path.join(ROOT, "samples", "*", "README.md")))]
# What other tests run: install/out_of_tree, install/wheel, tests/boards, samples/firmware, install/players, conformance.
# samples/train_digits needs PyTorch, which no test has.
ELSEWHERE = ("cmake", "bash samples/quickstart.sh", "bash cmake/", "bash samples/three_ways.sh", "qemu-", "export PATH", "pip install",
             "apt-get", "build/", "qplan-npu-conformance", "python3 samples/train_digits/")
COMMAND = re.compile(r"(qplan|cmake|bash|python3|pip|apt-get|cc|PYTHONPATH=\S+|\"?\$HOME/\S+) ")
QUANTIZED = b"qnn.quantize(%input, 0.5f, 0, out_dtype=\"int8\", axis=1)\n"
# A network that keeps state: the sum of its inputs.
STREAMING = """#[version = "0.0.5"]
def @main(%x: Tensor[(256), int8], %s: Tensor[(256), int8], states=[[1, 1]], state_bytes=[[0]]) {
  %0 = qnn.add(%s, %x, 1f, 0, 1f, 0, 1f, 0);
  %1 = qnn.add(%0, %x, 1f, 0, 1f, 0, 1f, 0);
  (%1, %0)
}
"""
SYSTEM_HAS_NUMPY = subprocess.run(["/usr/bin/python3", "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0
# What a fragment of C or C++ stands in.
FRAGMENTS = {
    "docs/custom-operators.md": '#include <qplan/custom_operator.h>\nextern const qplan_custom_operator twice_operator;\n'
                                "void fragment(void) {\nqplan_session_config config;\n%s(void)config;\n}\n",
    "docs/passes.md": "#include <qplan/pass.hpp>\nvoid fragment(qplan_pack_options options) {\n%s}\n",
    "docs/firmware.md": '#include <string.h>\n#include "kws.h"\nint fragment(const int8_t* features);\n'
                        "int fragment(const int8_t* features) {\n%sreturn scores[0];\n}\n",
}


def blocks(language):
    """(page, number of the block on it, text)"""
    found = []
    for page in PAGES:
        path = os.path.join(ROOT, page)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            all_blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
            found += [(page, index, block) for index, (name, block) in enumerate(all_blocks) if name == language]
    return found


class Blocks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = temporary.name
        for name in ("samples", "tests", "include", "python"):
            os.symlink(os.path.join(ROOT, name), os.path.join(cls.folder, name))
        cls.environment = dict(os.environ, PATH=os.path.join(BUILD, "bin") + os.pathsep + os.environ["PATH"],
                               PYTHONPATH=os.path.join(ROOT, "python"), PYTHONDONTWRITEBYTECODE="1",
                               QPLAN_LIBRARY=os.path.join(BUILD, "lib", "libqplan.so"),
                               QPLAN_COMMAND=os.path.join(BUILD, "bin", "qplan"),
                               CPATH=os.path.join(BUILD, "third_party"))
        models = os.path.join(ROOT, "samples", "models")
        data = os.path.join(ROOT, "tests", "data", "digits")
        for source, names in ((f"{models}/digits.tflite", ("model.tflite", "kws.tflite", "person.tflite", "ssd.tflite", "resnet8.tflite")),
                              (f"{models}/digits_qdq.onnx", ("model.onnx", "resnet8.onnx", "kws.onnx")),
                              (f"{models}/digits_float_weights.onnx", ("kws_calibrated_again.onnx",)),
                              (f"{models}/digits.pt", ("model.pt",)),
                              (f"{data}/digit7_input.bin", ("x.bin", "input.bin", "frame0.bin", "frame1.bin", "frame2.bin"))):
            for name in names:
                shutil.copy(source, os.path.join(cls.folder, name))
        with open(os.path.join(cls.folder, "wake_word.relay"), "w", encoding="utf-8") as file:
            file.write(STREAMING)
        with open(os.path.join(cls.folder, "layer.relay"), "wb") as file:
            file.write(QUANTIZED)
        with open(os.path.join(cls.folder, "x.npy"), "wb") as file:
            header = b"{'descr': '|i1', 'fortran_order': False, 'shape': (1, 16, 16, 1), }".ljust(117) + b"\n"
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
            with open(f"{data}/digit7_input.bin", "rb") as digit:
                file.write(digit.read())
        os.mkdir(os.path.join(cls.folder, "build"))
        for model, plan in (("model.tflite", "model"), ("model.tflite", "digits"), ("wake_word.relay", "wake_word")):
            cls.shell(f"qplan pack {model} -o {plan}.qplan")

    @classmethod
    def shell(cls, command):
        done = subprocess.run(["bash", "-c", command], cwd=cls.folder, env=cls.environment, text=True, check=False, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise AssertionError(f"{command}\nexit status {done.returncode}\n{done.stdout}")

    def run_line(self, page, index, line):
        """Whether the line is one that runs here."""
        line = line.replace("build/release/bin/qplan", "qplan").replace('"$HOME/qplan/bin/qplan"', "qplan")
        if not line.strip() or line.startswith("#") or line.startswith(ELSEWHERE) or "build/skeleton/" in line:
            return False
        if line.startswith("qplan tune"):  # it would take its whole budget
            line = line.split(" #")[0] + " --budget 1"
        with self.subTest(page=page, block=index, line=line):
            self.assertRegex(line, r"^(qplan|cc|PYTHONPATH=python /usr/bin/python3) ", "no test runs this program; see ELSEWHERE")
            if "/usr/bin/python3" not in line or SYSTEM_HAS_NUMPY:
                self.shell(line)
                return True
        return False

    def test_commands(self):
        ran = collections.Counter(page for page, index, block in blocks("sh")
                                  for line in block.replace("\\\n", " ").splitlines() if self.run_line(page, index, line))
        self.assertGreaterEqual(sum(ran.values()), 50, ran)
        # What is written with a path that is replaced runs, too.
        for page in ("samples/c_api/README.md", "samples/firmware/README.md"):
            self.assertGreaterEqual(ran[page], 1, page)

    def test_commands_with_what_they_print(self):
        ran = 0
        for page, index, block in blocks(""):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("$ ") and page != "docs/faq.md":
                    ran += self.run_line(page, index, line[2:])
                with self.subTest(page=page, block=index, line=line):
                    self.assertIsNone(COMMAND.match(line), "a command: the block is one of sh, or the line begins with '$ '")
        self.assertGreaterEqual(ran, 7)

    def test_python(self):
        has_numpy = subprocess.run([sys.executable, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        ran = 0
        for page, index, block in blocks("python"):
            with self.subTest(page=page, block=index):
                lines = block.splitlines()
                if lines[0].startswith(" "):  # goes on inside a block of the one before
                    block = "if True:\n" + block
                ast.parse(block)
                if "import qplan" in lines and has_numpy:
                    self.shell(f"{sys.executable} - <<'END'\n{block}END\n")
                    ran += 1
        self.assertTrue(ran >= 3 or not has_numpy, ran)

    def compile(self, language, compiler, standard):
        for page, index, block in blocks(language):
            with self.subTest(page=page, block=index):
                if "#include <" not in block:
                    self.assertIn(page, FRAGMENTS, "a fragment without the function that it stands in")
                    block = FRAGMENTS[page] % re.sub(r'^#include "kws.h"\n', "", block)
                path = os.path.join(self.folder, f"block.{language}")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(block)
                self.shell(f"qplan pack kws.tflite -o kws.qplan --target cpu,arch=cortex-m4 && qplan emit-c kws.qplan -o kws")
                self.shell(f"{compiler} -std={standard} -Wall -Wextra -Werror -Wno-unused -fsyntax-only -Iinclude -Ikws {path}")

    def test_c(self):
        self.compile("c", "cc", "c99")

    def test_cpp(self):
        self.compile("cpp", "c++", "c++17")

    def test_json(self):
        for page, index, block in blocks("json"):
            with self.subTest(page=page, block=index):
                json.loads(block)

    def test_cmake(self):
        with open(os.path.join(ROOT, "cmake", "qplanConfig.cmake.in"), encoding="utf-8") as file:
            config = file.read()
        for page, index, block in blocks("cmake"):
            with self.subTest(page=page, block=index):
                for target in re.findall(r"qplan::\w+", block):
                    self.assertIn(target, config)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
