// Asks the kernel families about a program's steps, and substitutes of kernels that this build lacks.
#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/layout.h"
#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/target/program.h"

namespace qplan::schedule {
namespace {

constexpr uint64_t kScratchAlignment = 64;
// Moving a byte takes about as long as this many multiply-accumulates.
constexpr uint64_t kMacsPerByte = 4;

Dtype dtype_of(ir::DType dtype) {
  if (dtype == ir::kUint8 || dtype == ir::kBool) return Dtype::kU8;
  if (dtype == ir::kInt8) return Dtype::kS8;
  if (dtype == ir::kInt16) return Dtype::kS16;
  if (dtype == ir::kInt32) return Dtype::kS32;
  if (dtype == ir::kInt64) return Dtype::kS64;
  return dtype == ir::kFloat32 ? Dtype::kF32 : Dtype::kOther;
}

StepTensor step_tensor(const target::ProgramTensor& tensor) {
  StepTensor result;
  result.extents = tensor.type.shape.data();
  result.rank = static_cast<uint32_t>(tensor.type.shape.size());
  result.dtype = dtype_of(tensor.type.dtype);
  result.is_constant = tensor.is_constant();
  result.size_bytes = static_cast<uint64_t>(tensor.type.size_bytes());
  // Nobody writes through it: a step's output is never a constant.
  if (tensor.is_constant()) result.data = const_cast<uint8_t*>(tensor.constant->data());  // NOLINT
  return result;
}

// Numbers the tensors of a step, and of its layers, in the order in which it names them; tiles keep theirs.
class OwnTensors {
 public:
  explicit OwnTensors(target::ProgramStep* step) {
    for (target::ProgramStep& layer : step->layers) renumber(&layer);
    renumber(step);
  }

  target::TensorId number(target::TensorId of_program) {
    if (of_program >= target::kFirstTile) return of_program;
    const auto at = numbers_.try_emplace(of_program, static_cast<target::TensorId>(tensors_.size()));
    if (at.second) tensors_.push_back(of_program);
    return at.first->second;
  }

  // By their new numbers, those of the program.
  const std::vector<target::TensorId>& tensors() const { return tensors_; }

 private:
  void renumber(target::ProgramStep* step) {
    for (target::TensorId& id : step->inputs) id = number(id);
    for (target::TensorId& id : step->outputs) id = number(id);
  }

  std::unordered_map<target::TensorId, target::TensorId> numbers_;
  std::vector<target::TensorId> tensors_;
};

void add_tiles(const target::ProgramStep& step, std::vector<StepTensor>* tensors) {
  for (const target::ProgramTensor& tile : step.tiles) {
    tensors->push_back(step_tensor(tile));
    tensors->back().is_tile = true;
  }
}

// Families whose part is an output over what has been read of a larger input.
bool overwrites(uint16_t kernel) { return kernel == kKernel_conv2d || kernel == kKernel_chain; }

}  // namespace

const KernelFamily& family_of(uint16_t kernel) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  const KernelFamily* family = kernel < all.num_families ? all.families[kernel] : nullptr;
  if (family == nullptr) {
    throw PackError(QPLAN_INTERNAL,
                    "schedule: kernel family " + std::to_string(kernel) + " is not in this build");
  }
  return *family;
}

VariantNeeds variant_needs(const KernelFamily& family, const void* args, const target::TargetProfile& profile,
                           uint64_t schedule) {
  VariantNeeds needs;
  for (uint32_t v = 0; v < family.num_variants; ++v) {
    const KernelVariant& variant = family.variants[v];
    if (std::ranges::find(profile.asked_isas, variant.isa) == profile.asked_isas.end() ||
        !variant.accepts(args))
      continue;
    needs.scratch_bytes = std::max<uint64_t>(needs.scratch_bytes, variant.scratch_bytes(args));
  }
  needs.scratch_bytes = round_up(needs.scratch_bytes, kScratchAlignment);
  const uint32_t best_isa = *std::ranges::max_element(profile.asked_isas);
  needs.work_items = choose_variant(family, args, best_isa, SIZE_MAX, schedule)->work_items(args);
  return needs;
}

