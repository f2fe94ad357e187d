#include <iterator>

#include "format/memory_layout.h"
#include "qplan/npu_op.h"
#include "src/base/listing.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/json.h"
#include "src/runtime/bind/family.h"

namespace qplan::inspect {
namespace {

using format::PlanView;
using ir::Json;

constexpr uint64_t kWorkerCounts[] = {1, 2, 4};

std::string text_of(const flatbuffers::String* string) { return string == nullptr ? "" : string->str(); }

Json tensor_json(const PlanView& view, uint32_t index) {
  const format::Tensor& tensor = view.tensor(index);
  Json json;
  json["name"] = view.tensor_name(index);
  json["dtype"] = dtype_text(tensor);
  json["shape"] = Json::array();
  for (uint32_t i = 0; i < format::rank_of(tensor); ++i) json["shape"].push_back(tensor.shape()->Get(i));
  json["bytes"] = tensor.size();
  json["scale"] = nullptr;
  json["zero_point"] = nullptr;
  const float* scale = nullptr;
  const int32_t* zero_point = nullptr;
  const format::Quantization* quantization = tensor.quantization();
  const uint32_t count = quantization == nullptr ? 0 : format::count_of(quantization->scales());
  if (count == 1) {
    json["scale"] = quantization->scales()->Get(0);
    json["zero_point"] = quantization->zero_points()->Get(0);
  } else if (count > 1) {
    json["scale"] = std::vector<float>(quantization->scales()->begin(), quantization->scales()->end());
    json["zero_point"] =
        std::vector<int32_t>(quantization->zero_points()->begin(), quantization->zero_points()->end());
    json["axis"] = quantization->axis();
  } else if (view.inner_quantization(index, &scale, &zero_point)) {
    json["scale"] = *scale;
    json["zero_point"] = *zero_point;
  }
  return json;
}

Json tensors_json(const PlanView& view, const flatbuffers::Vector<uint32_t>* tensors) {
  Json json = Json::array();
  for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
    json.push_back(tensor_json(view, tensors->Get(i)));
    json.back()["tensor"] = tensors->Get(i);  // its position in "tensors"
  }
  return json;
}

uint64_t constants_bytes(const PlanView& view) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < view.num_banks(); ++i) {
    if (view.bank(i).kind() == format::BankKind_CONSTANT) bytes += view.bank(i).size();
  }
  return bytes;
}

// Bytes of memory 0 of a session of the function, on a device with such pointers.
uint64_t total_bytes(const PlanView& view, const format::Function& function, uint64_t pointer_size,
                     uint64_t num_workers) {
  format::MemoryLayout layout;
  return format::memory_layout(view.memory_counts(function, pointer_size), pointer_size, num_workers, &layout)
             ? layout.total
             : UINT64_MAX;
}

// What the function keeps between runs.
Json states_json(const PlanView& view, const format::Function& main) {
  Json json = Json::array();
  for (uint32_t i = 0; i < format::count_of(main.states()); ++i) {
    const format::State& state = *main.states()->Get(i);
    Json entry;
    entry["input"] = state.input();
    entry["output"] = state.output();
    entry["name"] = view.tensor_name(state.input());
    entry["bytes"] = view.tensor(state.input()).size();
    entry["in_place"] = format::same_range(view.tensor(state.input()), view.tensor(state.output()));
    entry["initial"] = state.initial() == format::kNoTensorIndex ? Json() : Json(state.initial());
    entry["fill"] = state.initial() == format::kNoTensorIndex ? Json(state.fill()) : Json();
    json.push_back(std::move(entry));
  }
  return json;
}

// The model's metadata. It is null if the plan has none, if it is not a JSON object, or if it nests too deep
// for the programs that read the whole report.
Json metadata_json(const PlanView& view) {
  constexpr size_t kMaxDepth = 16;
  const std::string text = view.names() == nullptr ? "" : text_of(view.names()->metadata());
  if (text.empty() || ir::exceeds_json_depth(text, kMaxDepth)) return {};
  Json json = ir::parse_json(text);
  return json.is_object() ? json : Json();
}

// What a session of one worker keeps for itself, states included, and what it takes of an arena that others
// use before and after its runs (`qplan link`).
Json shared_json(const PlanView& view, const format::Function& main) {
  const std::string refusal = arena_refusal(view);
  if (!refusal.empty()) return {{"refusal", refusal}};
  Json json = Json::object();
  for (const uint64_t pointer_size : {uint64_t{4}, uint64_t{8}}) {
    format::MemoryLayout layout;
    if (!format::memory_layout(view.memory_counts(main, pointer_size), pointer_size, 1, &layout)) continue;
    const format::SharedLayout shared = format::shared_layout(layout, view.state_bytes(main, pointer_size));
    json[pointer_size == 4 ? "32_bit" : "64_bit"] = {{"kept_bytes", shared.own},
                                                     {"arena_bytes", shared.arena}};
  }
  return json;
}

