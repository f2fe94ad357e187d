// Plans as text: opening one for a tool that shows it, its parts by name, what `qplan disasm` prints, and
// schedules of steps by the names of what they set.
#include <algorithm>
#include <cstring>
#include <optional>

#include "format/container.h"
#include "qplan/npu_op.h"
#include "src/base/listing.h"
#include "src/base/sha256.h"
#include "src/base/text.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"

namespace qplan::inspect {

PlanReader::PlanReader(std::span<const uint8_t> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % AlignedBytes::kAlignment != 0) {
    copy_ = AlignedBytes(bytes.size());
    std::memcpy(copy_.data(), bytes.data(), bytes.size());
    bytes = copy_.span();
  }
  Error error;
  if (view_.open(bytes.data(), bytes.size(), true, &error) < 0) throw PackError(error.status(), error.text());
}

std::string kernel_name(uint16_t kernel) {
  const char* const name = format::kernel_name(kernel, nullptr);
  return name != nullptr ? name : "kernel " + std::to_string(kernel);
}

std::string shape_text(const format::Tensor& tensor) {
  std::string text;
  for (uint32_t i = 0; i < format::rank_of(tensor); ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(tensor.shape()->Get(i));
  }
  return text.empty() ? "scalar" : text;
}

std::string dtype_text(const format::Tensor& tensor) {
  return format::dtype_name(tensor.type_code(), tensor.type_bits());
}

