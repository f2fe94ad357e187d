// qplan_pattern_*: patterns as handles.
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "capi/pack_arguments.h"
#include "qplan/pack.h"
#include "src/base/error.h"
#include "src/packer/ir/cat.h"

namespace qplan {
namespace {

using pattern::Pattern;
using pattern::Pre;
using pattern::PreValue;

[[noreturn]] void refuse_pattern(const std::string& text) {
  throw PackError(QPLAN_INVALID_ARGUMENT, "pattern: " + text);
}

const Pattern& get(const qplan_pattern* pattern, const char* what) {
  if (pattern == nullptr) refuse_pattern(cat(what, " is NULL"));
  return pattern->pattern;
}

std::string text_of(const char* text, const char* what) {
  if (text == nullptr) refuse_pattern(cat(what, " is NULL"));
  return text;
}

template <typename T>
void check_array(const T* array, uint32_t count, const char* what) {
  if (array == nullptr && count > 0) refuse_pattern(cat(what, " is NULL"));
}

std::vector<Pattern> patterns(const qplan_pattern* const* array, uint32_t count, const char* what) {
  check_array(array, count, what);
  std::vector<Pattern> result;
  for (uint32_t i = 0; i < count; ++i) result.push_back(get(array[i], what));
  return result;
}

std::vector<std::string> texts(const char* const* array, uint32_t count, const char* what) {
  check_array(array, count, what);
  std::vector<std::string> result;
  for (uint32_t i = 0; i < count; ++i) result.push_back(text_of(array[i], what));
  return result;
}

qplan_status report(qplan_status status, const std::string& text, qplan_error* error) {
  if (status < 0 && error != nullptr) {
    Error record;
    record.set(status) << text.c_str();
    record.copy_to(error);
  }
  return status;
}

// Makes a pattern with work and hands it out.
template <typename Work>
qplan_status create(qplan_pattern** out, qplan_error* error, const Work& work) noexcept {
  std::string text;
  const qplan_status status = reported(&text, [&] {
    if (out == nullptr) refuse_pattern("pattern is NULL");
    *out = nullptr;
    *out = std::make_unique<qplan_pattern>(qplan_pattern{work()}).release();
    return QPLAN_OK;
  });
  return report(status, text, error);
}

// State of a where() callback, kept until no pattern needs it.
struct Condition {
  std::string text;
  qplan_status (*holds)(void* user, const qplan_pre* pre, qplan_pre_value value);
  void* user;
  void (*release)(void* user) = nullptr;

  ~Condition() {
    if (release != nullptr) release(user);
  }
  bool operator()(const Pre& pre, PreValue value) const {
    const qplan_pre view(pre);
    const qplan_status status = holds(user, &view, {value.id.index});
    if (status == 1) return true;
    try {
      check_callback(status, view);
    } catch (const PackError& error) {
      throw PackError(error.status(), cat("condition '", text, "' of a pattern: ", error.what()));
    }
    return false;
  }
};

}  // namespace
}  // namespace qplan

using namespace qplan;  // NOLINT: the functions below belong to no namespace

qplan_status qplan_pattern_value(uint32_t kind, qplan_pattern** pattern, qplan_error* error) {
  return create(pattern, error, [&]() -> Pattern {
    if (kind == QPLAN_VALUE_ANY) return pattern::any();
    if (kind == QPLAN_VALUE_PARAM) return pattern::param();
    if (kind == QPLAN_VALUE_CONSTANT) return pattern::constant();
    refuse_pattern(cat("value kind ", kind, ", expected QPLAN_VALUE_ANY, _PARAM or _CONSTANT"));
  });
}

qplan_status qplan_pattern_op(const char* const* names, uint32_t num_names,
                              const qplan_pattern* const* operands, uint32_t num_operands, int commutative,
                              qplan_pattern** pattern, qplan_error* error) {
  return create(pattern, error, [&] {
    const std::vector<std::string> ops = texts(names, num_names, "name of an operator");
    if (ops.empty()) refuse_pattern("an operator has no name");
    if (commutative == 0) return pattern::one_of(ops, patterns(operands, num_operands, "operand"));
    if (ops.size() != 1) refuse_pattern("a commutative pattern has one operator");
    return pattern::commutative(ops[0], patterns(operands, num_operands, "operand"));
  });
}

