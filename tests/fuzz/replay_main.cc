// Runs a fuzz target on files, without libFuzzer: the corpus is replayed by every build, and a crash is
// reproduced by any.
//
// usage: <name>_fuzz [--mutants N] [FILE OR DIRECTORY...]
//        <name>_fuzz --write N FILE OUTPUT
//   --mutants N  also runs N mutants of each file, made by the target's mutator where it has one; they
//                depend on the file and on N alone
//   --write      writes mutant N of the file, which can then be run by itself
// The file, and the mutant, are named when the process ends before its time.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/current_case.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/random.h"

extern "C" {
__attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                     unsigned int seed);
}

namespace qplan::testing {
namespace {

constexpr size_t kMostGrowth = 4096;  // bytes that a mutant may have more than its file

Random* mutations = nullptr;  // of the mutant that is being made

// The input is in memory of exactly its size, so that sanitizers detect reads beyond it.
void run(const std::string& name, const std::vector<uint8_t>& bytes) {
  begin_case(name);
  const std::vector<uint8_t> exact(bytes);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  end_cases();
}

std::vector<uint8_t> mutant(const std::vector<uint8_t>& seed, unsigned int number) {
  std::vector<uint8_t> bytes(seed);
  bytes.resize(seed.size() + kMostGrowth);
  Random random(number);
  mutations = &random;
  const size_t size = LLVMFuzzerCustomMutator != nullptr
                          ? LLVMFuzzerCustomMutator(bytes.data(), seed.size(), bytes.size(), number)
                          : LLVMFuzzerMutate(bytes.data(), seed.size(), bytes.size());
  mutations = nullptr;
  bytes.resize(std::min(size, bytes.size()));
  return bytes;
}

// Sorted: the order of a directory differs between machines.
bool collect(const char* path, std::vector<std::filesystem::path>* files) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    files->push_back(path);
    return std::filesystem::is_regular_file(path, error);
  }
  const size_t first = files->size();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path, error)) {
    if (entry.is_regular_file(error)) files->push_back(entry.path());
  }
  std::sort(files->begin() + static_cast<std::ptrdiff_t>(first), files->end());
  return files->size() > first;
}

std::vector<uint8_t> read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

int write_mutant(const char* number, const char* path, const char* output) {
  const std::vector<uint8_t> bytes =
      mutant(read(path), static_cast<unsigned int>(std::strtoul(number, nullptr, 10)));
  std::ofstream stream(output, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) std::fprintf(stderr, "%s: cannot be written\n", output);
  return stream ? 0 : 1;
}

int replay(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "--write") == 0) return write_mutant(argv[2], argv[3], argv[4]);
  unsigned int num_mutants = 0;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--mutants") == 0 && i + 1 < argc) {
      num_mutants = static_cast<unsigned int>(std::strtoul(argv[++i], nullptr, 10));
    } else if (!collect(argv[i], &files)) {
      std::fprintf(stderr, "%s: no file there, and no directory with files\n", argv[i]);
      return 1;
    }
  }
  watch_cases();
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  run("the empty input", {});
  for (const std::filesystem::path& path : files) {
    const std::vector<uint8_t> bytes = read(path);
    run(path.string(), bytes);
    for (unsigned int number = 1; number <= num_mutants; ++number) {
      run(path.string() + ", mutant " + std::to_string(number), mutant(bytes, number));
    }
  }
  std::printf("%zu inputs, each with %u mutants\n", files.size(), num_mutants);
  return 0;
}

}  // namespace
}  // namespace qplan::testing

// A few of libFuzzer's mutations, enough to drive the targets' own mutators: bits, bytes, numbers on which
// size arithmetic breaks, bytes that are removed, repeated or inserted.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  using qplan::testing::mutations;
  static constexpr uint32_t kWords[] = {0,       1,          0x7f,       0xff,      0x7fff,
                                        0x10000, 0x7fffffff, 0x80000000, 0xffffffff};
  if (max_size == 0) return 0;
  const auto below = [](size_t end) {
    return end == 0 ? 0 : static_cast<size_t>(mutations->integer(0, static_cast<int64_t>(end) - 1));
  };
  if (size == 0) {
    data[0] = static_cast<uint8_t>(below(256));
    return 1;
  }
  const size_t at = below(size);
  switch (below(5)) {
    case 0:
      data[at] ^= static_cast<uint8_t>(1u << below(8));
      return size;
    case 1:
      data[at] = static_cast<uint8_t>(below(256));
      return size;
    case 2: {
      const uint32_t word = kWords[below(sizeof(kWords) / sizeof(kWords[0]))];
      std::memcpy(data + at, &word, std::min<size_t>(sizeof(word), size - at));
      return size;
    }
    case 3: {
      const size_t count = std::min(1 + below(8), size - at);
      if (count == size) return size;
      std::memmove(data + at, data + at + count, size - at - count);
      return size - count;
    }
    default: {
      const size_t count = std::min(1 + below(8), max_size - std::min(size, max_size));
      std::memmove(data + at + count, data + at, size - at);
      for (size_t i = 0; i < count; ++i) data[at + i] = static_cast<uint8_t>(below(256));
      return size + count;
    }
  }
}

int main(int argc, char** argv) { return qplan::testing::replay(argc, argv); }
