// How numbers, strings and names are written and read. Locale-independent, exact in both directions.
#ifndef QPLAN_SRC_PACKER_TEXT_LITERAL_H_
#define QPLAN_SRC_PACKER_TEXT_LITERAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::text {

// The shortest decimal that reads back to the same float32 or float64, without suffix: "0.0186579", "1e-05",
// "inf".
std::string shortest(float value);
std::string shortest(double value);
// An attribute's number: suffix f where float32 holds it exactly, else f64.
std::string float_literal(double value);
std::string quote(std::string_view text);         // with \" \\ \n \t \xHH
bool is_plain_name(std::string_view name);        // may follow % and @ without quotes
bool is_plain_identifier(std::string_view name);  // an attribute's name

// An element of a constant without suffix, or nothing where the text could not give back its bits: float16,
// NaN, dtypes below 8 bits, a bool that is neither 0 nor 1.
std::optional<std::string> element_text(const ir::Constant& constant, size_t index);
// Smallest and largest element as text, NaN left out; nothing where elements cannot be written, or for bool.
std::optional<std::pair<std::string, std::string>> value_range(const ir::Constant& constant);
// "f", "", "i8", ...: the suffix of a scalar of the dtype.
std::string_view scalar_suffix(ir::DType dtype);

struct Number {
  ir::DType dtype;
  std::string_view digits;  // with sign, without suffix
};
// A number token taken apart; nothing where the suffix is unknown. Without suffix: int32, or float32 where
// the digits have a point or an exponent.
std::optional<Number> split_number(std::string_view token);
// The value in the dtype's bytes (bool takes True and False, floats inf and nan); nothing where it does not
// fit.
std::optional<std::vector<uint8_t>> element_bytes(ir::DType dtype, std::string_view digits);
std::optional<int64_t> parse_int(std::string_view digits);
// Rounded to the dtype first, float32 or float64.
std::optional<double> parse_float(ir::DType dtype, std::string_view digits);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_LITERAL_H_
