// Operator lists: qplan_oplist_open, _bind and qplan_npu_op_check promise that whoever passes a list through
// them, with memory for all slots, can run it without leaving that memory. The operators run between guard
// pages, by the loops of the driver skeleton and by those of the conformance suite, which agree in every
// byte.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

#include "qplan/npu_oplist.h"
#include "tests/conformance/workload.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/support/random.h"

extern "C" {
#include "samples/npu_driver_skeleton/skeleton.h"
}

namespace qplan::testing {
namespace {

constexpr uint64_t kMostSlotBytes = 1 << 18;
constexpr int64_t kMostWork = 1 << 15;  // products of one list

int64_t work_of(const qplan_npu_op& op) {
  int64_t work = qplan_npu_op_elements(op.output);
  if (op.op == QPLAN_NPU_OP_CONV2D || op.op == QPLAN_NPU_OP_CONV2D_TRANSPOSE)
    work *= op.weights->shape[1] * op.weights->shape[2] * op.weights->shape[3];
  if (op.op == QPLAN_NPU_OP_DENSE) work *= op.weights->shape[1];
  if (op.op == QPLAN_NPU_OP_MAX_POOL2D || op.op == QPLAN_NPU_OP_AVG_POOL2D)
    work *= int64_t{op.window[0]} * op.window[1];
  if (op.op == QPLAN_NPU_OP_MEAN) work *= op.inputs[0]->shape[1] * op.inputs[0]->shape[2];
  return work;
}

bool overlap(const DLTensor* a, const DLTensor* b) {
  if (a == nullptr || b == nullptr) return false;
  const auto begin = [](const DLTensor* t) { return reinterpret_cast<uintptr_t>(t->data); };
  const auto end = [&](const DLTensor* t) {
    return begin(t) + static_cast<uintptr_t>(qplan_npu_op_elements(t)) * (t->dtype.bits / 8u);
  };
  return begin(a) < end(b) && begin(b) < end(a);
}

// Which the packer never writes, and the order of the loops decides.
bool overwrites_operands(const qplan_npu_op& op, uint64_t element_bytes) {
  for (const DLTensor* operand : {op.inputs[0], op.inputs[1], op.weights, op.bias}) {
    if (overlap(op.output, operand)) return true;
  }
  for (uint32_t i = 2; i < qplan_npu_op_num_inputs(&op); ++i) {
    if (overlap(op.output, op.more_inputs[i - 2])) return true;
  }
  const auto at = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  const uintptr_t begin = at(op.output->data);
  const uintptr_t end = begin + static_cast<uintptr_t>(qplan_npu_op_elements(op.output)) * element_bytes;
  for (const void* values : {static_cast<const void*>(op.multipliers), static_cast<const void*>(op.shifts),
                             static_cast<const void*>(op.scales)}) {
    if (values != nullptr && at(values) < end && begin < at(values) + op.num_scales * 4) return true;
  }
  return false;
}

void run_list(const uint8_t* data, size_t size) {
  // A blob's place in a plan is aligned, and nothing writes the data that it contains.
  const GuardedMemory blob(size, 64, true, 0);
  if (size > 0) std::memcpy(blob.data(), data, size);
  qplan_oplist list;
  qplan_npu_reason why{};
  const qplan_npu_status opened = qplan_oplist_open(blob.data(), size, &list, &why);
  if (opened != QPLAN_NPU_OK) {
    FUZZ_CHECK(opened == QPLAN_NPU_E_BLOB || opened == QPLAN_NPU_E_VERSION, "status %d", opened);
    FUZZ_CHECK(why.code != 0 && why.text[0] != '\0', "refused without a reason");
    return;
  }
  std::vector<GuardedMemory> memories;
  std::vector<void*> slots;
  uint64_t total = 0;
  for (uint32_t i = 0; i < list.header.num_slots; ++i) {
    const qplan_oplist_slot slot = qplan_oplist_slot_at(&list, i);
    if (slot.usage == QPLAN_NPU_USE_WEIGHTS) {
      slots.push_back(blob.data() + slot.data_offset);
      continue;
    }
    if (slot.bytes > kMostSlotBytes - total || slot.alignment > GuardPages::kPageBytes) return;
    total += slot.bytes;
    memories.emplace_back(slot.bytes, std::max(slot.alignment, 1u), i % 2 == 0,
                          static_cast<uint8_t>(i * 37 + 5));
    slots.push_back(memories.back().data());
  }
  const std::vector<uint8_t> carried(blob.data(), blob.data() + size);
  int64_t work = 0;
  for (uint32_t i = 0; i < list.header.num_ops; ++i) {
    qplan_oplist_call call;
    qplan_oplist_bind(&list, i, slots.data(), &call);
    const char* const error = qplan_npu_op_check(&call.op);
    qplan_npu_reason reason{};
    uint32_t room = 1;
    const qplan_npu_status supported = skeleton_supported(0, &call.op, &reason, &room);
    if (error != nullptr) {
      FUZZ_CHECK(supported != QPLAN_NPU_OK, "not well formed (%s), but supported", error);
      return;
    }
    if (supported != QPLAN_NPU_OK) return;
    work += std::min(work_of(call.op), kMostWork);
    if (work >= kMostWork) return;
    const uint64_t element_bytes = call.op.output->dtype.bits / 8u;
    const size_t bytes = static_cast<size_t>(qplan_npu_op_elements(call.op.output)) * element_bytes;
    const qplan_npu_status stop = 0;
    compute(&call.op, &stop);
    if (overwrites_operands(call.op, element_bytes)) continue;
    auto* const output = static_cast<uint8_t*>(call.op.output->data);
    const std::vector<uint8_t> first(output, output + bytes);
    std::fill_n(output, bytes, uint8_t{0xee});
    conformance::compute_reference(call.op);
    for (size_t b = 0; b < bytes; ++b) {
      FUZZ_CHECK(first[b] == output[b], "operator %u, byte %zu: %d and %d", i, b, first[b], output[b]);
    }
  }
  FUZZ_CHECK(std::equal(carried.begin(), carried.end(), blob.data()),
             "an operator writes into what the blob carries");
}

// A list in parts, and a list of parts.
struct Parts {
  qplan_oplist_header header{};
  std::vector<qplan_oplist_slot> slots;
  std::vector<qplan_oplist_tensor> tensors;
  std::vector<qplan_oplist_op> ops;
  std::vector<uint8_t> names;
  std::vector<std::vector<uint8_t>> data;  // of each slot

