#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "format/container.h"
#include "format/names_generated.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"
#include "src/packer/error.h"
#include "src/packer/schedule/schedule.h"

namespace qplan::schedule {
namespace {

using flatbuffers::Offset;
using format::PlanView;

constexpr uint32_t kArenaBank = 0, kConstantBank = 1, kFirstDeviceBank = 2;

// Where a tensor of the old plan is in the new one. Tensors keep their numbers, since the layers of cascades
// name them; those that the step does not have become the same byte.
struct Place {
  bool is_used = false;
  uint32_t bank = kArenaBank;
  uint64_t offset = 0;
};

class Extraction {
 public:
  Extraction(const PlanView& view, uint32_t step)
      : view_(view),
        first_(step),
        npu_(view.npu_step(step)),
        end_(step + 1 + (npu_ == nullptr ? 0 : npu_->num_alternative_steps())),
        places_(view.num_tensors()) {
    collect();
    place();
  }

  AlignedBytes file() {
    const flatbuffers::DetachedBuffer names = build_names();
    uint64_t constants = format::kFileAlignment;
    flatbuffers::DetachedBuffer root = build_root(constants);
    const size_t root_size = root.size();
    constants = round_up(sizeof(format::Header) + root_size, format::kFileAlignment);
    root = build_root(constants);  // as long as before: all fields are written
    if (root.size() != root_size || root_size > UINT32_MAX)
      throw PackError(QPLAN_INTERNAL, "extract: the root of the step's plan changed its size");

    format::Header header = view_.header();
    header.version_minor = std::max<uint16_t>(header.version_minor, 5);
    constexpr uint32_t kOfRegions = format::kFeatureNpuRegions | format::kFeatureBlocks;
    header.required_features &= npu_ != nullptr ? kOfRegions : 0;
    header.root_size = static_cast<uint32_t>(root_size);
    header.content_size = constants + constant_bytes_;
    const uint64_t names_begin = round_up(header.content_size, format::kFileAlignment);
    header.file_size = names_begin + names.size();
    AlignedBytes file(static_cast<size_t>(header.file_size));
    const auto put = [&](uint64_t at, const void* bytes, uint64_t size) {
      if (size != 0) std::memcpy(file.data() + at, bytes, size);
    };
    put(sizeof(header), root.data(), root.size());
    for (const uint32_t t : constants_)
      put(constants + places_[t].offset, view_.constant_data(t), view_.tensor(t).size());
    put(names_begin, names.data(), names.size());
    Sha256 digest;
    digest.update(file.data() + sizeof(header), file.size() - sizeof(header));
    digest.finish(header.digest);
    put(0, &header, sizeof(header));
    return file;
  }

 private:
  using Indices = flatbuffers::Vector<uint32_t>;

  template <typename Visit>
  void each_step_tensors(const Visit& visit) const {
    for (uint32_t s = first_; s < end_; ++s) {
      const format::NpuStep* npu = view_.npu_step(s);
      if (npu != nullptr) {
        visit(npu->inputs(), npu->outputs());
      } else {
        visit(view_.step(s).inputs(), view_.step(s).outputs());
      }
    }
  }

  void collect() {
    const auto contains = [](const std::vector<uint32_t>& list, uint32_t tensor) {
      return std::ranges::find(list, tensor) != list.end();
    };
    std::vector<uint32_t> written;
    each_step_tensors([&](const Indices* inputs, const Indices* outputs) {
      for (uint32_t i = 0; i < format::count_of(inputs); ++i) {
        const uint32_t t = inputs->Get(i);
        places_[t].is_used = true;
        if (!view_.is_constant(t) && !contains(written, t) && !contains(inputs_, t)) inputs_.push_back(t);
      }
      for (uint32_t i = 0; i < format::count_of(outputs); ++i) {
        places_[outputs->Get(i)].is_used = true;
        written.push_back(outputs->Get(i));
      }
    });
    if (npu_ != nullptr) places_[npu_->blob()].is_used = true;
    const Indices* outputs = npu_ != nullptr ? npu_->outputs() : view_.step(first_).outputs();
    outputs_.assign(outputs->begin(), outputs->end());
  }

  void place() {
    // Byte 0 is that of all tensors that are not used.
    arena_bytes_ = format::kFileAlignment;
    for (uint32_t t = 0; t < places_.size(); ++t) {
      Place& place = places_[t];
      const format::Tensor& tensor = view_.tensor(t);
      if (!place.is_used) continue;
      const format::BankKind kind = view_.bank(tensor.bank()).kind();
      if (kind == format::BankKind_CONSTANT) {
        place = {true, kConstantBank, constant_bytes_};
        constant_bytes_ = round_up(constant_bytes_ + tensor.size(), format::kFileAlignment);
        constants_.push_back(t);
      } else if (kind == format::BankKind_DEVICE && npu_ != nullptr) {
        place = {true, kFirstDeviceBank + device_position(tensor.bank()), tensor.offset()};
      } else {
        place = {true, kArenaBank, arena_bytes_};
        arena_bytes_ = round_up(arena_bytes_ + tensor.size(), format::kFileAlignment);
      }
    }
  }

