// The packer's C API: options in, exceptions out as status and text.
#include "qplan/pack.h"

#include <exception>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "capi/pack_arguments.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/packer/emit/emit.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/schedule/schedule.h"
#include "src/runtime/structs.h"

namespace qplan {
namespace {

// A list of faults, one line each, as one line: "3 operators ...: 2 x SVDF; 1 x CUMSUM".
std::string one_line(std::string_view text) {
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n') {
      line += text[i];
      continue;
    }
    line += line.ends_with(':') ? " " : "; ";
    while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
  }
  return line;
}

qplan_status report(qplan_status status, const std::string& what, const qplan_pack_options& options,
                    qplan_error* error) {
  const std::string text = printable(what, /*keep_line_feeds=*/true);
  if (options.error_text != nullptr) options.error_text(options.user, text.c_str(), text.size());
  if (error != nullptr) {
    Error record;
    record.set(status) << one_line(text).c_str();
    record.copy_to(error);
  }
  return status;
}

qplan_status report_without_memory(qplan_status status, const char* text, qplan_error* error) noexcept {
  if (error != nullptr) {
    Error record;
    record.set(status) << text;
    record.copy_to(error);
  }
  return status;
}

// Runs work; what it throws becomes the status and the text.
template <typename Work>
qplan_status guarded(const qplan_pack_options& options, qplan_error* error, const Work& work) noexcept {
  try {
    try {
      work();
      return QPLAN_OK;
    } catch (const PackError& e) {
      return report(e.status(), e.what(), options, error);
    } catch (const std::bad_alloc&) {
      return report(QPLAN_OUT_OF_MEMORY, "pack: out of memory", options, error);
    } catch (const std::exception& e) {
      const std::string text = std::string("pack: ") + e.what() + "; this is a defect of the packer";
      return report(QPLAN_INTERNAL, text, options, error);
    }
  } catch (const std::bad_alloc&) {  // not even the text above fits
    return report_without_memory(QPLAN_OUT_OF_MEMORY, "pack: out of memory", error);
  } catch (...) {  // an exception of the caller's own
    return report_without_memory(QPLAN_INTERNAL, "pack: an unknown exception", error);
  }
}

[[noreturn]] void fail(qplan_status status, const std::string& text) { throw PackError(status, text); }

std::span<const uint8_t> bytes_of(const void* bytes, size_t size, const char* what) {
  if (bytes == nullptr && size != 0) fail(QPLAN_INVALID_ARGUMENT, std::string("pack: ") + what + " is NULL");
  return {static_cast<const uint8_t*>(bytes), size};
}

void check_write(qplan_write_fn write) {
  if (write == nullptr) fail(QPLAN_INVALID_ARGUMENT, "pack: write is NULL");
}

void write_text(const std::string& text, qplan_write_fn write, void* user) {
  write(user, text.data(), text.size());
}
// A text for people: names of a model may hold anything, and this goes to a terminal.
void write_lines(const std::string& text, qplan_write_fn write, void* user) {
  write_text(printable(text, /*keep_line_feeds=*/true), write, user);
}

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

qplan_status qplan_inspect_json(const void* plan, size_t size, qplan_write_fn write, void* user,
                                qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    qplan::write_text(qplan::inspect::inspect_json(reader.view()), write, user);
  });
}

qplan_status qplan_emit_c(const void* plan, size_t size, const qplan_emit_options* options,
                          qplan_write_file_fn write, void* user, qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    if (write == nullptr) qplan::fail(QPLAN_INVALID_ARGUMENT, "emit-c: write is NULL");
    if (options == nullptr || options->struct_size == 0) {
      qplan::fail(QPLAN_INVALID_ARGUMENT, "emit-c: options is NULL, or its struct_size is 0");
    }
    const qplan_emit_options known = qplan::known_fields(options);
    if (known.name == nullptr) qplan::fail(QPLAN_INVALID_ARGUMENT, "emit-c: name is NULL");
    const std::span<const uint8_t> bytes = qplan::bytes_of(plan, size, "plan");
    const qplan::inspect::PlanReader reader(bytes);
    const qplan::emit::EmitOptions emit_options = {known.name, known.aot != 0, known.isa};
    for (const qplan::emit::EmittedFile& file : qplan::emit::emit_c(reader.view(), bytes, emit_options)) {
      write(user, file.name.c_str(), file.text.data(), file.text.size());
    }
  });
}

qplan_status qplan_tuning_space(const void* plan, size_t size, uint32_t isa_limit, uint32_t num_threads,
                                qplan_write_fn write, void* user, qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    qplan::write_text(qplan::schedule::tuning_space(reader.view(), isa_limit, num_threads), write, user);
  });
}

qplan_status qplan_reschedule(const void* plan, size_t size, const char* schedules, qplan_write_fn write,
                              void* user, qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    if (schedules == nullptr) qplan::fail(QPLAN_INVALID_ARGUMENT, "pack: schedules is NULL");
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    const qplan::AlignedBytes result = qplan::schedule::reschedule(reader.view(), schedules);
    write(user, reinterpret_cast<const char*>(result.data()), result.size());
  });
}

qplan_status qplan_disassemble(const void* plan, size_t size, qplan_write_fn write, void* user,
                               qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    qplan::write_lines(qplan::inspect::disassemble(reader.view()), write, user);
  });
}
