// Damaged Relay texts: bodies without a header, types in comments, constants without data, metadata. The
// packer refuses them with a reason, or makes a plan that opens and runs to the end.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/fuzz/case_watch.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/pack_and_run.h"
#include "tests/fuzz/sources.h"

namespace qplan::testing::relay_fuzz_test {
namespace {

const char kFreeVariables[] = R"(%0 = qnn.quantize(%input, 0.0186579f, 114, out_dtype="uint8", axis=1);
%1 = nn.pad(%0, 114f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);
%2 = qnn.quantize(%features.0.0_weight, 0.00288958f, 0, out_dtype="int8", axis=0);
%3 = qnn.conv2d(%1, %2, 114, 0, 0.0186579f, 0.00288958f, strides=[2, 2], padding=[0, 0, 0, 0], channels=4, kernel_size=[3, 3], out_dtype="int32");
%4 = qnn.quantize(%features.0.0_bias, 5.39136e-05f, 0, out_dtype="int32", axis=0);
%5 = nn.bias_add(%3, %4);
%6 = qnn.requantize(%5, 5.39136e-05f, 0, 0.0150183f, 0, axis=1, out_dtype="int32");
%7 = clip(%6, a_min=0f, a_max=255f);
%8 = cast(%7, dtype="uint8");
%9 = reshape(%8, newshape=[0, -1]);
split(%9, indices_or_sections=2, axis=1).0
)";

const char kTypesInComments[] = R"(#[version = "0.0.5"]
free_var %input: Tensor[(1, 3, 8, 8), float32];
%0 = qnn.quantize(%input, 0.0186579f /* ty=float32 */, 114 /* ty=int32 */, out_dtype="uint8", axis=1) /* ty=Tensor[(1, 3, 8, 8), uint8] */;
%1 = qnn.conv2d(%0, meta[relay.Constant][0] /* ty=Tensor[(4, 3, 3, 3), int8] */, 114, 0, 0.0186579f, 0.00288958f, channels=4, kernel_size=[3, 3], out_dtype="int32", out_layout="");
%2 = nn.bias_add(%1, meta[relay.Constant][1] /* ty=Tensor[(4), int32] */) /* ty=Tensor[(1, 4, 6, 6), int32] */;
%3 = qnn.requantize(%2, 5.39136e-05f, 0, 0.0150183f, 0, axis=1, rounding="UPWARD", out_dtype="uint8");
%4 = nn.max_pool2d(%3, pool_size=[2, 2], strides=[2, 2], ceil_mode=False);
(%4, concatenate((%4, %4), axis=1))
)";

// The section's array is the float32 scalar 1.
const char kMetadata[] = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8), int8], Compiler="none") -> Tensor[(1, 1), int8] {
  let %scale = meta[relay.Constant][0];
  %1 = qnn.dequantize(%x, %scale, 3, name="dq") /* ty=Tensor[(1, 8), float32] */;
  %2 = qnn.quantize(%1, 0.25f, 0, axis=1);
  %3 = qnn.dense(%2, const(Tensor[(1, 8), int8], [1, -2, 3, 4, -5, 6, 7, 8]), 0, 0, 0.25f, 0.5f);
  qnn.requantize(%3, 0.125f, 0, 1e-1f, 3)
}
#[metadata]
{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
 {"type_key": "Array", "data": [3]}, {"type_key": "relay.Constant", "attrs": {"data": "0"}}],
 "b64ndarrays": ["P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAIgAQAEAAAAAAAAAAAAgD8="]}
)";

struct Source {
  const char* name;
  std::string_view text;
  bool open_input;  // the options give its type
};
constexpr Source kSources[] = {{"free variables", kFreeVariables, true},
                               {"types in comments", kTypesInComments, false},
                               {"metadata", kMetadata, false}};

void ignore_log(void*, uint32_t, const char*) {}

// All but every eighth seed give what the text leaves open.
Outcome pack_and_run(const Source& source, const Bytes& text, uint64_t seed) {
  const int64_t extents[] = {1, 3, 8, 8};
  const qplan_named_type input = {"input", {kDLFloat, 32, 1}, 4, extents};
  qplan_pack_options options = fuzz_pack_options();
  options.log_level = QPLAN_LOG_DEBUG;
  options.log = ignore_log;
  options.input_types = &input;
  options.num_input_types = source.open_input && seed % 8 != 7 ? 1 : 0;
  options.synthesize_constants = seed % 8 != 6 ? 1 : 0;
  options.synthesize_seed = seed;
  return pack_and_run_model(text, "t", options, seed);
}

