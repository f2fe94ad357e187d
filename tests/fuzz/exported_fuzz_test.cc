// Hostile .pt2 files: as pytorch_fuzz_test.cc, with programs in JSON in the place of code, and zips in the
// zip.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/archive_entries.h"
#include "tests/fuzz/case_watch.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/pack_and_run.h"
#include "tests/packer/import/exported_builder.h"

namespace qplan::testing::exported_fuzz_test {
namespace {

using pytorch_test::ExportedForm;
using pytorch_test::QuantisedNetwork;

Outcome pack_and_run(const Bytes& model, uint64_t seed) {
  return pack_and_run_model(model, "model.pt2", fuzz_pack_options(), seed);
}

Bytes network(ExportedForm form = ExportedForm::kFiles) { return QuantisedNetwork().builder().build(form); }
// Two linear layers that quantise while they run, as PyTorch wrote them.
Bytes dynamic_network() {
  std::ifstream file("tests/data/exported/dense_dynamic.pt2", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void run_all(const std::string& what, const std::function<Bytes(uint64_t seed)>& make) {
  run_seeds(what, [&](uint64_t seed) { return pack_and_run(make(seed), seed); });
}

constexpr char kProgram[] = "serialized_exported_program.json";

// Numbers, words and punctuation of a program replaced by others, and pieces of it moved.
Bytes with_other_pieces(const Bytes& bytes, uint64_t seed) {
  static const std::vector<std::string> kPieces = {"{}",
                                                   "[]",
                                                   "null",
                                                   "true",
                                                   "-1",
                                                   "0",
                                                   "1",
                                                   "2",
                                                   "7",
                                                   "1e308",
                                                   "-0.0",
                                                   "128",
                                                   "2147483648",
                                                   "9223372036854775807",
                                                   "-9223372036854775808",
                                                   "18446744073709551615",
                                                   "\"\"",
                                                   "\"x\"",
                                                   "\"q\"",
                                                   "\"s0\"",
                                                   "\"Infinity\"",
                                                   "\"as_int\"",
                                                   "\"as_ints\"",
                                                   "\"as_float\"",
                                                   "\"as_tensor\"",
                                                   "\"as_tensors\"",
                                                   "\"as_sym_ints\"",
                                                   "\"as_name\"",
                                                   "\"as_none\"",
                                                   "\"as_expr\"",
                                                   "\"as_graph\"",
                                                   "\"p_w\"",
                                                   "\"name\"",
                                                   "{\"name\": \"x\"}",
                                                   "{\"as_int\": 3}",
                                                   "[1, 1]",
                                                   "\"torch.ops.aten.relu.default\"",
                                                   "\"torch.ops.aten.view.default\"",
                                                   "\"torch.ops.higher_order.cond\"",
                                                   "\"torch.ops.aten.split.Tensor\"",
                                                   "\"torch.ops.aten.t.default\"",
                                                   "\"torch.ops.aten.conv1d.default\"",
                                                   "\"getitem\"",
                                                   "\"_operator.mul\"",
                                                   ",",
                                                   ":",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}"};
  Random random(seed);
  std::string text(bytes.begin(), bytes.end());
  const auto is_part = [&](size_t i) {
    return std::string_view("{}[],:").find(text[i]) == std::string_view::npos;
  };
  for (int64_t count = random.integer(1, 3); count > 0; --count) {
    auto at = static_cast<size_t>(random.integer(0, static_cast<int64_t>(text.size()) - 1));
    // A whole number, string or word, most of the time.
    size_t length = 1;
    if (is_part(at)) {
      while (at > 0 && is_part(at - 1)) --at, ++length;
      while (at + length < text.size() && is_part(at + length)) ++length;
    }
    const auto from = static_cast<size_t>(random.integer(0, static_cast<int64_t>(text.size()) - 1));
    const std::string piece = random.chance(0.8)
                                  ? random.pick(kPieces)
                                  : text.substr(from, static_cast<size_t>(random.integer(1, 200)));
    text.replace(at, random.chance(0.9) ? length : 0, piece);
  }
  return {text.begin(), text.end()};
}

TEST(ExportedFuzz, TheSoundNetworkRuns) {
  for (const ExportedForm form : {ExportedForm::kFiles, ExportedForm::kSaved, ExportedForm::kPayloads})
    EXPECT_EQ(pack_and_run(network(form), 0), Outcome::kRan);
  EXPECT_EQ(pack_and_run(dynamic_network(), 0), Outcome::kRan);
}

TEST(ExportedFuzz, DamagedFiles) {
  const Bytes model = network();
  run_all("bits of the file", [&](uint64_t seed) { return damaged(model, Damage::kBits, seed); });
}

TEST(ExportedFuzz, ProgramSoup) {
  const Bytes models[] = {network(), dynamic_network()};
  run_all("program soup", [&](uint64_t seed) {
    return with_entry(models[seed % 2], kProgram,
                      [&](const Bytes& bytes) { return with_other_pieces(bytes, seed / 2); });
  });
}

TEST(ExportedFuzz, DamagedPrograms) {
  const Bytes model = network();
  run_all("bits of the program", [&](uint64_t seed) {
    return with_entry(model, kProgram,
                      [&](const Bytes& bytes) { return damaged(bytes, Damage::kBits, seed); });
  });
}

// Damages the zip that torch.save wrote into the zip: its own bytes, and those of its pickle.
TEST(ExportedFuzz, DamagedWeights) {
  const Bytes model = network();
  const char* entry = "serialized_state_dict.pt";
  run_all("weights", [&](uint64_t seed) {
    return with_entry(model, entry, [&](const Bytes& bytes) {
      const Damage damage = seed % 2 == 0 ? Damage::kBits : Damage::kWords;
      if (seed % 3 == 0) return damaged(bytes, damage, seed);
      return with_entry(bytes, "archive/data.pkl",
                        [&](const Bytes& pickle) { return damaged(pickle, damage, seed); });
    });
  });
}

TEST(ExportedFuzz, DescriptionsOfWeightsSoup) {
  const Bytes model = network(ExportedForm::kPayloads);
  run_all("descriptions of weights", [&](uint64_t seed) {
    return with_entry(model, "net/data/weights/model_weights_config.json",
                      [&](const Bytes& bytes) { return with_other_pieces(bytes, seed); });
  });
}

}  // namespace
}  // namespace qplan::testing::exported_fuzz_test
