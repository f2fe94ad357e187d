// pattern.hpp -- the reading side of pass.hpp: the old function, and patterns over it. Include
// <qplan/pass.hpp>.
#ifndef QPLAN_PATTERN_HPP_
#define QPLAN_PATTERN_HPP_

#include <qplan/pack.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace qplan {
inline namespace pass_v1 {

class PassError : public std::runtime_error {
 public:
  PassError(qplan_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  qplan_status status() const { return status_; }

 private:
  qplan_status status_;
};

// ---- types ----
inline constexpr DLDataType kInt8{kDLInt, 8, 1};
inline constexpr DLDataType kUint8{kDLUInt, 8, 1};
inline constexpr DLDataType kInt16{kDLInt, 16, 1};
inline constexpr DLDataType kInt32{kDLInt, 32, 1};
inline constexpr DLDataType kInt64{kDLInt, 64, 1};
inline constexpr DLDataType kFloat32{kDLFloat, 32, 1};
inline constexpr DLDataType kFloat64{kDLFloat, 64, 1};

template <typename T>
constexpr DLDataType dtype_of() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "elements are numbers");
  return {static_cast<uint8_t>(std::is_floating_point_v<T> ? kDLFloat
                               : std::is_signed_v<T>       ? kDLInt
                                                           : kDLUInt),
          static_cast<uint8_t>(sizeof(T) * 8), 1};
}

using Shape = std::vector<int64_t>;

