// Format: PKWARE's APPNOTE 6.3, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.14 to 4.3.16
// (ends), 4.5.3 (zip64 field).
#include "src/packer/import/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/ir/cat.h"

namespace qplan::importer {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr size_t kLocalHeaderBytes = 30, kCentralHeaderBytes = 46, kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56, kEnd64LocatorBytes = 20;
constexpr size_t kMaxCommentBytes = 65535;
constexpr uint16_t kStored = 0, kDeflated = 8, kEncrypted = 1, kZip64Field = 1;

// Little-endian numbers, one after the other; reading past the end is an error that names the part.
class Fields {
 public:
  Fields(std::span<const uint8_t> bytes, uint64_t offset, uint64_t size, const char* what) : what_(what) {
    if (offset > bytes.size() || size > bytes.size() - offset) {
      invalid(cat(what, " at offset ", offset, " ends after the file's ", bytes.size(), " bytes"));
    }
    bytes_ = bytes.subspan(offset, size);
  }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  void skip(size_t size) { take(size); }
  std::span<const uint8_t> take(size_t size) {
    if (size > bytes_.size()) invalid(cat(what_, " is truncated"));
    const std::span<const uint8_t> taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  size_t left() const { return bytes_.size(); }

 private:
  uint64_t number(size_t size) {
    uint64_t value = 0;
    const std::span<const uint8_t> taken = take(size);
    for (size_t i = size; i > 0; --i) value = value << 8 | taken[i - 1];
    return value;
  }

  std::span<const uint8_t> bytes_;
  const char* what_;
};

uint32_t u32_at(std::span<const uint8_t> bytes, uint64_t offset) {
  return Fields(bytes, offset, 4, "a signature").u32();
}

// The end record, whose comment reaches to the file's end.
uint64_t find_end(std::span<const uint8_t> bytes) {
  if (bytes.size() < kEndBytes)
    invalid(cat("the file has ", bytes.size(), " bytes, which is too short for a zip"));
  const size_t last = bytes.size() - kEndBytes;
  const size_t first = last > kMaxCommentBytes ? last - kMaxCommentBytes : 0;
  for (size_t at = last + 1; at-- > first;) {
    if (u32_at(bytes, at) != kEnd) continue;
    const size_t comment = bytes[at + 20] | static_cast<size_t>(bytes[at + 21]) << 8;
    if (at + kEndBytes + comment == bytes.size()) return at;
  }
  invalid("the zip has no end record: the file is truncated or damaged");
}

// Sizes and offset of a central header from its zip64 field, where the 32-bit ones say so.
void read_zip64_field(std::span<const uint8_t> extra, uint64_t* size, uint64_t* packed_size,
                      uint64_t* offset) {
  constexpr uint64_t kElsewhere = 0xffffffff;
  if (*size != kElsewhere && *packed_size != kElsewhere && *offset != kElsewhere) return;
  Fields fields(extra, 0, extra.size(), "an extra field");
  while (fields.left() >= 4) {
    const uint16_t id = fields.u16();
    const uint16_t length = fields.u16();
    const std::span<const uint8_t> data = fields.take(length);
    if (id != kZip64Field) continue;
    Fields numbers(data, 0, data.size(), "a zip64 field");
    for (uint64_t* value : {size, packed_size, offset}) {
      if (*value == kElsewhere) *value = numbers.u64();
    }
    return;
  }
  invalid("an entry says that it has a zip64 field, but has none");
}

std::vector<uint8_t> inflate_raw(std::span<const uint8_t> packed, uint64_t size) {
  // zlib counts in unsigned int. An entry of 4 GiB of code is no model.
  constexpr uint64_t kMost = std::numeric_limits<uInt>::max();
  if (packed.size() > kMost || size > kMost) invalid("the deflated contents are larger than 4 GiB");
  std::vector<uint8_t> contents(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  // An empty vector has no address, which zlib wants all the same.
  uint8_t nothing = 0;
  stream.next_in = const_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = contents.empty() ? &nothing : contents.data();
  stream.avail_out = static_cast<uInt>(size);
  const int result = packed.empty() ? Z_DATA_ERROR : inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole)
    invalid(cat("the deflated contents are damaged, or not the ", size, " bytes that the directory says"));
  return contents;
}

uint32_t crc_of(std::span<const uint8_t> bytes) {
  uLong crc = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const size_t part = std::min<size_t>(bytes.size(), 1u << 30);
    crc = crc32(crc, bytes.data(), static_cast<uInt>(part));
    bytes = bytes.subspan(part);
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

ZipArchive::ZipArchive(std::span<const uint8_t> bytes, ZipArchive* outer) : bytes_(bytes), outer_(outer) {
  const uint64_t end = find_end(bytes);
  Fields fields(bytes, end, kEndBytes, "the end record");
  fields.skip(4);
  const uint16_t disk = fields.u16(), directory_disk = fields.u16();
  fields.skip(2);
  uint64_t count = fields.u16();
  uint64_t size = fields.u32();
  uint64_t offset = fields.u32();
  if (disk != 0 || directory_disk != 0) invalid("the zip has several parts, expected one file");

  if (end >= kEnd64LocatorBytes && u32_at(bytes, end - kEnd64LocatorBytes) == kEnd64Locator) {
    Fields locator(bytes, end - kEnd64LocatorBytes, kEnd64LocatorBytes, "the zip64 locator");
    locator.skip(8);
    Fields end64(bytes, locator.u64(), kEnd64Bytes, "the zip64 end record");
    if (end64.u32() != kEnd64) invalid("the zip64 locator does not point at a zip64 end record");
    end64.skip(28);
    count = end64.u64();
    size = end64.u64();
    offset = end64.u64();
  }
  read_directory(offset, size, count);
}

void ZipArchive::read_directory(uint64_t offset, uint64_t size, uint64_t count) {
  Fields fields(bytes_, offset, size, "the central directory");
  if (count > size / kCentralHeaderBytes) {
    invalid(cat("the central directory has ", size, " bytes, too few for ", count, " entries"));
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (fields.u32() != kCentralHeader)
      invalid(cat("entry ", i, " of the central directory has a wrong signature"));
    Entry entry;
    fields.skip(4);
    entry.flags = fields.u16();
    entry.method = fields.u16();
    fields.skip(4);
    entry.crc = fields.u32();
    entry.packed_size = fields.u32();
    entry.size = fields.u32();
    const uint16_t name_size = fields.u16(), extra_size = fields.u16(), comment_size = fields.u16();
    fields.skip(8);
    entry.header_offset = fields.u32();
    const std::span<const uint8_t> name_bytes = fields.take(name_size);
    const std::string name(name_bytes.begin(), name_bytes.end());
    read_zip64_field(fields.take(extra_size), &entry.size, &entry.packed_size, &entry.header_offset);
    fields.skip(comment_size);
    if (i == 0) first_name_ = name;
    if (!entries_.emplace(name, std::move(entry)).second)
      invalid("entry " + in_quotes(name) + " occurs twice");
  }
}

std::vector<std::string> ZipArchive::names_under(std::string_view prefix) const {
  std::vector<std::string> names;
  for (auto it = entries_.lower_bound(prefix); it != entries_.end() && it->first.starts_with(prefix); ++it) {
    names.push_back(it->first);
  }
  return names;
}

// The bytes between the local header and what follows; the local header must belong to the same name.
std::span<const uint8_t> ZipArchive::packed(std::string_view name, const Entry& entry) const {
  Fields header(bytes_, entry.header_offset, kLocalHeaderBytes, "a local header");
  if (header.u32() != kLocalHeader) invalid("its local header has a wrong signature");
  header.skip(22);
  const uint16_t name_size = header.u16(), extra_size = header.u16();
  const uint64_t name_offset = entry.header_offset + kLocalHeaderBytes;
  const auto local_name = Fields(bytes_, name_offset, name_size, "a local header").take(name_size);
  if (!std::ranges::equal(local_name, name, {}, {}, [](char c) { return static_cast<uint8_t>(c); })) {
    invalid("its local header has another name");
  }
  const uint64_t offset = name_offset + name_size + extra_size;
  if (offset > bytes_.size() || entry.packed_size > bytes_.size() - offset) {
    invalid(cat("its ", entry.packed_size, " bytes end after the file's ", bytes_.size()));
  }
  return bytes_.subspan(offset, entry.packed_size);
}

// Entries may share bytes, and a few deflated ones stand for any number: both are bounded by one budget.
void ZipArchive::charge(uint64_t size) {
  if (outer_ != nullptr) return outer_->charge(size);
  if (size > content_budget(bytes_.size()) - charged_)
    invalid(cat("the entries take more than ", kContentBytesPerFileByte, " times the file's size"));
  charged_ += size;
}

std::span<const uint8_t> ZipArchive::read(std::string_view name) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) invalid("the archive has no entry " + in_quotes(name));
  Entry& entry = it->second;
  if (entry.checked) return entry.contents;
  const std::string place = "entry " + in_quotes(name) + ": ";
  try {
    if (entry.flags & kEncrypted) invalid("it is encrypted");
    if (entry.method != kStored && entry.method != kDeflated) {
      invalid(cat("compression method ", entry.method, ", expected stored (0) or deflated (8)"));
    }
    const std::span<const uint8_t> raw = packed(name, entry);
    if (entry.method == kStored && entry.size != entry.packed_size)
      invalid("it is stored, but its two sizes differ");
    charge(entry.size);
    if (entry.method == kDeflated) entry.inflated = inflate_raw(raw, entry.size);
    entry.contents = entry.method == kDeflated ? std::span<const uint8_t>(entry.inflated) : raw;
    if (crc_of(entry.contents) != entry.crc) invalid("its checksum is wrong: the file is damaged");
  } catch (const PackError& error) {
    throw PackError(error.status(), place + error.what());
  }
  entry.checked = true;
  return entry.contents;
}

}  // namespace qplan::importer
