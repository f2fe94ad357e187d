// What the functions of the packer's C API begin and end with: checks of pointers, exceptions as status and
// text.
#ifndef QPLAN_CAPI_PACK_GUARD_H_
#define QPLAN_CAPI_PACK_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "qplan/pack.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/packer/error.h"

namespace qplan {

// A list of faults, one line each, as one line: "3 operators ...: 2 x SVDF; 1 x CUMSUM".
inline std::string one_line(std::string_view text) {
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

inline qplan_status report(qplan_status status, const std::string& what, const qplan_pack_options& options,
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

inline qplan_status report_without_memory(qplan_status status, const char* text,
                                          qplan_error* error) noexcept {
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

[[noreturn]] inline void fail(qplan_status status, const std::string& text) { throw PackError(status, text); }

inline std::span<const uint8_t> bytes_of(const void* bytes, size_t size, const char* what) {
  if (bytes == nullptr && size != 0) fail(QPLAN_INVALID_ARGUMENT, std::string("pack: ") + what + " is NULL");
  return {static_cast<const uint8_t*>(bytes), size};
}

inline void check_write(qplan_write_fn write) {
  if (write == nullptr) fail(QPLAN_INVALID_ARGUMENT, "pack: write is NULL");
}

inline void write_text(const std::string& text, qplan_write_fn write, void* user) {
  write(user, text.data(), text.size());
}
// A text for people: names of a model may hold anything, and this goes to a terminal.
inline void write_lines(const std::string& text, qplan_write_fn write, void* user) {
  write_text(printable(text, /*keep_line_feeds=*/true), write, user);
}

}  // namespace qplan

#endif  // QPLAN_CAPI_PACK_GUARD_H_
