// Pickles: what PyTorch writes is read, everything else is refused, nothing is executed.
#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/import/pytorch/archive.h"
#include "tests/packer/import/pytorch_builder.h"

namespace qplan::pytorch_test::pytorch_pickle_test {
namespace {

using pt::Ref;
using pt::ValueTable;

std::string error_of(const Bytes& pickle) {
  ValueTable values;
  try {
    pt::read_pickle(pickle, "net/", values);
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_INVALID);
    return error.what();
  }
  return "read";
}
std::string error_of(const PickleWriter& pickle) { return error_of(pickle.stop()); }

TEST(PytorchPickle, ValuesOfEveryKind) {
  ValueTable values;
  PickleWriter p;
  p.op('(')
      .op('N')
      .op('\x88')
      .op('\x89')
      .raw("K\x07M\x02\x01J\xfe\xff\xff\xff")
      .raw("\x8a\x01\xff")
      .number(-0.5);
  p.text("t\xc3\xa4xt")
      .raw(
          "]K\x01"
          "a(K\x02K\x03"
          "e")
      .raw("}X")
      .raw(std::string_view("\1\0\0\0k", 5))
      .raw("K\x05s");
  p.raw("K\x01K\x02K\x03\x87").op('t');
  const Ref root = pt::read_pickle(p.stop(), "", values);
  const auto& items = values.get<pt::Tuple>(root)->items;
  ASSERT_EQ(items.size(), 12u);
  EXPECT_NE(values.get<pt::None>(items[0]), nullptr);
  EXPECT_EQ(*values.get<bool>(items[1]), true);
  EXPECT_EQ(*values.get<bool>(items[2]), false);
  EXPECT_EQ(*values.get<int64_t>(items[3]), 7);
  EXPECT_EQ(*values.get<int64_t>(items[4]), 258);
  EXPECT_EQ(*values.get<int64_t>(items[5]), -2);
  EXPECT_EQ(*values.get<int64_t>(items[6]), -1);
  EXPECT_EQ(*values.get<double>(items[7]), -0.5);
  EXPECT_EQ(*values.get<std::string>(items[8]), "t\xc3\xa4xt");
  EXPECT_EQ(values.get<pt::List>(items[9])->items.size(), 3u);
  EXPECT_EQ(values.get<pt::Dict>(items[10])->entries.size(), 1u);
  EXPECT_EQ(values.get<pt::Tuple>(items[11])->items.size(), 3u);
}

// A name is written once and copied by each object and storage that uses it.
TEST(PytorchPickle, CopiesOfNamesAreBounded) {
  PickleWriter p;
  p.op('(').global("__torch__", std::string(1000, 'N')).raw("q\x01");
  for (int i = 0; i < 80'000; ++i) p.raw("h\x01)\x81");
  EXPECT_NE(error_of(p.op('t')).find("the archive's names and strings take more than 64 MiB"),
            std::string::npos);
  ValueTable values;
  PickleWriter storages;
  storages.op('(')
      .storage("FloatStorage", "0", 1)
      .text("storage")
      .global("torch", "FloatStorage")
      .text("0")
      .text("cpu");
  storages.raw("K\x01").raw("q\x05");
  storages.op('t')
      .op('(')
      .text("storage")
      .global("torch", "FloatStorage")
      .text("0")
      .text("cpu")
      .raw("K\x01tq\x01");
  for (int i = 0; i < 2000; ++i) storages.raw("h\x01Q");
  storages.op('t');
  EXPECT_THROW(pt::read_pickle(storages.stop(), std::string(65000, 'p') + "/data/", values), PackError);
}

TEST(PytorchPickle, OpenMarksAreBounded) {
  EXPECT_NE(error_of(PickleWriter().raw(std::string(5000, '('))).find("more than 1000 marks are open"),
            std::string::npos);
}

TEST(PytorchPickle, MemoGivesTheSameValueAgain) {
  ValueTable values;
  PickleWriter p;
  p.op('(').raw("]q\x01").raw("h\x01").raw("r").raw(std::string_view("\0\1\0\0", 4)).raw("j");
  p.raw(std::string_view("\0\1\0\0", 4)).op('t');
  const auto items = values.get<pt::Tuple>(pt::read_pickle(p.stop(), "", values))->items;
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(items[0], items[2]);
}

TEST(PytorchPickle, AListMayHoldItself) {
  ValueTable values;
  PickleWriter p;
  p.raw(
      "]q\x01h\x01"
      "a");
  const Ref root = pt::read_pickle(p.stop(), "", values);
  EXPECT_EQ(values.get<pt::List>(root)->items[0], root);
}

TEST(PytorchPickle, NamesThatNoModelNeedsAreRefused) {
  PickleWriter p;
  p.global("os", "system").op('(').text("echo owned > /tmp/owned").op('t').op('R');
  EXPECT_EQ(error_of(p), "byte 2: the pickle names 'os.system', which no network needs; it was not executed");
  PickleWriter q;
  q.global("torch", "BFloat16Storage");
  EXPECT_EQ(error_of(q), "byte 2: 'torch.BFloat16Storage' is a storage of a type that qplan does not read");
}

TEST(PytorchPickle, OnlyFunctionsAreCalledAndOnlyClassesMakeObjects) {
  PickleWriter p;
  p.global("__torch__", "Net").raw(")R");
  EXPECT_EQ(error_of(p), "byte 18: '__torch__.Net' is not a function");
  PickleWriter q;
  q.global("collections", "OrderedDict").raw(")\x81");
  EXPECT_EQ(error_of(q), "byte 28: 'collections.OrderedDict' is no class of the archive");
}

TEST(PytorchPickle, StackAndMarksAreChecked) {
  for (const char* ops :
       {"t",     "a",     "e",      "s", "u", "q\1",  "h\1",   "Q",        "R",   "b",       "\x81", "\x85",
        "]K\1t", "(K\1a", "K\1K\2", "",  "(", "(K\1", "]K\1u", "K\1(K\2e", "(]b", "K\1K\2R", "N)b",  "))Q"}) {
    EXPECT_NE(error_of(PickleWriter().raw(ops)), "read") << ops;
  }
}

TEST(PytorchPickle, UnknownOpcodesAndProtocolsAreRefused) {
  EXPECT_EQ(error_of(PickleWriter().raw("i")), "byte 2: opcode 105 is not one that PyTorch writes");
  EXPECT_EQ(error_of(to_bytes("\x80\x04N.")), "byte 0: pickle protocol 4, expected 2");
}

TEST(PytorchPickle, EveryTruncationIsRefused) {
  PickleWriter p;
  p.op('(').tensor("FloatStorage", "0", 4, 0, {2, 2}, {2, 1}).text("text").op('t');
  const Bytes whole = p.stop();
  EXPECT_EQ(error_of(whole), "read");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(error_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), "read")
        << size;
  }
}

