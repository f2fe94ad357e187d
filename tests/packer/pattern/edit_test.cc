#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/pattern/pattern.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::pattern::edit_test {
namespace {

using passes_test::parse_main;
using passes_test::print_body;

const char kParams[] = "%x: Tensor[(4), int8]";
const char kThreeClips[] =
    "%0 = clip(%x, a_min=0f, a_max=1f, name=\"a\");\n"
    "%1 = clip(%0, a_min=0f, a_max=2f, name=\"b\");\n"
    "%2 = clip(%1, a_min=0f, a_max=3f, name=\"c\");\n"
    "(%2, %0)\n";

class EditOfThreeClips : public ::testing::Test {
 protected:
  EditOfThreeClips() : module_(parse_main(kParams, kThreeClips)), edit_(module_.main()) {}

  PreValue value(size_t node) const { return {module_.main().nodes()[node].results[0]}; }
  PostValue clip(PostValue data, double max) {
    return edit_.post().call("clip", {data}, {{"a_min", 0.0}, {"a_max", max}}, "new");
  }
  std::string error_of(PreValue value, PostValue replacement) {
    try {
      edit_.replace(value, replacement);
      return "";
    } catch (const PackError& error) {
      return error.what();
    }
  }

  ir::Module module_;
  Edit edit_;
};

TEST_F(EditOfThreeClips, WithoutAReplacementThereIsNoNewFunction) {
  edit_[value(2)];
  EXPECT_EQ(edit_.finish(), nullptr);
}

TEST_F(EditOfThreeClips, NodesBetweenAreCopied) {
  edit_.replace(value(1), clip(edit_[value(0)], 9));
  const auto result = edit_.finish();
  EXPECT_EQ(print_body(*result),
            "%0 = clip(%x, a_min=0f, a_max=1f);\n"
            "%1 = clip(%0, a_min=0f, a_max=9f);\n"
            "%2 = clip(%1, a_min=0f, a_max=3f);\n"
            "(%2, %0)\n");
}

TEST_F(EditOfThreeClips, AReplacementMayReadWhatItReplaces) {
  edit_.replace(value(0), clip(edit_[value(0)], 9));
  const auto result = edit_.finish();
  EXPECT_EQ(print_body(*result),
            "%0 = clip(%x, a_min=0f, a_max=1f);\n"
            "%1 = clip(%0, a_min=0f, a_max=9f);\n"
            "%2 = clip(%1, a_min=0f, a_max=2f);\n"
            "%3 = clip(%2, a_min=0f, a_max=3f);\n"
            "(%3, %1)\n");
}

TEST_F(EditOfThreeClips, TheLastReplacementCounts) {
  edit_.replace(value(1), clip(edit_[value(0)], 8));
  edit_.replace(value(1), clip(edit_[value(0)], 9));
  EXPECT_NE(print_body(*edit_.finish()).find("a_max=9f"), std::string::npos);
}

TEST_F(EditOfThreeClips, WhatWasReadAlreadyIsNotReplacedAnyMore) {
  const PostValue late = edit_[value(1)];
  EXPECT_EQ(error_of(value(0), late),
            "edit: clip 'a' (Tensor[(4), int8]) is replaced after clip 'b' was copied or replaced; replace "
            "values in the "
            "order of their nodes");
}

TEST_F(EditOfThreeClips, ParametersAndOtherTypesAreRefused) {
  const PreValue param{module_.main().params()[0]};
  EXPECT_EQ(error_of(param, edit_[param]),
            "edit: parameter '%x' (Tensor[(4), int8]) is no node's result: it cannot be replaced");
  EXPECT_NE(error_of(value(0), edit_.post().scalar(1)), "");
}

TEST(Edit, AllResultsOfANodeAreReplacedTogether) {
  const ir::Module module = parse_main(kParams,
                                       "%0 = split(%x, indices_or_sections=2);\n"
                                       "%1 = clip(%0.0, a_min=0f, a_max=1f);\n"
                                       "(%1, %0.1)\n");
  const ir::Function& main = module.main();
  const PreValue first{main.nodes()[0].results[0]}, second{main.nodes()[0].results[1]};
  const PreValue x{main.params()[0]}, last{main.nodes()[1].results[0]};
  const auto part = [&](Edit& edit, int64_t begin) {
    return edit.post().call("strided_slice", {edit[x]},
                            {{"begin", ir::Ints{begin}}, {"end", ir::Ints{begin + 2}}}, "");
  };
  {
    Edit edit(main);
    edit.replace(first, part(edit, 0));
    EXPECT_EQ(edit.post().type(edit[first]).shape, ir::Shape{2}) << "what is replaced can be read";
    try {
      edit.replace(last, edit[first]);
      FAIL();
    } catch (const PackError& error) {
      EXPECT_STREQ(
          error.what(),
          "edit: split (node 0) has 2 results, of which 1 are replaced; replace all before anything after "
          "them is read or replaced");
    }
  }
  Edit edit(main);
  edit.replace(second, part(edit, 2));
  edit.replace(first, part(edit, 0));
  const auto result = edit.finish();
  EXPECT_EQ(result->nodes().size(), 3u);
  EXPECT_EQ(result->producer(result->outputs()[1])->op->name, "strided_slice");
}

}  // namespace
}  // namespace qplan::pattern::edit_test
