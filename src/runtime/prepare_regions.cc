#include "src/runtime/prepare_regions.h"

namespace qplan {
namespace {

// Whether the bind of step i reads what an earlier region of the function has kept in the bank.
bool reads_kept(uint32_t i, const format::NpuBind& bind) {
  return bind.use() == format::NpuUse_INPUT && bind.kept() != 0 && bind.kept() <= i;
}

// Whether the device or a copy writes the bytes of the bind, in some runs. Who reads a kept tensor copies it
// only where it is not there, to the bytes that it has.
bool is_written(uint32_t i, const format::NpuBind& bind) {
  if (bind.use() != format::NpuUse_INPUT) return true;
  return bind.strides() != nullptr && !reads_kept(i, bind);
}

}  // namespace

bool RegionChecks::begin(uint32_t i, const format::NpuStep& npu) {
  if (!check_reads(i, npu) || !check_kept_inputs(i, npu) || !check_writes(i, npu) || !overwrite(i, npu))
    return false;
  // The steps in its place find what other regions have kept for it alone: the session copies that before.
  for (uint32_t k = 0; k < format::count_of(npu.inputs()); ++k) {
    const uint32_t t = npu.inputs()->Get(k);
    if (values_.is_hidden_without_device(t)) session_.data[t] = session_.planned_address(t);
  }
  return true;
}

// The bind of the input, where it reads what an earlier region has kept; else null.
const format::NpuBind* RegionChecks::kept_input(uint32_t i, const format::NpuStep& npu,
                                                uint32_t input) const {
  for (uint32_t b = 0; b < npu.binds()->size(); ++b) {
    const format::NpuBind& bind = *npu.binds()->Get(b);
    if (reads_kept(i, bind) && bind.index() == input) return &bind;
  }
  return nullptr;
}

bool RegionChecks::check_reads(uint32_t i, const format::NpuStep& npu) {
  for (uint32_t k = 0; k < format::count_of(npu.inputs()); ++k) {
    const uint32_t t = npu.inputs()->Get(k);
    if (values_.has_value(t) && !values_.is_under_scratch(i, t)) continue;
    if (values_.is_hidden_without_device(t) && kept_input(i, npu, k) != nullptr) continue;
    values_.refuse_read(&fail(i, t), k, t);
    return false;
  }
  for (uint32_t o = 0; o < npu.outputs()->size(); ++o) {
    const uint32_t t = npu.outputs()->Get(o);
    if (session_.data[t] == nullptr) continue;
    fail(i, t) << "output " << o << " (tensor " << t << ") has been written before";
    return false;
  }
  return true;
}

// What a region has kept in the bank is there until the last other one has read it. open() has compared the
// two binds, and each with the other binds of its region.
bool RegionChecks::check_kept_inputs(uint32_t i, const format::NpuStep& npu) {
  for (uint32_t b = 0; b < npu.binds()->size(); ++b) {
    const format::NpuBind& bind = *npu.binds()->Get(b);
    if (!reads_kept(i, bind)) continue;
    const uint32_t maker = i - bind.kept(), t = npu.inputs()->Get(bind.index());
    for (uint32_t k = maker + 1; k < i; ++k) {
      if (!compare(i, 1)) return false;
      if (!writes(k, range_of(npu, bind))) continue;
      fail(i, t) << "input " << bind.index() << " (tensor " << t << ") is kept in the device's bank by step "
                 << session_.step_index(maker) << ", and step " << session_.step_index(k)
                 << " has written over it there; plan other bytes for one of the two";
      return false;
    }
  }
  return true;
}

// Whether step i writes into the bytes of a device's bank, in some runs.
bool RegionChecks::writes(uint32_t i, const PlannedRange& range) {
  const uint32_t index = session_.step_index(i);
  const format::NpuStep* npu = plan().npu_step(index);
  if (npu == nullptr) {
    const auto* outputs = plan().step(index).outputs();
    session_.npu->comparisons += outputs->size();
    for (uint32_t o = 0; o < outputs->size(); ++o) {
      if (values_.overlaps(range, outputs->Get(o))) return true;
    }
    return false;
  }
  session_.npu->comparisons += npu->binds()->size();
  for (uint32_t b = 0; b < npu->binds()->size(); ++b) {
    const format::NpuBind& bind = *npu->binds()->Get(b);
    if (is_written(i, bind) && range_of(*npu, bind).overlaps(range)) return true;
  }
  return false;
}

// The outputs lie apart from each other, from the region's inputs and from what the function holds. So do
// the bytes of the device's bank that copies and the device write; open() has compared them with the
// step's.
bool RegionChecks::check_writes(uint32_t i, const format::NpuStep& npu) {
  for (uint32_t o = 0; o < npu.outputs()->size(); ++o) {
    const uint32_t t = npu.outputs()->Get(o);
    const format::Tensor& output = plan().tensor(t);
    for (uint32_t k = 0; k < format::count_of(npu.inputs()); ++k) {
      if (!format::ranges_overlap(output, plan().tensor(npu.inputs()->Get(k)))) continue;
      fail(i, t) << "output " << o << " overlaps input " << k << " in memory";
      return false;
    }
    for (uint32_t p = 0; p < o; ++p) {
      if (!format::ranges_overlap(output, plan().tensor(npu.outputs()->Get(p)))) continue;
      fail(i, t) << "outputs " << p << " and " << o << " overlap in memory";
      return false;
    }
    const TensorValues::Held held = values_.find_held(values_.range_of(t), nullptr, t);
    if (held.noun == nullptr) continue;
    fail(i, t) << "tensor " << t << " overlaps " << held.noun << " " << held.index
               << " of the function in memory";
    return false;
  }
  for (uint32_t b = 0; b < npu.binds()->size(); ++b) {
    const format::NpuBind& bind = *npu.binds()->Get(b);
    if (bind.use() == format::NpuUse_INPUT && bind.strides() == nullptr) continue;
    const TensorValues::Held held = values_.find_held(range_of(npu, bind), nullptr);
    if (held.noun == nullptr) continue;
    fail(i, held.tensor) << "bind " << b << " overlaps " << held.noun << " " << held.index
                         << " of the function in memory";
    return false;
  }
  return true;
}

// A device writes what the steps in its place do not, a copy is made unless the caller has bound a buffer of
// the device, and an output is written before these steps where the device runs, or runs in vain.
bool RegionChecks::overwrite(uint32_t i, const format::NpuStep& npu) {
  const uint32_t num_outputs = npu.outputs()->size(), num_binds = npu.binds()->size();
  if (!compare(i, uint64_t{session_.num_data} * (num_outputs + num_binds))) return false;
  for (uint32_t o = 0; o < num_outputs; ++o) {
    const uint32_t t = npu.outputs()->Get(o);
    values_.overwrite_all(values_.range_of(t), t, nullptr);
  }
  for (uint32_t b = 0; b < num_binds; ++b) {
    const format::NpuBind& bind = *npu.binds()->Get(b);
    if (is_written(i, bind)) values_.overwrite_all(range_of(npu, bind), format::kNoTensorIndex, nullptr);
  }
  return true;
}

// A region that failed, or that the CPU does again, finds its inputs whole: steps that stand in for it
// write nothing there.
bool RegionChecks::check_fallback_step(uint32_t i, const format::NpuStep& npu) {
  const format::KernelStep& step = plan().step(session_.step_index(i));
  for (uint32_t o = 0; o < format::count_of(step.outputs()); ++o) {
    const uint32_t t = step.outputs()->Get(o);
    for (uint32_t k = 0; k < format::count_of(npu.inputs()); ++k) {
      if (!format::ranges_overlap(plan().tensor(t), plan().tensor(npu.inputs()->Get(k)))) continue;
      fail(i, t) << "is a fallback step of a region and overwrites input " << k << " of it in memory";
      return false;
    }
  }
  return true;
}

// What only the CPU's steps of a region write, nothing after them may read, nor what they write over. The
// same holds of what the region keeps in the bank alone, but for other regions that read it there.
bool RegionChecks::end(uint32_t i, const format::NpuStep& npu) {
  const uint32_t num_fallback_steps = npu.num_alternative_steps();
  for (uint32_t o = 0; o < npu.outputs()->size(); ++o) {
    const uint32_t t = npu.outputs()->Get(o);
    if (num_fallback_steps == 0) session_.data[t] = session_.planned_address(t);
    if (session_.data[t] != nullptr) continue;
    fail(i, t) << "output " << o << " (tensor " << t << ") is written by no fallback step";
    return false;
  }
  for (uint32_t k = i + 1; k <= i + num_fallback_steps; ++k) {
    const auto* outputs = plan().step(session_.step_index(k)).outputs();
    if (!compare(i, uint64_t{session_.num_data} * outputs->size())) return false;
    for (uint32_t o = 0; o < outputs->size(); ++o) {
      const uint32_t t = outputs->Get(o);
      if (TensorValues::contains(npu.outputs(), t)) continue;
      values_.hide_without_device(t);
      values_.overwrite_all(values_.range_of(t), t, npu.outputs());
    }
  }
  for (uint32_t b = 0; b < npu.binds()->size(); ++b) {
    const format::NpuBind& bind = *npu.binds()->Get(b);
    if (bind.use() == format::NpuUse_OUTPUT && bind.kept() == format::kKeptAlone)
      values_.hide_without_device(npu.outputs()->Get(bind.index()));
    if (!reads_kept(i, bind)) continue;
    const uint32_t t = npu.inputs()->Get(bind.index());
    const format::NpuStep& maker = *plan().npu_step(session_.step_index(i - bind.kept()));
    if (values_.has_value(t) && format::kept_bind(maker, t)->kept() == format::kKeptAlone)
      values_.hide_without_device(t);
  }
  return true;
}

bool RegionChecks::compare(uint32_t i, uint64_t count) {
  session_.npu->comparisons += count;
  if (session_.npu->comparisons <= kMaxComparisons) return true;
  fail(i, 0) << "to compare what regions write with tensors takes more than " << kMaxComparisons
             << " comparisons; give the plan fewer regions, binds or tensors";
  return false;
}

// "npu 'block3' (step 12): "
Error& RegionChecks::fail(uint32_t i, uint32_t tensor) {
  const uint32_t index = session_.step_index(i);
  error_.set(QPLAN_PLAN_CORRUPT, static_cast<int32_t>(index), static_cast<int32_t>(tensor));
  return error_ << "npu" << Named{plan().step_name(index)} << " (step " << index << "): ";
}

}  // namespace qplan