  // Among the plan's banks of devices.
  uint32_t device_position(uint32_t bank) const {
    uint32_t position = 0;
    for (uint32_t b = 0; b < bank; ++b) position += view_.bank(b).kind() == format::BankKind_DEVICE ? 1 : 0;
    return position;
  }

  // The tables of the old root that the new one refers to are in it as they were, with the bytes between
  // them: a flatbuffer is made from its end, and references lead towards the end.
  flatbuffers::DetachedBuffer build_root(uint64_t constants_offset) {
    flatbuffers::FlatBufferBuilder builder;
    old_ = view_.bytes() + sizeof(format::Header);
    const size_t old_size = view_.header().root_size;
    const std::vector<uint8_t> filler(round_up(old_size, uint64_t{8}) - old_size, 0);
    builder.PushBytes(filler.data(), filler.size());
    builder.PushBytes(old_, old_size);
    old_end_ = builder.GetSize();
    builder.ForceDefaults(true);
    const auto banks = builder.CreateVector(build_banks(builder, constants_offset));
    const auto tensors = builder.CreateVector(build_tensors(builder));
    const auto steps = builder.CreateVector(build_steps(builder));
    const auto name = builder.CreateString(format::kMainFunction);
    const auto inputs = builder.CreateVector(inputs_), outputs = builder.CreateVector(outputs_);
    uint64_t scratch = 0;
    for (uint32_t f = 0; f < view_.num_functions(); ++f)
      scratch = std::max(scratch, view_.function(f).scratch_per_worker());
    const Offset<format::Function> function =
        format::CreateFunction(builder, name, inputs, outputs, 0, end_ - first_, scratch);
    const auto functions = builder.CreateVector(&function, 1);
    builder.Finish(format::CreatePlan(builder, old(view_.plan().targets()), banks, tensors, steps, functions,
                                      arena_bytes_));
    return builder.Release();
  }

  std::vector<Offset<format::Bank>> build_banks(flatbuffers::FlatBufferBuilder& builder,
                                                uint64_t constants_offset) const {
    std::vector<Offset<format::Bank>> banks;
    banks.push_back(
        format::CreateBank(builder, format::BankKind_ARENA, format::kFileAlignment, arena_bytes_));
    banks.push_back(format::CreateBank(builder, format::BankKind_CONSTANT, format::kFileAlignment,
                                       constant_bytes_, constants_offset));
    for (uint32_t b = 0; b < view_.num_banks() && npu_ != nullptr; ++b) {
      const format::Bank& bank = view_.bank(b);
      if (bank.kind() != format::BankKind_DEVICE) continue;
      banks.push_back(format::CreateBank(builder, bank.kind(), bank.alignment(), bank.size(), 0,
                                         bank.target(), bank.memory_class()));
    }
    return banks;
  }

  std::vector<Offset<format::Tensor>> build_tensors(flatbuffers::FlatBufferBuilder& builder) const {
    const std::vector<int64_t> one = {1};
    const auto one_byte = builder.CreateVector(one);
    const Offset<format::Tensor> unused =
        format::CreateTensor(builder, kDLUInt, 8, one_byte, kArenaBank, 0, 1);
    std::vector<Offset<format::Tensor>> tensors;
    for (uint32_t t = 0; t < places_.size(); ++t) {
      const format::Tensor& tensor = view_.tensor(t);
      const Place& place = places_[t];
      tensors.push_back(!place.is_used ? unused
                                       : format::CreateTensor(builder, tensor.type_code(), tensor.type_bits(),
                                                              old(tensor.shape()), place.bank, place.offset,
                                                              tensor.size(), 0, end_ - first_ - 1,
                                                              old(tensor.quantization())));
    }
    return tensors;
  }

  std::vector<Offset<format::Step>> build_steps(flatbuffers::FlatBufferBuilder& builder) const {
    std::vector<Offset<format::Step>> steps;
    for (uint32_t s = first_; s < end_; ++s) {
      if (const format::NpuStep* npu = view_.npu_step(s)) {
        steps.push_back(format::CreateStep(builder, format::StepBody_NpuStep, region(builder, *npu).Union()));
        continue;
      }
      const format::KernelStep& step = view_.step(s);
      const Offset<void> params = old(static_cast<const uint8_t*>(step.params())).Union();
      const auto body =
          format::CreateKernelStep(builder, step.kernel(), old(step.inputs()), old(step.outputs()),
                                   step.params_type(), params, step.macs(), step.min_units_per_task(),
                                   step.schedule(), old(step.residual()), step.residual_is_input1());
      steps.push_back(format::CreateStep(builder, format::StepBody_KernelStep, body.Union()));
    }
    return steps;
  }

