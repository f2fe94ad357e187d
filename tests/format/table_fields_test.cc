#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "format/plan_view.h"

namespace qplan::testing::table_fields_test {
namespace {

using format::Conv2dParams;
using format::TableFields;
using format::Tensor;
using format::TensorRecord;

template <typename Table>
const Table* finish(flatbuffers::FlatBufferBuilder* builder, flatbuffers::Offset<Table> table) {
  builder->Finish(table);
  return flatbuffers::GetRoot<Table>(builder->GetBufferPointer());
}

TEST(TableFields, AreThoseOfGeneratedCode) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<int64_t> shape = {1, 7, 5};
  const Tensor& tensor = *finish(
      &builder, format::CreateTensorDirect(builder, kDLUInt, 8, &shape, 3, uint64_t{1} << 40, 35, 2, 9));
  const TableFields fields(&tensor);
  const TensorRecord record(fields);
  EXPECT_EQ(record.type_code, kDLUInt);
  EXPECT_EQ(record.type_bits, 8);
  EXPECT_EQ(std::vector<int64_t>(record.extents, record.extents + record.rank), shape);
  EXPECT_EQ(record.bank, 3u);
  EXPECT_EQ(record.offset, uint64_t{1} << 40);
  EXPECT_EQ(record.size, 35u);
  EXPECT_EQ(fields.scalar<uint32_t>(Tensor::VT_LAST_USE), 9u);
  EXPECT_TRUE(fields.has(Tensor::VT_SHAPE));
  EXPECT_FALSE(fields.has(Tensor::VT_QUANTIZATION));
  EXPECT_EQ(fields.table(Tensor::VT_QUANTIZATION), nullptr);
}

TEST(TableFields, AreZeroWhereTheTableHasNone) {
  flatbuffers::FlatBufferBuilder builder;
  const Tensor& tensor = *finish(&builder, format::CreateTensor(builder));
  const TensorRecord record((TableFields(&tensor)));
  EXPECT_EQ(record.extents, nullptr);
  EXPECT_EQ(record.rank, 0u);
  EXPECT_EQ(record.bank, 0u);
  EXPECT_EQ(record.offset, 0u);
  EXPECT_EQ(record.size, 0u);
  EXPECT_EQ(record.type_bits, 0);
}

// Those in the middle have the value that the table leaves out, and so have those at the end.
TEST(TableFields, WordsAreInTheOrderOfTheSchema) {
  flatbuffers::FlatBufferBuilder builder;
  format::Conv2dParamsBuilder params(builder);
  params.add_kernel_h(3);
  params.add_stride_w(2);
  params.add_input_zero_point(-128);
  const Conv2dParams& built = *finish(&builder, params.Finish());
  int32_t words[17];
  for (int32_t& word : words) word = 77;
  TableFields(&built).words(Conv2dParams::VT_KERNEL_H, 16, words);
  EXPECT_EQ(std::vector<int32_t>(words, words + 17),
            std::vector<int32_t>({3, 0, 0, 2, 0, 0, 0, 0, 0, -128, 0, 0, 0, 0, 0, 0, 77}));
}

}  // namespace
}  // namespace qplan::testing::table_fields_test
