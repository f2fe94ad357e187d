// Text that several commands make: counts, times, names, near misses.
#ifndef QPLAN_TOOLS_WORDS_H_
#define QPLAN_TOOLS_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/files.h"

namespace qplan::tools {

// "1 thread", "2 threads".
std::string count_text(uint64_t count, std::string_view one, std::string_view many);

// "1,234,567"
std::string grouped(uint64_t number);

// "301 M", "12.3 k", "999": three digits.
std::string short_count(uint64_t number);

// "12.34 us" below a millisecond, "1.234 ms" below a second, "1.234 s".
std::string time_text(uint64_t ns);

// A field of a CSV file, as RFC 4180 quotes it: in double quotes where it holds a comma, a quote or a line
// end.
std::string csv_text(std::string_view text);

// JSON on one line. Names and paths may hold bytes that are not UTF-8, for which JSON has no form: U+FFFD
// stands in their place.
std::string json_text(const nlohmann::ordered_json& value);
// The same as a page: indented, with a line feed at its end.
std::string json_page(const nlohmann::ordered_json& value);

// "a, b, c"
std::string joined(const std::vector<std::string>& words);

// At least one line; without leading blanks of the lines after the first.
std::vector<std::string> split_lines(const std::string& text);

// The one of the names that the word was meant to be: at most two letters wrong, swapped, missing or too many
// (one, in words of up to three letters); "" where there is none.
std::string nearest(const std::string& word, const std::vector<std::string>& names);

// Receivers for the library's qplan_write_fn.

// user is a std::string that grows.
inline void append_to_string(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

// To standard output; user is not used.
inline void write_to_stdout(void*, const char* bytes, size_t size) { print({bytes, size}); }

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_WORDS_H_
