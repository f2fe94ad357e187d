// The reader of operator lists: what it refuses of an operator.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "qplan/npu_oplist.h"

namespace qplan::testing::oplist_test {
namespace {

// A dense layer: x int8 [1, 4], y int8 [1, 2], weights [2, 4]; tensors 3, 4 and 5 are its multipliers, shifts
// and scales, one of each.
struct DenseList {
  qplan_oplist_op op = {};

  DenseList() {
    op.op = QPLAN_NPU_OP_DENSE;
    op.contract = QPLAN_NPU_TFL2;
    op.name = op.inputs[1] = op.bias = QPLAN_OPLIST_NONE;
    op.inputs[0] = 0;
    op.output = 1;
    op.weights = 2;
    op.multipliers = 3;
    op.shifts = 4;
    op.scales = QPLAN_OPLIST_NONE;
    op.num_scales = 1;
  }
  std::vector<uint8_t> blob() const {
    const qplan_oplist_slot slots[] = {{QPLAN_NPU_USE_INPUT, 64, 4, 0, 0},
                                       {QPLAN_NPU_USE_OUTPUT, 64, 2, 0, 0},
                                       {QPLAN_NPU_USE_WEIGHTS, 64, 20, 0, 0}};
    const qplan_oplist_tensor tensors[] = {
        {0, kDLInt, 8, 1, 2, 0, 0, {1, 4}}, {1, kDLInt, 8, 1, 2, 0, 0, {1, 2}},
        {2, kDLInt, 8, 1, 2, 0, 0, {2, 4}}, {2, kDLInt, 32, 1, 1, 0, 8, {1}},
        {2, kDLInt, 32, 1, 1, 0, 12, {1}},  {2, kDLFloat, 32, 1, 1, 0, 16, {1}}};
    qplan_oplist_header header = {};
    header.magic = QPLAN_NPU_BLOB_OPLIST;
    header.version = QPLAN_OPLIST_VERSION;
    header.num_slots = 3;
    header.num_tensors = 6;
    header.num_ops = 1;
    header.slot_bytes = sizeof(qplan_oplist_slot);
    header.tensor_bytes = sizeof(qplan_oplist_tensor);
    header.op_bytes = sizeof(qplan_oplist_op);
    const size_t records = sizeof(header) + sizeof(slots) + sizeof(tensors) + sizeof(op);
    const size_t data = (records + 63) / 64 * 64;
    header.names_bytes = static_cast<uint32_t>(data - records);
    header.total_bytes = data + 20;
    std::vector<uint8_t> blob(header.total_bytes);
    qplan_oplist_slot carried = slots[2];
    carried.data_offset = data;
    uint8_t* at = blob.data() + sizeof(header);
    std::memcpy(at, slots, 2 * sizeof(carried));
    std::memcpy(at + 2 * sizeof(carried), &carried, sizeof(carried));
    std::memcpy(at + sizeof(slots), tensors, sizeof(tensors));
    std::memcpy(at + sizeof(slots) + sizeof(tensors), &op, sizeof(op));
    std::memcpy(blob.data(), &header, sizeof(header));
    header.checksum = qplan_oplist_checksum(blob.data(), blob.size());
    std::memcpy(blob.data(), &header, sizeof(header));
    return blob;
  }
  // The code of the refusal; 0: opened.
  uint32_t refusal() const {
    const std::vector<uint8_t> bytes = blob();
    qplan_oplist list;
    qplan_npu_reason why = {};
    const qplan_npu_status status = qplan_oplist_open(bytes.data(), bytes.size(), &list, &why);
    EXPECT_EQ(status, why.code == 0 ? QPLAN_NPU_OK : QPLAN_NPU_E_BLOB) << why.text;
    return why.code;
  }
};

TEST(OpList, AnOperatorThatRequantisesHasItsMultipliersAndShifts) {
  EXPECT_EQ(DenseList().refusal(), 0u);
  DenseList list;
  list.op.multipliers = QPLAN_OPLIST_NONE;
  EXPECT_EQ(list.refusal(), uint32_t{QPLAN_OPLIST_BAD_OP});
  list = {};
  list.op.shifts = QPLAN_OPLIST_NONE;
  EXPECT_EQ(list.refusal(), uint32_t{QPLAN_OPLIST_BAD_OP});
}

TEST(OpList, AnOperatorOfFloatsHasItsScales) {
  DenseList list;
  list.op.contract = QPLAN_NPU_F32E;
  EXPECT_EQ(list.refusal(), uint32_t{QPLAN_OPLIST_BAD_OP}) << "multipliers and shifts do not do";
  list.op.scales = 5;
  list.op.multipliers = list.op.shifts = QPLAN_OPLIST_NONE;
  EXPECT_EQ(list.refusal(), 0u);
}

TEST(OpList, AnOperatorThatDoesNotRequantiseNeedsNone) {
  DenseList list;
  list.op.multipliers = list.op.shifts = QPLAN_OPLIST_NONE;
  list.op.contract = QPLAN_NPU_ACC32;
  EXPECT_EQ(list.refusal(), 0u);
  list.op.contract = QPLAN_NPU_TFL2;
  list.op.num_scales = 0;  // whose number qplan_npu_op_check looks at
  EXPECT_EQ(list.refusal(), 0u);
}

}  // namespace
}  // namespace qplan::testing::oplist_test