std::string hexadecimal(const uint8_t* bytes, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string content_digest(const format::PlanView& view) {
  // The header's file size and digest cover the names, its other fields do not.
  format::Header header = view.header();
  header.file_size = 0;
  for (uint8_t& byte : header.digest) byte = 0;
  Sha256 sha;
  sha.update(&header, sizeof(header));
  sha.update(view.bytes() + sizeof(header), static_cast<size_t>(header.content_size) - sizeof(header));
  uint8_t digest[Sha256::kDigestBytes];
  sha.finish(digest);
  return hexadecimal(digest, sizeof(digest));
}

using format::PlanView;

std::vector<bool> alternative_steps(const PlanView& view) {
  std::vector<bool> result(view.num_steps(), false);
  for (uint32_t s = 0; s < view.num_steps(); ++s) {
    const format::NpuStep* npu = view.npu_step(s);
    if (npu == nullptr) continue;
    const uint32_t last = s + std::min(npu->num_alternative_steps(), view.num_steps() - 1 - s);
    for (uint32_t a = s + 1; a <= last; ++a) result[a] = true;
  }
  return result;
}

uint64_t macs_of(const PlanView& view, const format::Function& function) {
  const std::vector<bool> is_fallback = alternative_steps(view);
  uint64_t macs = 0;
  for (uint32_t i = 0; i < function.num_steps(); ++i) {
    const uint32_t s = function.first_step() + i;
    const format::NpuStep* npu = view.npu_step(s);
    if (!is_fallback[s]) macs += npu != nullptr ? npu->macs() : view.step(s).macs();
  }
  return macs;
}

uint32_t bound_tensor(const format::NpuStep& step, const format::NpuBind& bind) {
  if (bind.use() == format::NpuUse_SCRATCH) return UINT32_MAX;
  const auto* tensors = bind.use() == format::NpuUse_INPUT ? step.inputs() : step.outputs();
  return tensors->Get(bind.index());
}

std::string target_name(const PlanView& view, uint32_t target) {
  const auto* targets = view.plan().targets();
  if (target >= format::count_of(targets) || targets->Get(target)->name() == nullptr) return "?";
  return targets->Get(target)->name()->str();
}

std::string bind_text(const PlanView& view, const format::NpuStep& step, const format::NpuBind& bind) {
  std::string text = "slot " + std::to_string(bind.slot()) + ": ";
  const uint32_t tensor = bound_tensor(step, bind);
  if (tensor == UINT32_MAX) {
    text += "scratch";
  } else {
    text += (bind.use() == format::NpuUse_INPUT ? "input %" : "output %") + std::to_string(tensor) + " '" +
            view.tensor_name(tensor) + "'";
  }
  text += ", " + std::to_string(bind.size()) + " bytes at " + std::to_string(bind.offset());
  if (bind.memory_class() != format::MemoryClass_ANY)
    text += std::string(" of ") + qplan_npu_memory_class_name(bind.memory_class());
  if (tensor == UINT32_MAX) return text;
  if (bind.strides() == nullptr) return text + ", in place";
  text += ", copied: strides [";
  for (uint32_t i = 0; i < bind.strides()->size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(bind.strides()->Get(i));
  }
  text += "]";
  if (bind.block() != 0) {
    text += ", blocks of " + std::to_string(bind.block()) + " channels with stride " +
            std::to_string(bind.block_stride());
  }
  text += ", origin " + std::to_string(bind.origin());
  if (bind.byte_stride() != 1) text += ", byte stride " + std::to_string(bind.byte_stride());
  if (bind.use() == format::NpuUse_INPUT) text += ", fill " + std::to_string(bind.fill());
  if (bind.flip() != 0) text += ", flip " + std::to_string(bind.flip());
  if (bind.kept() == 0) return text;
  if (bind.use() == format::NpuUse_OUTPUT) return text + ", kept for later regions";
  text += ", left there " + std::to_string(bind.kept()) + " steps earlier";
  return text;
}

// The lines of `qplan disasm`.
namespace {

// Names come from models: a line stays a line.
std::string in_quotes(const char* name) { return "'" + printable(std::string(name)) + "'"; }

std::string place_text(const PlanView& view, uint32_t index) {
  const format::Tensor& tensor = view.tensor(index);
  const std::string bank = view.is_constant(index)             ? "constants"
                           : tensor.bank() == view.main_bank() ? "arena"
                                                               : "bank" + std::to_string(tensor.bank());
  return bank + "+" + std::to_string(tensor.offset());
}

std::string tensors_text(const PlanView& view, const flatbuffers::Vector<uint32_t>* tensors) {
  std::string text;
  for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
    const uint32_t index = tensors->Get(i);
    const format::Tensor& tensor = view.tensor(index);
    text += (i == 0 ? "" : ", ") + std::string("%") + std::to_string(index) + " " + place_text(view, index) +
            " " + dtype_text(tensor) + " " + shape_text(tensor);
  }
  return text.empty() ? "nothing" : text;
}

// The region, then a line for each of its buffers; the device's own listing is `qplan npu disasm`.
std::string npu_step_text(const PlanView& view, uint32_t index, const format::NpuStep& step) {
  std::string text = std::to_string(index) + "  npu:" + target_name(view, step.target()) + "  " +
                     in_quotes(short_name(view.step_name(index)).c_str()) + "  " +
                     tensors_text(view, step.inputs()) + " -> " + tensors_text(view, step.outputs()) +
                     "  {program=" + four_characters(step.format()) + " " +
                     std::to_string(view.tensor(step.blob()).size()) + " bytes" +
                     (step.memory_class() == format::MemoryClass_ANY
                          ? ""
                          : std::string(" in ") + qplan_npu_memory_class_name(step.memory_class())) +
                     ", operators=" + std::to_string(step.num_operators()) +
                     ", cycles=" + std::to_string(step.estimated_cycles()) +
                     ", alternative_steps=" + std::to_string(step.num_alternative_steps()) + "}";
  if (step.macs() != 0) text += "  " + std::to_string(step.macs()) + " macs";
  text += "\n";
  for (uint32_t i = 0; i < format::count_of(step.binds()); ++i) {
    text += "       " + bind_text(view, step, *step.binds()->Get(i)) + "\n";
  }
  return text;
}

std::string step_text(const PlanView& view, uint32_t index, bool is_fallback) {
  if (const format::NpuStep* npu = view.npu_step(index)) return npu_step_text(view, index, *npu);
  const format::KernelStep& step = view.step(index);
  std::string text = std::string(is_fallback ? "| " : "") + std::to_string(index) + "  " +
                     kernel_name(step.kernel()) + "  " +
                     in_quotes(short_name(view.step_name(index)).c_str()) + "  " +
                     tensors_text(view, step.inputs()) + " -> " + tensors_text(view, step.outputs()) + "  {";
  bool first = true;
  for (const auto& [name, value] : step_params(step)) {
    text += (first ? "" : ", ") + name + "=" + value;
    first = false;
  }
  text += "}";
  if (step.macs() != 0) text += "  " + std::to_string(step.macs()) + " macs";
  const std::string schedule = schedule_text(step.kernel(), {.bytes = step.schedule()});
  if (!schedule.empty()) text += "  schedule {" + schedule + "}";
  return text + "\n";
}

std::string function_text(const PlanView& view, const format::Function& function) {
  std::string text = "function " + in_quotes(function.name()->c_str()) + "  " +
                     tensors_text(view, function.inputs()) + " -> " + tensors_text(view, function.outputs()) +
                     "  scratch " + std::to_string(function.scratch_per_worker()) + " bytes a worker\n";
  for (uint32_t i = 0; i < format::count_of(function.states()); ++i) {
    const format::State& state = *function.states()->Get(i);
    text += "  state %" + std::to_string(state.input()) + " <- %" + std::to_string(state.output()) + "  " +
            std::to_string(view.tensor(state.input()).size()) + " bytes, at first " +
            (state.initial() == format::kNoTensorIndex ? "all " + std::to_string(state.fill())
                                                       : "%" + std::to_string(state.initial())) +
            "\n";
  }
  if (const uint32_t count = format::count_of(function.self_checks()); count > 0)
    text += "  self-checks: " + std::to_string(count) + "\n";
  const std::vector<bool> is_fallback = alternative_steps(view);
  for (uint32_t i = 0; i < function.num_steps(); ++i) {
    const uint32_t s = function.first_step() + i;
    text += "  " + step_text(view, s, is_fallback[s]);
  }
  return text;
}

}  // namespace