uint32_t task_grain(const StepView& step, uint32_t units, const target::TargetProfile& profile,
                    double factor) {
  const uint64_t task_work = profile.task_work;
  uint64_t work = step.step->macs();
  for (uint32_t i = 0; i < step.num_inputs(); ++i) work += kMacsPerByte * step.input(i).size_bytes;
  for (uint32_t i = 0; i < step.num_outputs(); ++i) work += kMacsPerByte * step.output(i).size_bytes;
  if (task_work == 0 || units < 2 || work < 2 * task_work) return 0;
  const uint64_t work_per_unit = std::max<uint64_t>(work / units, 1);
  const uint64_t grain = (task_work + work_per_unit - 1) / work_per_unit;
  const double scaled = static_cast<double>(std::clamp<uint64_t>(grain, 1, units)) * factor;
  return static_cast<uint32_t>(std::clamp<uint64_t>(static_cast<uint64_t>(scaled), 1, units));
}

StepQueries::StepQueries(const target::Program& program)
    : program_(program),
      tables_(program.steps.size()),
      substitutes_(program.asks_substitutes ? program.steps.size() : 0) {
  for (const target::ProgramTensor& tensor : program.tensors) tensors_.push_back(step_tensor(tensor));
}

// Queries look at the size of weights, not at their bytes: zeros replace them.
void StepQueries::pack_substitute(const target::ProgramStep& step, Table* table) const {
  const SubstituteStep substitute = substitute_step(program_, step);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(target::pack_kernel_step(substitute.step, substitute.tensors.size(), builder));
  table->bytes = builder.Release();
  for (const target::TensorId id : substitute.tensors) table->tensors.push_back(tensors_[id]);
  for (const auto& [tensor, bytes] : substitute.weights) {
    table->shapes.push_back({static_cast<int64_t>(bytes)});
    StepTensor& weights = table->tensors[tensor];
    weights.extents = table->shapes.back().data();
    weights.rank = 1;
    weights.size_bytes = bytes;
    weights.data = zeros(bytes);
  }
  add_tiles(step, &table->tensors);
}

uint8_t* StepQueries::zeros(size_t bytes) const {
  const size_t most = zeros_.empty() ? 0 : zeros_.back().size();
  if (bytes > most) zeros_.emplace_back(std::max(bytes, 2 * most));
  return zeros_.back().data();
}

StepView StepQueries::view_of(const Table& table) const {
  return StepView::of_tensors(*flatbuffers::GetRoot<format::KernelStep>(table.bytes.data()),
                              table.tensors.empty() ? tensors_.data() : table.tensors.data());
}

StepView StepQueries::planned(uint32_t step) const {
  Table& table = tables_[step];
  if (table.bytes.size() == 0) {
    const target::ProgramStep& source = program_.steps[step];
    flatbuffers::FlatBufferBuilder builder;
    if (source.tiles.empty()) {
      builder.Finish(target::pack_kernel_step(source, tensors_.size(), builder));
    } else {  // tiles follow tensors of its own: all of the program's would be many for each cascade
      target::ProgramStep renumbered = source;
      const OwnTensors own(&renumbered);
      builder.Finish(target::pack_kernel_step(renumbered, own.tensors().size(), builder));
      for (const target::TensorId id : own.tensors()) table.tensors.push_back(tensors_[id]);
      add_tiles(source, &table.tensors);
    }
    table.bytes = builder.Release();
  }
  return view_of(table);
}

StepView StepQueries::view(uint32_t step) const {
  if (!program_.asks_substitutes) return planned(step);
  Table& table = substitutes_[step];
  if (table.bytes.size() == 0) pack_substitute(program_.steps[step], &table);
  return view_of(table);
}

bool StepQueries::may_be_in_place(uint32_t step, uint32_t output, uint32_t input) const {
  if (program_.steps[step].npu != nullptr) return false;
  const uint16_t kernel = program_.steps[step].kernel;
  // Layers in place are one work item, which threads cannot share.
  const bool is_layer =
      kernel == kKernel_conv2d || kernel == kKernel_depthwise_conv2d || kernel == kKernel_chain;
  if (is_layer && !program_.is_small) return false;
  const KernelFamily& family = family_of(kernel);
  return family.in_place != nullptr && family.in_place(view(step), output, input);
}

bool StepQueries::may_overwrite(uint32_t step, uint32_t output, uint32_t input) const {
  const uint16_t kernel = program_.steps[step].kernel;
  if (program_.steps[step].npu != nullptr || !overwrites(kernel)) return false;
  // Smaller inputs set no peak, and the smallest kernels that emit-c links write over none.
  constexpr uint64_t kMinBytes = 1024;
  const auto& tensor = program_.tensors[program_.steps[step].inputs[input]];
  uint64_t offset = 0;
  // Rows in order are one work item, which threads cannot share.
  return program_.is_small && static_cast<uint64_t>(tensor.type.size_bytes()) >= kMinBytes &&
         family_of(kernel).part(view(step), output, input, &offset);
}

