// A peer of samples/firmware/main.c: TensorFlow Lite Micro runs a model from flash once, and its output is compared with the
// golden bytes. benchmarks/firmware.sh --tflm builds it against the user's source tree and counts what invoke_once executes.
#include <stdint.h>
#include <string.h>

#include "measure.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" const uint8_t plan_bytes[], input_bytes[], input_bytes_end[], expected_bytes[], expected_bytes_end[];

namespace {

alignas(16) uint8_t arena[512 * 1024];

// The names of the operators in their order. Each call of BeginEvent is where the plugin's next segment begins.
class Names final : public tflite::MicroProfilerInterface {
 public:
  __attribute__((noinline)) uint32_t BeginEvent(const char* tag) override {
    if (count_ < kMost) names_[count_++] = tag;
    return 0;
  }
  void EndEvent(uint32_t) override {}
  void print() const {
    for (uint32_t i = 0; i < count_; ++i) {
      semihosting_write("operator ");
      semihosting_write(names_[i]);
      semihosting_write("\n");
    }
  }
  void clear() { count_ = 0; }

 private:
  static constexpr uint32_t kMost = 256;
  const char* names_[kMost];
  uint32_t count_ = 0;
};

int fail(const char* what) {
  semihosting_write("tflm: ");
  semihosting_write(what);
  semihosting_write(" failed\n");
  return 1;
}

}  // namespace

// An interpreter's destructor refers to it; nothing here allocates.
void operator delete(void*, unsigned) noexcept {}
void operator delete(void*) noexcept {}

extern "C" {
__attribute__((noinline)) bool invoke_once(tflite::MicroInterpreter* interpreter) {
  return interpreter->Invoke() == kTfLiteOk;
}
__attribute__((noinline)) void invoke_done() { __asm volatile(""); }
}

int main() {
  tflite::MicroMutableOpResolver<12> operators;
  operators.AddAdd();
  operators.AddAveragePool2D();
  operators.AddConv2D();
  operators.AddDepthwiseConv2D();
  operators.AddDequantize();
  operators.AddFullyConnected();
  operators.AddMaxPool2D();
  operators.AddMean();
  operators.AddPad();
  operators.AddQuantize();
  operators.AddReshape();
  operators.AddSoftmax();
  Names names;
  tflite::MicroInterpreter interpreter(tflite::GetModel(plan_bytes), operators, arena, sizeof(arena), nullptr,
                                       &names);
  if (interpreter.AllocateTensors() != kTfLiteOk) return fail("AllocateTensors");
  print("memory_bytes ", static_cast<uint32_t>(interpreter.arena_used_bytes()));
  names.clear();
  memcpy(interpreter.input(0)->data.raw, input_bytes, static_cast<size_t>(input_bytes_end - input_bytes));
  const bool is_done = invoke_once(&interpreter);
  invoke_done();
  if (!is_done) return fail("Invoke");
  const auto* bytes = reinterpret_cast<const uint8_t*>(interpreter.output(0)->data.raw);
  uint32_t different = 0;
  for (size_t i = 0; expected_bytes + i < expected_bytes_end; ++i) different += bytes[i] != expected_bytes[i];
  names.print();
  print("different ", different);
  return different == 0 ? 0 : 2;
}
