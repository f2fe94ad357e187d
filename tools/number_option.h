// Whole numbers on the command line. CLI11 reads them as C does: 010 is 8, nothing is 0, and -1 the largest
// number of 64 bits.
#ifndef QPLAN_TOOLS_NUMBER_OPTION_H_
#define QPLAN_TOOLS_NUMBER_OPTION_H_

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

namespace qplan::tools {

// For transform(), before CLI::AsSizeValue: a decimal number stands before the unit.
inline CLI::Validator leading_digits() {
  const auto read = [](std::string& text) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0 || text.find_first_of("xX") == digits)
      return "'" + text + "' is not a number of bytes, such as 65536, 64K or 1M";
    text.erase(0, std::min(text.find_first_not_of('0'), digits - 1));
    return std::string();
  };
  return {read, "", "leading_digits"};
}

// For transform(): only decimal digits pass, of a number in that range.
inline CLI::Validator whole_number(uint64_t least = 0, uint64_t most = UINT64_MAX) {
  const auto read = [least, most](std::string& text) {
    uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value < least || value > most) {
      return "'" + text + "' is not a whole number from " + std::to_string(least) + " to " +
             std::to_string(most);
    }
    text = std::to_string(value);
    return std::string();
  };
  return {read, "", "whole_number"};
}

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_NUMBER_OPTION_H_
