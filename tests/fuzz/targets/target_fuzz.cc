// Targets: as text (--target) and, where the input begins with a brace, as JSON (--target-file). A small
// network is placed on them, explained in all forms and packed.
#include "tests/fuzz/mutators/tokens.h"
#include "tests/fuzz/pack_oracle.h"
#include "tests/fuzz/small_network.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 13;

const TokenMutator& mutator() {
  static const TokenMutator kMutator({"vta",
                                      "cpu",
                                      "sram=quarter",
                                      "sram=full",
                                      "isa=avx2",
                                      "isa=reference",
                                      "isa=sse41",
                                      "arch=x86_64",
                                      "arch=armv7e-m",
                                      "arch=aarch64",
                                      "priority=10",
                                      "mul=on",
                                      "clock=100",
                                      ",",
                                      "=",
                                      " ",
                                      "\"targets\"",
                                      "\"target\"",
                                      "\"vta\"",
                                      "\"cpu\"",
                                      "\"name\"",
                                      "\"npu\"",
                                      "\"operators\"",
                                      "\"priority\"",
                                      "\"memories\"",
                                      "\"uop\"",
                                      "\"wgt\"",
                                      "\"inp\"",
                                      "\"acc\"",
                                      "\"costs\"",
                                      "\"areas\"",
                                      "\"bytes\"",
                                      "\"cost\"",
                                      "\"copy_constants\"",
                                      "\"from\"",
                                      "\"clock_mhz\"",
                                      "\"dma_bytes_per_cycle\"",
                                      "\"dma_latency_cycles\"",
                                      "\"macs_per_cycle\"",
                                      "\"macs_per_us\"",
                                      "\"bytes_per_us\"",
                                      "\"qnn.conv2d\"",
                                      "\"nn.bias_add\"",
                                      "\"qnn.requantize\"",
                                      "\"qnn.softmax\"",
                                      "\"vta,sram=quarter\"",
                                      "0",
                                      "1",
                                      "512",
                                      "1000000000",
                                      "18446744073709551615",
                                      "-1",
                                      "0.5",
                                      "null",
                                      "true",
                                      "{}",
                                      "[]",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      ":",
                                      "\"\\u0000\"",
                                      "\"\\n\"",
                                      "\"\""});
  return kMutator;
}

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan::fuzz;
  if (size > kMostBytes) return -1;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const uint64_t hash = fingerprint(data, size);
  qplan_pack_options options = pack_options();
  const MemoryFile file(text);
  if (text.starts_with("{")) {
    options.target_file = file.path();
  } else {
    options.target = text.c_str();
  }
  options.no_cost_gate = hash % 2;
  options.no_fallback = hash % 8 == 0;
  static const MemoryFile kModel(kSmallNetwork);
  qplan_error error = new_error();
  const int format = static_cast<int>(hash >> 8 & 3) % 3;
  const qplan_status explained = qplan_explain(kModel.path(), &options, format, drop_text, nullptr, &error);
  if (explained != QPLAN_OK) check_refusal(explained, error);
  Bytes plan;
  const std::string_view model = kSmallNetwork;
  if (pack(reinterpret_cast<const uint8_t*>(model.data()), model.size(), "model.relay", options, &plan) &&
      options.no_fallback == 0)
    check_plan(plan, hash);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::fuzz::mutator().mutate_input(data, size, max_size, seed, /*as_bytes=*/0.1);
}
