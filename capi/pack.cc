// The packer's C API: options in, exceptions out as status and text.
#include "qplan/pack.h"

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/pack_arguments.h"
#include "capi/pack_guard.h"
#include "src/packer/emit/emit.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/runtime/structs.h"

namespace qplan {
namespace {

ExplainFormat explain_format(int format) {
  switch (format) {
    case QPLAN_EXPLAIN_TEXT:
      return ExplainFormat::kText;
    case QPLAN_EXPLAIN_JSON:
      return ExplainFormat::kJson;
    case QPLAN_EXPLAIN_HTML:
      return ExplainFormat::kHtml;
    default:
      fail(QPLAN_INVALID_ARGUMENT,
           "explain: format " + std::to_string(format) + " is not one of QPLAN_EXPLAIN_*");
  }
}

// imported: when the model's bytes are not needed again; may be empty.
void pack_to(std::span<const uint8_t> model, const char* name, const qplan_pack_options& options,
             std::function<void()> imported, qplan_write_fn write, void* user) {
  PackOptions pack_options = read_options(options);
  pack_options.imported = std::move(imported);
  const AlignedBytes plan = pack(model, name, pack_options);
  write(user, reinterpret_cast<const char*>(plan.data()), plan.size());
}

}  // namespace
}  // namespace qplan

qplan_status qplan_pack_file(const char* model_path, const qplan_pack_options* options, qplan_write_fn write,
                             void* write_user, qplan_error* error) {
  const qplan_pack_options whole = qplan::whole_options(options);
  return qplan::guarded(whole, error, [&] {
    qplan::check_write(write);
    const qplan::MappedFile file(model_path);
    qplan::pack_to(
        file.bytes(), model_path, whole, [&file] { file.forget(); }, write, write_user);
  });
}

qplan_status qplan_pack_bytes(const void* model, size_t size, const char* name,
                              const qplan_pack_options* options, qplan_write_fn write, void* write_user,
                              qplan_error* error) {
  const qplan_pack_options whole = qplan::whole_options(options);
  return qplan::guarded(whole, error, [&] {
    qplan::check_write(write);
    const std::span<const uint8_t> bytes = qplan::bytes_of(model, size, "model");
    qplan::pack_to(bytes, name == nullptr ? "model" : name, whole, {}, write, write_user);
  });
}

qplan_status qplan_import_text(const char* model_path, const qplan_pack_options* options, int canonical,
                               qplan_write_fn write, void* write_user, qplan_error* error) {
  const qplan_pack_options whole = qplan::whole_options(options);
  return qplan::guarded(whole, error, [&] {
    qplan::check_write(write);
    const qplan::MappedFile file(model_path);
    const std::string text =
        qplan::model_text(file.bytes(), model_path, qplan::read_options(whole), canonical != 0);
    qplan::write_text(text, write, write_user);
  });
}

qplan_status qplan_compare_models(const char* model_path, const char* other_path,
                                  const qplan_pack_options* options, qplan_write_fn write, void* write_user,
                                  int* same, qplan_error* error) {
  const qplan_pack_options whole = qplan::whole_options(options);
  return qplan::guarded(whole, error, [&] {
    qplan::check_write(write);
    if (same == nullptr) throw qplan::PackError(QPLAN_INVALID_ARGUMENT, "same is NULL");
    const qplan::MappedFile model(model_path), other(other_path);
    const qplan::BodyComparison comparison = qplan::compare_models(
        {model.bytes(), model_path}, {other.bytes(), other_path}, qplan::read_options(whole));
    *same = comparison.same ? 1 : 0;
    qplan::write_lines(comparison.text, write, write_user);
  });
}

qplan_status qplan_explain(const char* path, const qplan_pack_options* options, int format,
                           qplan_write_fn write, void* write_user, qplan_error* error) {
  const qplan_pack_options whole = qplan::whole_options(options);
  return qplan::guarded(whole, error, [&] {
    qplan::check_write(write);
    if (format == QPLAN_EXPLAIN_COVERAGE) {
      const qplan::MappedFile model(path);
      qplan::write_text(qplan::coverage_json(model.bytes(), path, qplan::read_options(whole)), write,
                        write_user);
      return;
    }
    const qplan::ExplainFormat checked = qplan::explain_format(format);
    const qplan::MappedFile file(path);
    const std::string text = qplan::explain_text(file.bytes(), path, qplan::read_options(whole), checked);
    const bool is_text = checked == qplan::ExplainFormat::kText;
    (is_text ? qplan::write_lines : qplan::write_text)(text, write, write_user);
  });
}

