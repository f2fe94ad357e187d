// Zip files, which PyTorch's archives are and which TFLite models may have appended.
#ifndef QPLAN_SRC_PACKER_IMPORT_ZIP_ARCHIVE_H_
#define QPLAN_SRC_PACKER_IMPORT_ZIP_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qplan::importer {

// A small file can describe any amount of work: the contents of all entries that are read, counted together,
// are limited to this. PyTorch's constants, counted separately, are too.
inline constexpr uint64_t kContentBytesPerFileByte = 16;
constexpr uint64_t content_budget(uint64_t file_size) {
  return (uint64_t{64} << 20) + kContentBytesPerFileByte * file_size;
}

// A zip file in memory, read-only: nothing is ever written to a path. The file is untrusted.
// Stored and deflated entries, zip64 or not, as PyTorch and common tools write them; one part, not encrypted.
class ZipArchive {
 public:
  // Reads the central directory. The bytes must outlive the archive. PackError (QPLAN_MODEL_INVALID).
  explicit ZipArchive(std::span<const uint8_t> bytes) : ZipArchive(bytes, nullptr) {}
  // A zip that is an entry of another, which outlives it and is not moved: what is read of both is limited
  // together, by the size of the file.
  ZipArchive(std::span<const uint8_t> bytes, ZipArchive* outer);

  const std::string& first_name() const { return first_name_; }
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // The size of an entry's contents, as the directory states it. The archive must have the entry.
  uint64_t entry_bytes(std::string_view name) const { return entries_.find(name)->second.size; }
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
  void charge(uint64_t size);

  std::span<const uint8_t> bytes_;
  ZipArchive* outer_;  // null: this is the file
  std::map<std::string, Entry, std::less<>> entries_;
  std::string first_name_;
  uint64_t charged_ = 0;
};

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_ZIP_ARCHIVE_H_
