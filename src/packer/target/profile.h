// What the packer must know of the device a plan is made for. Read from a text, never from the packing
// machine.
#ifndef QPLAN_SRC_PACKER_TARGET_PROFILE_H_
#define QPLAN_SRC_PACKER_TARGET_PROFILE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/layout.h"
#include "src/packer/op/op_def.h"

namespace qplan::target {

// The zero point that convolutions and fully connected layers read their input with; the difference to the
// real one is folded into the bias.
enum class InputOrigin {
  kZero,         // 0 of the dtype: multiply as stored
  kDtypeMin,     // the dtype's minimum: byte dot products take the input as unsigned
  kDtypeMiddle,  // 0 of int8, 128 of uint8: they take it as signed
};

// A memory that the processor reaches, as a target file states it.
struct MemoryArea {
  std::string name;    // "dtcm": of letters a to z, digits and _
  uint64_t bytes = 0;  // that a plan may use
  uint64_t cost = 1;   // of a byte that is read or written, in any unit
};
inline constexpr size_t kMaxAreas = 4;

struct TargetProfile {
  std::string name;     // "cpu"
  std::string arch;     // "x86_64"
  std::string options;  // canonical, as the plan records them: "arch=x86_64,isa=avx512vnni"
  uint64_t pointer_size = 8;
  std::vector<uint32_t>
      isas;  // QPLAN_ISA_*: variants of these may run the plan and find the scratch they need
  // Those whose variants the packer asks for scratch memory and work items: the same, or, where this build
  // lacks them, substitutes whose vectors have as many bytes (src/packer/schedule/schedule.h).
  std::vector<uint32_t> asked_isas;
  bool prefers_eights = false;     // where a layer may be in groups of eight bytes, too, it is
  bool adds_weight_rests = false;  // of conv2d (kernels/conv2d/conv2d.h, WeightRest)
  uint16_t conv2d_layout = kLayout_ohwi;
  uint16_t fully_connected_layout = kLayout_ohwi;
  uint16_t depthwise_layout = kLayout_ohwi;
  InputOrigin input_origin = InputOrigin::kZero;
  uint64_t task_work =
      0;  // multiply-accumulates and bytes worth a task of their own; 0: steps are never split
  uint64_t min_fused_bytes = 0;  // of memory that cascades must save to be made
  // The first one has the session and scratch memory, too. Empty: one memory without a limit.
  std::vector<MemoryArea> areas;
  // Constants are copied from where they are into areas where a byte costs less, as far as these have room.
  // Cost 0: they stay.
  std::string copies_from;        // "flash": of letters a to z, digits and _
  uint64_t copies_from_cost = 0;  // of a byte that is read there, in the unit of the areas
};

// Without blanks at either end.
std::string_view trim(std::string_view text);

// "cpu", "cpu,isa=avx2", "cpu,arch=cortex-m", ... PackError (QPLAN_INVALID_ARGUMENT) with the list of what is
// known.
TargetProfile parse_target(std::string_view text);
// The reference kernels on any machine: what constants are folded with.
TargetProfile reference_profile();

// What work costs on the CPU of the system that a plan is for, not of the machine that packs: figures by
// architecture and instruction set, in cycles, measured or derived from what was (cpu_costs.cc).

// Kernels of one kind take about the same time for a multiply-accumulate and for a byte.
using CpuWork = op::Work;
inline constexpr size_t kNumCpuWorks = op::kNumWorks;

// Cycles for a million of each; macs is 0 where the kind has none.
struct CpuRate {
  uint64_t macs = 0;
  uint64_t bytes = 0;  // of activations, read and written
};

struct CpuCosts {
  uint64_t clock_khz = 0;
  std::array<CpuRate, kNumCpuWorks> work;
  uint64_t weights = 0;       // cycles for a million bytes of constants
  uint64_t copies = 0;        // cycles for a million bytes between the CPU's and a device's arrangement
  uint64_t step_cycles = 0;   // to begin a step
  uint64_t pj_per_cycle = 0;  // energy of a core that works

  const CpuRate& of(CpuWork kind) const { return work[static_cast<size_t>(kind)]; }
  // So many convolution MACs, or bytes of an addition, in a microsecond; other kinds keep their ratio to
  // them.
  void set_macs_per_us(uint64_t macs);
  void set_bytes_per_us(uint64_t bytes);
  uint64_t macs_per_us() const;
  uint64_t bytes_per_us() const;
};

// What the kernels of a convolution take longer for: vectors of four channels are not full.
constexpr bool is_narrow(uint64_t input_channels) { return input_channels <= 4; }

// arch: as TargetProfile::arch; isa: QPLAN_ISA_*, the best that a plan uses.
CpuCosts default_cpu_costs(std::string_view arch, uint32_t isa);

// Nanoseconds of one step of this work.
uint64_t cpu_ns(const CpuCosts& costs, CpuWork work, uint64_t macs, uint64_t bytes, uint64_t weight_bytes);
// A copy of bytes between the CPU's and a device's layout, made by the CPU.
uint64_t copy_ns(const CpuCosts& costs, uint64_t bytes);

// What the core takes in that time, in picojoules.
uint64_t cpu_pj(const CpuCosts& costs, uint64_t ns);

// a * b / c, at most 2^60, so that sums of many stay within 64 bits. c is not 0.
uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c);

// Lists of targets as texts: "vta,sram=quarter,priority=300, cpu".

// Options as they are written, in the order of the text; in a Target without those that all targets have.
using TargetOptions = std::vector<std::pair<std::string, std::string>>;

// "npu,sram=quarter,priority=300"
struct TargetText {
  std::string name;
  TargetOptions options;
};
std::vector<TargetText> split_targets(std::string_view text);

[[noreturn]] void fail_target(const std::string& text);
int32_t checked_priority(std::string_view text);
// "250MHz", "1.2GHz": in kHz. name: the target's.
uint64_t checked_clock_khz(std::string_view name, std::string_view text);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_PROFILE_H_
