// A tuning log, as `qplan pack --tuning` takes it, for a small network whose steps it names. A plan that
// comes of it computes what the plan without a log computes.
#include "tests/fuzz/mutators/tokens.h"
#include "tests/fuzz/pack_oracle.h"
#include "tests/fuzz/small_network.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 14;

const TokenMutator& mutator() {
  static const TokenMutator kMutator({"\"key\"",
                                      "\"schedule\"",
                                      "\"threads\"",
                                      "\"ns\"",
                                      "\"isa\"",
                                      "\"grain\"",
                                      "\"block_pixels\"",
                                      "\"block_channels\"",
                                      "\"order\"",
                                      "\"avx2\"",
                                      "\"reference\"",
                                      "\"sse41\"",
                                      "\"auto\"",
                                      "\"avx512vnni\"",
                                      "0",
                                      "1",
                                      "2",
                                      "4",
                                      "8",
                                      "24",
                                      "48",
                                      "0.25",
                                      "0.5",
                                      "-1",
                                      "1e400",
                                      "18446744073709551616",
                                      "null",
                                      "true",
                                      "{}",
                                      "[]",
                                      "[[]]",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      ":",
                                      ",",
                                      "\n",
                                      "\"\\u0000\"",
                                      "\"\\ud800\"",
                                      "\"\""});
  return kMutator;
}

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan::fuzz;
  if (size > kMostBytes) return -1;
  const MemoryFile log({reinterpret_cast<const char*>(data), size});
  const uint64_t hash = fingerprint(data, size);
  qplan_pack_options options = pack_options();
  options.tuning_file = log.path();
  options.tuning_threads = hash % 4 == 0 ? 2 : 1;
  options.log_level = QPLAN_LOG_WARNING;
  options.log = drop_log;
  Bytes plan;
  const std::string_view model = kSmallNetwork;
  if (pack(reinterpret_cast<const uint8_t*>(model.data()), model.size(), "model.relay", options, &plan))
    check_plan(plan, hash);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::fuzz::mutator().mutate_input(data, size, max_size, seed, /*as_bytes=*/0.1);
}