struct TensorType {
  DLDataType dtype;
  Shape shape;
};
inline bool same_dtype(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

// ---- attributes ----
using Ints = std::vector<int64_t>;
using IntLists = std::vector<Ints>;

class AttrValue {
 public:
  AttrValue(bool value) : kind_(QPLAN_ATTR_BOOL), integer_(value ? 1 : 0) {}  // NOLINT: meant to convert
  AttrValue(int value) : kind_(QPLAN_ATTR_INT), integer_(value) {}            // NOLINT
  AttrValue(int64_t value) : kind_(QPLAN_ATTR_INT), integer_(value) {}        // NOLINT
  AttrValue(double value) : kind_(QPLAN_ATTR_FLOAT), number_(value) {}        // NOLINT
  AttrValue(const char* value) : kind_(QPLAN_ATTR_STRING), text_(value) {}    // NOLINT
  AttrValue(std::string value) : kind_(QPLAN_ATTR_STRING), text_(std::move(value)) {}  // NOLINT
  AttrValue(Ints value) : kind_(QPLAN_ATTR_INTS), ints_(std::move(value)) {}           // NOLINT
  AttrValue(const IntLists& lists) : kind_(QPLAN_ATTR_INT_LISTS) {                     // NOLINT
    for (const Ints& list : lists) {
      ints_.insert(ints_.end(), list.begin(), list.end());
      list_sizes_.push_back(static_cast<uint32_t>(list.size()));
    }
  }
  explicit AttrValue(const qplan_attr& attr)
      : kind_(attr.kind), integer_(attr.integer), number_(attr.number) {
    if (kind_ == QPLAN_ATTR_STRING) text_ = attr.text;
    if (kind_ == QPLAN_ATTR_INTS) ints_.assign(attr.ints, attr.ints + attr.count);
    if (kind_ == QPLAN_ATTR_INT_LISTS) {
      list_sizes_.assign(attr.list_sizes, attr.list_sizes + attr.count);
      size_t total = 0;
      for (const uint32_t size : list_sizes_) total += size;
      ints_.assign(attr.ints, attr.ints + total);
    }
  }

  uint32_t kind() const { return kind_; }  // QPLAN_ATTR_*
  bool as_bool() const { return need(QPLAN_ATTR_BOOL, "a boolean"), integer_ != 0; }
  int64_t as_int() const { return need(QPLAN_ATTR_INT, "an integer"), integer_; }
  double as_double() const {
    return kind_ == QPLAN_ATTR_INT ? static_cast<double>(integer_)
                                   : (need(QPLAN_ATTR_FLOAT, "a number"), number_);
  }
  const std::string& as_string() const { return need(QPLAN_ATTR_STRING, "a string"), text_; }
  const Ints& as_ints() const { return need(QPLAN_ATTR_INTS, "a list of integers"), ints_; }
  IntLists as_int_lists() const {
    need(QPLAN_ATTR_INT_LISTS, "a list of lists of integers");
    IntLists lists;
    auto at = ints_.begin();
    for (const uint32_t size : list_sizes_) {
      lists.emplace_back(at, at + size);
      at += size;
    }
    return lists;
  }
  // Points into this value and name.
  qplan_attr c_attr(const std::string& name) const {
    const bool lists = kind_ == QPLAN_ATTR_INT_LISTS;
    return {name.c_str(),
            kind_,
            static_cast<uint32_t>(lists ? list_sizes_.size() : ints_.size()),
            integer_,
            number_,
            text_.c_str(),
            ints_.data(),
            list_sizes_.data()};
  }

 private:
  void need(uint32_t kind, const char* what) const {
    if (kind_ != kind) throw PassError(QPLAN_INVALID_ARGUMENT, std::string("an attribute is not ") + what);
  }

  uint32_t kind_;
  int64_t integer_ = 0;
  double number_ = 0;
  std::string text_;
  Ints ints_;
  std::vector<uint32_t> list_sizes_;
};

// By name; a later entry replaces an earlier one.
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

// ---- values, nodes, the old function ----
class PreValue {
 public:
  explicit PreValue(qplan_pre_value value) : value_(value) {}
  qplan_pre_value c_value() const { return value_; }
  bool operator==(PreValue other) const { return value_.index == other.value_.index; }
  bool operator!=(PreValue other) const { return !(*this == other); }

 private:
  qplan_pre_value value_;
};

class PostValue {
 public:
  explicit PostValue(qplan_post_value value) : value_(value) {}
  qplan_post_value c_value() const { return value_; }
  bool operator==(PostValue other) const { return value_.index == other.value_.index; }
  bool operator!=(PostValue other) const { return !(*this == other); }

 private:
  qplan_post_value value_;
};

namespace detail {

inline void check(const qplan_pre* pre, qplan_status status) {
  if (status < 0) throw PassError(status, qplan_pre_error(pre));
}

template <typename Info>
Info sized() {
  Info info;
  std::memset(&info, 0, sizeof(info));
  info.struct_size = sizeof(info);
  return info;
}

inline TensorType type_of(const qplan_value_info& info) {
  return {info.dtype, info.ndim > 0 ? Shape(info.shape, info.shape + info.ndim) : Shape()};
}

// Runs a callback; what it throws becomes the error of the pack.
template <typename Work>
qplan_status guarded(const qplan_pre* pre, const Work& work) noexcept {
  try {
    return work();
  } catch (const PassError& error) {
    // Whatever status it was given, it is an error.
    return qplan_pre_fail(pre, error.status() < 0 ? error.status() : QPLAN_INVALID_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    return qplan_pre_fail(pre, QPLAN_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return qplan_pre_fail(pre, QPLAN_INVALID_ARGUMENT, error.what());
  } catch (...) {
    return qplan_pre_fail(pre, QPLAN_INVALID_ARGUMENT, "a callback threw what is no std::exception");
  }
}

}  // namespace detail

class PreNode {
 public:
  PreNode(const qplan_pre* pre, qplan_pre_node node) : pre_(pre), node_(node) {}

  bool is(const std::string& name) const { return name == info().op; }
  std::string op() const { return info().op; }  // "" for a call of a function of the module
  std::string name() const { return info().name; }
  size_t num_operands() const { return info().num_operands; }
  size_t num_results() const { return info().num_results; }
  PreValue operand(size_t index) const {
    qplan_pre_value value;
    detail::check(pre_, qplan_pre_operand(pre_, node_, static_cast<uint32_t>(index), &value));
    return PreValue(value);
  }
  PreValue result(size_t index = 0) const {
    qplan_pre_value value;
    detail::check(pre_, qplan_pre_result(pre_, node_, static_cast<uint32_t>(index), &value));
    return PreValue(value);
  }
  // The attribute or the operator's fallback; PassError where there is neither.
  AttrValue attr(const std::string& name) const {
    qplan_attr attr;
    detail::check(pre_, qplan_pre_attr(pre_, node_, name.c_str(), &attr));
    return AttrValue(attr);
  }
  // Those that are written, for a node that is like this one.
  Attrs attrs() const {
    Attrs all;
    for (uint32_t i = 0; i < info().num_attrs; ++i) {
      qplan_attr attr;
      detail::check(pre_, qplan_pre_attr_at(pre_, node_, i, &attr));
      all.emplace_back(attr.name, AttrValue(attr));
    }
    return all;
  }

 private:
  qplan_node_info info() const {
    auto info = detail::sized<qplan_node_info>();
    detail::check(pre_, qplan_pre_node_info(pre_, node_, &info));
    return info;
  }

  const qplan_pre* pre_;
  qplan_pre_node node_;
};

class Pre {
 public:
  explicit Pre(const qplan_pre* pre) : pre_(pre) {}
  const qplan_pre* c_pre() const { return pre_; }

  std::string function_name() const { return info().name; }
  std::vector<PreNode> nodes() const {  // in topological order
    std::vector<PreNode> nodes;
    for (uint32_t i = 0; i < info().num_nodes; ++i) nodes.emplace_back(pre_, qplan_pre_node{i});
    return nodes;
  }
  std::vector<PreValue> params() const { return values(info().num_params, qplan_pre_param); }
  std::vector<PreValue> outputs() const { return values(info().num_outputs, qplan_pre_output); }

  TensorType type(PreValue value) const { return detail::type_of(info(value)); }
  std::string name(PreValue value) const { return info(value).name; }
  size_t num_uses(PreValue value) const { return info(value).num_uses; }
  bool is_constant(PreValue value) const { return info(value).kind == QPLAN_VALUE_CONSTANT; }
  // The elements of a constant of dtype T.
  template <typename T>
  std::vector<T> elements(PreValue value) const {
    const qplan_value_info known = info(value);
    if (known.kind != QPLAN_VALUE_CONSTANT || !same_dtype(known.dtype, dtype_of<T>())) {
      throw PassError(QPLAN_INVALID_ARGUMENT,
                      "'" + std::string(known.name) + "' is no constant of the dtype asked for");
    }
    std::vector<T> elements(static_cast<size_t>(known.size_bytes / sizeof(T)));
    if (!elements.empty()) std::memcpy(elements.data(), known.data, elements.size() * sizeof(T));
    return elements;
  }
  // The node that makes the value; nothing for parameters and constants.
  std::optional<PreNode> producer(PreValue value) const {
    qplan_pre_node node;
    const qplan_status status = qplan_pre_producer(pre_, value.c_value(), &node);
    if (status == QPLAN_NOT_FOUND) return std::nullopt;
    detail::check(pre_, status);
    return PreNode(pre_, node);
  }

 private:
  qplan_function_info info() const {
    auto info = detail::sized<qplan_function_info>();
    detail::check(pre_, qplan_pre_function_info(pre_, &info));
    return info;
  }
  qplan_value_info info(PreValue value) const {
    auto info = detail::sized<qplan_value_info>();
    detail::check(pre_, qplan_pre_value_info(pre_, value.c_value(), &info));
    return info;
  }
  template <typename Get>
  std::vector<PreValue> values(uint32_t count, Get get) const {
    std::vector<PreValue> values;
    for (uint32_t i = 0; i < count; ++i) {
      qplan_pre_value value;
      detail::check(pre_, get(pre_, i, &value));
      values.emplace_back(value);
    }
    return values;
  }

  const qplan_pre* pre_;
};

// ---- patterns ----
class Pattern {
 public:
  // Takes over what a call of qplan_pattern_*() created; PassError when it failed.
  template <typename Create>
  static Pattern make(const Create& create) {
    qplan_pattern* pattern = nullptr;
    auto error = detail::sized<qplan_error>();
    const qplan_status status = create(&pattern, &error);
    if (status < 0) throw PassError(status, error.text);
    return Pattern(pattern);
  }
  const qplan_pattern* c_pattern() const { return pattern_.get(); }

  // Found as matches[name]; the same name twice is the same value twice.
  Pattern as(const std::string& name) const {
    return make(
        [&](auto** out, auto* error) { return qplan_pattern_as(c_pattern(), name.c_str(), out, error); });
  }
  Pattern dtype(DLDataType dtype) const { return dtypes({dtype}); }
  Pattern dtypes(const std::vector<DLDataType>& any_of) const {
    return make([&](auto** out, auto* error) {
      return qplan_pattern_dtypes(c_pattern(), any_of.data(), static_cast<uint32_t>(any_of.size()), out,
                                  error);
    });
  }
  Pattern shape(const Shape& shape) const {
    return make([&](auto** out, auto* error) {
      return qplan_pattern_shape(c_pattern(), shape.data(), static_cast<uint32_t>(shape.size()), out, error);
    });
  }
  Pattern rank(size_t ndim) const {
    return make([&](auto** out, auto* error) {
      return qplan_pattern_rank(c_pattern(), static_cast<uint32_t>(ndim), out, error);
    });
  }
  // Read by one operand or output, no more.
  Pattern one_use() const {
    return make([&](auto** out, auto* error) { return qplan_pattern_one_use(c_pattern(), out, error); });
  }
  Pattern attr(const std::string& name, const AttrValue& value) const {
    const qplan_attr attr = value.c_attr(name);
    return make([&](auto** out, auto* error) { return qplan_pattern_attr(c_pattern(), &attr, out, error); });
  }
  // Any other condition; text ends the sentence "expected a value ...".
  Pattern where(const std::string& text, std::function<bool(const Pre&, PreValue)> holds) const {
    using Holds = std::function<bool(const Pre&, PreValue)>;
    auto owned = std::make_unique<Holds>(std::move(holds));
    Pattern pattern = make([&](auto** out, auto* error) {
      return qplan_pattern_where(
          c_pattern(), text.c_str(),
          [](void* user, const qplan_pre* pre, qplan_pre_value value) {
            return detail::guarded(pre, [&]() -> qplan_status {
              return (*static_cast<Holds*>(user))(Pre(pre), PreValue(value)) ? 1 : 0;
            });
          },
          owned.get(), [](void* user) { delete static_cast<Holds*>(user); }, out, error);
    });
    owned.release();  // the pattern's now
    return pattern;
  }
  std::string text() const {
    std::string text;
    qplan_pattern_text(
        c_pattern(),
        [](void* user, const char* bytes, size_t size) {
          static_cast<std::string*>(user)->append(bytes, size);
        },
        &text, nullptr);
    return text;
  }

 private:
  explicit Pattern(qplan_pattern* pattern) : pattern_(pattern, qplan_pattern_destroy) {}
  std::shared_ptr<qplan_pattern> pattern_;
};

namespace detail {

inline Pattern value_pattern(uint32_t kind) {
  return Pattern::make([&](auto** out, auto* error) { return qplan_pattern_value(kind, out, error); });
}

inline std::vector<const qplan_pattern*> handles(const std::vector<Pattern>& patterns) {
  std::vector<const qplan_pattern*> handles;
  for (const Pattern& pattern : patterns) handles.push_back(pattern.c_pattern());
  return handles;
}

inline std::vector<const char*> c_texts(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

inline Pattern op_pattern(const std::vector<std::string>& names, const std::vector<Pattern>& operands,
                          bool commutative) {
  const auto c_names = c_texts(names);
  const auto c_operands = handles(operands);
  return Pattern::make([&](auto** out, auto* error) {
    return qplan_pattern_op(c_names.data(), static_cast<uint32_t>(c_names.size()), c_operands.data(),
                            static_cast<uint32_t>(c_operands.size()), commutative ? 1 : 0, out, error);
  });
}

}  // namespace detail

// A pattern of an operator on any operands, or, called with patterns, on these: op("cast")(constant()).
class OpPattern : public Pattern {
 public:
  explicit OpPattern(std::vector<std::string> names, bool commutative = false)
      : Pattern(detail::op_pattern(names, {}, false)), names_(std::move(names)), commutative_(commutative) {}

  template <typename... Operands>
  Pattern operator()(const Operands&... operands) const {
    return detail::op_pattern(names_, {operands...}, commutative_);
  }

 private:
  std::vector<std::string> names_;
  bool commutative_;
};

inline Pattern any() { return detail::value_pattern(QPLAN_VALUE_ANY); }
inline Pattern constant() { return detail::value_pattern(QPLAN_VALUE_CONSTANT); }
inline Pattern param() { return detail::value_pattern(QPLAN_VALUE_PARAM); }
inline OpPattern op(const std::string& name) { return OpPattern({name}); }
inline OpPattern one_of(std::vector<std::string> names) { return OpPattern(std::move(names)); }
// The first two operands in either order: commutative("add")(constant(), any()).
inline OpPattern commutative(const std::string& name) { return OpPattern({name}, true); }
// first, else second
inline Pattern operator|(const Pattern& first, const Pattern& second) {
  return Pattern::make([&](auto** out, auto* error) {
    return qplan_pattern_either(first.c_pattern(), second.c_pattern(), out, error);
  });
}
// The operator on inner (and others), or inner alone.
inline Pattern optional(const std::string& name, const Pattern& inner,
                        const std::vector<Pattern>& others = {}) {
  const auto c_others = detail::handles(others);
  return Pattern::make([&](auto** out, auto* error) {
    return qplan_pattern_optional(name.c_str(), inner.c_pattern(), c_others.data(),
                                  static_cast<uint32_t>(c_others.size()), out, error);
  });
}
// child, whose first operand leads through operators of path to parent.
inline Pattern dominates(const Pattern& parent, const std::vector<std::string>& path, const Pattern& child) {
  const auto c_path = detail::c_texts(path);
  return Pattern::make([&](auto** out, auto* error) {
    return qplan_pattern_dominates(parent.c_pattern(), c_path.data(), static_cast<uint32_t>(c_path.size()),
                                   child.c_pattern(), out, error);
  });
}

}  // namespace pass_v1
}  // namespace qplan

#endif  // QPLAN_PATTERN_HPP_