// Constants that a session copies where it begins, for its steps to read. area: 0 is the session's memory,
// others are positions in "areas", from 1 on.
Json copies_json(const PlanView& view) {
  Json json = Json::array();
  for (uint32_t i = 0; i < format::count_of(view.plan().copies()); ++i) {
    const format::ConstantCopy& copy = *view.plan().copies()->Get(i);
    uint32_t area = 0;
    for (uint32_t bank = view.main_bank(); bank < copy.bank(); ++bank)
      area += view.bank(bank + 1).kind() == format::BankKind_ARENA ? 1 : 0;
    json.push_back({{"tensor", copy.tensor()},
                    {"name", view.tensor_name(copy.tensor())},
                    {"bytes", view.tensor(copy.tensor()).size()},
                    {"from_bank", view.tensor(copy.tensor()).bank()},
                    {"bank", copy.bank()},
                    {"area", area},
                    {"offset", copy.offset()},
                    {"bytes_read", copy.bytes_read()},
                    {"saved_cost", copy.saved_cost()}});
  }
  return json;
}

Json memory_json(const PlanView& view) {
  const format::Function& main = *view.find_function(nullptr);
  Json json;
  json["arena_bytes"] = view.bank(view.main_bank()).size();
  json["arena_lower_bound_bytes"] = view.plan().arena_lower_bound();
  json["scratch_per_worker_bytes"] = main.scratch_per_worker();
  json["constants_bytes"] = constants_bytes(view);
  uint64_t device_bytes = 0;
  for (uint32_t i = 0; i < view.num_banks(); ++i) {
    if (view.bank(i).kind() == format::BankKind_DEVICE) device_bytes += view.bank(i).size();
  }
  json["device_bytes"] = device_bytes;
  json["areas"] = Json::array();  // of memory areas after the first: memories of a session beside memory 0
  for (uint32_t i = 0; i < view.num_banks(); ++i) {
    if (view.bank(i).kind() == format::BankKind_ARENA && i != view.main_bank())
      json["areas"].push_back({{"bank", i}, {"bytes", view.bank(i).size()}});
  }
  json["copies"] = copies_json(view);
  uint64_t state_bytes = 0;  // of the arena
  for (uint32_t i = 0; i < format::count_of(main.states()); ++i)
    state_bytes += view.tensor(main.states()->Get(i)->input()).size();
  json["state_bytes"] = state_bytes;
  json["overwrites_inputs"] = main.overwrites_inputs();
  // Everything a session needs beside the plan itself.
  json["session_bytes"] = Json::object();
  for (const uint64_t pointer_size : {uint64_t{4}, uint64_t{8}}) {
    Json by_workers;
    for (const uint64_t workers : kWorkerCounts) {
      by_workers[std::to_string(workers)] = total_bytes(view, main, pointer_size, workers);
    }
    json["session_bytes"][pointer_size == 4 ? "32_bit" : "64_bit"] = by_workers;
  }
  json["shared_arena"] = shared_json(view, main);
  const std::optional<target::TargetProfile> profile = target_profile(view);
  json["target_pointer_bits"] = profile ? Json(8 * profile->pointer_size) : Json();
  const StackBytes stack = stack_bytes(view, main);
  json["stack_bytes"] = {{"32_bit", {{"open", stack.open}, {"invoke", stack.invoke}}}};
  return json;
}

Json bank_json(const PlanView& view, uint32_t index) {
  static constexpr const char* kKinds[] = {"constants", "arena", "device"};
  const format::Bank& bank = view.bank(index);
  Json json;
  json["kind"] = kKinds[bank.kind()];
  json["bytes"] = bank.size();
  json["alignment"] = bank.alignment();
  if (bank.kind() == format::BankKind_CONSTANT) json["file_offset"] = bank.file_offset();
  if (bank.kind() == format::BankKind_DEVICE) {
    json["target"] = target_name(view, bank.target());
    json["memory_class"] = qplan_npu_memory_class_name(bank.memory_class());
  }
  return json;
}

