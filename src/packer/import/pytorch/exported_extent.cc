#include <cmath>
#include <vector>

#include "src/packer/import/pytorch/exported_program.h"
#include "src/packer/import/pytorch/limits.h"

namespace qplan::pt {
namespace {

using Number = std::optional<int64_t>;

constexpr int64_t kMostNumber = int64_t{1} << 40;

Number plus(Number a, Number b) {
  if (!a || !b || std::abs(*a + *b) > kMostNumber) return std::nullopt;
  return *a + *b;
}
Number times(Number a, Number b) {
  if (!a || !b || std::fabs(static_cast<double>(*a) * static_cast<double>(*b)) > double{kMostNumber})
    return std::nullopt;
  return *a * *b;
}
Number quotient(Number a, Number b) {
  if (!a || !b || *b == 0) return std::nullopt;
  const int64_t towards_zero = *a / *b;
  return *a % *b != 0 && (*a < 0) != (*b < 0) ? towards_zero - 1 : towards_zero;
}

class ExtentReader {
 public:
  ExtentReader(std::string_view text, const FindSymbol& find) : text_(text), find_(find) {}

  Number read() {
    const Number value = sum();
    return is_broken_ || !text_.empty() ? std::nullopt : value;
  }

 private:
  void skip_spaces() {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }
  Number broken() {
    is_broken_ = true;
    text_ = {};
    return std::nullopt;
  }
  std::string_view take_while(bool (*holds)(char c)) {
    size_t size = 0;
    while (size < text_.size() && holds(text_[size])) ++size;
    const std::string_view taken = text_.substr(0, size);
    text_.remove_prefix(size);
    skip_spaces();
    return taken;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_of_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

  Number sum() {
    Number value = product();
    for (;;) {
      if (take("+")) {
        value = plus(value, product());
      } else if (take("-")) {
        value = plus(value, times(-1, product()));
      } else {
        return value;
      }
    }
  }
  Number product() {
    Number value = atom();
    for (;;) {
      if (take("//")) {
        value = quotient(value, atom());
      } else if (take("*")) {
        value = times(value, atom());
      } else {
        return value;
      }
    }
  }
  Number atom() {
    if (++depth_ > kMaxExpressionDepth) return broken();
    const Number value = take("-") ? times(-1, atom()) : part();
    --depth_;
    return value;
  }
  Number part() {
    if (take("(")) {
      const Number value = sum();
      return take(")") ? value : broken();
    }
    skip_spaces();
    const bool is_number = !text_.empty() && is_digit(text_.front());
    const std::string name(take_while(is_of_name));
    if (name.empty()) return broken();
    if (is_number) return integer(name);
    return take("(") ? call(name) : find_(name);
  }
  Number integer(const std::string& digits) {
    Number value = 0;
    for (const char c : digits) {
      if (!is_digit(c)) return broken();
      value = plus(times(value, 10), c - '0');
    }
    return value;
  }
  // What follows the bracket that is open.
  Number call(const std::string& name) {
    if (name == "Symbol") return symbol();
    std::vector<Number> operands;
    do {
      operands.push_back(sum());
    } while (take(","));
    if (!take(")")) return broken();
    if (name == "Integer" && operands.size() == 1) return operands[0];
    if (name == "FloorDiv" && operands.size() == 2) return quotient(operands[0], operands[1]);
    const bool is_sum = name == "Add";
    if (!is_sum && name != "Mul") return broken();
    Number value = is_sum ? 0 : 1;
    for (const Number& operand : operands) value = is_sum ? plus(value, operand) : times(value, operand);
    return value;
  }
  // "'s0', positive=True, integer=True)"
  Number symbol() {
    if (!take("'")) return broken();
    const std::string name(take_while(is_of_name));
    const size_t end = text_.find(')');
    if (!text_.starts_with('\'') || end == std::string_view::npos) return broken();
    text_.remove_prefix(end + 1);
    skip_spaces();
    return find_(name);
  }

  std::string_view text_;  // what is left
  const FindSymbol& find_;
  size_t depth_ = 0;
  bool is_broken_ = false;
};

}  // namespace

Number evaluate_extent(std::string_view expression, const FindSymbol& find) {
  return ExtentReader(expression, find).read();
}

}  // namespace qplan::pt
