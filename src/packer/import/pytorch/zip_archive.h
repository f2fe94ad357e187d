// Limits of a PyTorch archive. Archives are untrusted: a small file can describe any amount of work, so that
// each kind of work is counted against one of these.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_ZIP_ARCHIVE_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_ZIP_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qplan::pt {

// Contents of zip entries, and, counted separately, bytes of constants.
inline constexpr uint64_t kContentBytesPerFileByte = 16;
constexpr uint64_t content_budget(uint64_t file_size) {
  return (uint64_t{64} << 20) + kContentBytesPerFileByte * file_size;
}

// Values that the pickles and the code make: a network of 1,000 layers has some 50,000.
inline constexpr size_t kMaxValues = 1'000'000;
// Bytes of names and strings of these values, which may be one string that is remembered and used again.
inline constexpr size_t kMaxTextBytes = size_t{64} << 20;
// Bytes of one name. A pickle may use what it remembers any number of times: what a use copies is short.
inline constexpr size_t kMaxNameBytes = 1024;
// Tokens of the code that is read: the same network has some 200,000.
inline constexpr size_t kMaxTokens = 2'000'000;
// Marks of a pickle that wait for their end.
inline constexpr size_t kMaxMarks = 1000;
// Statements and operators that are read while forward is followed through the modules.
inline constexpr size_t kMaxSteps = 1'000'000;
// Nesting of brackets in one expression, and of expressions and calls while they are followed.
inline constexpr size_t kMaxExpressionDepth = 200;
inline constexpr size_t kMaxCallDepth = 1000;

// A zip file in memory, read-only: nothing is ever written to a path. The file is untrusted.

// Stored and deflated entries, zip64 or not, as PyTorch and common tools write them; one part, not encrypted.
class ZipArchive {
 public:
  // Reads the central directory. The bytes must outlive the archive. PackError (QPLAN_MODEL_INVALID).
  explicit ZipArchive(std::span<const uint8_t> bytes);

  const std::string& first_name() const { return first_name_; }
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  std::vector<std::string> names_under(std::string_view prefix) const;
  // Contents of an entry, which live as long as the archive. The first call inflates and checks length and
  // CRC. PackError when there is no such entry, when it is damaged, or when the entries read so far take more
  // than a file of this size may hold (README.md).
  std::span<const uint8_t> read(std::string_view name);
  uint64_t size_bytes() const { return bytes_.size(); }

 private:
  struct Entry {
    uint64_t header_offset = 0;  // of the local header
    uint64_t packed_size = 0;
    uint64_t size = 0;
    uint32_t crc = 0;
    uint16_t method = 0;
    uint16_t flags = 0;
    bool checked = false;
    std::vector<uint8_t> inflated;      // of deflated entries
    std::span<const uint8_t> contents;  // once checked
  };

  void read_directory(uint64_t offset, uint64_t size, uint64_t count);
  std::span<const uint8_t> packed(std::string_view name, const Entry& entry) const;

  std::span<const uint8_t> bytes_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::string first_name_;
  uint64_t charged_ = 0;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_ZIP_ARCHIVE_H_
