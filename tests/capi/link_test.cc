// Entries of qplan_link_c: what is wrong with one is refused with its position, and larger or smaller structs
// of other versions are read.
#include <gtest/gtest.h>
#include <qplan/pack.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Entry {
  qplan_linked_plan plan;
  uint64_t later[2];  // fields of a version to come
};

class LinkC : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string model =
        "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), int8], %y: Tensor[(4), int8]) {\n"
        "  qnn.add(%x, %y, 1f, 0, 1f, 0, 1f, 0)\n}\n";
    const auto append = [](void* user, const char* bytes, size_t size) {
      static_cast<std::string*>(user)->append(bytes, size);
    };
    qplan_pack_options options = {};
    options.struct_size = sizeof(options);
    ASSERT_EQ(qplan_pack_bytes(model.data(), model.size(), "two", &options, append, &plan_, nullptr),
              QPLAN_OK);
    for (const char* name : {"one", "two"})
      entries_.push_back({{sizeof(Entry), 0, plan_.data(), plan_.size(), name}, {7, 7}});
  }

  qplan_linked_plan& second() { return entries_[1].plan; }

  std::string link(const void* entries) {
    qplan_emit_options options = {};
    options.struct_size = sizeof(options);
    options.name = "arena";
    qplan_error error = {};
    error.struct_size = sizeof(error);
    files_.clear();
    const auto append = [](void* user, const char* name, const char*, size_t) {
      static_cast<std::vector<std::string>*>(user)->push_back(name);
    };
    const qplan_status status =
        qplan_link_c(static_cast<const qplan_linked_plan*>(entries), 2, &options, append, &files_, &error);
    EXPECT_EQ(status == QPLAN_OK, error.text[0] == '\0');
    return error.text;
  }
  std::string link() { return link(entries_.data()); }

  std::string plan_;
  std::vector<Entry> entries_;
  std::vector<std::string> files_;
};

TEST_F(LinkC, LargerEntriesAreReadByTheirSize) {
  EXPECT_EQ(link(), "");
  EXPECT_EQ(files_.size(), 8u);
}

TEST_F(LinkC, SmallerEntriesHaveZerosForWhatTheyLack) {
  // The first entry is whole, so that the error is of the second, which the first one's size leads to.
  constexpr size_t kSmall = offsetof(qplan_linked_plan, name);
  std::vector<uint8_t> entries(sizeof(Entry) + kSmall);
  std::memcpy(entries.data(), entries_.data(), sizeof(Entry));
  second().struct_size = kSmall;
  std::memcpy(entries.data() + sizeof(Entry), &second(), kSmall);
  EXPECT_EQ(link(entries.data()), "link: plan 1: name is NULL");
  // The other way round, what follows the small entry is no name of it.
  std::vector<uint8_t> swapped(kSmall + sizeof(Entry));
  std::memcpy(swapped.data(), entries.data() + sizeof(Entry), kSmall);
  std::memcpy(swapped.data() + kSmall, entries.data(), sizeof(Entry));
  EXPECT_EQ(link(swapped.data()), "link: plan 0: name is NULL");
}

TEST_F(LinkC, SizesThatDoNotKeepTheAlignmentAreRefused) {
  for (const uint32_t size : {0u, 2u, 33u}) {
    second().struct_size = size;
    const std::string expected = "link: plan 1: struct_size is " + std::to_string(size) +
                                 ", expected a multiple of " + std::to_string(alignof(qplan_linked_plan)) +
                                 ", as the " + std::to_string(sizeof(qplan_linked_plan)) + " of this version";
    EXPECT_EQ(link(), expected);
  }
  EXPECT_TRUE(files_.empty());
}

TEST_F(LinkC, ErrorsSayWhichPlan) {
  second().reserved = 3;
  EXPECT_EQ(link(), "link: plan 1: reserved is 3, expected 0");
  second().reserved = 0;
  second().name = nullptr;
  EXPECT_EQ(link(), "link: plan 1: name is NULL");
  second().name = "two";
  second().size = 10;
  EXPECT_EQ(link().rfind("link: plan 1 'two': ", 0), 0u) << link();
  second().plan = nullptr;
  EXPECT_EQ(link(), "link: plan 1: plan is NULL");
  EXPECT_TRUE(files_.empty());
}

}  // namespace
