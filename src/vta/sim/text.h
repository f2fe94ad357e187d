// Small pieces of text: numbers in and out.
#ifndef QPLAN_SRC_VTA_SIM_TEXT_H_
#define QPLAN_SRC_VTA_SIM_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/npu_driver.h"

namespace qplan::sim {

std::string hexadecimal(uint64_t number);  // "0x1000"
// Decimal, or hexadecimal after 0x; the whole of text. False when it is no such number or too large.
bool parse_number(std::string_view text, uint64_t* number);
// The parts between separators, without blanks at their ends; empty parts are left out.
std::vector<std::string_view> split(std::string_view text, char separator);
// Cut to the room there is.
void copy_text(const std::string& from, char* to, size_t size);
// Fills *why (may be null).
void give_reason(qplan_npu_reason* why, const std::string& text, int64_t limit = 0, int64_t actual = 0);
// With its quotes; bytes that JSON or UTF-8 would not take as they are become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_TEXT_H_
