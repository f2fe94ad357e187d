"""check_layers.py finds what it is there for.   usage: check_layers_test.py CHECK_LAYERS"""
import os
import subprocess
import sys
import tempfile
import unittest

CHECK = sys.argv.pop(1)


def check(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        done = subprocess.run([sys.executable, CHECK, root], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def test_accepts_what_the_design_allows(self):
        status, text = check({"src/runtime/session.cc": '#include "format/plan_view.h"\n#include <string.h>\n'})
        self.assertEqual((status, text), (0, "1 files, 0 offences\n"))

    def test_runtime_may_not_know_the_packer(self):
        status, text = check({"src/runtime/session.cc": '#include "src/packer/ir/module.h"\n'})
        self.assertEqual(status, 1)
        self.assertIn("src/runtime/session.cc:1: layer 'runtime' may not include", text)

    def test_reference_kernels_know_no_plan(self):
        status, _ = check({"kernels/conv2d/conv2d_ref.cc": '#include "format/plan_view.h"\n'})
        self.assertEqual(status, 1)

    def test_isa_files_include_no_library_headers(self):
        status, text = check({"kernels/conv2d/conv2d_avx2.cc": "#include <algorithm>\n"})
        self.assertEqual(status, 1)
        self.assertIn("an ISA file may not include <algorithm>", text)

    def test_tools_use_public_headers_only(self):
        status, _ = check({"tools/run.cc": '#include "src/base/error.h"\n'})
        self.assertEqual(status, 1)

    def test_passes_may_not_know_the_emitter(self):
        status, _ = check({"src/packer/passes/fold.cc": '#include "src/packer/write/plan_writer.h"\n'})
        self.assertEqual(status, 1)

    def test_one_folder_knows_protobuf(self):
        status, _ = check({"src/packer/import/onnx/model_file.cc": "#include <onnx/onnx_pb.h>\n"})
        self.assertEqual(status, 0)
        status, text = check({"src/packer/pipeline/pipeline.cc": "#include <onnx/onnx_pb.h>\n"})
        self.assertEqual(status, 1)
        self.assertIn("only (src/packer/import/onnx|tests/fuzz)/ may include", text)


if __name__ == "__main__":
    unittest.main()