Json bind_json(const format::NpuStep& step, const format::NpuBind& bind) {
  static constexpr const char* kUses[] = {"input", "output", "scratch"};
  Json json;
  json["slot"] = bind.slot();
  json["use"] = kUses[bind.use()];
  json["offset"] = bind.offset();
  json["bytes"] = bind.size();
  json["memory_class"] = qplan_npu_memory_class_name(bind.memory_class());
  if (bind.use() == format::NpuUse_SCRATCH) return json;
  json["tensor"] = bound_tensor(step, bind);
  json["in_place"] = bind.strides() == nullptr;
  if (bind.strides() == nullptr) return json;
  json["strides"] = std::vector<uint64_t>(bind.strides()->begin(), bind.strides()->end());
  json["origin"] = bind.origin();
  json["byte_stride"] = bind.byte_stride();
  json["fill"] = bind.fill();
  json["flip"] = bind.flip();
  json["block"] = bind.block();
  json["block_stride"] = bind.block_stride();
  json["kept"] = bind.kept();
  return json;
}

Json region_json(const PlanView& view, uint32_t index, const format::NpuStep& step) {
  uint64_t copies = 0, copy_bytes = 0;
  Json binds = Json::array();
  for (uint32_t i = 0; i < format::count_of(step.binds()); ++i) {
    const format::NpuBind& bind = *step.binds()->Get(i);
    binds.push_back(bind_json(step, bind));
    if (bind.use() == format::NpuUse_SCRATCH || bind.strides() == nullptr) continue;
    if (bind.use() == format::NpuUse_INPUT ? bind.kept() != 0 : bind.kept() == format::kKeptAlone) continue;
    ++copies;
    copy_bytes += view.tensor(bound_tensor(step, bind)).size();
  }
  Json json;
  json["step"] = index;
  json["name"] = view.step_name(index);
  json["target"] = target_name(view, step.target());
  json["operators"] = step.num_operators();
  json["macs"] = step.macs();
  json["estimated_cycles"] = step.estimated_cycles();
  json["program_bytes"] = step.program_bytes();
  json["blob_format"] = four_characters(step.format());
  json["blob_offset"] =
      view.bank(view.tensor(step.blob()).bank()).file_offset() + view.tensor(step.blob()).offset();
  json["blob_bytes"] = view.tensor(step.blob()).size();
  json["memory_class"] = qplan_npu_memory_class_name(step.memory_class());
  json["copies"] = copies;
  json["copy_bytes"] = copy_bytes;
  json["alternative_steps"] = step.num_alternative_steps();
  json["binds"] = std::move(binds);
  return json;
}

Json regions_json(const PlanView& view) {
  Json json = Json::array();
  for (uint32_t s = 0; s < view.num_steps(); ++s) {
    if (const format::NpuStep* npu = view.npu_step(s)) json.push_back(region_json(view, s, *npu));
  }
  return json;
}

// Every tensor with its place: what a report of memory over time needs.
Json placed_tensors_json(const PlanView& view) {
  Json json = Json::array();
  for (uint32_t t = 0; t < view.num_tensors(); ++t) {
    const format::Tensor& tensor = view.tensor(t);
    Json entry = tensor_json(view, t);
    entry["bank"] = tensor.bank();
    entry["offset"] = tensor.offset();
    entry["first_use"] = tensor.first_use();
    entry["last_use"] = tensor.last_use();
    json.push_back(std::move(entry));
  }
  return json;
}

// Null where this build does not know the kernel, or where the kernel refuses the step.
Json work_json(const PlanView& view, uint32_t index) {
  Error unused;
  uint64_t work = 0;
  return step_work(view, index, *qplan_kernels_all(), &work, &unused) < 0 ? Json() : Json(work);
}
Json work_json(const PlanView& view, const format::Function& function) {
  Error unused;
  uint64_t work = 0;
  return function_work(view, function, *qplan_kernels_all(), &work, &unused) < 0 ? Json() : Json(work);
}

// Members that kernels' steps and regions both have.
template <typename Step>
Json common_step_json(const PlanView& view, uint32_t index, const std::string& op, const Step& step) {
  Json json;
  json["index"] = index;
  json["op"] = op;
  json["name"] = view.step_name(index);
  json["inputs"] = Json::array();
  json["outputs"] = Json::array();
  json["input_shapes"] = Json::array();
  json["output_shapes"] = Json::array();
  for (uint32_t i = 0; i < format::count_of(step.inputs()); ++i) {
    json["inputs"].push_back(step.inputs()->Get(i));
    json["input_shapes"].push_back(shape_text(view.tensor(step.inputs()->Get(i))));
  }
  for (uint32_t i = 0; i < format::count_of(step.outputs()); ++i) {
    json["outputs"].push_back(step.outputs()->Get(i));
    json["output_shapes"].push_back(shape_text(view.tensor(step.outputs()->Get(i))));
  }
  json["macs"] = step.macs();
  json["work"] = work_json(view, index);
  return json;
}

