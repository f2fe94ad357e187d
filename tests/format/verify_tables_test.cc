// The lists of fields against the schema, as flatc describes it, and the verdicts against FlatBuffers' own
// verifier over damaged flatbuffers.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "flatbuffers/minireflect.h"
#include "format/container.h"
#include "format/names_generated.h"
#include "format/verify.h"
#include "tests/fuzz/plan_objects_generated.h"
#include "tests/support/random.h"

namespace qplan::testing::verify_tables_test {
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::TypeTable;
using format::TableKind;

// Compares the lists with flatc's description of a table and of those that it leads to.
class Comparison {
 public:
  void table(const TypeTable& type, uint32_t kind) {
    if (!seen_.insert(kind).second) return;
    ASSERT_LT(kind, format::kNumTableKinds);
    const char* fields = format::fields_of(static_cast<TableKind>(kind));
    const std::string all = fields;
    for (size_t i = 0; i < type.num_elems; ++i) {
      SCOPED_TRACE("table " + std::to_string(kind) + " '" + all + "', field " + std::to_string(i));
      ASSERT_NE(*fields, '\0');
      field(type, type.type_codes[i], &fields);
    }
    EXPECT_EQ(*fields, '\0') << "table " << kind << " '" << all << "' has more fields than the schema";
  }
  size_t num_tables() const { return seen_.size(); }

 private:
  void field(const TypeTable& type, flatbuffers::TypeCode code, const char** fields) {
    const char what = *(*fields)++;
    const bool is_vector = code.is_repeating != 0;
    if (code.base_type == ElementaryType::ET_STRING) {
      EXPECT_EQ(what, is_vector ? 'S' : 's');
    } else if (code.base_type == ElementaryType::ET_SEQUENCE) {
      const TypeTable& other = *type.type_refs[code.sequence_ref]();
      const auto kind = static_cast<uint32_t>(*(*fields)++ - 'A');
      if (other.st == flatbuffers::ST_UNION) {
        EXPECT_EQ(what, 'u');
        // Its first entry is NONE.
        for (size_t i = 1; i < other.num_elems; ++i) {
          table(*other.type_refs[other.type_codes[i].sequence_ref](), kind + static_cast<uint32_t>(i) - 1);
        }
      } else {
        EXPECT_EQ(what, is_vector ? 'v' : 't');
        table(other, kind);
      }
    } else {
      const size_t bytes = flatbuffers::InlineSize(static_cast<ElementaryType>(code.base_type), nullptr);
      EXPECT_EQ(what, is_vector ? static_cast<char>('a' + bytes - 1) : static_cast<char>('0' + bytes));
    }
  }

  std::set<uint32_t> seen_;
};

TEST(VerifyTables, ListsAreThoseOfTheSchema) {
  Comparison comparison;
  comparison.table(*objects::PlanTypeTable(), format::kPlanTable);
  EXPECT_EQ(comparison.num_tables(), format::kNumTableKinds - 1u) << "all but the names";
}

// What FlatBuffers says of the same bytes.
template <typename Root>
bool is_verified(const uint8_t* bytes, size_t size) {
  if (size < 8) return false;
  flatbuffers::Verifier::Options options;
  options.max_depth = format::kMaxTableDepth;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(size);
  flatbuffers::Verifier verifier(bytes, size, options);
  const flatbuffers::uoffset_t offset = verifier.VerifyOffset(size_t{0});
  return offset != 0 && reinterpret_cast<const Root*>(bytes + offset)->Verify(verifier);
}

// A flatbuffer, where sanitizers see what is read beyond it.
struct Buffer {
  std::vector<uint64_t> words;
  size_t size;

