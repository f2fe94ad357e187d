#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/memory/arena.h"

namespace qplan::memory::overlap_checker_test {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

std::string refusal(const std::vector<PlacedValue>& values, uint64_t arena = 1024) {
  try {
    check_no_overlap(values, arena);
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INTERNAL);
    return error.what();
  }
  return "";
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(OverlapChecker, TakesWhatLiesApartInSpaceOrTime) {
  EXPECT_EQ(
      refusal({{0, 128, 0, 2, kNobody, "a"}, {128, 64, 1, 3, kNobody, "b"}, {0, 128, 3, 4, kNobody, "c"}}),
      "");
}

TEST(OverlapChecker, NamesTwoThatShareBytes) {
  const std::string text = refusal({{0, 128, 0, 2, kNobody, "a"}, {64, 64, 2, 3, kNobody, "b"}});
  EXPECT_TRUE(mentions(text, "'a'") && mentions(text, "'b'")) << text;
}

TEST(OverlapChecker, FindsOneInsideAnother) {
  EXPECT_NE(refusal({{0, 512, 0, 9, kNobody, "a"}, {128, 64, 4, 4, kNobody, "b"}}), "");
  EXPECT_NE(refusal({{128, 64, 0, 9, kNobody, "a"}, {0, 512, 4, 4, kNobody, "b"}}), "");
  EXPECT_NE(refusal({{64, 64, 3, 3, kNobody, "a"}, {64, 64, 3, 3, kNobody, "b"}}), "");
}

TEST(OverlapChecker, OneStepIsEnoughToMeet) {
  EXPECT_NE(refusal({{0, 64, 0, 5, kNobody, "a"}, {0, 64, 5, 6, kNobody, "b"}}), "");
  EXPECT_EQ(refusal({{0, 64, 0, 4, kNobody, "a"}, {0, 64, 5, 6, kNobody, "b"}}), "");
}

TEST(OverlapChecker, InPlaceIsTheSameBytesAndTheEndOfTheOld) {
  EXPECT_EQ(refusal({{0, 64, 0, 1, kNobody, "a"}, {0, 64, 1, 2, 0, "b"}, {0, 64, 2, 3, 1, "c"}}), "");
  EXPECT_NE(refusal({{0, 64, 0, 2, kNobody, "a"}, {0, 64, 1, 2, 0, "b"}}), "");    // a is needed later
  EXPECT_EQ(refusal({{0, 64, 0, 1, kNobody, "a"}, {0, 32, 1, 2, 0, "b"}}), "");    // the first of them
  EXPECT_NE(refusal({{0, 64, 0, 1, kNobody, "a"}, {0, 128, 1, 2, 0, "b"}}), "");   // more bytes
  EXPECT_NE(refusal({{0, 128, 0, 1, kNobody, "a"}, {64, 64, 1, 2, 0, "b"}}), "");  // other bytes
  EXPECT_NE(refusal({{0, 64, 0, 1, kNobody, "a"}, {0, 64, 1, 2, 7, "b"}}), "");    // nobody
  EXPECT_NE(refusal({{0, 64, 0, 1, kNobody, "a"}, {0, 64, 1, 2, 0, "b"}, {0, 64, 1, 1, 0, "c"}}),
            "");  // twice
  // A value that replaces another at one step does not excuse a third one at the same place.
  EXPECT_NE(refusal({{0, 64, 0, 1, kNobody, "a"}, {0, 64, 1, 2, 0, "b"}, {0, 64, 1, 2, kNobody, "c"}}), "");
}

TEST(OverlapChecker, TheFirstStepReplacesAnInputThatIsThereBeforeIt) {
  const PlacedValue output = {0, 64, 0, 1, 1, "output"};
  PlacedValue input = {0, 64, 0, 0, kNobody, "input"};
  EXPECT_NE(refusal({output, input}), "");  // both are written by step 0
  input.is_input = true;
  EXPECT_EQ(refusal({output, input}), "");
  input.last = 1;  // it is read after step 0
  EXPECT_NE(refusal({output, input}), "");
}

TEST(OverlapChecker, StaysInTheArenaAndAligned) {
  EXPECT_TRUE(mentions(refusal({{960, 65, 0, 1, kNobody, "a"}}), "beyond the arena"));
  EXPECT_TRUE(mentions(refusal({{UINT64_MAX - 63, 64, 0, 1, kNobody, "a"}}), "beyond the arena"));
  EXPECT_TRUE(mentions(refusal({{32, 64, 0, 1, kNobody, "a"}}), "aligned"));
  EXPECT_NE(refusal({{0, 64, 2, 1, kNobody, "a"}}), "");
}

PlacedValue part(uint64_t offset, uint64_t size, uint32_t first, uint32_t last, uint32_t inside,
                 uint64_t inside_offset, const char* name) {
  PlacedValue value = {offset, size, first, last, kNobody, name};
  value.alignment = 1;
  value.inside = inside;
  value.inside_offset = inside_offset;
  return value;
}

TEST(OverlapChecker, PartsOfAConcatenationLieInsideIt) {
  const PlacedValue whole = {64, 100, 2, 4, kNobody, "whole"};
  const PlacedValue a = part(64, 40, 0, 2, 0, 0, "a"), b = part(104, 60, 1, 3, 0, 40, "b");
  EXPECT_EQ(refusal({whole, a, b}), "");
  EXPECT_EQ(refusal({whole, a}), "");  // the rest is written
  EXPECT_NE(refusal({whole, part(64, 40, 0, 2, kNobody, 0, "a")}), "");
  EXPECT_TRUE(mentions(refusal({whole, part(65, 40, 0, 2, 0, 0, "a")}), "'a' (bytes 65 to 105"));
  EXPECT_TRUE(mentions(refusal({whole, part(104, 61, 0, 2, 0, 40, "b")}), "no part of 'whole'"));
  EXPECT_NE(refusal({whole, part(64, 40, 0, 1, 0, 0, "a")}), "");      // dead before it is joined
  EXPECT_NE(refusal({whole, part(64, 40, 2, 3, 0, 0, "a")}), "");      // written by the same step
  EXPECT_NE(refusal({whole, a, part(90, 60, 1, 3, 0, 26, "b")}), "");  // over another part
  EXPECT_NE(refusal({whole, part(64, 40, 0, 2, 7, 0, "a")}), "");
}

TEST(OverlapChecker, PartsOfASplitLieInsideItsInput) {
  const PlacedValue whole = {64, 100, 0, 1, kNobody, "whole"};
  const PlacedValue a = part(64, 40, 1, 5, 0, 0, "a"), b = part(104, 60, 1, 3, 0, 40, "b");
  EXPECT_EQ(refusal({whole, a, b}), "");
  PlacedValue over = part(104, 60, 3, 5, kNobody, 0, "over");
  over.replaces = 2;
  EXPECT_EQ(refusal({whole, a, b, over}), "");
  // The input is read at step 3, too, and would find what was computed over its part.
  PlacedValue longer = whole;
  longer.last = 4;
  EXPECT_TRUE(mentions(refusal({longer, a, b, over}), "'whole'"));
  // The input's bytes are gone when it is cut.
  EXPECT_NE(refusal({whole, part(64, 40, 2, 5, 0, 0, "a")}), "");
}

TEST(OverlapChecker, APartMakesNoRoomForOthers) {
  const PlacedValue whole = {64, 128, 2, 4, kNobody, "whole"};
  const PlacedValue a = part(64, 64, 0, 2, 0, 0, "a"), late = part(64, 64, 0, 4, 0, 0, "a");
  // In the bytes of the whole that no part has taken yet, before it is written, and afterwards.
  EXPECT_EQ(refusal({whole, a, {128, 64, 0, 1, kNobody, "x"}}), "");
  EXPECT_NE(refusal({whole, a, {128, 64, 0, 2, kNobody, "x"}}), "");
  EXPECT_NE(refusal({whole, a, {64, 64, 1, 1, kNobody, "x"}}), "");
  EXPECT_NE(refusal({whole, a, {64, 64, 3, 3, kNobody, "x"}}), "");
  // What is computed in place of the whole is computed over a part that is needed later.
  const PlacedValue over = {64, 128, 4, 5, 0, "over"};
  EXPECT_EQ(refusal({whole, a, over}), "");
  EXPECT_TRUE(mentions(refusal({whole, late, over}), "'a'"));
}

TEST(OverlapChecker, PartsOfPartsAreLookedInto) {
  const PlacedValue outer = {64, 192, 4, 5, kNobody, "outer"};
  const PlacedValue inner = part(128, 128, 2, 4, 0, 64, "inner"), a = part(192, 64, 0, 5, 1, 64, "a");
  EXPECT_EQ(refusal({outer, inner, a}), "");
  EXPECT_NE(refusal({outer, {128, 128, 2, 4, kNobody, "inner"}, a}), "");
}

// Valid plans pass; one value moved onto another that is alive does not.
TEST(OverlapChecker, FindsPlantedOverlapsInRandomPlans) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<Buffer> buffers(3 + random() % 60);
    for (Buffer& buffer : buffers) {
      buffer.size = 1 + random() % 500;
      buffer.first = random() % 40;
      buffer.last = buffer.first + random() % 8;
    }
    const Placement placement = place_buffers(buffers, {});
    std::vector<PlacedValue> values;
    for (size_t i = 0; i < buffers.size(); ++i) {
      values.push_back(
          {placement.offsets[i], buffers[i].size, buffers[i].first, buffers[i].last, kNobody, ""});
    }
    ASSERT_EQ(refusal(values, placement.peak), "");
    bool planted = false;
    for (size_t i = 1; i < values.size() && !planted; ++i) {
      if (values[0].first > values[i].last || values[i].first > values[0].last) continue;
      values[i].offset = values[0].offset;
      planted = true;
    }
    if (planted) {
      EXPECT_NE(refusal(values, 2 * placement.peak + 1024), "");
    }
  }
}

}  // namespace
}  // namespace qplan::memory::overlap_checker_test