// A region's step has no parameters; "regions" describes it.
Json step_json(const PlanView& view, uint32_t index, bool is_fallback, const std::vector<uint32_t>& isas) {
  if (const format::NpuStep* npu = view.npu_step(index)) {
    Json json = common_step_json(view, index, "npu", *npu);
    json["params"] = Json::object();
    json["params"]["target"] = target_name(view, npu->target());
    json["params"]["num_alternative_steps"] = std::to_string(npu->num_alternative_steps());
    return json;
  }
  const format::KernelStep& step = view.step(index);
  Json json = common_step_json(view, index, kernel_name(step.kernel()), step);
  if (is_fallback) json["alternative"] = true;
  json["params"] = Json::object();
  for (const auto& [name, value] : step_params(step)) json["params"][name] = value;
  json["min_units_per_task"] = step.min_units_per_task();
  json["schedule"] = schedule_json(step.kernel(), {.bytes = step.schedule()});
  json["cost"] = cost_json(StepView::without_addresses(view.plan(), step, view.bytes()));
  add_variants(view, index, isas, &json);
  if (step.kernel() == kKernel_chain) json["repeated_work"] = repeated_work(view, index);
  return json;
}

Json function_json(const PlanView& view, const format::Function& function) {
  Json json;
  json["name"] = text_of(function.name());
  json["first_step"] = function.first_step();
  json["num_steps"] = function.num_steps();
  json["macs"] = macs_of(view, function);
  json["work"] = work_json(view, function);
  return json;
}

}  // namespace

std::string arena_refusal(const PlanView& view) {
  uint32_t areas = 0;
  for (uint32_t i = 0; i < view.num_banks(); ++i)
    areas += view.bank(i).kind() == format::BankKind_ARENA ? 1 : 0;
  if (areas <= 1 && format::count_of(view.plan().copies()) > 0)
    return "the plan has copies of constants in its memory, which other models would write over; pack the "
           "model "
           "without 'copy_constants'";
  if (areas <= 1) return "";
  return "the plan has activations in " + std::to_string(areas) +
         " memory areas, of which none can be shared; pack the model without areas";
}

std::string inspect_json(const PlanView& view) {
  const format::Header& header = view.header();
  const format::Function& main = *view.find_function(nullptr);
  Json json;
  json["version"] = std::to_string(header.version_major) + "." + std::to_string(header.version_minor);
  json["file_bytes"] = header.file_size;
  json["content_digest"] = content_digest(view);
  json["provenance"] = nullptr;
  if (view.names() != nullptr) {
    json["provenance"] = Json::object();
    json["provenance"]["producer"] = text_of(view.names()->producer());
    json["provenance"]["source"] = text_of(view.names()->source());
    json["provenance"]["source_digest"] = text_of(view.names()->source_digest());
  }
  json["targets"] = Json::array();
  for (uint32_t i = 0; i < format::count_of(view.plan().targets()); ++i) {
    const format::Target& target = *view.plan().targets()->Get(i);
    json["targets"].push_back({{"name", text_of(target.name())}, {"options", text_of(target.options())}});
  }
  json["functions"] = Json::array();
  for (uint32_t i = 0; i < view.num_functions(); ++i)
    json["functions"].push_back(function_json(view, view.function(i)));
  json["inputs"] = tensors_json(view, main.inputs());
  json["outputs"] = tensors_json(view, main.outputs());
  json["states"] = states_json(view, main);
  json["self_checks"] = format::count_of(main.self_checks());
  json["metadata"] = metadata_json(view);
  json["memory"] = memory_json(view);
  json["banks"] = Json::array();
  for (uint32_t i = 0; i < view.num_banks(); ++i) json["banks"].push_back(bank_json(view, i));
  json["regions"] = regions_json(view);
  json["tensors"] = placed_tensors_json(view);
  json["steps"] = Json::array();
  const std::vector<bool> is_fallback = alternative_steps(view);
  const std::vector<uint32_t> isas = target_isas(view);
  for (uint32_t i = 0; i < view.num_steps(); ++i) {
    json["steps"].push_back(step_json(view, i, is_fallback[i], isas));
  }
  // Names come from models: bytes that are no UTF-8 are replaced, not refused.
  return ir::json_text(json, 2) + "\n";
}

}  // namespace qplan::inspect
