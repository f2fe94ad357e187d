// Verification of names, banks and tensors.
#include "format/dtype.h"
#include "format/text.h"
#include "format/verify.h"
#include "src/base/checked.h"

namespace qplan::format {
namespace {

constexpr float kMaxFloat = 3.40282346638528859811704183484516925e+38F;

struct IntegerRange {
  int32_t min;
  int32_t max;
};

// Zero points of narrow integers are values of their dtype.
IntegerRange zero_point_range(const Tensor& tensor) {
  const bool is_signed = tensor.type_code() == kDLInt;
  if (tensor.type_bits() == 8 && is_signed) return {-128, 127};
  if (tensor.type_bits() == 8) return {0, 255};
  if (tensor.type_bits() == 16) return {-32768, 32767};
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
  if (names_->tensors() != nullptr && tensors != count_of(plan_.tensors())) {
    corrupt() << tensors << " tensor names for " << count_of(plan_.tensors()) << " tensors";
    return false;
  }
  if (names_->steps() != nullptr && steps != count_of(plan_.steps())) {
    corrupt() << steps << " step names for " << count_of(plan_.steps()) << " steps";
    return false;
  }
  return true;
}

bool PlanVerifier::banks() {
  const uint32_t count = count_of(plan_.banks());
  if (count == 0 || count > kMaxBanks) {
    corrupt() << count << " memory banks, expected 1 to " << kMaxBanks;
    return false;
  }
  bool has_main = false;
  for (uint32_t i = 0; i < count; ++i) {
    const Bank& entry = *plan_.banks()->Get(i);
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
    const Bank& other = *plan_.banks()->Get(i);
    if (other.kind() != BankKind_DEVICE || other.target() != bank.target()) continue;
    corrupt_bank(index) << "target " << bank.target() << " has bank " << i << " already";
    return false;
  }
  return true;
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
  const uint32_t count = count_of(plan_.tensors());
  for (uint32_t i = 0; i < count; ++i) {
    if (!tensor(i, *plan_.tensors()->Get(i))) return false;
  }
  return true;
}

bool PlanVerifier::tensor(uint32_t index, const Tensor& tensor) {
  if (dtype_name(tensor.type_code(), tensor.type_bits()) == nullptr) {
    corrupt_tensor(index) << "unknown dtype (code " << uint32_t{tensor.type_code()} << ", "
                          << uint32_t{tensor.type_bits()} << " bits)";
    return false;
  }
  return tensor_shape(index, tensor) && tensor_place(index, tensor) && tensor_quantization(index, tensor);
}

bool PlanVerifier::tensor_shape(uint32_t index, const Tensor& tensor) {
  const uint32_t rank = rank_of(tensor);
  if (rank > kMaxRank) {
    corrupt_tensor(index) << "rank " << rank << ", expected at most " << kMaxRank;
    return false;
  }
  // FlatBuffers' verifier aligns the length of a vector, not its entries.
  if (rank > 0 && reinterpret_cast<uintptr_t>(tensor.shape()->Data()) % alignof(int64_t) != 0) {
    corrupt_tensor(index) << "its shape is not aligned to 8 bytes";
    return false;
  }
  int64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    const int64_t extent = tensor.shape()->Get(i);
    if (extent < 1 || extent > kMaxElements || !checked_mul(elements, extent, &elements) ||
        elements > kMaxElements) {
      corrupt_tensor(index) << "extent " << extent << " of axis " << i
                            << ", expected at least 1 and fewer than 2^31 elements in all";
      return false;
    }
  }
  const uint64_t size = static_cast<uint64_t>(elements) * element_bytes(tensor);
  if (tensor.size() != size) {
    corrupt_tensor(index) << tensor.size() << " bytes, its shape and dtype make " << size;
    return false;
  }
  return true;
}

bool PlanVerifier::tensor_place(uint32_t index, const Tensor& tensor) {
  if (tensor.bank() >= count_of(plan_.banks())) {
    corrupt_tensor(index) << "bank " << tensor.bank() << " of " << count_of(plan_.banks());
    return false;
  }
  const Bank& bank = *plan_.banks()->Get(tensor.bank());
  uint64_t end = 0;
  if (!checked_add(tensor.offset(), tensor.size(), &end) || end > bank.size()) {
    corrupt_tensor(index) << tensor.size() << " bytes at offset " << tensor.offset() << " reach beyond the "
                          << bank.size() << " bytes of bank " << tensor.bank();
    return false;
  }
  const uint32_t alignment = element_bytes(tensor);
  if (!is_multiple(tensor.offset(), alignment) || bank.alignment() < alignment) {
    corrupt_tensor(index) << "offset " << tensor.offset() << " in a bank aligned to " << bank.alignment()
                          << ", expected a multiple of " << alignment;
    return false;
  }
  const uint32_t num_steps = count_of(plan_.steps());
  if (tensor.first_use() > tensor.last_use() || tensor.last_use() >= (num_steps == 0 ? 1 : num_steps)) {
    corrupt_tensor(index) << "used from step " << tensor.first_use() << " to " << tensor.last_use() << " of "
                          << num_steps;
    return false;
  }
  return true;
}

bool PlanVerifier::tensor_quantization(uint32_t index, const Tensor& tensor) {
  const Quantization* quantization = tensor.quantization();
  if (quantization == nullptr) return true;
  const uint32_t count = count_of(quantization->scales());
  if (count != count_of(quantization->zero_points())) {
    corrupt_tensor(index) << count << " scales and " << count_of(quantization->zero_points())
                          << " zero points, expected as many";
    return false;
  }
  if (count > 1) {
    const int32_t axis = quantization->axis();
    if (axis < 0 || static_cast<uint32_t>(axis) >= rank_of(tensor)) {
      corrupt_tensor(index) << "quantisation axis " << axis << " of " << rank_of(tensor) << " axes";
      return false;
    }
    const int64_t extent = tensor.shape()->Get(static_cast<uint32_t>(axis));
    if (extent != static_cast<int64_t>(count)) {
      corrupt_tensor(index) << count << " scales along axis " << axis << " of extent " << extent;
      return false;
    }
  }
  if (!spend(count)) return false;
  const IntegerRange range = zero_point_range(tensor);
  for (uint32_t i = 0; i < count; ++i) {
    const float scale = quantization->scales()->Get(i);
    if (!(scale > 0.0F && scale <= kMaxFloat)) {
      corrupt_tensor(index) << "scale " << i << " is not a finite number above zero";
      return false;
    }
    const int32_t zero_point = quantization->zero_points()->Get(i);
    if (zero_point < range.min || zero_point > range.max) {
      corrupt_tensor(index) << "zero point " << zero_point << ", expected " << range.min << " to "
                            << range.max;
      return false;
    }
  }
  return true;
}

}  // namespace qplan::format
