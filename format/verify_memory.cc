// Verification of names, banks and tensors.
#include "format/container.h"
#include "format/verify.h"
#include "src/base/checked.h"
#include "src/base/error.h"

namespace qplan::format {
namespace {

constexpr float kMaxFloat = 3.40282346638528859811704183484516925e+38F;

struct IntegerRange {
  int32_t min;
  int32_t max;
};

// Zero points of narrow integers are values of their dtype.
IntegerRange zero_point_range(const TensorRecord& tensor) {
  const bool is_signed = tensor.type_code == kDLInt;
  if (tensor.type_bits == 8 && is_signed) return {-128, 127};
  if (tensor.type_bits == 8) return {0, 255};
  if (tensor.type_bits == 16) return {-32768, 32767};
  return {INT32_MIN, INT32_MAX};
}

}  // namespace

Error& PlanVerifier::corrupt() { return error_.set(QPLAN_PLAN_CORRUPT) << "plan: "; }

Error& PlanVerifier::corrupt_bank(uint32_t index) { return corrupt() << "bank " << index << ": "; }

Error& PlanVerifier::corrupt_tensor(uint32_t index) {
  error_.set(QPLAN_PLAN_CORRUPT, -1, static_cast<int32_t>(index)) << "plan: tensor " << index;
  if (names_ != nullptr && index < count_of(names_->tensors())) {
    error_ << Named{names_->tensors()->Get(index)->c_str()};
  }
  return error_ << ": ";
}

bool PlanVerifier::spend(uint32_t entries) {
  if (entries > budget_) {
    corrupt() << "its vectors are shared so often that they have more entries than the root has bytes ("
              << header_.root_size << ")";
    return false;
  }
  budget_ -= entries;
  return true;
}

bool PlanVerifier::names() {
  if (names_ == nullptr) return true;
  const uint32_t tensors = count_of(names_->tensors()), steps = count_of(names_->steps());
  if (names_->tensors() != nullptr && tensors != num_tensors_) {
    corrupt() << tensors << " tensor names for " << num_tensors_ << " tensors";
    return false;
  }
  if (names_->steps() != nullptr && steps != num_steps_) {
    corrupt() << steps << " step names for " << num_steps_ << " steps";
    return false;
  }
  return true;
}

bool PlanVerifier::banks() {
  const uint32_t count = num_banks_;
  if (count == 0 || count > kMaxBanks) {
    corrupt() << count << " memory banks, expected 1 to " << kMaxBanks;
    return false;
  }
  bool has_main = false;
  for (uint32_t i = 0; i < count; ++i) {
    const Bank& entry = *banks_->Get(i);
    if (!bank(i, entry)) return false;
    // A session is in the first of the memories that it is given, one per ARENA and DEVICE bank.
    if (entry.kind() == BankKind_DEVICE && !has_main) {
      corrupt_bank(i) << "memory of a device before the first arena, expected after it";
      return false;
    }
    if (entry.kind() == BankKind_ARENA && !has_main) {
      has_main = true;
      main_bank_ = i;
      // memory_layout.h places the activations at multiples of kFileAlignment.
      if (entry.alignment() > kFileAlignment) {
        corrupt_bank(i) << "alignment " << entry.alignment() << " of the first arena, expected at most 64";
        return false;
      }
    }
  }
  if (!has_main) corrupt() << "no arena among its memory banks";
  return has_main;
}

bool PlanVerifier::device_bank(uint32_t index, const Bank& bank) {
  if ((header_.required_features & kFeatureNpuRegions) == 0) {
    corrupt_bank(index) << "memory of a device, but the header lacks feature bit 0";
    return false;
  }
  if (bank.size() > kMaxArenaBytes) {
    corrupt_bank(index) << bank.size() << " bytes, expected at most " << kMaxArenaBytes;
    return false;
  }
  if (bank.target() >= count_of(plan_.targets()) || bank.target() >= kMaxNpuTargets) {
    corrupt_bank(index) << "memory of target " << bank.target() << " of " << count_of(plan_.targets());
    return false;
  }
  for (uint32_t i = 0; i < index; ++i) {
    const Bank& other = *banks_->Get(i);
    if (other.kind() != BankKind_DEVICE || other.target() != bank.target() ||
        other.memory_class() != bank.memory_class())
      continue;
    corrupt_bank(index) << "target " << bank.target() << " has bank " << i << " already";
    return false;
  }
  if (bank.memory_class() <= MemoryClass_DRAM) return true;
  corrupt_bank(index) << "memory of class " << static_cast<uint32_t>(bank.memory_class())
                      << ", expected one that is written, at most " << uint32_t{MemoryClass_DRAM};
  return false;
}

bool PlanVerifier::bank(uint32_t index, const Bank& bank) {
  const uint32_t alignment = bank.alignment();
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kMaxAlignment) {
    corrupt_bank(index) << "alignment " << alignment << ", expected a power of two up to " << kMaxAlignment;
    return false;
  }
  if (bank.kind() == BankKind_ARENA) {
    if (bank.size() <= kMaxArenaBytes) return true;
    corrupt_bank(index) << bank.size() << " bytes, expected at most " << kMaxArenaBytes;
    return false;
  }
  if (bank.kind() == BankKind_DEVICE) return device_bank(index, bank);
  if (bank.kind() != BankKind_CONSTANT) {
    corrupt_bank(index) << "unknown kind " << static_cast<uint32_t>(bank.kind());
    return false;
  }
  const uint64_t root_end = sizeof(Header) + uint64_t{header_.root_size};
  uint64_t end = 0;
  if (bank.file_offset() % kFileAlignment != 0 || alignment > kFileAlignment) {
    corrupt_bank(index) << "constants at byte " << bank.file_offset() << " with alignment " << alignment
                        << ", expected a multiple of 64 and at most 64";
    return false;
  }
  if (bank.file_offset() < root_end || !checked_add(bank.file_offset(), bank.size(), &end) ||
      end > header_.content_size) {
    corrupt_bank(index) << bank.size() << " bytes of constants at byte " << bank.file_offset()
                        << " are not between the root's end " << root_end << " and the content's end "
                        << header_.content_size;
    return false;
  }
  return true;
}

