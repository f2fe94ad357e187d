// Whole numbers on the command line. CLI11 reads them as C does: 010 is 8, nothing is 0, and -1 the largest
// number of 64 bits.
#ifndef QPLAN_TOOLS_NUMBER_OPTION_H_
#define QPLAN_TOOLS_NUMBER_OPTION_H_

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace qplan::tools {

// For transform(): only decimal digits pass, of a number of at most 64 bits.
inline CLI::Validator whole_number() {
  const auto read = [](std::string& text) {
    uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end)
      return "'" + text + "' is not a whole number from 0 to " + std::to_string(UINT64_MAX);
    text = std::to_string(value);
    return std::string();
  };
  return {read, "", "whole_number"};
}

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_NUMBER_OPTION_H_
