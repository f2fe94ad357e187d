// The sound files that are damaged, and how many damaged copies of each are tried.
//   QPLAN_FUZZ_SEEDS       damaged copies per format and kind of damage, all sources together; default 2000
//   QPLAN_FUZZ_FIRST_SEED  the first seed, default 0: with QPLAN_FUZZ_SEEDS=1 and a filter it runs one case
//   again
#ifndef QPLAN_TESTS_FUZZ_SOURCES_H_
#define QPLAN_TESTS_FUZZ_SOURCES_H_

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "qplan/pack.h"
#include "tests/fuzz/mutate.h"

namespace qplan::testing {

// Models of the repository, and of the data directory where there is one.
inline const std::vector<std::string>& source_names() {
  static const std::vector<std::string> kNames = {"digits", "hello_world_int8", "kws_ref_model",
                                                  "split_concat"};
  return kNames;
}

inline std::filesystem::path source_path(const std::string& name) {
  if (name == "digits") return "samples/models/digits.tflite";
  const char* shared = std::getenv("QPLAN_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "../shared") / "models" / (name + ".tflite");
}

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

inline uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

struct SeedRange {
  uint64_t begin;
  uint64_t end;
};

// All seeds, for a fuzzer that needs no model of the shared data.
inline SeedRange all_seeds() {
  const uint64_t first = number_from_environment("QPLAN_FUZZ_FIRST_SEED", 0);
  return {first, first + number_from_environment("QPLAN_FUZZ_SEEDS", 2000)};
}

// This source's part of all seeds, divided among the models that are there; what is no model gets a part of
// the same size on top.
inline SeedRange seeds_of(const std::string& name) {
  const SeedRange all = all_seeds();
  const uint64_t first = all.begin, total = all.end - all.begin;
  uint64_t present = 0;
  uint64_t position = 0;
  for (const std::string& other : source_names()) {
    if (other == name) position = present;
    present += std::filesystem::exists(source_path(other)) ? 1 : 0;
  }
  if (total < present) return {first, first + total};
  return {first + total * position / present, first + total * (position + 1) / present};
}

inline void append(void* user, const char* bytes, size_t size) {
  Bytes& to = *static_cast<Bytes*>(user);
  to.insert(to.end(), bytes, bytes + size);
}

inline qplan_pack_options fuzz_pack_options() {
  qplan_pack_options options{};
  options.struct_size = sizeof(options);
  options.planner_budget = 20;  // the fuzzers look for crashes, not for the last byte of an arena
  return options;
}

inline qplan_status pack(const Bytes& model, Bytes* plan, qplan_error* error) {
  const qplan_pack_options options = fuzz_pack_options();
  return qplan_pack_bytes(model.data(), model.size(), "model.tflite", &options, append, plan, error);
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_SOURCES_H_
