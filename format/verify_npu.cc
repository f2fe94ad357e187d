// Verification of steps that run on a device: README.md, "Regions on devices".
#include "format/verify.h"
#include "src/base/checked.h"

namespace qplan::format {
namespace {

// Bytes [begin, end) of a DEVICE bank.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

bool overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

Range range_of(const NpuBind& bind) { return {bind.offset(), bind.offset() + bind.size()}; }

// The bytes of the tensor themselves are the buffer.
bool is_in_place(const NpuBind& bind) { return bind.strides() == nullptr; }

// Whether two verified binds have their elements at the same bytes of the bank.
bool are_arranged_alike(const NpuBind& a, const NpuBind& b) {
  if (a.offset() != b.offset() || a.size() != b.size() || a.origin() != b.origin() ||
      a.byte_stride() != b.byte_stride() || a.flip() != b.flip() || a.block() != b.block() ||
      a.block_stride() != b.block_stride() || a.memory_class() != b.memory_class()) {
    return false;
  }
  for (uint32_t axis = 0; axis < a.strides()->size(); ++axis) {
    if (a.strides()->Get(axis) != b.strides()->Get(axis)) return false;
  }
  return true;
}

}  // namespace

const NpuBind* kept_bind(const NpuStep& region, uint32_t tensor) {
  for (uint32_t b = 0; b < count_of(region.binds()); ++b) {
    const NpuBind& bind = *region.binds()->Get(b);
    if (bind.use() == NpuUse_OUTPUT && bind.kept() != 0 && region.outputs()->Get(bind.index()) == tensor)
      return &bind;
  }
  return nullptr;
}

bool axis_reach(int64_t extent, uint64_t stride, uint32_t block, uint64_t block_stride, uint64_t* reach) {
  const auto whole = static_cast<uint64_t>(extent - 1);
  if (block == 0 || whole < block) return checked_mul(whole, stride, reach);
  if (whole > UINT32_MAX) return false;  // a division of 64 bits is long on processors of 32
  const auto last = static_cast<uint32_t>(whole);
  // The last block may be short: the one before it may reach farther.
  uint64_t blocks = 0, short_block = 0, full_block = 0;
  if (!checked_mul(uint64_t{last / block}, block_stride, &blocks) ||
      !checked_mul(uint64_t{last % block}, stride, &short_block) ||
      !checked_mul(uint64_t{block - 1}, stride, &full_block) ||
      !checked_add(blocks, short_block, &short_block) ||
      !checked_add(blocks - block_stride, full_block, &full_block)) {
    return false;
  }
  *reach = short_block > full_block ? short_block : full_block;
  return true;
}

Error& PlanVerifier::corrupt_bind(uint32_t index, uint32_t bind) {
  return corrupt_step(index) << "bind " << bind << ": ";
}

bool PlanVerifier::npu_step(uint32_t index, const NpuStep& body) {
  has_npu_steps_ = true;
  return npu_place(index, body) && npu_blob(index, body) && npu_binds(index, body) &&
         npu_alternatives(index, body);
}

bool PlanVerifier::npu_place(uint32_t index, const NpuStep& body) {
  if ((header_.required_features & kFeatureNpuRegions) == 0) {
    corrupt_step(index) << "runs on a device, but the header lacks feature bit 0";
    return false;
  }
  const uint32_t num_targets = count_of(plan_.targets());
  if (body.target() >= num_targets || body.target() >= kMaxNpuTargets) {
    corrupt_step(index) << "runs on target " << body.target() << " of " << num_targets
                        << ", expected one of the first " << kMaxNpuTargets;
    return false;
  }
  if (count_of(plan_.targets()->Get(body.target())->name()) == 0) {
    corrupt_step(index) << "target " << body.target() << " has no name";
    return false;
  }
  const uint32_t num_inputs = count_of(body.inputs()), num_outputs = count_of(body.outputs());
  if (num_inputs > kMaxNpuBinds || num_outputs > kMaxNpuBinds || num_outputs == 0) {
    corrupt_step(index) << num_inputs << " inputs and " << num_outputs
                        << " outputs, expected an output and at most " << kMaxNpuBinds << " in all";
    return false;
  }
  return step_tensors(index, body.inputs(), "input", false) &&
         step_tensors(index, body.outputs(), "output", false);
}

bool PlanVerifier::npu_blob(uint32_t index, const NpuStep& body) {
  if (body.blob() >= num_tensors_) {
    corrupt_step(index) << "its blob is tensor " << body.blob() << " of " << num_tensors_;
    return false;
  }
  const Tensor& blob = *tensors_->Get(body.blob());
  const bool is_constant = banks_->Get(blob.bank())->kind() == BankKind_CONSTANT;
  if (body.memory_class() > MemoryClass_MAX) {
    corrupt_step(index) << "its program is for memory of class " << static_cast<uint32_t>(body.memory_class())
                        << ", expected at most " << uint32_t{MemoryClass_MAX};
    return false;
  }
  if (is_constant && rank_of(blob) == 1 && blob.type_code() == kDLUInt && blob.type_bits() == 8) return true;
  corrupt_step(index) << "its blob (tensor " << body.blob() << ") is no constant uint8 [n]";
  return false;
}

uint32_t PlanVerifier::bank_of_bind(const NpuStep& body, const NpuBind& bind) const {
  uint32_t i = 0;
  while (i < num_banks_ &&
         (banks_->Get(i)->kind() != BankKind_DEVICE || banks_->Get(i)->target() != body.target() ||
          banks_->Get(i)->memory_class() != bind.memory_class()))
    ++i;
  return i;
}

bool PlanVerifier::npu_binds(uint32_t index, const NpuStep& body) {
  const uint32_t count = count_of(body.binds());
  if (count > kMaxNpuBinds || !spend(count)) {
    if (count > kMaxNpuBinds) corrupt_step(index) << count << " binds, expected at most " << kMaxNpuBinds;
    return false;
  }
  uint64_t bound[2] = {0, 0};  // bit i of inputs and of outputs
  for (uint32_t b = 0; b < count; ++b) {
    if (!npu_bind(index, body, b)) return false;
    const NpuBind& bind = *body.binds()->Get(b);
    for (uint32_t other = 0; other < b; ++other) {
      if (body.binds()->Get(other)->slot() != bind.slot()) continue;
      corrupt_bind(index, b) << "slot " << bind.slot() << " is bound by bind " << other << " already";
      return false;
    }
    if (bind.use() == NpuUse_SCRATCH) continue;
    const uint64_t bit = uint64_t{1} << bind.index();
    if ((bound[bind.use()] & bit) != 0) {
      corrupt_bind(index, b) << (bind.use() == NpuUse_INPUT ? "input " : "output ") << bind.index()
                             << " is in two binds";
      return false;
    }
    bound[bind.use()] |= bit;
  }
  const auto all = [](uint32_t n) { return n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
  if (bound[0] != all(count_of(body.inputs())) || bound[1] != all(count_of(body.outputs()))) {
    corrupt_step(index) << "an input or output is in no bind";
    return false;
  }
  return npu_ranges(index, body);
}

bool PlanVerifier::npu_bind(uint32_t index, const NpuStep& body, uint32_t bind_index) {
  const NpuBind& bind = *body.binds()->Get(bind_index);
  const uint32_t device_bank = bank_of_bind(body, bind);
  if (device_bank == num_banks_) {
    corrupt_bind(index, bind_index) << "target " << body.target() << " has no memory bank of class "
                                    << static_cast<uint32_t>(bind.memory_class());
    return false;
  }
  const uint64_t bank_size = banks_->Get(device_bank)->size();
  uint64_t end = 0;
  if (bind.size() == 0 || !checked_add(bind.offset(), bind.size(), &end) || end > bank_size) {
    corrupt_bind(index, bind_index) << bind.size() << " bytes at offset " << bind.offset() << " of the "
                                    << bank_size << " bytes of bank " << device_bank;
    return false;
  }
  if (bind.use() == NpuUse_SCRATCH) return true;
  if (bind.use() != NpuUse_INPUT && bind.use() != NpuUse_OUTPUT) {
    corrupt_bind(index, bind_index) << "unknown use " << static_cast<uint32_t>(bind.use());
    return false;
  }
  const auto* tensors = bind.use() == NpuUse_INPUT ? body.inputs() : body.outputs();
  if (bind.index() >= count_of(tensors)) {
    corrupt_bind(index, bind_index) << "tensor " << bind.index() << " of " << count_of(tensors);
    return false;
  }
  return npu_arrangement(index, bind, tensors->Get(bind.index()), device_bank) &&
         (bind.kept() == 0 || npu_kept(index, body, bind));
}

// A job reads what the job of an earlier region has left, in place of a copy: it is the same tensor, in the
// same bytes and arrangement.
bool PlanVerifier::npu_kept(uint32_t index, const NpuStep& body, const NpuBind& bind) {
  if (bind.use() == NpuUse_OUTPUT) {
    if (bind.kept() <= kKeptAlone && !is_in_place(bind)) return true;
    corrupt_step(index) << "slot " << bind.slot() << " keeps its tensor in the way " << bind.kept()
                        << ", expected 0 to " << kKeptAlone << ", and 0 of a tensor in place";
    return false;
  }
  const Step* maker = bind.kept() <= index ? plan_.steps()->Get(index - bind.kept()) : nullptr;
  const NpuStep* region = maker != nullptr ? maker->body_as_NpuStep() : nullptr;
  if (region != nullptr && region->target() == body.target() && !is_in_place(bind)) {
    if (!spend(count_of(region->binds()))) return false;
    const NpuBind* kept = kept_bind(*region, body.inputs()->Get(bind.index()));
    if (kept != nullptr && are_arranged_alike(*kept, bind)) return true;
  }
  corrupt_step(index) << "slot " << bind.slot() << ": the region " << bind.kept()
                      << " steps earlier does not keep its tensor there";
  return false;
}

// If the highest byte of the arrangement is in the bind's range, so are all others.
bool PlanVerifier::npu_arrangement(uint32_t index, const NpuBind& bind, uint32_t tensor_index,
                                   uint32_t device_bank) {
  const Tensor& tensor = *tensors_->Get(tensor_index);
  if (is_in_place(bind)) {
    if (tensor.bank() == device_bank && tensor.offset() == bind.offset() && tensor.size() == bind.size())
      return true;
    corrupt_step(index) << "slot " << bind.slot() << " has no strides, but is not the bytes of tensor "
                        << tensor_index;
    return false;
  }
  if (bind.block() != 0 && (header_.required_features & kFeatureBlocks) == 0) {
    corrupt_step(index) << "slot " << bind.slot()
                        << " has blocks of channels, but the header lacks feature bit 2";
    return false;
  }
  const uint32_t rank = rank_of(tensor);
  if (bind.strides()->size() != rank || !spend(rank)) {
    if (bind.strides()->size() != rank)
      corrupt_step(index) << "slot " << bind.slot() << " has " << bind.strides()->size()
                          << " strides for a tensor of rank " << rank;
    return false;
  }
  if (rank > 0 && reinterpret_cast<uintptr_t>(bind.strides()->Data()) % alignof(uint64_t) != 0) {
    corrupt_step(index) << "slot " << bind.slot() << ": its strides are not aligned to 8 bytes";
    return false;
  }
  uint64_t last = bind.origin(), step = 0;
  bool fits = checked_mul(uint64_t{element_bytes(tensor) - 1}, bind.byte_stride(), &step) &&
              checked_add(last, step, &last);
  for (uint32_t axis = 0; fits && axis < rank; ++axis) {
    const uint32_t block = axis + 1 == rank ? bind.block() : 0;
    fits =
        axis_reach(tensor.shape()->Get(axis), bind.strides()->Get(axis), block, bind.block_stride(), &step) &&
        checked_add(last, step, &last);
  }
  if (fits && last < bind.size()) return true;
  corrupt_step(index) << "slot " << bind.slot() << ": the elements of tensor " << tensor_index
                      << " reach beyond its " << bind.size() << " bytes";
  return false;
}

// What the job writes overlaps nothing else of the step, and copies do not write over bytes that are still to
// be copied: after a failure the inputs are intact.
bool PlanVerifier::npu_ranges(uint32_t index, const NpuStep& body) {
  const uint32_t count = count_of(body.binds());
  const uint32_t num_inputs = count_of(body.inputs());
  const uint32_t num_tensors = num_inputs + count_of(body.outputs());
  for (uint32_t b = 0; b < count; ++b) {
    const NpuBind& bind = *body.binds()->Get(b);
    const uint32_t device_bank = bank_of_bind(body, bind);
    for (uint32_t other = 0; other < b; ++other) {
      const NpuBind& with = *body.binds()->Get(other);
      if (bank_of_bind(body, with) != device_bank || !overlap(range_of(bind), range_of(with))) continue;
      if (bind.use() == NpuUse_INPUT && with.use() == NpuUse_INPUT && is_in_place(bind) && is_in_place(with))
        continue;
      corrupt_bind(index, b) << "overlaps bind " << other;
      return false;
    }
    for (uint32_t t = 0; t < num_tensors; ++t) {
      const bool is_input = t < num_inputs;
      const Tensor& tensor =
          *tensors_->Get(is_input ? body.inputs()->Get(t) : body.outputs()->Get(t - num_inputs));
      if (tensor.bank() != device_bank) continue;
      if (!overlap(range_of(bind), {tensor.offset(), tensor.offset() + tensor.size()})) continue;
      // Reading in place what others read too.
      if (is_in_place(bind) && is_input && bind.use() == NpuUse_INPUT) continue;
      if (is_in_place(bind) && !is_input && bind.use() == NpuUse_OUTPUT && bind.index() == t - num_inputs)
        continue;
      corrupt_bind(index, b) << "overlaps " << (is_input ? "input " : "output ")
                             << (is_input ? t : t - num_inputs);
      return false;
    }
  }
  return true;
}

bool PlanVerifier::npu_alternatives(uint32_t index, const NpuStep& body) {
  const uint32_t count = body.num_alternative_steps(), num_steps = num_steps_;
  if (count >= num_steps - index) {
    corrupt_step(index) << count << " fallback steps reach beyond the plan's " << num_steps;
    return false;
  }
  // They are no regions themselves, so that no step is looked at for two.
  for (uint32_t i = index + 1; i <= index + count; ++i) {
    if (plan_.steps()->Get(i)->body_type() == StepBody_KernelStep) continue;
    corrupt_step(index) << "step " << i << ", a fallback step, is not a kernel's";
    return false;
  }
  return true;
}

}  // namespace qplan::format