bool PlanVerifier::tensors() {
  read_bank(0);  // which there is
  for (uint32_t i = 0; i < num_tensors_; ++i) {
    if (!tensor(i, *tensors_->Get(i))) return false;
    if (!last_bank_.is_constant) num_leading_tensors_ = i + 1;
  }
  return true;
}

void PlanVerifier::read_bank(uint32_t index) {
  const TableFields bank(banks_->Get(index));
  last_bank_.index = index;
  last_bank_.alignment = bank.scalar<uint32_t>(Bank::VT_ALIGNMENT);
  last_bank_.size = bank.scalar<uint64_t>(Bank::VT_SIZE);
  last_bank_.is_constant = bank.scalar<uint8_t>(Bank::VT_KIND) == BankKind_CONSTANT;
}

bool PlanVerifier::tensor_shape(uint32_t index, const TensorRecord& tensor) {
  if (tensor.rank > kMaxRank) {
    corrupt_tensor(index) << "rank " << tensor.rank << ", expected at most " << kMaxRank;
    return false;
  }
  // FlatBuffers' verifier aligns the length of a vector, not its entries.
  if (reinterpret_cast<uintptr_t>(tensor.extents) % alignof(int64_t) != 0) {
    corrupt_tensor(index) << "its shape is not aligned to 8 bytes";
    return false;
  }
  uint32_t elements = 1;  // at most kMaxElements
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    const int64_t extent = tensor.extents[i];
    const uint64_t product = uint64_t{elements} * static_cast<uint32_t>(extent);
    if (extent < 1 || extent > kMaxElements || product > kMaxElements) {
      corrupt_tensor(index) << "extent " << extent << " of axis " << i
                            << ", expected at least 1 and fewer than 2^31 elements in all";
      return false;
    }
    elements = static_cast<uint32_t>(product);
  }
  const uint64_t size = uint64_t{elements} * (tensor.type_bits / 8u);
  if (tensor.size != size) {
    corrupt_tensor(index) << tensor.size << " bytes, its shape and dtype make " << size;
    return false;
  }
  return true;
}

