// The placement that a plan remembers: the input is its JSON, put into a sound plan, which is then explained
// as text, JSON and HTML.
#include <flatbuffers/flatbuffers.h>

#include "format/container.h"
#include "format/names_generated.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"
#include "tests/fuzz/mutators/tokens.h"
#include "tests/fuzz/pack_oracle.h"
#include "tests/fuzz/small_network.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;

// The executed part of a plan, without names.
const Bytes& bare_plan() {
  static const Bytes kPlan = [] {
    qplan_pack_options options = pack_options();
    options.strip_names = 1;
    Bytes plan;
    const std::string_view model = kSmallNetwork;
    FUZZ_CHECK(
        pack(reinterpret_cast<const uint8_t*>(model.data()), model.size(), "model.relay", options, &plan),
        "the small network does not pack");
    return plan;
  }();
  return kPlan;
}

std::string plan_with(std::string_view explain) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(explain.data(), explain.size());
  format::NamesBuilder names(builder);
  names.add_explain(text);
  builder.Finish(names.Finish());
  Bytes plan = bare_plan();
  plan.resize(round_up(plan.size(), format::kFileAlignment));
  plan.insert(plan.end(), builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
  format::Header header;
  std::memcpy(&header, plan.data(), sizeof(header));
  header.file_size = plan.size();
  Sha256 sha;
  sha.update(plan.data() + sizeof(header), plan.size() - sizeof(header));
  sha.finish(header.digest);
  std::memcpy(plan.data(), &header, sizeof(header));
  return {plan.begin(), plan.end()};
}

void append_text(void* user, const char* text, size_t size) {
  static_cast<std::string*>(user)->append(text, size);
}

const TokenMutator& mutator() {
  static const TokenMutator kMutator({"\"devices\"",
                                      "\"regions\"",
                                      "\"units\"",
                                      "\"nodes\"",
                                      "\"target\"",
                                      "\"reads\"",
                                      "\"unit\"",
                                      "\"input\"",
                                      "\"type\"",
                                      "\"bytes\"",
                                      "\"verdicts\"",
                                      "\"reasons\"",
                                      "\"near_miss\"",
                                      "\"estimated_cycles\"",
                                      "\"estimated_ns\"",
                                      "\"cpu_ns\"",
                                      "\"fallback\"",
                                      "\"title\"",
                                      "\"ops\"",
                                      "\"macs\"",
                                      "\"composite\"",
                                      "\"makes_output\"",
                                      "\"pinned\"",
                                      "0",
                                      "1",
                                      "2",
                                      "-1",
                                      "4294967296",
                                      "18446744073709551615",
                                      "1e300",
                                      "0.5",
                                      "null",
                                      "true",
                                      "false",
                                      "{}",
                                      "[]",
                                      "[[]]",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      ":",
                                      ",",
                                      "\"\"",
                                      "\"</script>\"",
                                      "\"\\u0000\"",
                                      "\"\\ud800\"",
                                      "\"\\n\"",
                                      "\"a\""});
  return kMutator;
}

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan::fuzz;
  if (size > kMostBytes) return -1;
  const MemoryFile plan(plan_with({reinterpret_cast<const char*>(data), size}));
  for (const int format : {QPLAN_EXPLAIN_TEXT, QPLAN_EXPLAIN_JSON, QPLAN_EXPLAIN_HTML}) {
    qplan_error error = new_error();
    std::string text;
    const qplan_status status = qplan_explain(plan.path(), nullptr, format, append_text, &text, &error);
    if (status != QPLAN_OK) {
      check_refusal(status, error);
      FUZZ_CHECK(text.empty(), "an error, but %zu characters were written", text.size());
      continue;
    }
    if (format != QPLAN_EXPLAIN_HTML) continue;
    // The JSON never ends the element that contains it: the page has exactly its own two scripts.
    size_t scripts = 0;
    for (size_t at = text.find("</script"); at != std::string::npos; at = text.find("</script", at + 1))
      ++scripts;
    FUZZ_CHECK(scripts == 2, "%zu ends of scripts", scripts);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::fuzz::mutator().mutate_input(data, size, max_size, seed, /*as_bytes=*/0.1);
}
