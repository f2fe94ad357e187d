// A .npy file, as `qplan run --input` and `--bind` take it. Mutants have a header of tokens and a length that
// fits it.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutators/tokens.h"
#include "tools/command.h"
#include "tools/tensor.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMagicBytes = 8;

// Where the header's text begins and ends; false where this is no .npy file.
bool header_range(std::string_view file, size_t* begin, size_t* end) {
  if (file.size() < kMagicBytes + 4 || !file.starts_with("\x93NUMPY")) return false;
  const size_t length_bytes = file[6] == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    length |= static_cast<size_t>(static_cast<uint8_t>(file[kMagicBytes + i])) << (8 * i);
  *begin = kMagicBytes + length_bytes;
  *end = std::min(*begin + length, file.size());
  return *begin <= *end;
}

const TokenMutator& mutator() {
  static const TokenMutator kMutator({"'descr'",
                                      "'fortran_order'",
                                      "'shape'",
                                      "'<f4'",
                                      "'|i1'",
                                      "'|u1'",
                                      "'|b1'",
                                      "'<i4'",
                                      "'<i8'",
                                      "'<f2'",
                                      "'<f8'",
                                      "'>f4'",
                                      "'=u2'",
                                      "True",
                                      "False",
                                      "()",
                                      "(1,)",
                                      "(2, 3)",
                                      "(0,)",
                                      "0",
                                      "1",
                                      "2",
                                      "3",
                                      "4",
                                      "1099511627776",
                                      ",",
                                      ":",
                                      "{",
                                      "}",
                                      "(",
                                      ")",
                                      "L",
                                      " ",
                                      "'",
                                      "\"",
                                      "[('a', '<i4')]"});
  return kMutator;
}

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan;
  const std::vector<uint8_t> file(data, data + size);
  try {
    const tools::NpyHeader header = tools::parse_npy(file, "input.npy");
    // The reported header is right: elements of this type and shape fill the rest of the file.
    FUZZ_CHECK(header.data_offset <= size, "elements begin at %zu of %zu bytes", header.data_offset, size);
    uint64_t expected = header.dtype.bits / 8;
    bool overflows = false;
    for (const int64_t extent : header.shape) {
      FUZZ_CHECK(extent >= 0, "extent %lld", static_cast<long long>(extent));
      overflows = __builtin_mul_overflow(expected, static_cast<uint64_t>(extent), &expected) || overflows;
    }
    FUZZ_CHECK(!overflows, "the shape has more elements than there are");
    FUZZ_CHECK(expected == size - header.data_offset, "%zu bytes of elements", size - header.data_offset);
  } catch (const tools::Failure& failure) {
    FUZZ_CHECK(failure.what()[0] != '\0', "a refusal without a reason");
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace qplan::fuzz;
  Random random(seed);
  const std::string file(reinterpret_cast<const char*>(data), size);
  size_t begin = 0, end = 0;
  if (random.chance(0.2) || !header_range(file, &begin, &end)) return LLVMFuzzerMutate(data, size, max_size);
  std::string elements = file.substr(end);
  if (random.chance(0.3)) elements.resize(static_cast<size_t>(random.integer(0, 64)));
  const std::string text = mutator().mutate(random, file.substr(begin, end - begin), 4096);
  std::string changed = file.substr(0, begin) + text + elements;
  for (size_t i = 0; i < begin - kMagicBytes; ++i)
    changed[kMagicBytes + i] = static_cast<char>(text.size() >> (8 * i));
  if (changed.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