Bytes bytes_of(std::string_view text) { return Bytes(text.begin(), text.end()); }

// As an editor damages a text: pieces of it are left out, repeated elsewhere, numbers changed.
Bytes edited(std::string_view original, uint64_t seed) {
  constexpr std::string_view kPieces[] = {"0",
                                          "-1",
                                          "65536",
                                          "9223372036854775807",
                                          "nanf",
                                          "inff",
                                          "None",
                                          "%input",
                                          "%1",
                                          "@main",
                                          "[]",
                                          "()",
                                          "[[1, 1]]",
                                          "/*",
                                          "*/",
                                          "/* ty=Tensor[(1), int8] */",
                                          "float32",
                                          "\"int4\"",
                                          "meta[relay.Constant][0]",
                                          "free_var %q: int8;",
                                          "def",
                                          "=",
                                          ";"};
  constexpr int64_t kNumPieces = sizeof(kPieces) / sizeof(kPieces[0]);
  Random random(seed);
  std::string text(original);
  for (int64_t count = random.integer(1, 3); count > 0; --count) {
    const auto place = [&] {
      return static_cast<size_t>(random.integer(0, static_cast<int64_t>(text.size()) - 1));
    };
    const auto length = [&] { return static_cast<size_t>(random.integer(1, 24)); };
    switch (random.integer(0, 3)) {
      case 0:
        text.erase(place(), length());
        break;
      case 1:
        text.insert(place(), text.substr(place(), length()));
        break;
      case 2:
        text.insert(place(), kPieces[random.integer(0, kNumPieces - 1)]);
        break;
      default: {  // a token
        const size_t begin = text.find_first_of(" (,=[", place());
        if (begin == std::string::npos) break;
        const size_t end = std::min(text.find_first_of(",;)]", begin + 1), text.size());
        text.replace(begin + 1, end - begin - 1, kPieces[random.integer(0, kNumPieces - 1)]);
      }
    }
    if (text.empty()) text = "%";
  }
  return bytes_of(text);
}

class RelayFuzz : public ::testing::TestWithParam<Source> {};

TEST_P(RelayFuzz, TheTextItselfRuns) {
  EXPECT_EQ(pack_and_run(GetParam(), bytes_of(GetParam().text), 0), Outcome::kRan);
}

TEST_P(RelayFuzz, TruncatedAtEveryByte) {
  CaseWatch watch;
  Outcomes outcomes;
  const Bytes text = bytes_of(GetParam().text);
  for (size_t size = 0; size < text.size(); ++size) {
    watch.run(std::string(GetParam().name) + ", truncated to " + std::to_string(size),
              [&] { outcomes.add(pack_and_run(GetParam(), truncated(text, size), size)); });
  }
  watch.report(outcomes.text());
}

TEST_P(RelayFuzz, FlippedBits) {
  CaseWatch watch;
  Outcomes outcomes;
  const Bytes text = bytes_of(GetParam().text);
  const uint64_t first = number_from_environment("QPLAN_FUZZ_FIRST_SEED", 0);
  const uint64_t seeds = number_from_environment("QPLAN_FUZZ_SEEDS", 2000);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    watch.run(std::string(GetParam().name) + ", bits, seed " + std::to_string(seed),
              [&] { outcomes.add(pack_and_run(GetParam(), damaged(text, Damage::kBits, seed), seed)); });
  }
  watch.report(outcomes.text());
}

TEST_P(RelayFuzz, EditedText) {
  CaseWatch watch;
  Outcomes outcomes;
  const uint64_t first = number_from_environment("QPLAN_FUZZ_FIRST_SEED", 0);
  const uint64_t seeds = number_from_environment("QPLAN_FUZZ_SEEDS", 2000);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    watch.run(std::string(GetParam().name) + ", edited, seed " + std::to_string(seed),
              [&] { outcomes.add(pack_and_run(GetParam(), edited(GetParam().text, seed), seed)); });
  }
  watch.report(outcomes.text());
}

INSTANTIATE_TEST_SUITE_P(Texts, RelayFuzz, ::testing::ValuesIn(kSources), [](const auto& param) {
  std::string name = param.param.name;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace qplan::testing::relay_fuzz_test