TEST(PytorchPickle, ValuesAreBounded) {
  PickleWriter p;
  p.raw(std::string(3'000'000, ']'));
  EXPECT_NE(error_of(p).find("values: it is no network"), std::string::npos);
}

// A remembered value costs no more when it is used often: no copies of long tuples.
TEST(PytorchPickle, LongArgumentListsAreRefused) {
  PickleWriter p;
  p.global("collections", "OrderedDict").op('(').raw(std::string(100, 'N')).op('t').op('R');
  EXPECT_NE(error_of(p).find("there are 100 arguments"), std::string::npos);
}

// -- tensors

class PytorchTensor : public ::testing::Test {
 protected:
  // Elements of a tensor over the storage 0, 1, ..., 11 (float32), or the error.
  std::string read(int64_t offset, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                   int64_t count = 12) {
    std::vector<float> numbers(12);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    ZipBuilder zip;
    zip.add("net/0", bytes_of(numbers));
    const Bytes bytes = zip.build();
    importer::ZipArchive archive(bytes);
    ValueTable values;
    pt::TensorReader reader(archive, values);
    try {
      PickleWriter p;
      p.tensor("FloatStorage", "0", count, offset, sizes, strides);
      const Ref root = pt::read_pickle(p.stop(), "net/", values);
      std::string text;
      for (const double number : reader.read_numbers(*values.get<pt::Tensor>(root), "it")) {
        text += (text.empty() ? "" : " ") + std::to_string(static_cast<int>(number));
      }
      return text;
    } catch (const PackError& error) {
      return error.what();
    }
  }
};

TEST_F(PytorchTensor, AnyStridesBecomeRowMajor) {
  EXPECT_EQ(read(0, {2, 3}, {3, 1}), "0 1 2 3 4 5");
  EXPECT_EQ(read(0, {3, 2}, {1, 3}), "0 3 1 4 2 5");
  EXPECT_EQ(read(1, {2, 2, 2}, {6, 1, 3}), "1 4 2 5 7 10 8 11");
  EXPECT_EQ(read(7, {2, 3}, {0, 1}), "7 8 9 7 8 9");
  EXPECT_EQ(read(5, {}, {}), "5");
  EXPECT_EQ(read(0, {1, 2}, {INT64_MAX, 1}), "0 1") << "the stride of a single index means nothing";
}

TEST_F(PytorchTensor, WhatLeavesTheStorageIsRefused) {
  const std::string leaves = "leaves its storage of 12 elements";
  EXPECT_NE(read(1, {12}, {1}).find(leaves), std::string::npos);
  EXPECT_NE(read(-1, {2}, {1}).find(leaves), std::string::npos);
  EXPECT_NE(read(11, {2}, {-1}).find(leaves), std::string::npos);
  EXPECT_NE(read(0, {3, 3}, {INT64_MAX, 1}).find(leaves), std::string::npos);
  EXPECT_NE(read(0, {2, 2}, {INT64_MAX / 2 + 1, INT64_MAX / 2 + 1}).find(leaves), std::string::npos);
  EXPECT_NE(read(0, {13}, {1}, 13).find("has 48 bytes, expected 13 elements of 4"), std::string::npos);
  EXPECT_NE(read(0, {-1}, {1}).find("extent -1"), std::string::npos);
  EXPECT_NE(read(0, {0}, {1}).find("extent 0"), std::string::npos);
  EXPECT_NE(read(0, {2}, {1, 1}).find("1 sizes and 2 strides"), std::string::npos);
}

TEST_F(PytorchTensor, RepeatedElementsAreBounded) {
  EXPECT_NE(read(0, {1 << 15, 1 << 15}, {0, 0}).find("the tensors take more than 16 times the file's size"),
            std::string::npos);
}

}  // namespace
}  // namespace qplan::pytorch_test::pytorch_pickle_test
