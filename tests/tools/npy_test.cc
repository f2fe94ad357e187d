#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/tensor.h"

namespace qplan::tools::npy_test {
namespace {

// A file of the version with this header text and data_bytes zeros.
std::vector<uint8_t> npy(int version, const std::string& header, size_t data_bytes) {
  std::vector<uint8_t> file = {0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<uint8_t>(version), 0};
  const size_t length_bytes = version == 1 ? 2 : 4;
  for (size_t i = 0; i < length_bytes; ++i) file.push_back(static_cast<uint8_t>(header.size() >> (8 * i)));
  file.insert(file.end(), header.begin(), header.end());
  file.resize(file.size() + data_bytes);
  return file;
}

std::string error_of(const std::vector<uint8_t>& file) {
  try {
    parse_npy(file, "x.npy");
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(ParseNpy, ReadsAllVersions) {
  for (const int version : {1, 2, 3}) {
    const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }  \n";
    const NpyHeader result = parse_npy(npy(version, header, 24), "x.npy");
    EXPECT_EQ(result.shape, (std::vector<int64_t>{1, 2, 3}));
    EXPECT_EQ(result.dtype.code, kDLFloat);
    EXPECT_EQ(result.dtype.bits, 32);
    EXPECT_EQ(result.data_offset, (version == 1 ? 10 : 12) + header.size());
  }
}

TEST(ParseNpy, ReadsScalarsVectorsAndEveryKeyOrder) {
  EXPECT_TRUE(
      parse_npy(npy(1, "{'shape': (), 'fortran_order': True, 'descr': '|u1'}", 1), "x").shape.empty());
  EXPECT_EQ(parse_npy(npy(1, "{\"descr\":\"|i1\",\"fortran_order\":True,\"shape\":(4,)}", 4), "x").shape,
            std::vector<int64_t>{4});
  EXPECT_EQ(parse_npy(npy(1, "{'descr': '>i1', 'fortran_order': False, 'shape': (2L, 2L)}", 4), "x").shape,
            (std::vector<int64_t>{2, 2}));
}

TEST(ParseNpy, ReadsBooleans) {
  const NpyHeader result =
      parse_npy(npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", 4), "x");
  EXPECT_EQ(result.dtype.code, 6);  // DLPack's boolean
  EXPECT_EQ(result.dtype.bits, 8);
  EXPECT_EQ(result.shape, std::vector<int64_t>{4});
}

TEST(ParseNpy, SaysWhatIsWrong) {
  const auto with = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy(1, "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }", 4);
  };
  EXPECT_NE(error_of(with("'>i2'", "False", "(2,)")).find("big-endian"), std::string::npos);
  EXPECT_NE(error_of(with("'|u1'", "True", "(2, 2)")).find("Fortran order"), std::string::npos);
  EXPECT_NE(error_of(with("'<c8'", "False", "(4,)")).find("dtype '<c8'"), std::string::npos);
  EXPECT_NE(error_of(with("'<b4'", "False", "(1,)")).find("dtype '<b4'"), std::string::npos);
  EXPECT_NE(error_of(with("[('a', '<f4')]", "False", "(1,)")).find("structured"), std::string::npos);
  EXPECT_NE(error_of(with("'|u1'", "False", "(5,)")).find("holds 4 bytes"), std::string::npos);
  EXPECT_NE(error_of(with("'|u1'", "False", "(3,)")).find("needs 3"), std::string::npos);
  EXPECT_NE(error_of(with("'|u1'", "False", "(-4,)")).find("malformed"), std::string::npos);
  EXPECT_NE(
      error_of(with("'<f8'", "False", "(1099511627776, 1099511627776, 1099511627776)")).find("impossible"),
      std::string::npos);
  EXPECT_NE(error_of(npy(4, "{}", 0)).find("version 4"), std::string::npos);
  EXPECT_NE(error_of(npy(1, "{}", 0)).find("lacks"), std::string::npos);
  EXPECT_NE(error_of({'n', 'o'}).find("not a .npy file"), std::string::npos);
}

TEST(ParseNpy, RefusesTextAfterTheDictionary) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}";
  EXPECT_EQ(error_of(npy(1, header + " \n", 4)), "");
  for (const char* junk : {" 7", " }", ", {}"})
    EXPECT_NE(error_of(npy(1, header + junk, 4)).find("malformed at character"), std::string::npos) << junk;
}

TEST(ParseNpy, SaysWhatTheFileIs) {
  try {
    parse_npy({'n', 'o'}, "w.npy", "binding");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "binding 'w.npy': is not a .npy file");
  }
}

TEST(ParseNpy, RefusesEveryTruncation) {
  const std::vector<uint8_t> file = npy(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }\n", 12);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse_npy({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}, "x"), Failure)
        << size;
  }
}

TEST(Booleans, AreNumbersThatNumPyReads) {
  const int64_t shape[] = {1, 4};
  qplan_tensor_info info{};
  info.dtype = {6, 8, 1};  // DLPack's boolean
  info.ndim = 2;
  info.shape = shape;
  info.size_bytes = 4;
  const uint8_t bytes[] = {0, 1, 1, 0};
  EXPECT_EQ(dtype_name(info.dtype), "bool");
  EXPECT_EQ(element_text(info, bytes, 1), "1");
  EXPECT_EQ(real_value(info, bytes, 2), 1.0);
  ASSERT_EQ(top_scores(info, bytes, 1).size(), 1u);
  EXPECT_EQ(top_scores(info, bytes, 1)[0].index, 1u);
  const std::string file = npy_file(info, bytes);
  EXPECT_NE(file.find("'descr': '|b1', 'fortran_order': False, 'shape': (1, 4, )"), std::string::npos);
  EXPECT_EQ(parse_npy({file.begin(), file.end()}, "x.npy").dtype.code, 6);
}

}  // namespace
}  // namespace qplan::tools::npy_test