std::optional<uint64_t> StepQueries::part_offset(uint32_t step, uint32_t output, uint32_t input) const {
  // Such a part is no copy.
  if (program_.steps[step].npu != nullptr || overwrites(program_.steps[step].kernel)) return std::nullopt;
  const KernelFamily& family = family_of(program_.steps[step].kernel);
  uint64_t offset = 0;
  if (family.part == nullptr || !family.part(view(step), output, input, &offset)) return std::nullopt;
  return offset;
}

memory::SharingQueries StepQueries::sharing() const {
  return {
      [this](uint32_t step, uint32_t output, uint32_t input) { return may_be_in_place(step, output, input); },
      [this](uint32_t step, uint32_t output, uint32_t input) { return part_offset(step, output, input); },
      [this](uint32_t step, uint32_t output, uint32_t input) { return may_overwrite(step, output, input); }};
}

// Substitutes.

namespace {

uint16_t layout_of_fours(uint16_t layout, uint64_t tap_bytes) {
  if (layout == kLayout_o16z8) return kLayout_o16z4;
  if (tap_bytes % 4 == 0 && layout_group(layout) == 8) return kLayout_o16k4;
  if (layout == kLayout_o16r8) return kLayout_o16r4;
  return layout == kLayout_o16i8 ? uint16_t{kLayout_o16i4} : layout;
}

template <typename Params>
void set_minimum(const ir::TensorType& input, Params* params) {
  if (input.dtype.bits == 8) params->input_zero_point = static_cast<int32_t>(input.dtype.min());
}

class Substitution {
 public:
  Substitution(const target::Program& program, const target::ProgramStep& step)
      : tensors_(program.tensors), tiles_(step.tiles) {
    result_.step = step;
    for (target::ProgramStep& layer : result_.step.layers) change(&layer);
    change(&result_.step);
    OwnTensors own(&result_.step);
    for (auto& [tensor, bytes] : result_.weights) tensor = own.number(tensor);
    result_.tensors = own.tensors();
  }
  SubstituteStep result() { return std::move(result_); }

 private:
  const ir::TensorType& type(target::TensorId id) const {
    return id < target::kFirstTile ? tensors_[id].type : tiles_[id - target::kFirstTile].type;
  }

  void set_layout(const target::ProgramStep& step, uint16_t layout, const LayoutWindow& window,
                  uint16_t* current) {
    if (layout == *current) return;
    *current = layout;
    const auto num_o = static_cast<uint64_t>(type(step.outputs[0]).shape.back());
    result_.weights.emplace_back(step.inputs[1], layout_bytes(layout, num_o, window));
  }

  void change(target::ProgramStep* step) {
    if (const auto* conv = step->params.get_if<target::Conv2dParams>()) {
      target::Conv2dParams params = *conv;
      const ir::TensorType& input = type(step->inputs[0]);
      set_minimum(input, &params);
      const LayoutWindow window = {params.kernel_h, params.kernel_w,
                                   static_cast<uint64_t>(input.shape.back()) / params.groups};
      const bool is_pixel = params.weights_layout == kLayout_o16i8;
      const uint64_t tap_bytes = is_pixel ? window.channels : window.w * window.channels;
      set_layout(*step, layout_of_fours(params.weights_layout, tap_bytes), window, &params.weights_layout);
      step->params = std::move(params);
    } else if (const auto* dense = step->params.get_if<target::FullyConnectedParams>()) {
      target::FullyConnectedParams params = *dense;
      const ir::TensorType& input = type(step->inputs[0]);
      set_minimum(input, &params);
      const uint16_t layout =
          params.weights_layout == kLayout_o16r8 ? uint16_t{kLayout_o16k4} : params.weights_layout;
      set_layout(*step, layout, {1, 1, static_cast<uint64_t>(input.shape.back())}, &params.weights_layout);
      step->params = std::move(params);
    }
  }

  const std::vector<target::ProgramTensor>& tensors_;
  const std::vector<target::ProgramTensor>& tiles_;
  SubstituteStep result_;
};

}  // namespace

SubstituteStep substitute_step(const target::Program& program, const target::ProgramStep& step) {
  return Substitution(program, step).result();
}

}  // namespace qplan::schedule