  // Without the other regions, nothing is kept for them or by them.
  Offset<format::NpuStep> region(flatbuffers::FlatBufferBuilder& builder, const format::NpuStep& npu) const {
    std::vector<Offset<format::NpuBind>> binds;
    for (const format::NpuBind* bind : *npu.binds()) {
      binds.push_back(format::CreateNpuBind(builder, bind->slot(), bind->use(), bind->index(), bind->offset(),
                                            bind->size(), old(bind->strides()), bind->origin(),
                                            bind->byte_stride(), bind->fill(), bind->flip(), bind->block(),
                                            bind->block_stride(), 0, bind->memory_class()));
    }
    const auto bind_vector = builder.CreateVector(binds);
    return format::CreateNpuStep(builder, npu.target(), npu.format(), npu.blob(), old(npu.inputs()),
                                 old(npu.outputs()), bind_vector, npu.num_alternative_steps(),
                                 npu.num_operators(), npu.macs(), npu.estimated_cycles(), npu.program_bytes(),
                                 npu.memory_class());
  }

  // What stands in the old root; null stays null.
  template <typename T>
  Offset<T> old(const T* object) const {
    if (object == nullptr) return 0;
    const auto* at = reinterpret_cast<const uint8_t*>(object);
    return static_cast<flatbuffers::uoffset_t>(old_end_ - static_cast<size_t>(at - old_));
  }

  flatbuffers::DetachedBuffer build_names() const {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<std::string> tensors, steps;
    for (uint32_t t = 0; t < places_.size(); ++t)
      tensors.emplace_back(places_[t].is_used ? view_.tensor_name(t) : "");
    for (uint32_t s = first_; s < end_; ++s) steps.emplace_back(view_.step_name(s));
    const auto tensor_names = builder.CreateVectorOfStrings(tensors);
    const auto step_names = builder.CreateVectorOfStrings(steps);
    const format::Names* names = view_.names();
    const auto text = [&](const flatbuffers::String* string) {
      return builder.CreateString(string == nullptr ? "" : string->str());
    };
    const auto producer = text(names == nullptr ? nullptr : names->producer());
    const auto source = text(names == nullptr ? nullptr : names->source());
    const auto digest = text(names == nullptr ? nullptr : names->source_digest());
    Offset<flatbuffers::Vector<float>> scales = 0;
    Offset<flatbuffers::Vector<int32_t>> zero_points = 0;
    // Nobody has verified that there is one for each tensor.
    if (names != nullptr && format::count_of(names->scales()) == places_.size() &&
        format::count_of(names->zero_points()) == places_.size()) {
      std::vector<float> all_scales(places_.size());
      std::vector<int32_t> all_zero_points(places_.size());
      for (uint32_t t = 0; t < places_.size(); ++t) {
        if (!places_[t].is_used) continue;
        all_scales[t] = names->scales()->Get(t);
        all_zero_points[t] = names->zero_points()->Get(t);
      }
      scales = builder.CreateVector(all_scales);
      zero_points = builder.CreateVector(all_zero_points);
    }
    format::NamesBuilder table(builder);
    table.add_tensors(tensor_names);
    table.add_steps(step_names);
    table.add_producer(producer);
    table.add_source(source);
    table.add_source_digest(digest);
    if (!scales.IsNull()) {
      table.add_scales(scales);
      table.add_zero_points(zero_points);
    }
    builder.Finish(table.Finish());
    return builder.Release();
  }

  const PlanView& view_;
  const uint32_t first_;
  const format::NpuStep* npu_;
  const uint32_t end_;
  std::vector<Place> places_;  // per tensor
  std::vector<uint32_t> inputs_, outputs_, constants_;
  uint64_t arena_bytes_ = 0, constant_bytes_ = 0;
  const uint8_t* old_ = nullptr;  // the old root
  size_t old_end_ = 0;            // where it begins in the new one, counted from the end
};

}  // namespace

AlignedBytes extract_step(const PlanView& view, uint32_t step) {
  if (step >= view.num_steps()) {
    throw PackError(QPLAN_NOT_FOUND, "extract: there is no step " + std::to_string(step) + ", the plan has " +
                                         std::to_string(view.num_steps()));
  }
  return Extraction(view, step).file();
}

}  // namespace qplan::schedule
