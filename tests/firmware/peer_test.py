"""benchmarks/firmware.sh counts TensorFlow Lite Micro beside qplan. No package has its sources, so substitutes for its Makefile
and of the declarations that the peer's program uses take their place: an interpreter that copies its input. Names, signatures,
macros and folders are those of TFLM's sources of 2025.

usage: peer_test.py QPLAN BUILD_DIR    (run by ctest; needs make, gcc-arm-none-eabi and qemu-system-arm)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QPLAN = BUILD = None

HEADERS = {
    "micro_log.h": """
        #if !defined(TF_LITE_STRIP_ERROR_STRINGS)
        void MicroPrintf(const char* format, ...);
        #else
        #define MicroPrintf(...) (void)0
        #endif""",
    "micro_profiler_interface.h": """
        namespace tflite {
        namespace micro {
        class MicroProfilerInterface {
         public:
          virtual ~MicroProfilerInterface() {}
          virtual uint32_t BeginEvent(const char* tag) = 0;
          virtual void EndEvent(uint32_t event_handle) = 0;
        };
        }
        using micro::MicroProfilerInterface;
        }""",
    "micro_op_resolver.h": """
        enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };
        namespace tflite {
        class MicroOpResolver {
         public:
          virtual unsigned length() const = 0;
          virtual ~MicroOpResolver() {}
        };
        }""",
    "micro_mutable_op_resolver.h": """
        #include "tensorflow/lite/micro/micro_log.h"
        #include "tensorflow/lite/micro/micro_op_resolver.h"
        namespace tflite {
        template <unsigned int n> class MicroMutableOpResolver : public MicroOpResolver {
         public:
          explicit MicroMutableOpResolver() {}
          unsigned length() const override { return length_; }
        """ + "\n".join(f"  TfLiteStatus Add{name}() {{ return AddBuiltin(); }}" for name in (
            "Add AveragePool2D Conv2D DepthwiseConv2D Dequantize FullyConnected MaxPool2D Mean Pad Quantize Reshape "
            "Softmax").split()) + """
         private:
          void operator delete(void*) {}
          TfLiteStatus AddBuiltin() {
            if (length_ >= n) {
              MicroPrintf("resolver size is too small (%d).", n);
              return kTfLiteError;
            }
            ++length_;
            return kTfLiteOk;
          }
          unsigned length_ = 0;
        };
        }""",
    "micro_interpreter.h": """
        #include <stddef.h>
        #include "tensorflow/lite/micro/micro_op_resolver.h"
        #include "tensorflow/lite/micro/micro_profiler_interface.h"
        #include "tensorflow/lite/schema/schema_generated.h"
        struct TfLiteTensor { union { char* raw; } data; };
        namespace tflite {
        class MicroResourceVariables;
        class MicroInterpreter {
         public:
          MicroInterpreter(const Model* model, const MicroOpResolver& op_resolver, uint8_t* tensor_arena,
                           size_t tensor_arena_size, MicroResourceVariables* resource_variables = nullptr,
                           MicroProfilerInterface* profiler = nullptr, bool preserve_all_tensors = false);
          ~MicroInterpreter();
          TfLiteStatus AllocateTensors();
          TfLiteStatus Invoke();
          TfLiteTensor* input(size_t index);
          TfLiteTensor* output(size_t index);
          size_t arena_used_bytes() const { return 4106; }
         private:
          MicroProfilerInterface* profiler_;
          TfLiteTensor input_, output_;
        };
        }""",
}
SCHEMA = """
namespace tflite {
struct Model;
inline const Model* GetModel(const void* buffer) { return static_cast<const Model*>(buffer); }
}
"""
# A build that strips the texts has neither MicroPrintf nor calls of a profiler.
LIBRARY = """
#include <stdint.h>
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_log.h"
#if !defined(TF_LITE_STRIP_ERROR_STRINGS)
void MicroPrintf(const char*, ...) {}
#endif
namespace tflite {
MicroInterpreter::MicroInterpreter(const Model*, const MicroOpResolver&, uint8_t* arena, size_t, MicroResourceVariables*,
                                   MicroProfilerInterface* profiler, bool)
    : profiler_(profiler) {
  input_.data.raw = (char*)arena;
  output_.data.raw = (char*)arena + 4096;
}
MicroInterpreter::~MicroInterpreter() {}
TfLiteStatus MicroInterpreter::AllocateTensors() { return kTfLiteOk; }
TfLiteTensor* MicroInterpreter::input(size_t) { return &input_; }
TfLiteTensor* MicroInterpreter::output(size_t) { return &output_; }
TfLiteStatus MicroInterpreter::Invoke() {
  for (int operation = 0; operation < 2; ++operation) {
#if !defined(TF_LITE_STRIP_ERROR_STRINGS)
    const uint32_t event = profiler_->BeginEvent(operation == 0 ? "COPY_FIRST" : KERNELS);
#endif
    for (volatile int i = 5 * operation; i < 5 * operation + 5; ++i) output_.data.raw[i] = input_.data.raw[i];
#if !defined(TF_LITE_STRIP_ERROR_STRINGS)
    profiler_->EndEvent(event);
#endif
  }
  return kTfLiteOk;
}
}
"""
MAKEFILE = """
TARGET_TOOLCHAIN_ROOT :=
OPTIMIZED_KERNEL_DIR :=
BUILD_TYPE := default
GENDIR := gen/$(TARGET)_$(TARGET_ARCH)_$(BUILD_TYPE)
ifneq ($(OPTIMIZED_KERNEL_DIR),)
  GENDIR := $(GENDIR)_$(OPTIMIZED_KERNEL_DIR)
endif
GENDIR := $(GENDIR)_gcc/
LIB := $(GENDIR)lib/libtensorflow-microlite.a
FLAGS := -mcpu=cortex-m4 -mfpu=auto -mthumb -mfloat-abi=hard -funsigned-char -fno-exceptions -fno-rtti -Os -I. \
  -DTF_LITE_STATIC_MEMORY -DTF_LITE_MCU_DEBUG_LOG -DKERNELS=\\"COPY_REST$(if $(OPTIMIZED_KERNEL_DIR),_FAST)\\"
ifeq ($(BUILD_TYPE), release)
  FLAGS += -DNDEBUG -DTF_LITE_STRIP_ERROR_STRINGS
else ifeq ($(BUILD_TYPE), release_with_logs)
  FLAGS += -DNDEBUG
endif
microlite: $(LIB)
$(LIB): substitute.cc
\tmkdir -p $(dir $@)
\t$(TARGET_TOOLCHAIN_ROOT)arm-none-eabi-g++ $(FLAGS) -c substitute.cc -o substitute.o
\t$(TARGET_TOOLCHAIN_ROOT)arm-none-eabi-ar -r $@ substitute.o
"""