namespace {

// The options of C that is written. what: "emit-c", "link".
qplan_emit_options known_options(const char* what, const qplan_emit_options* options,
                                 qplan_write_file_fn write) {
  const std::string label = what;
  if (write == nullptr) qplan::fail(QPLAN_INVALID_ARGUMENT, label + ": write is NULL");
  if (options == nullptr || options->struct_size == 0) {
    qplan::fail(QPLAN_INVALID_ARGUMENT, label + ": options is NULL, or its struct_size is 0");
  }
  const qplan_emit_options known = qplan::known_fields(options);
  if (known.name == nullptr) qplan::fail(QPLAN_INVALID_ARGUMENT, label + ": name is NULL");
  return known;
}

void check_no_custom_operators(const qplan::format::PlanView& view) {
  for (uint32_t i = 0; i < view.num_steps(); ++i) {
    if (view.npu_step(i) != nullptr) continue;
    const auto* custom = view.step(i).params_as_CustomParams();
    if (custom == nullptr) continue;
    const std::string name =
        custom->name() == nullptr ? std::string() : qplan::printable(custom->name()->str());
    qplan::fail(QPLAN_MODEL_UNSUPPORTED, "emit-c: step " + std::to_string(i) + " is the custom operator '" +
                                             name +
                                             "', which a program cannot contain; run the plan with "
                                             "qplan_kernels_with_custom (docs/custom-operators.md)");
  }
}

std::string label_of(uint32_t plan) { return "link: plan " + std::to_string(plan); }

// The entry at `at`; next: the one after it.
qplan_linked_plan linked_plan(uint32_t index, const uint8_t* at, const uint8_t** next) {
  const auto& from = *reinterpret_cast<const qplan_linked_plan*>(at);
  const auto refuse = [&](const std::string& what) {
    qplan::fail(QPLAN_INVALID_ARGUMENT, label_of(index) + ": " + what);
  };
  constexpr uint32_t kUnit = alignof(qplan_linked_plan);
  if (from.struct_size == 0 || from.struct_size % kUnit != 0) {
    refuse("struct_size is " + std::to_string(from.struct_size) + ", expected a multiple of " +
           std::to_string(kUnit) + ", as the " + std::to_string(sizeof(qplan_linked_plan)) +
           " of this version");
  }
  *next = at + from.struct_size;
  const qplan_linked_plan plan = qplan::known_fields(&from);
  if (plan.reserved != 0) refuse("reserved is " + std::to_string(plan.reserved) + ", expected 0");
  if (plan.plan == nullptr) refuse("plan is NULL");
  if (plan.name == nullptr) refuse("name is NULL");
  return plan;
}

void hand_over(const std::vector<qplan::emit::EmittedFile>& files, qplan_write_file_fn write, void* user) {
  for (const qplan::emit::EmittedFile& file : files)
    write(user, file.name.c_str(), file.text.data(), file.text.size());
}

}  // namespace

qplan_status qplan_emit_c(const void* plan, size_t size, const qplan_emit_options* options,
                          qplan_write_file_fn write, void* user, qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    const qplan_emit_options known = known_options("emit-c", options, write);
    const std::span<const uint8_t> bytes = qplan::bytes_of(plan, size, "plan");
    const qplan::inspect::PlanReader reader(bytes);
    check_no_custom_operators(reader.view());
    hand_over(qplan::emit::emit_c(reader.view(), bytes, {known.name, known.aot != 0, known.isa}), write,
              user);
  });
}

qplan_status qplan_link_c(const qplan_linked_plan* plans, uint32_t num_plans,
                          const qplan_emit_options* options, qplan_write_file_fn write, void* user,
                          qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    const qplan_emit_options known = known_options("link", options, write);
    if (plans == nullptr || num_plans == 0) qplan::fail(QPLAN_INVALID_ARGUMENT, "link: there are no plans");
    std::deque<qplan::inspect::PlanReader> readers;
    std::vector<qplan::emit::LinkedPlan> linked;
    const auto* entry = reinterpret_cast<const uint8_t*>(plans);
    for (uint32_t i = 0; i < num_plans; ++i) {
      const qplan_linked_plan plan = linked_plan(i, entry, &entry);
      const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(plan.plan), plan.size);
      try {
        check_no_custom_operators(readers.emplace_back(bytes).view());
      } catch (const qplan::PackError& failure) {
        qplan::fail(failure.status(),
                    label_of(i) + " '" + qplan::printable(std::string(plan.name)) + "': " + failure.what());
      }
      linked.push_back({readers.back().view(), bytes, plan.name});
    }
    hand_over(qplan::emit::emit_linked(linked, {known.name, known.aot != 0, known.isa}), write, user);
  });
}
