// Damage inside of zips: checksums would hide the code after them, so an entry is changed and put into a
// valid zip again.
#ifndef QPLAN_TESTS_FUZZ_ARCHIVE_ENTRIES_H_
#define QPLAN_TESTS_FUZZ_ARCHIVE_ENTRIES_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/packer/import/zip_archive.h"
#include "tests/packer/import/pytorch_builder.h"

namespace qplan::testing {

// The archive with one entry changed.
inline std::vector<uint8_t> with_entry(
    const std::vector<uint8_t>& archive, const std::string& name,
    const std::function<std::vector<uint8_t>(const std::vector<uint8_t>&)>& change) {
  importer::ZipArchive zip(archive);
  pytorch_test::ZipBuilder builder;
  // PyTorch's order: the first entry names the folder.
  std::vector<std::string> names = zip.names_under("");
  std::ranges::stable_partition(names, [&](const std::string& n) { return n == zip.first_name(); });
  for (const std::string& entry : names) {
    const auto contents = zip.read(entry);
    const std::vector<uint8_t> bytes(contents.begin(), contents.end());
    builder.add(entry, entry == name ? change(bytes) : bytes);
  }
  return builder.build();
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_ARCHIVE_ENTRIES_H_