  bool read(const uint8_t* bytes, size_t size) {
    if (size < sizeof(header)) return false;
    std::memcpy(&header, bytes, sizeof(header));
    if (header.slot_bytes != sizeof(qplan_oplist_slot) ||
        header.tensor_bytes != sizeof(qplan_oplist_tensor) || header.op_bytes != sizeof(qplan_oplist_op)) {
      return false;
    }
    size_t at = sizeof(header);
    if (!take(bytes, size, header.num_slots, &at, &slots) ||
        !take(bytes, size, header.num_tensors, &at, &tensors) ||
        !take(bytes, size, header.num_ops, &at, &ops) ||
        !take(bytes, size, header.names_bytes, &at, &names)) {
      return false;
    }
    for (const qplan_oplist_slot& slot : slots) {
      data.emplace_back();
      if (slot.usage != QPLAN_NPU_USE_WEIGHTS || slot.data_offset > size ||
          slot.bytes > size - slot.data_offset)
        continue;
      data.back().assign(bytes + slot.data_offset, bytes + slot.data_offset + slot.bytes);
    }
    return true;
  }

  std::vector<uint8_t> write() {
    const size_t records = sizeof(header) + slots.size() * sizeof(slots[0]) +
                           tensors.size() * sizeof(tensors[0]) + ops.size() * sizeof(ops[0]);
    while (!names.empty() && names.back() == 0) names.pop_back();
    names.push_back(0);
    names.resize((records + names.size() + 63) / 64 * 64 - records);
    size_t end = records + names.size();
    for (size_t i = 0; i < slots.size(); ++i) {
      if (data[i].empty()) continue;
      slots[i].data_offset = end;
      slots[i].bytes = data[i].size();
      end = (end + data[i].size() + 63) / 64 * 64;
    }
    header.num_slots = static_cast<uint32_t>(slots.size());
    header.num_tensors = static_cast<uint32_t>(tensors.size());
    header.num_ops = static_cast<uint32_t>(ops.size());
    header.names_bytes = static_cast<uint32_t>(names.size());
    std::vector<uint8_t> bytes(sizeof(header));
    append(&bytes, slots);
    append(&bytes, tensors);
    append(&bytes, ops);
    append(&bytes, names);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (data[i].empty()) continue;
      bytes.resize(slots[i].data_offset);
      append(&bytes, data[i]);
    }
    header.total_bytes = bytes.size();
    std::memcpy(bytes.data(), &header, sizeof(header));
    header.checksum = qplan_oplist_checksum(bytes.data(), bytes.size());
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes;
  }

