// Schedules of steps by the names of what they set: {"block_pixels": 24, "isa": "avx2"}.
#ifndef QPLAN_SRC_PACKER_INSPECT_SCHEDULE_NAMES_H_
#define QPLAN_SRC_PACKER_INSPECT_SCHEDULE_NAMES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "kernels/kernel.h"
#include "src/packer/target/program.h"

namespace qplan::inspect {

// The grains that a schedule may have beside 1.
inline constexpr double kGrains[] = {0.25, 0.5, 2, 4};

// The knobs of the family's variants, which share them. Empty: none, or no such family.
std::span<const Knob> knobs_of(uint16_t kernel);

// What differs from the default. Bytes that mean nothing are left out.
nlohmann::ordered_json schedule_json(uint16_t kernel, const target::StepSchedule& schedule);
// "block_pixels=24, isa=avx2"; "" for the default.
std::string schedule_text(uint16_t kernel, const target::StepSchedule& schedule);

// The other way. PackError (QPLAN_INVALID_ARGUMENT) naming what is unknown: "conv2d has no knob 'tile', only
// ...".
target::StepSchedule parse_schedule(uint16_t kernel, const nlohmann::ordered_json& settings);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_SCHEDULE_NAMES_H_