std::string disassemble(const PlanView& view) {
  std::string text = "plan " + std::to_string(view.header().version_major) + "." +
                     std::to_string(view.header().version_minor) + "  " +
                     std::to_string(view.header().file_size) + " bytes, arena " +
                     std::to_string(view.bank(view.main_bank()).size()) + " bytes\n";
  for (uint32_t i = 0; i < view.num_functions(); ++i) text += function_text(view, view.function(i));
  return text;
}

// Schedules.

namespace {

using ir::Json;

constexpr uint32_t kIsaShift = 56;

[[noreturn]] void fail(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

// The setting of the knob whose value this is.
std::optional<uint64_t> setting_of(const Knob& knob, const Json& value) {
  for (uint64_t s = 1; s <= knob.num_values; ++s) {
    if (value.is_number_integer() && value == knob.values[s - 1]) return s;
  }
  return std::nullopt;
}

std::string values_text(const Knob& knob) {
  std::string text;
  for (uint32_t v = 0; v < knob.num_values; ++v)
    text += (text.empty() ? "" : ", ") + std::to_string(knob.values[v]);
  return text;
}

uint64_t parse_isa(const Json& value) {
  uint32_t isa = QPLAN_ISA_AUTO;
  if (!value.is_string() || qplan_isa_from_name(value.get_ref<const std::string&>().c_str(), &isa) < 0 ||
      isa == QPLAN_ISA_AUTO) {
    fail("isa " + ir::json_text(value) + " is not an instruction set");
  }
  return isa;
}

double parse_grain(const Json& value) {
  if (value.is_number()) {
    const auto grain = value.get<double>();
    if (grain == 1 || std::ranges::find(kGrains, grain) != std::end(kGrains)) return grain;
  }
  fail("grain " + ir::json_text(value) + " is not one of 0.25, 0.5, 1, 2, 4");
}

}  // namespace

std::span<const Knob> knobs_of(uint16_t kernel) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  const KernelFamily* family = kernel < all.num_families ? all.families[kernel] : nullptr;
  for (uint32_t v = 0; family != nullptr && v < family->num_variants; ++v) {
    const KernelVariant& variant = family->variants[v];
    if (variant.num_knobs != 0) return {variant.knobs, variant.num_knobs};
  }
  return {};
}

Json schedule_json(uint16_t kernel, const target::StepSchedule& schedule) {
  Json json = Json::object();
  const std::span<const Knob> knobs = knobs_of(kernel);
  for (uint32_t k = 0; k < knobs.size(); ++k) {
    const uint32_t value = knob_value(schedule.bytes, knobs.data(), k);
    if (value != 0) json[knobs[k].name] = value;
  }
  const uint32_t isa = schedule_isa(schedule.bytes);
  if (isa != 0 && qplan_isa_name(isa) != nullptr) json["isa"] = qplan_isa_name(isa);
  if (schedule.grain != 1) json["grain"] = schedule.grain;
  return json;
}

std::string schedule_text(uint16_t kernel, const target::StepSchedule& schedule) {
  const Json json = schedule_json(kernel, schedule);
  std::string text;
  for (const auto& [name, value] : json.items()) {
    text += (text.empty() ? "" : ", ") + name + "=" +
            (value.is_string() ? value.get<std::string>() : ir::json_text(value));
  }
  return text;
}

target::StepSchedule parse_schedule(uint16_t kernel, const Json& settings) {
  if (!settings.is_object())
    fail("a schedule is an object of names and values, found " + ir::json_text(settings));
  target::StepSchedule schedule;
  const std::span<const Knob> knobs = knobs_of(kernel);
  for (const auto& [name, value] : settings.items()) {
    if (name == "isa") {
      schedule.bytes |= parse_isa(value) << kIsaShift;
      continue;
    }
    if (name == "grain") {
      schedule.grain = parse_grain(value);
      continue;
    }
    const auto knob =
        std::ranges::find_if(knobs, [&name = name](const Knob& known) { return name == known.name; });
    if (knob == knobs.end()) {
      std::string known = "isa, grain";
      for (const Knob& k : knobs) known += std::string(", ") + k.name;
      fail(kernel_name(kernel) + " has no knob '" + name + "', only " + known);
    }
    const std::optional<uint64_t> setting = setting_of(*knob, value);
    if (!setting)
      fail("knob '" + name + "' of " + kernel_name(kernel) + " has no value " + ir::json_text(value) +
           ", only " + values_text(*knob));
    schedule.bytes |= *setting << (8 * (knob - knobs.begin()));
  }
  return schedule;
}

}  // namespace qplan::inspect