__attribute__((always_inline)) inline bool PlanVerifier::tensor_place(uint32_t index,
                                                                      const TensorRecord& tensor,
                                                                      const TableFields& fields) {
  if (tensor.bank != last_bank_.index) {
    if (tensor.bank >= num_banks_) {
      corrupt_tensor(index) << "bank " << tensor.bank << " of " << num_banks_;
      return false;
    }
    read_bank(tensor.bank);
  }
  uint64_t end = 0;
  if (!checked_add(tensor.offset, tensor.size, &end) || end > last_bank_.size) {
    corrupt_tensor(index) << tensor.size << " bytes at offset " << tensor.offset << " reach beyond the "
                          << last_bank_.size << " bytes of bank " << tensor.bank;
    return false;
  }
  const uint32_t alignment = tensor.type_bits / 8u;
  if (!is_multiple(tensor.offset, alignment) || last_bank_.alignment < alignment) {
    corrupt_tensor(index) << "offset " << tensor.offset << " in a bank aligned to " << last_bank_.alignment
                          << ", expected a multiple of " << alignment;
    return false;
  }
  const auto first_use = fields.scalar<uint32_t>(Tensor::VT_FIRST_USE);
  const auto last_use = fields.scalar<uint32_t>(Tensor::VT_LAST_USE);
  if (first_use > last_use || last_use >= (num_steps_ == 0 ? 1 : num_steps_)) {
    corrupt_tensor(index) << "used from step " << first_use << " to " << last_use << " of " << num_steps_;
    return false;
  }
  return true;
}

bool PlanVerifier::tensor(uint32_t index, const Tensor& tensor) {
  const TableFields fields(&tensor);
  const TensorRecord record(fields);
  if (dtype_name(record.type_code, record.type_bits) == nullptr) {
    corrupt_tensor(index) << "unknown dtype (code " << uint32_t{record.type_code} << ", "
                          << uint32_t{record.type_bits} << " bits)";
    return false;
  }
  if (!tensor_shape(index, record) || !tensor_place(index, record, fields)) return false;
  const auto* quantization = static_cast<const Quantization*>(fields.table(Tensor::VT_QUANTIZATION));
  return quantization == nullptr || tensor_quantization(index, record, *quantization);
}

bool PlanVerifier::tensor_quantization(uint32_t index, const TensorRecord& tensor,
                                       const Quantization& quantization) {
  const uint32_t count = count_of(quantization.scales());
  if (count != count_of(quantization.zero_points())) {
    corrupt_tensor(index) << count << " scales and " << count_of(quantization.zero_points())
                          << " zero points, expected as many";
    return false;
  }
  if (count > 1) {
    const int32_t axis = quantization.axis();
    if (axis < 0 || static_cast<uint32_t>(axis) >= tensor.rank) {
      corrupt_tensor(index) << "quantisation axis " << axis << " of " << tensor.rank << " axes";
      return false;
    }
    const int64_t extent = tensor.extents[axis];
    if (extent != static_cast<int64_t>(count)) {
      corrupt_tensor(index) << count << " scales along axis " << axis << " of extent " << extent;
      return false;
    }
  }
  if (!spend(count)) return false;
  const IntegerRange range = zero_point_range(tensor);
  for (uint32_t i = 0; i < count; ++i) {
    const float scale = quantization.scales()->Get(i);
    if (!(scale > 0.0F && scale <= kMaxFloat)) {
      corrupt_tensor(index) << "scale " << i << " is not a finite number above zero";
      return false;
    }
    const int32_t zero_point = quantization.zero_points()->Get(i);
    if (zero_point < range.min || zero_point > range.max) {
      corrupt_tensor(index) << "zero point " << zero_point << ", expected " << range.min << " to "
                            << range.max;
      return false;
    }
  }
  return true;
}

}  // namespace qplan::format
