// Zip files, sound and hostile.
#include "src/packer/import/zip_archive.h"

#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "tests/packer/import/pytorch_builder.h"

namespace qplan::pytorch_test::zip_archive_test {
namespace {

using importer::ZipArchive;

Bytes sample() {
  Bytes bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 7);
  return bytes;
}

Bytes read(const Bytes& zip, const std::string& name) {
  ZipArchive archive(zip);
  const auto contents = archive.read(name);
  return {contents.begin(), contents.end()};
}

std::string error_of(const Bytes& zip, const std::string& name) {
  try {
    read(zip, name);
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_INVALID);
    return error.what();
  }
  return "read";
}

TEST(ZipArchive, StoredDeflatedAndZip64EntriesAreRead) {
  ZipBuilder zip;
  zip.add("a/stored", sample());
  zip.add("a/deflated", sample(), true);
  zip.add("a/wide", sample(), true).zip64 = true;
  zip.add("a/empty", {});
  const Bytes bytes = zip.build();
  for (const char* name : {"a/stored", "a/deflated", "a/wide"})
    EXPECT_EQ(read(bytes, name), sample()) << name;
  EXPECT_EQ(read(bytes, "a/empty"), Bytes());
  ZipArchive archive(bytes);
  EXPECT_EQ(archive.first_name(), "a/stored");
  EXPECT_FALSE(archive.has("a/other"));
  EXPECT_EQ(error_of(bytes, "a/other"), "the archive has no entry 'a/other'");
}

TEST(ZipArchive, NamesThatLookLikePathsAreOnlyNames) {
  ZipBuilder zip;
  zip.add("../../etc/passwd", sample());
  EXPECT_EQ(read(zip.build(), "../../etc/passwd"), sample());
}

TEST(ZipArchive, EveryTruncationIsRefused) {
  ZipBuilder zip;
  zip.add("a", sample(), true);
  const Bytes whole = zip.build();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(error_of(cut, "a"), "read") << size;
  }
}

TEST(ZipArchive, DamageIsNoticed) {
  const auto error_after = [](auto&& change) {
    ZipBuilder zip;
    change(zip.add("a", sample(), true));
    return error_of(zip.build(), "a");
  };
  EXPECT_EQ(error_after([](auto& e) { e.crc ^= 1; }),
            "entry 'a': its checksum is wrong: the file is damaged");
  EXPECT_EQ(error_after([](auto& e) { e.flags = 1; }), "entry 'a': it is encrypted");
  EXPECT_EQ(error_after([](auto& e) { e.method = 12; }),
            "entry 'a': compression method 12, expected stored (0) or deflated (8)");
  EXPECT_EQ(error_after([](auto& e) { e.method = 0; }), "entry 'a': it is stored, but its two sizes differ");
  EXPECT_EQ(error_after([](auto& e) { e.local_name = "b"; }), "entry 'a': its local header has another name");
  for (const uint64_t size : {0, 999, 1001}) {
    EXPECT_EQ(error_after([=](auto& e) { e.size = size; }),
              "entry 'a': the deflated contents are damaged, or not the " + std::to_string(size) +
                  " bytes that the directory says");
  }
}

TEST(ZipArchive, TwoEntriesOfOneNameAreRefused) {
  ZipBuilder zip;
  zip.add("a", sample());
  zip.add("a", {});
  EXPECT_EQ(error_of(zip.build(), "a"), "entry 'a' occurs twice");
}

TEST(ZipArchive, BombsAreRefusedBeforeTheyAreInflated) {
  ZipBuilder zip;
  auto& entry = zip.add("a", sample(), true);
  entry.zip64 = true;
  entry.size = uint64_t{1} << 40;
  EXPECT_EQ(error_of(zip.build(), "a"), "entry 'a': the entries take more than 16 times the file's size");
}

TEST(ZipArchive, EntriesTogetherAreBounded) {
  const Bytes zeros(16 << 20);
  ZipBuilder zip;
  for (int i = 0; i < 5; ++i) zip.add("a" + std::to_string(i), zeros, true);
  const Bytes bytes = zip.build();
  ASSERT_LT(importer::content_budget(bytes.size()), 5 * zeros.size());
  ZipArchive archive(bytes);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(archive.read("a" + std::to_string(i)).size(), zeros.size());
  EXPECT_THROW(archive.read("a4"), PackError);
  EXPECT_EQ(archive.read("a3").size(), zeros.size()) << "what was read stays";
}

TEST(ZipArchive, DirectoriesThatPromiseTooMuchAreRefused) {
  ZipBuilder zip;
  zip.add("a", sample());
  const Bytes whole = zip.build();
  const size_t end = whole.size() - 22;
  for (size_t field : {10, 12, 16}) {  // entries, directory's size, directory's offset
    Bytes bytes = whole;
    bytes[end + field + 1] = 0xff;
    EXPECT_NE(error_of(bytes, "a"), "read") << field;
  }
}

}  // namespace
}  // namespace qplan::pytorch_test::zip_archive_test
