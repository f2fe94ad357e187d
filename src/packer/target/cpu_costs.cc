#include <algorithm>
#include <string>

#include "qplan/qplan.h"
#include "src/packer/target/profile.h"

namespace qplan::target {
namespace {

__extension__ typedef unsigned __int128 uint128;

constexpr uint64_t kMillion = 1'000'000;
constexpr uint64_t kMaxNs = uint64_t{1} << 60;

struct Figures {
  const char* arch;
  uint32_t isa;
  CpuCosts costs;
};

// Energy of a busy core in one cycle. These are orders of magnitude, computed from figures recalled and not
// checked against their data sheets: compare devices with them, do not quote them. An EPYC 9654 (Zen 4; 360
// W, 96 cores) at 3.65 GHz.
constexpr uint64_t kEpycPj = 1027;
// An STM32F411 (Cortex-M4), the whole chip without peripherals: about 100 uA/MHz at 3.3 V.
constexpr uint64_t kCortexMPj = 330;
// A Cortex-A53 of 2015: about 200 mW at 1.3 GHz.
constexpr uint64_t kInOrderPj = 154;

// Rows of `work` in the order of CpuWork: {cycles for a million MACs, cycles for a million bytes of
// activations}.
//
// x86-64 with vectors: fitted (cost_file.cc) to the 227 layers of
// benchmarks/results/2026-11-22-0c32335/kernels.txt (one thread of a 3.65 GHz Zen 4, which runs all three
// instruction sets) and rounded: half of the layers are within 10 %, nine of ten within 36 %. Softmax is that
// of 1001 classes. Moves and copies were not measured: rows of 16 channels are moved whole, signs of bytes
// are flipped on the way.
//
// Reference kernels on x86-64: `qplan bench --per-step --isa reference` of kws, person_detect and
// mobilenet_v1_0.25_128 on a busy Zen 3, 2026-11-23: 0.65 to 1.2 MACs a nanosecond in convolutions, 0.23 to
// 0.32 in depthwise ones, softmax of 1001 classes 43 us, pools about a byte a nanosecond.
//
// Cortex-M4: instructions counted in QEMU, at one a cycle: 174.6 M for the 7.16 M MACs of person_detect,
// 70.2 M for the 2.66 M of kws. Their division among kinds is estimated. AArch64 and RISC-V: 12 to 18
// instructions a MAC of the portable kernels, on cores that issue one a cycle; the rest is estimated from it.
//
// NEON, DotProd, I8MM: the inner loops' cycles that llvm-mca 14 states for Cortex-A53 (NEON) and A55 (0.55,
// 0.085 and 0.064 a MAC), depthwise convolutions, additions, pools and what surrounds products by
// instructions counted in QEMU for kws and mobilenet_v2, at one a cycle; tables, softmax and the rest are
// estimated; convolutions of few channels take twice the cycles a byte, as on x86-64. RVV: 4 cycles for an
// instruction on four registers of 128 bits, as where the datapath is as wide. None of it was measured on a
// board.
constexpr Figures kFigures[] = {
    {"x86_64",
     QPLAN_ISA_AVX512VNNI,
     {.clock_khz = 3'650'000,
      .work = {{{15'000, 170'000},
                {29'000, 77'000},
                {0, 148'000},
                {0, 69'000},
                {0, 59'000},
                {0, 3'700'000},
                {0, 180'000},
                {0, 60'000},
                {0, 260'000},
                {17'000, 370'000}}},
      .weights = 23'000,
      .copies = 250'000,
      .step_cycles = 140,
      .pj_per_cycle = kEpycPj}},
    // Unmeasured for want of such a machine: the products at half the width of AVX-512, all else as with
    // AVX2.
    {"x86_64",
     QPLAN_ISA_AVXVNNI,
     {.clock_khz = 3'650'000,
      .work = {{{30'000, 340'000},
                {100'000, 260'000},
                {0, 149'000},
                {0, 230'000},
                {0, 75'000},
                {0, 4'100'000},
                {0, 180'000},
                {0, 60'000},
                {0, 430'000},
                {34'000, 740'000}}},
      .weights = 26'000,
      .copies = 250'000,
      .step_cycles = 170,
      .pj_per_cycle = kEpycPj}},
    {"x86_64",
     QPLAN_ISA_AVX2,
     {.clock_khz = 3'650'000,
      .work = {{{55'000, 980'000},
                {100'000, 260'000},
                {0, 149'000},
                {0, 230'000},
                {0, 75'000},
                {0, 4'100'000},
                {0, 180'000},
                {0, 60'000},
                {0, 430'000},
                {57'000, 2'500'000}}},
      .weights = 26'000,
      .copies = 250'000,
      .step_cycles = 170,
      .pj_per_cycle = kEpycPj}},
    {"x86_64",
     QPLAN_ISA_SSE41,
     {.clock_khz = 3'650'000,
      .work = {{{119'000, 1'700'000},
                {740'000, 9'000},
                {0, 349'000},
                {0, 1'500'000},
                {0, 150'000},
                {0, 5'300'000},
                {0, 650'000},
                {0, 60'000},
                {0, 670'000},
                {140'000, 2'700'000}}},
      .weights = 57'000,
      .copies = 250'000,
      .step_cycles = 280,
      .pj_per_cycle = kEpycPj}},
    {"x86_64",
     QPLAN_ISA_REFERENCE,
     {.clock_khz = 3'650'000,
      .work = {{{3'500'000, 20'000'000},
                {7'000'000, 20'000'000},
                {0, 4'000'000},
                {0, 1'500'000},
                {0, 4'000'000},
                {0, 78'000'000},
                {0, 4'000'000},
                {0, 300'000},
                {0, 6'000'000},
                {3'500'000, 20'000'000}}},
      .weights = 36'500,
      .copies = 250'000,
      .step_cycles = 280,
      .pj_per_cycle = kEpycPj}},
    {"cortex-m",
     QPLAN_ISA_REFERENCE,
     {.clock_khz = 100'000,
      .work = {{{6'500'000, 20'000'000},
                {15'000'000, 20'000'000},
                {0, 25'000'000},
                {0, 8'000'000},
                {0, 12'000'000},
                {0, 300'000'000},
                {0, 25'000'000},
                {0, 4'000'000},
                {0, 40'000'000},
                {6'500'000, 20'000'000}}},
      .weights = 0,
      .copies = 3'000'000,
      .step_cycles = 2'000,
      .pj_per_cycle = kCortexMPj}},
    // The rest as the reference: it is the reference.
    {"cortex-m",
     QPLAN_ISA_DSP,
     {.clock_khz = 100'000,
      .work = {{{850'000, 12'000'000},
                {1'700'000, 14'000'000},
                {0, 25'000'000},
                {0, 8'000'000},
                {0, 12'000'000},
                {0, 300'000'000},
                {0, 25'000'000},
                {0, 4'000'000},
                {0, 40'000'000},
                {850'000, 12'000'000}}},
      .weights = 0,
      .copies = 3'000'000,
      .step_cycles = 1'500,
      .pj_per_cycle = kCortexMPj}},
    {"cortex-m",
     QPLAN_ISA_MVE,
     {.clock_khz = 100'000,
      .work = {{{130'000, 1'000'000},
                {600'000, 3'000'000},
                {0, 25'000'000},
                {0, 8'000'000},
                {0, 12'000'000},
                {0, 300'000'000},
                {0, 25'000'000},
                {0, 4'000'000},
                {0, 40'000'000},
                {260'000, 2'000'000}}},
      .weights = 0,
      .copies = 3'000'000,
      .step_cycles = 1'500,
      .pj_per_cycle = kCortexMPj}},
    {"aarch64",
     QPLAN_ISA_REFERENCE,
     {.clock_khz = 1'500'000,
      .work = {{{14'000'000, 20'000'000},
                {20'000'000, 20'000'000},
                {0, 15'000'000},
                {0, 5'000'000},
                {0, 8'000'000},
                {0, 100'000'000},
                {0, 15'000'000},
                {0, 2'000'000},
                {0, 25'000'000},
                {14'000'000, 20'000'000}}},
      .weights = 250'000,
      .copies = 1'000'000,
      .step_cycles = 1'000,
      .pj_per_cycle = kInOrderPj}},
    {"aarch64",
     QPLAN_ISA_I8MM,
     {.clock_khz = 1'500'000,
      .work = {{{64'000, 2'000'000},
                {300'000, 1'200'000},
                {0, 1'900'000},
                {0, 700'000},
                {0, 1'000'000},
                {0, 10'000'000},
                {0, 1'500'000},
                {0, 250'000},
                {0, 2'500'000},
                {64'000, 4'000'000}}},
      .weights = 250'000,
      .copies = 500'000,
      .step_cycles = 1'000,
      .pj_per_cycle = kInOrderPj}},
    {"aarch64",
     QPLAN_ISA_DOTPROD,
     {.clock_khz = 1'500'000,
      .work = {{{85'000, 2'000'000},
                {300'000, 1'200'000},
                {0, 1'900'000},
                {0, 700'000},
                {0, 1'000'000},
                {0, 10'000'000},
                {0, 1'500'000},
                {0, 250'000},
                {0, 2'500'000},
                {85'000, 4'000'000}}},
      .weights = 250'000,
      .copies = 500'000,
      .step_cycles = 1'000,
      .pj_per_cycle = kInOrderPj}},
    {"aarch64",
     QPLAN_ISA_NEON,
     {.clock_khz = 1'500'000,
      .work = {{{550'000, 2'000'000},
                {1'000'000, 1'500'000},
                {0, 1'900'000},
                {0, 700'000},
                {0, 1'000'000},
                {0, 10'000'000},
                {0, 1'500'000},
                {0, 250'000},
                {0, 2'500'000},
                {550'000, 4'000'000}}},
      .weights = 250'000,
      .copies = 500'000,
      .step_cycles = 1'000,
      .pj_per_cycle = kInOrderPj}},
    {"riscv64",
     QPLAN_ISA_RVV,
     {.clock_khz = 1'000'000,
      .work = {{{270'000, 1'500'000},
                {450'000, 1'000'000},
                {0, 1'900'000},
                {0, 5'000'000},
                {0, 1'000'000},
                {0, 10'000'000},
                {0, 1'500'000},
                {0, 250'000},
                {0, 2'500'000},
                {270'000, 3'000'000}}},
      .weights = 250'000,
      .copies = 500'000,
      .step_cycles = 1'000,
      .pj_per_cycle = kInOrderPj}},
    {"riscv64",
     QPLAN_ISA_REFERENCE,
     {.clock_khz = 1'000'000,
      .work = {{{17'000'000, 20'000'000},
                {24'000'000, 20'000'000},
                {0, 18'000'000},
                {0, 6'000'000},
                {0, 10'000'000},
                {0, 120'000'000},
                {0, 18'000'000},
                {0, 2'500'000},
                {0, 30'000'000},
                {17'000'000, 20'000'000}}},
      .weights = 250'000,
      .copies = 1'000'000,
      .step_cycles = 1'000,
      .pj_per_cycle = kInOrderPj}},
};

const CpuCosts* find_figures(std::string_view arch, uint32_t isa) {
  constexpr std::string_view kCortexM = "cortex-m";  // and cores of it: cortex-m4
  // RV32IMC was not measured. It has as many registers, and a single multiply-accumulate takes two
  // instructions.
  if (arch.starts_with(kCortexM) || arch == "rv32imc") arch = kCortexM;
  for (const Figures& figures : kFigures) {
    if (arch == figures.arch && isa == figures.isa) return &figures.costs;
  }
  return nullptr;
}

uint64_t scaled(uint64_t figure, uint64_t to, uint64_t from) {
  return figure == 0 ? 0 : std::max<uint64_t>(mul_div(figure, to, from), 1);
}

}  // namespace

uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c) {
  const uint128 result = static_cast<uint128>(a) * b / c;
  return result > kMaxNs ? kMaxNs : static_cast<uint64_t>(result);
}

uint64_t CpuCosts::macs_per_us() const {
  return mul_div(clock_khz, 1000, std::max<uint64_t>(of(CpuWork::kConvolution).macs, 1));
}

uint64_t CpuCosts::bytes_per_us() const {
  return mul_div(clock_khz, 1000, std::max<uint64_t>(of(CpuWork::kArithmetic).bytes, 1));
}

void CpuCosts::set_macs_per_us(uint64_t macs) {
  // In cycles for a million: clock_khz / 1000 cycles a microsecond, of which macs take 1.
  const uint64_t from = of(CpuWork::kConvolution).macs;
  const uint64_t to = std::max<uint64_t>(mul_div(clock_khz, 1000, macs), 1);
  for (CpuRate& rate : work) rate.macs = scaled(rate.macs, to, from);
}

void CpuCosts::set_bytes_per_us(uint64_t bytes) {
  const uint64_t from = of(CpuWork::kArithmetic).bytes;
  const uint64_t to = std::max<uint64_t>(mul_div(clock_khz, 1000, bytes), 1);
  for (CpuRate& rate : work) rate.bytes = scaled(rate.bytes, to, from);
  weights = scaled(weights, to, from);
  copies = scaled(copies, to, from);
}

// An instruction set that nobody has measured has the figures of its base, but for convolutions, which are
// taken to do the most that kernels/isa.def says.
CpuCosts default_cpu_costs(std::string_view arch, uint32_t isa) {
  if (const CpuCosts* costs = find_figures(arch, isa)) return *costs;
  struct Unmeasured {
    uint32_t isa, base;
    uint64_t macs_per_cycle;
  };
  constexpr Unmeasured kIsas[] = {
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  {QPLAN_ISA_##NAME, QPLAN_ISA_##base, macs_per_cycle},
#include "kernels/isa.def"
#undef QPLAN_ISA
  };
  for (const Unmeasured& known : kIsas) {
    if (known.isa != isa) continue;
    CpuCosts costs = default_cpu_costs(arch, known.base);
    for (const CpuWork work : {CpuWork::kConvolution, CpuWork::kNarrowConvolution})
      costs.work[static_cast<size_t>(work)].macs = kMillion / known.macs_per_cycle;
    return costs;
  }
  return isa == QPLAN_ISA_REFERENCE ? kFigures[0].costs : default_cpu_costs(arch, QPLAN_ISA_REFERENCE);
}

uint64_t cpu_ns(const CpuCosts& costs, CpuWork work, uint64_t macs, uint64_t bytes, uint64_t weight_bytes) {
  const CpuRate& rate = costs.of(work);
  // In millionths of a cycle, which a saturated product still adds up in.
  const uint128 millionths =
      static_cast<uint128>(macs) * rate.macs + static_cast<uint128>(bytes) * rate.bytes +
      static_cast<uint128>(weight_bytes) * costs.weights + static_cast<uint128>(costs.step_cycles) * kMillion;
  // cycles / clock_khz are milliseconds: times a million nanoseconds, which are the millionths.
  const uint128 ns = millionths / costs.clock_khz;
  return ns > kMaxNs ? kMaxNs : static_cast<uint64_t>(ns);
}

uint64_t cpu_pj(const CpuCosts& costs, uint64_t ns) {
  const uint128 per_ms = static_cast<uint128>(costs.clock_khz) * costs.pj_per_cycle;
  if (per_ms != 0 && ns > ~uint128{0} / per_ms) return kMaxNs;  // a target file may say anything
  const uint128 pj = per_ms * ns / kMillion;
  return pj > kMaxNs ? kMaxNs : static_cast<uint64_t>(pj);
}

uint64_t copy_ns(const CpuCosts& costs, uint64_t bytes) {
  return mul_div(bytes, costs.copies, costs.clock_khz);
}

}  // namespace qplan::target