qplan_status qplan_pattern_either(const qplan_pattern* first, const qplan_pattern* second,
                                  qplan_pattern** pattern, qplan_error* error) {
  return create(pattern, error, [&] { return get(first, "first") | get(second, "second"); });
}

qplan_status qplan_pattern_optional(const char* name, const qplan_pattern* inner,
                                    const qplan_pattern* const* others, uint32_t num_others,
                                    qplan_pattern** pattern, qplan_error* error) {
  return create(pattern, error, [&] {
    return pattern::optional(text_of(name, "name"), get(inner, "inner"),
                             patterns(others, num_others, "other"));
  });
}

qplan_status qplan_pattern_dominates(const qplan_pattern* parent, const char* const* path, uint32_t num_path,
                                     const qplan_pattern* child, qplan_pattern** pattern,
                                     qplan_error* error) {
  return create(pattern, error, [&] {
    return pattern::dominates(get(parent, "parent"), texts(path, num_path, "path"), get(child, "child"));
  });
}

qplan_status qplan_pattern_as(const qplan_pattern* of, const char* name, qplan_pattern** pattern,
                              qplan_error* error) {
  return create(pattern, error, [&] { return get(of, "of").as(text_of(name, "name")); });
}

qplan_status qplan_pattern_dtypes(const qplan_pattern* of, const DLDataType* any_of, uint32_t count,
                                  qplan_pattern** pattern, qplan_error* error) {
  return create(pattern, error, [&] {
    check_array(any_of, count, "any_of");
    std::vector<ir::DType> dtypes;
    for (uint32_t i = 0; i < count; ++i) dtypes.push_back({any_of[i].code, any_of[i].bits, any_of[i].lanes});
    return get(of, "of").dtypes(std::move(dtypes));
  });
}

qplan_status qplan_pattern_shape(const qplan_pattern* of, const int64_t* shape, uint32_t ndim,
                                 qplan_pattern** pattern, qplan_error* error) {
  return create(pattern, error, [&] {
    check_array(shape, ndim, "shape");
    return get(of, "of").shape(ir::Shape(shape, shape + ndim));
  });
}

qplan_status qplan_pattern_rank(const qplan_pattern* of, uint32_t ndim, qplan_pattern** pattern,
                                qplan_error* error) {
  return create(pattern, error, [&] { return get(of, "of").rank(ndim); });
}

qplan_status qplan_pattern_one_use(const qplan_pattern* of, qplan_pattern** pattern, qplan_error* error) {
  return create(pattern, error, [&] { return get(of, "of").one_use(); });
}

qplan_status qplan_pattern_attr(const qplan_pattern* of, const qplan_attr* attr, qplan_pattern** pattern,
                                qplan_error* error) {
  return create(pattern, error, [&] {
    if (attr == nullptr) refuse_pattern("attr is NULL");
    std::string name = text_of(attr->name, "name of an attribute");
    return get(of, "of").attr(std::move(name), read_attr(*attr));
  });
}

qplan_status qplan_pattern_where(const qplan_pattern* of, const char* text,
                                 qplan_status (*holds)(void* user, const qplan_pre* pre,
                                                       qplan_pre_value value),
                                 void* user, void (*release)(void* user), qplan_pattern** pattern,
                                 qplan_error* error) {
  std::shared_ptr<Condition> condition;
  const qplan_status status = create(pattern, error, [&] {
    if (holds == nullptr) refuse_pattern("holds is NULL");
    condition = std::make_shared<Condition>(Condition{text_of(text, "text"), holds, user});
    return get(of, "of").where(
        condition->text, [condition](const Pre& pre, PreValue value) { return (*condition)(pre, value); });
  });
  if (status == QPLAN_OK) condition->release = release;  // on an error user is still the caller's
  return status;
}

qplan_status qplan_pattern_text(const qplan_pattern* pattern, qplan_write_fn write, void* user,
                                qplan_error* error) {
  std::string problem;
  const qplan_status status = reported(&problem, [&] {
    if (write == nullptr) refuse_pattern("write is NULL");
    const std::string text = pattern::to_string(get(pattern, "pattern"));
    write(user, text.data(), text.size());
    return QPLAN_OK;
  });
  return report(status, problem, error);
}

void qplan_pattern_destroy(qplan_pattern* pattern) { delete pattern; }
