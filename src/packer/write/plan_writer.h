// From a program to the bytes of a plan file.
#ifndef QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_
#define QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_

#include <cstdint>
#include <string>

#include "src/packer/memory/device_tensors.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/schedule/tuning_log.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/packer/write/aligned_bytes.h"

namespace qplan::emit {

struct EmitOptions {
  bool strip_names = false;
  uint32_t planner_iterations = 0;  // 0: the planner's default
  std::string source;               // base name of the model file
  std::string source_digest;        // its SHA-256, hexadecimal
  std::string explain;              // JSON of the placement, a name like others; empty: not told
  Fuse fuse = Fuse::kOff;
  TuningLog* tuning = nullptr;  // where schedules come from; null: all are the default
  LogFunction log;              // what of it is passed over
};

// Plans memory and writes the plan: the same program, profile and options give the same bytes. The plan is
// opened and prepared as the runtime does it before it is handed out; what the runtime refuses is PackError
// (QPLAN_INTERNAL).
AlignedBytes write_plan(const target::Program& program, const target::TargetProfile& profile,
                        const EmitOptions& options);

// What a plan of the program will take.
struct ProgramSizes {
  uint64_t constants = 0;           // bytes in the file
  uint64_t memory = 0;              // bytes of activations and device buffers
  memory::DeviceTensors device_of;  // which activations lie in a device's bank
};
ProgramSizes measure_program(const target::Program& program, const target::TargetProfile& profile,
                             uint32_t planner_iterations);

}  // namespace qplan::emit

#endif  // QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_