 private:
  template <typename T>
  static bool take(const uint8_t* bytes, size_t size, uint32_t count, size_t* at, std::vector<T>* to) {
    if (count > 4096 * 16 || count * sizeof(T) > size - *at) return false;
    to->resize(count);
    if (count > 0) std::memcpy(static_cast<void*>(to->data()), bytes + *at, count * sizeof(T));
    *at += count * sizeof(T);
    return true;
  }
  template <typename T>
  static void append(std::vector<uint8_t>* bytes, const std::vector<T>& records) {
    const size_t at = bytes->size(), size = records.size() * sizeof(T);
    bytes->resize(at + size);
    if (size > 0) std::memcpy(bytes->data() + at, records.data(), size);
  }
};

class ListMutator {
 public:
  explicit ListMutator(unsigned int seed) : random_(seed) {}

  size_t run(uint8_t* data, size_t size, size_t max_size) {
    Parts parts;
    if (random_.chance(0.05) || !parts.read(data, size)) return LLVMFuzzerMutate(data, size, max_size);
    for (int64_t count = random_.integer(1, 3); count > 0; --count) change(&parts);
    if (random_.chance(0.5)) mend(&parts);
    const std::vector<uint8_t> bytes = parts.write();
    if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    std::copy(bytes.begin(), bytes.end(), data);
    return bytes.size();
  }

 private:
  size_t below(size_t end) {
    return end == 0 ? 0 : static_cast<size_t>(random_.integer(0, static_cast<int64_t>(end) - 1));
  }

  // One 32-bit word of a record.
  template <typename T>
  void change_word(std::vector<T>* records) {
    if (records->empty()) return;
    T& record = (*records)[below(records->size())];
    const size_t at = below(sizeof(T) / 4) * 4;
    uint32_t word = 0;
    std::memcpy(&word, reinterpret_cast<const uint8_t*>(&record) + at, sizeof(word));
    switch (below(5)) {
      case 0:
        word = static_cast<uint32_t>(below(24));  // among them the kinds
        break;
      case 1:
        word += static_cast<uint32_t>(random_.integer(-2, 2));
        break;
      case 2:
        word = 1u << below(32);
        break;
      case 3:
        word = random_.chance(0.5) ? 0xffffffffu : 0x7fffffffu;
        break;
      default:
        word = random_.chance(0.5) ? word * 2 : word / 2;
    }
    std::memcpy(reinterpret_cast<uint8_t*>(&record) + at, &word, sizeof(word));
  }