class Peer(unittest.TestCase):
    def setUp(self):
        for tool in ("make", "arm-none-eabi-g++", "qemu-system-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed")
        shutil.rmtree(BUILD / "tflm", ignore_errors=True)
        micro = BUILD / "tflm" / "tensorflow" / "lite" / "micro"
        (micro / "tools" / "make").mkdir(parents=True)
        (micro.parent / "schema").mkdir()
        for name, text in HEADERS.items():
            (micro / name).write_text("#pragma once\n#include <stdint.h>\n" + text)
        (micro.parent / "schema" / "schema_generated.h").write_text("#pragma once\n" + SCHEMA)
        (micro / "tools" / "make" / "Makefile").write_text(MAKEFILE)
        (BUILD / "tflm" / "substitute.cc").write_text(LIBRARY)
        # A model, and a golden case of which the output is the beginning of the input.
        data = BUILD / "data"
        case = data / "golden" / "digits" / "rand1"
        case.mkdir(parents=True, exist_ok=True)
        (data / "models").mkdir(exist_ok=True)
        shutil.copy(ROOT / "samples" / "models" / "digits.tflite", data / "models")
        content = (ROOT / "tests" / "data" / "digits" / "digit0_input.bin").read_bytes()
        (case / "input0.bin").write_bytes(content)
        (case / "output0.bin").write_bytes(content[:10])

    def count(self, *options):
        environment = os.environ | {"QPLAN_SHARED": str(BUILD / "data"), "QPLAN_COMMAND": str(QPLAN)}
        return subprocess.run(["bash", str(ROOT / "benchmarks" / "firmware.sh"), *options, "--output", str(BUILD / "out"), "digits"],
                              env=environment, capture_output=True, text=True, timeout=600)

    def test_instructions_of_each_operator_of_a_source_tree(self):
        done = self.count("--tflm", str(BUILD / "tflm"), "--cmsis-nn", "--steps")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue((BUILD / "tflm/gen/cortex_m_generic_cortex-m4+fp_release_with_logs_cmsis_nn_gcc/lib").is_dir())
        self.assertRegex(done.stdout, r"(?m)^0 COPY_FIRST +operator +\d+ ")
        self.assertRegex(done.stdout, r"(?m)^1 COPY_REST_FAST +operator +\d+ ")
        summary = re.search(r"(?m)^digits .*", done.stdout)[0].split()
        self.assertEqual(summary[-2:], ["4106", "equal"])
        self.assertLess(float(summary[1]), 0.001)

    def test_the_library_is_the_one_with_the_kernels_that_were_asked_for(self):
        for options, name in (([], "COPY_REST "), (["--cmsis-nn"], "COPY_REST_FAST "), ([], "COPY_REST ")):
            done = self.count("--tflm", str(BUILD / "tflm"), *options, "--steps")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("1 " + name, done.stdout)

    def test_other_bytes_are_reported(self):
        (BUILD / "data" / "golden" / "digits" / "rand1" / "output0.bin").write_bytes(bytes(range(10)))
        done = self.count("--tflm", str(BUILD / "tflm"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("DIFFERENT", done.stdout)

    def test_a_folder_without_the_makefile_is_refused(self):
        done = self.count("--tflm", str(BUILD))
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no tensorflow/lite/micro/tools/make/Makefile", done.stderr)


if __name__ == "__main__":
    QPLAN, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