  explicit Buffer(const uint8_t* bytes, size_t count) : words((count + 7) / 8), size(count) {
    std::memcpy(words.data(), bytes, count);
  }
  uint8_t* data() { return reinterpret_cast<uint8_t*>(words.data()); }
};

// Damages one to three places: words that look like offsets, small numbers, single bits.
void damage(Buffer* buffer, Random* random) {
  const auto size = static_cast<int64_t>(buffer->size);
  for (int64_t places = random->integer(1, 3); places > 0; --places) {
    uint8_t* const at = buffer->data() + random->integer(0, size - 4);
    if (random->chance(0.3)) {
      *at = static_cast<uint8_t>(*at ^ 1 << random->integer(0, 7));
    } else if (random->chance(0.2)) {
      // A table whose list of fields is among the first bytes.
      const auto place = static_cast<uint32_t>(random->integer(0, size / 4 - 1)) * 4;
      const uint32_t word = place - static_cast<uint32_t>(random->integer(0, 15));
      std::memcpy(buffer->data() + place, &word, sizeof(word));
    } else if (random->chance(0.5)) {
      *at = static_cast<uint8_t>(random->integer(0, 48));
    } else {
      const std::vector<uint32_t> words = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc};
      uint32_t word = random->pick(words);
      if (random->chance(0.5)) word = static_cast<uint32_t>(random->integer(-size, size));
      std::memcpy(at, &word, sizeof(word));
    }
  }
}

// How often the verifiers agreed that a flatbuffer is whole, and that it is not.
struct Agreed {
  int whole = 0, damaged = 0;
};

template <typename Root>
void compare(const uint8_t* bytes, size_t size, TableKind kind, Random* random, Agreed* agreed) {
  if (size < 8 || size > 100000) return;
  for (int i = 0; i < 600; ++i) {
    Buffer buffer(bytes, size);
    if (i > 0) damage(&buffer, random);
    if (random->chance(0.1))
      buffer.size = static_cast<size_t>(random->integer(0, static_cast<int64_t>(size)));
    const bool expected = is_verified<Root>(buffer.data(), buffer.size);
    ASSERT_EQ(format::verified_root(buffer.data(), buffer.size, kind) != nullptr, expected) << "round " << i;
    (expected ? agreed->whole : agreed->damaged) += 1;
  }
}

// The root's list of fields is at byte 1, and its vector of banks 2 GB away: nothing is known of lists at odd
// places, whichever place the verifier keeps for what it knows.
TEST(VerifyTables, AListOfFieldsIsAtAnEvenPlace) {
  for (const uint32_t root : {0x1008u, 0x1000u, 0x1004u, 0x100cu}) {
    for (const uint32_t list : {1u, 3u, 5u, 7u, 65u}) {
      std::vector<uint8_t> bytes(0x2000);
      const auto write = [&](size_t at, auto value) {
        std::memcpy(bytes.data() + at, &value, sizeof(value));
      };
      write(list, uint16_t{16});
      for (size_t slot = 4; slot < 16; slot += 2)
        write(list + slot, static_cast<uint16_t>(slot == 6 ? 8 : 0));
      write(0, root);
      write(root, root - list);
      write(root + 8, uint32_t{0x7ffffff0});
      Buffer buffer(bytes.data(), bytes.size());
      EXPECT_FALSE(is_verified<format::Plan>(buffer.data(), buffer.size));
      EXPECT_EQ(format::verified_root(buffer.data(), buffer.size, format::kPlanTable), nullptr)
          << "root " << root << ", list " << list;
    }
  }
}

// The seeds of the fuzz target, most of which are plans: of all families, of cascades and of devices.
TEST(VerifyTables, VerdictsAreThoseOfFlatBuffers) {
  Random random(15);
  Agreed plans, names;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/plan")) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> chars((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto* bytes = reinterpret_cast<const uint8_t*>(chars.data());
    format::Header header;
    if (chars.size() < sizeof(header)) continue;
    std::memcpy(&header, bytes, sizeof(header));
    const uint64_t rest = chars.size() - sizeof(header);
    if (header.root_size > rest) continue;
    compare<format::Plan>(bytes + sizeof(header), header.root_size, format::kPlanTable, &random, &plans);
    const uint64_t begin = (header.content_size + 63) / 64 * 64;
    if (begin >= header.file_size || header.file_size > chars.size()) continue;
    compare<format::Names>(bytes + begin, static_cast<size_t>(header.file_size - begin), format::kNamesTable,
                           &random, &names);
  }
  EXPECT_GT(plans.whole, 1000);
  EXPECT_GT(plans.damaged, 1000);
  EXPECT_GT(names.whole, 100);
  EXPECT_GT(names.damaged, 100);
}

}  // namespace
}  // namespace qplan::testing::verify_tables_test