  void change(Parts* parts) {
    switch (below(9)) {
      case 0:
        return change_word(&parts->slots);
      case 1:
      case 2:
        return change_word(&parts->tensors);
      case 3:
      case 4:
        return change_word(&parts->ops);
      case 5: {  // another tensor for an operand
        if (parts->ops.empty() || parts->tensors.empty()) return;
        qplan_oplist_op& op = parts->ops[below(parts->ops.size())];
        uint32_t* const operands[] = {&op.inputs[0], &op.inputs[1], &op.weights,
                                      &op.bias,      &op.output,    &op.multipliers,
                                      &op.shifts,    &op.scales,    &op.more_inputs[0]};
        *operands[below(std::size(operands))] =
            random_.chance(0.15) ? QPLAN_OPLIST_NONE : static_cast<uint32_t>(below(parts->tensors.size()));
        return;
      }
      case 6:
        if (parts->ops.empty() || parts->ops.size() > 32) return;
        parts->ops.insert(parts->ops.begin() + static_cast<std::ptrdiff_t>(below(parts->ops.size() + 1)),
                          parts->ops[below(parts->ops.size())]);
        return;
      case 7: {
        if (parts->tensors.empty() || parts->tensors.size() > 64) return;
        qplan_oplist_tensor tensor = parts->tensors[below(parts->tensors.size())];
        if (tensor.rank >= 1 && tensor.rank <= 6) tensor.shape[below(tensor.rank)] = random_.integer(1, 20);
        if (random_.chance(0.5)) {
          parts->tensors[below(parts->tensors.size())] = tensor;
        } else {
          parts->tensors.push_back(tensor);
        }
        return;
      }
      default: {
        if (parts->data.empty()) return;
        std::vector<uint8_t>& bytes = parts->data[below(parts->data.size())];
        if (!bytes.empty()) bytes[below(bytes.size())] = static_cast<uint8_t>(below(256));
      }
    }
  }

  // Slots as large as their tensors, and the operator's extents those of its tensors.
  void mend(Parts* parts) {
    for (const qplan_oplist_tensor& tensor : parts->tensors) {
      if (tensor.slot >= parts->slots.size()) continue;
      const uint64_t end = tensor.offset + qplan_oplist_tensor_bytes(&tensor);
      if (end > (1 << 14)) continue;
      std::vector<uint8_t>& bytes = parts->data[tensor.slot];
      if (!bytes.empty() && bytes.size() < end) bytes.resize(end, 1);
      if (bytes.empty()) parts->slots[tensor.slot].bytes = std::max(parts->slots[tensor.slot].bytes, end);
    }
    for (qplan_oplist_op& op : parts->ops) {
      const auto tensor = [&](uint32_t index) {
        return index < parts->tensors.size() ? &parts->tensors[index] : nullptr;
      };
      const qplan_oplist_tensor* const x = tensor(op.inputs[0]);
      qplan_oplist_tensor *const y = tensor(op.output), *const w = tensor(op.weights);
      if (x == nullptr || y == nullptr || random_.chance(0.3)) continue;
      if ((op.op == QPLAN_NPU_OP_CONV2D || op.op == QPLAN_NPU_OP_CONV2D_TRANSPOSE) && w != nullptr &&
          op.groups > 0) {
        w->shape[3] = x->shape[3] / op.groups;
        w->shape[0] = y->shape[3];
      } else if (op.op == QPLAN_NPU_OP_CLIP || op.op == QPLAN_NPU_OP_LOOKUP ||
                 op.op == QPLAN_NPU_OP_SOFTMAX ||
                 (op.op != QPLAN_NPU_OP_CONCAT && op.op != QPLAN_NPU_OP_CONCAT_N &&
                  !qplan_npu_op_broadcasts(op.op) && qplan_npu_op_has_two_inputs(op.op))) {
        std::copy(x->shape, x->shape + 6, y->shape);
        y->rank = x->rank;
      } else if (op.op == QPLAN_NPU_OP_MAX_POOL2D || op.op == QPLAN_NPU_OP_AVG_POOL2D ||
                 qplan_npu_op_is_resize(op.op)) {
        y->shape[3] = x->shape[3];
      }
    }
  }

  Random random_;
};

}  // namespace
}  // namespace qplan::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  qplan::testing::run_list(data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::testing::ListMutator(seed).run(data, size, max_size);
}
