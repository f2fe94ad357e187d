#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/external/external.h"

namespace qplan::target::external {
namespace {

size_t aligned(size_t bytes) {
  return (bytes + QPLAN_OPLIST_ALIGNMENT - 1) / QPLAN_OPLIST_ALIGNMENT * QPLAN_OPLIST_ALIGNMENT;
}

// Puts the records into the blob at *at, which then is the offset after them.
template <typename Records>
void put(const Records& records, size_t* at, std::vector<uint8_t>* blob) {
  const size_t bytes = records.size() * sizeof(records[0]);
  if (bytes != 0) std::memcpy(blob->data() + *at, records.data(), bytes);
  *at += bytes;
}

}  // namespace

qplan_oplist_op empty_op(uint32_t op, uint32_t contract) {
  qplan_oplist_op result = {};
  result.op = op;
  result.contract = contract;
  for (uint32_t* tensor : {&result.name, &result.inputs[0], &result.inputs[1], &result.weights, &result.bias,
                           &result.output, &result.multipliers, &result.shifts, &result.scales}) {
    *tensor = QPLAN_OPLIST_NONE;
  }
  std::ranges::fill(result.more_inputs, QPLAN_OPLIST_NONE);
  result.groups = 1;
  std::ranges::fill(result.strides, 1u);
  std::ranges::fill(result.dilations, 1u);
  return result;
}

OplistWriter::OplistWriter() { add_slot(QPLAN_NPU_USE_WEIGHTS, 0); }

uint32_t OplistWriter::add_slot(uint32_t usage, uint64_t bytes) {
  qplan_oplist_slot slot = {};
  slot.usage = usage;
  slot.alignment = QPLAN_OPLIST_ALIGNMENT;
  slot.bytes = bytes;
  slots_.push_back(slot);
  return num_slots() - 1;
}

void OplistWriter::grow_slot(uint32_t slot, uint64_t bytes) {
  slots_[slot].bytes = std::max(slots_[slot].bytes, bytes);
}

uint32_t OplistWriter::add_tensor(uint32_t slot, uint64_t offset, DLDataType dtype,
                                  std::span<const int64_t> shape) {
  qplan_oplist_tensor tensor = {};
  tensor.slot = slot;
  tensor.dtype_code = dtype.code;
  tensor.dtype_bits = dtype.bits;
  tensor.dtype_lanes = dtype.lanes;
  tensor.rank = static_cast<uint32_t>(shape.size());
  tensor.offset = offset;
  std::ranges::copy(shape.first(std::min<size_t>(shape.size(), std::size(tensor.shape))), tensor.shape);
  tensors_.push_back(tensor);
  return static_cast<uint32_t>(tensors_.size() - 1);
}

uint32_t OplistWriter::add_constant(DLDataType dtype, std::span<const int64_t> shape,
                                    std::span<const uint8_t> bytes) {
  constants_.resize(aligned(constants_.size()), 0);
  const size_t offset = constants_.size();
  constants_.insert(constants_.end(), bytes.begin(), bytes.end());
  slots_[0].bytes = constants_.size();
  return add_tensor(0, offset, dtype, shape);
}

uint32_t OplistWriter::add_op(qplan_oplist_op op, std::string_view name) {
  if (!name.empty()) {
    op.name = static_cast<uint32_t>(names_.size());
    names_.append(name.substr(0, name.find('\0')));
    names_.push_back('\0');
  }
  ops_.push_back(op);
  return static_cast<uint32_t>(ops_.size() - 1);
}

std::vector<uint8_t> OplistWriter::finish(uint64_t capabilities_hash) const {
  qplan_oplist_header header = {};
  header.magic = QPLAN_NPU_BLOB_OPLIST;
  header.version = QPLAN_OPLIST_VERSION;
  header.capabilities_hash = capabilities_hash;
  header.num_slots = num_slots();
  header.num_tensors = static_cast<uint32_t>(tensors_.size());
  header.num_ops = static_cast<uint32_t>(ops_.size());
  header.slot_bytes = sizeof(qplan_oplist_slot);
  header.tensor_bytes = sizeof(qplan_oplist_tensor);
  header.op_bytes = sizeof(qplan_oplist_op);
  const size_t names_begin = static_cast<size_t>(qplan_oplist_ops_end(&header));
  const size_t data_begin = aligned(names_begin + names_.size());
  header.names_bytes = static_cast<uint32_t>(data_begin - names_begin);
  header.total_bytes = aligned(data_begin + constants_.size());

  std::vector<qplan_oplist_slot> slots = slots_;
  slots[0].data_offset = data_begin;
  std::vector<uint8_t> blob(static_cast<size_t>(header.total_bytes), 0);
  std::memcpy(blob.data(), &header, sizeof(header));
  size_t at = sizeof(header);
  put(slots, &at, &blob);
  put(tensors_, &at, &blob);
  put(ops_, &at, &blob);
  put(names_, &at, &blob);
  at = data_begin;
  put(constants_, &at, &blob);
  seal_oplist(&blob);
  qplan_oplist list;
  qplan_npu_reason why = {};
  if (qplan_oplist_open(blob.data(), blob.size(), &list, &why) != QPLAN_NPU_OK)
    throw PackError(QPLAN_INTERNAL, cat("operator list: ", why.text, " (", why.place, ")"));
  return blob;
}

void seal_oplist(std::vector<uint8_t>* blob) {
  const uint64_t checksum = qplan_oplist_checksum(blob->data(), blob->size());
  std::memcpy(blob->data() + offsetof(qplan_oplist_header, checksum), &checksum, sizeof(checksum));
}

}  // namespace qplan::target::external
