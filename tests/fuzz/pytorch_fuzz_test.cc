// Hostile .pt files: the packer refuses them with a reason, or makes a plan that opens and runs to the end. A
// zip's checksums would hide the code after them, so entries are also damaged and put into a valid zip.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/fuzz/archive_entries.h"
#include "tests/fuzz/case_watch.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/pack_and_run.h"
#include "tests/fuzz/sources.h"
#include "tests/packer/import/pytorch_builder.h"

namespace qplan::testing::pytorch_fuzz_test {
namespace {

using pytorch_test::ArchiveBuilder;
using pytorch_test::PickleWriter;
using pytorch_test::to_bytes;

Outcome pack_and_run(const Bytes& model, uint64_t seed, std::vector<int64_t> shape) {
  const qplan_named_type type{"x", {kDLFloat, 32, 1}, static_cast<int32_t>(shape.size()), shape.data()};
  qplan_pack_options options = fuzz_pack_options();
  options.input_types = &type;
  options.num_input_types = 1;
  return pack_and_run_model(model, "model.pt", options, seed);
}

// A network of everything that packs, small enough for thousands of runs.
Bytes small_network() {
  ArchiveBuilder builder(
      "    q = torch.quantize_per_tensor(x, 0.05, 3, 13)\n"
      "    a = ops.quantized.conv2d_relu(q, CONSTANTS.c0, 0.5, 7)\n"
      "    b = torch.max_pool2d(torch.hardtanh(a, 0., 6.), [2, 2], [2, 2], [0, 0], [1, 1], False)\n"
      "    c = ops.quantized.cat([b, ops.quantized.add(b, b, 0.25, 1)], 1, 0.5, 7)\n"
      "    d = torch.flatten(torch.adaptive_avg_pool2d(c, [1, 1]), 1)\n"
      "    if torch.eq(torch.size(d, 1), 4):\n"
      "      e = ops.quantized.linear(d, CONSTANTS.c1, 0.125, 9)\n"
      "    else:\n"
      "      e = torch.sigmoid(d)\n"
      "    return torch.dequantize(e)\n");
  return builder.build();
}
const std::vector<int64_t> kSmallShape = {1, 2, 4, 4};

void run_all(const std::string& what, const std::function<Bytes(uint64_t seed)>& make) {
  run_seeds(what, [&](uint64_t seed) { return pack_and_run(make(seed), seed, kSmallShape); });
}

TEST(PytorchFuzz, TheSoundNetworkRuns) {
  EXPECT_EQ(pack_and_run(small_network(), 0, kSmallShape), Outcome::kRan);
}

TEST(PytorchFuzz, EveryTruncation) {
  const Bytes model = small_network();
  CaseWatch watch;
  for (size_t size = 0; size < model.size(); ++size) {
    watch.run("truncated to " + std::to_string(size),
              [&] { EXPECT_EQ(pack_and_run(truncated(model, size), size, kSmallShape), Outcome::kRefused); });
  }
}

TEST(PytorchFuzz, DamagedFiles) {
  const Bytes model = small_network();
  run_all("bits of the file", [&](uint64_t seed) { return damaged(model, Damage::kBits, seed); });
  run_all("words of the file", [&](uint64_t seed) { return damaged(model, Damage::kWords, seed); });
}

// Headers and directory have known places: their numbers are replaced by ones that break size arithmetic.
TEST(PytorchFuzz, ZipFieldSoup) {
  const Bytes model = small_network();
  std::vector<size_t> records;
  for (size_t i = 0; i + 4 <= model.size(); ++i) {
    if (model[i] == 'P' && model[i + 1] == 'K' && model[i + 2] < 8) records.push_back(i);
  }
  run_all("zip fields", [&](uint64_t seed) {
    Random random(seed);
    Bytes bytes = model;
    for (int64_t count = random.integer(1, 3); count > 0; --count) {
      const size_t record =
          records[static_cast<size_t>(random.integer(0, static_cast<int64_t>(records.size()) - 1))];
      const size_t at = record + static_cast<size_t>(random.integer(4, 45));
      constexpr uint8_t kBytes[] = {0, 1, 8, 0x20, 0x7f, 0x80, 0xff};
      for (int64_t width = random.integer(1, 4), i = 0;
           i < width && at + static_cast<size_t>(i) < bytes.size(); ++i) {
        bytes[at + static_cast<size_t>(i)] = kBytes[random.integer(0, 6)];
      }
    }
    return bytes;
  });
}

TEST(PytorchFuzz, DamagedPickles) {
  const Bytes model = small_network();
  for (const char* entry : {"net/constants.pkl", "net/data.pkl"}) {
    run_all(entry, [&](uint64_t seed) {
      return with_entry(model, entry, [&](const Bytes& bytes) {
        return bytes.size() < 8 ? bytes
                                : damaged(bytes, seed % 2 == 0 ? Damage::kBits : Damage::kWords, seed);
      });
    });
  }
}

// Opcodes in any order, with arguments that fit them.
TEST(PytorchFuzz, PickleOpcodeSoup) {
  const Bytes model = small_network();
  const auto make = [](uint64_t seed) {
    constexpr const char* kNames[] = {
        "FloatStorage",          "QInt8Storage",       "_rebuild_tensor_v2", "_rebuild_qtensor",
        "per_tensor_affine",     "per_channel_affine", "OrderedDict",        "Net",
        "Conv2dPackedParamsBase"};
    constexpr const char* kModules[] = {"torch", "torch._utils", "collections", "__torch__",
                                        "__torch__.torch.classes.quantized"};
    Random random(seed);
    PickleWriter p;
    p.op('(');
    for (int64_t count = random.integer(1, 60); count > 0; --count) {
      switch (random.integer(0, 15)) {
        case 0:
          p.global(kModules[random.integer(0, 4)], kNames[random.integer(0, 8)]);
          break;
        case 1:
          p.tensor("FloatStorage", "4", 2, random.integer(-1, 3), {random.integer(-1, 3)},
                   {random.integer(-1, 3)});
          break;
        case 2:
          p.integer(random.integer(INT64_MIN, INT64_MAX));
          break;
        case 3:
          p.text("storage");
          break;
        case 4:
          p.number(4 * random.unit() - 2);
          break;
        case 5:
          p.raw("q").op(static_cast<char>(random.integer(0, 4)));
          break;
        case 6:
          p.raw("h").op(static_cast<char>(random.integer(0, 4)));
          break;
        default:
          p.op("(]})tNaesuQRb\x81\x85\x86\x87\x88\x89"[random.integer(0, 18)]);
          break;
      }
    }
    return p.op('t').stop();
  };
  run_all("opcode soup", [&](uint64_t seed) {
    return with_entry(model, "net/constants.pkl", [&](const Bytes&) { return make(seed); });
  });
}

// Pieces of the code swapped, repeated, left out, or replaced.
TEST(PytorchFuzz, CodeSoup) {
  const Bytes model = small_network();
  constexpr const char* kPieces[] = {"(",
                                     ")",
                                     "[",
                                     "]",
                                     ",",
                                     ".",
                                     ":",
                                     "=",
                                     "\n",
                                     "  ",
                                     "self",
                                     "q",
                                     "None",
                                     "return",
                                     "-",
                                     "1e99",
                                     "-1",
                                     "9223372036854775807",
                                     "if",
                                     "else",
                                     "def",
                                     "class",
                                     "\"",
                                     "\\x",
                                     "torch",
                                     "ops",
                                     "CONSTANTS.c0",
                                     "CONSTANTS.c1",
                                     "x",
                                     "0",
                                     "(self).forward(x, )",
                                     "getattr(self, \"a\")",
                                     "inf",
                                     "for"};
  run_all("code soup", [&](uint64_t seed) {
    return with_entry(model, "net/code/__torch__.py", [&](const Bytes& bytes) {
      Random random(seed);
      std::string code(bytes.begin(), bytes.end());
      for (int64_t count = random.integer(1, 4); count > 0; --count) {
        const auto size = static_cast<int64_t>(code.size());
        const auto at = static_cast<size_t>(random.integer(0, size));
        const auto length = static_cast<size_t>(random.integer(0, 8));
        const auto from = static_cast<size_t>(random.integer(0, size));
        const std::string piece = random.chance(0.5)
                                      ? kPieces[random.integer(0, std::ssize(kPieces) - 1)]
                                      : code.substr(from, static_cast<size_t>(random.integer(1, 40)));
        code.replace(at, random.chance(0.5) ? length : 0, piece);
      }
      return to_bytes(code);
    });
  });
}

TEST(PytorchFuzz, DamagedStorages) {
  const Bytes model = small_network();
  run_all("storages", [&](uint64_t seed) {
    const std::string name = "net/constants/" + std::to_string(seed % 6);
    return with_entry(model, name, [&](const Bytes& bytes) { return damaged(bytes, Damage::kBits, seed); });
  });
}

// A real archive, as PyTorch wrote it.
TEST(PytorchFuzz, DamagedArchiveOfPytorch) {
  const std::filesystem::path path =
      source_path("").parent_path().parent_path() / "torch" / "resnet8_torch_traced.pt";
  const Bytes model = read_file(path);
  if (model.empty()) GTEST_SKIP() << path << " is not there; set QPLAN_SHARED";
  const std::vector<int64_t> shape = {1, 3, 32, 32};
  CaseWatch watch;
  Outcomes outcomes;
  const SeedRange range = all_seeds();
  for (uint64_t seed = range.begin; seed < range.begin + (range.end - range.begin) / 10; ++seed) {
    watch.run("resnet8_torch_traced.pt, seed " + std::to_string(seed), [&] {
      const Damage damage = seed % 2 == 0 ? Damage::kBits : Damage::kWords;
      outcomes.add(pack_and_run(damaged(model, damage, seed), seed, shape));
      outcomes.add(pack_and_run(with_entry(model, "resnet8_torch_traced/data.pkl",
                                           [&](const Bytes& bytes) { return damaged(bytes, damage, seed); }),
                                seed, shape));
    });
  }
  watch.report(outcomes.text());
}

}  // namespace
}  // namespace qplan::testing::pytorch_fuzz_test
