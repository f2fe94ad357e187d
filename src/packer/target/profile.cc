#include "src/packer/target/profile.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "kernels/cpu.h"
#include "qplan/qplan.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::target {
namespace {

struct Isa {
  const char* name;
  uint32_t id;
};

struct Arch {
  const char* name;
  uint64_t pointer_size;
  std::vector<Isa> isas;              // lowest first; the reference is always the first
  std::string_view default_isa = {};  // without isa=; empty: the best of them
};

std::vector<Isa> isas_of(std::string_view of_arch) {
  std::vector<Isa> isas = {{"reference", QPLAN_ISA_REFERENCE}};
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  if (of_arch == #arch) isas.push_back({#name, QPLAN_ISA_##NAME});
#include "kernels/isa.def"
#undef QPLAN_ISA
  return isas;
}

// On x86-64, SSE4.1 in place of NEON and RVV: its vectors have 128 bits, as theirs have.
uint32_t substitute_of(uint32_t isa, std::string_view arch) {
  const bool is_foreign =
      (arch == "aarch64" || arch == "riscv64") && std::string_view(cpu_arch()) == "x86_64";
  return is_foreign && isa != QPLAN_ISA_REFERENCE ? uint32_t{QPLAN_ISA_SSE41} : isa;
}

const std::vector<Arch>& known_archs() {
  static const std::vector<Arch> archs = [] {
    const std::vector<Isa> none = isas_of(""), cortex_m = isas_of("cortex-m");
    std::vector<Isa> dsp = cortex_m;
    std::erase_if(dsp, [](const Isa& isa) { return !isa_within(isa.id, QPLAN_ISA_DSP); });
    return std::vector<Arch>{
        {"x86_64", 8, isas_of("x86_64")},
        {"cortex-m", 4, cortex_m, "reference"},
        {"cortex-m0plus", 4, none},
        {"cortex-m3", 4, none},
        {"cortex-m4", 4, dsp},
        {"cortex-m7", 4, dsp},
        {"cortex-m33", 4, dsp},
        {"cortex-m55", 4, cortex_m},
        {"cortex-m85", 4, cortex_m},
        // Only I8MM's kernels read its weight layouts fast, so users must name it.
        {"aarch64", 8, isas_of("aarch64"), "dotprod"},
        {"riscv64", 8, isas_of("riscv64")},
        {"rv32imc", 4, none},
    };
  }();
  return archs;
}

// About what a core does in two microseconds: enough to hand tasks to threads that look out for them.
constexpr uint64_t kX86TaskWork = 300'000;
// Below this a cascade (src/runtime/cascade.h) costs more, about half a microsecond, than its saving is worth
// where memory is plenty and caches hold it.
constexpr uint64_t kX86MinFusedBytes = 128 << 10;

template <typename Range>
std::string list_names(const Range& range) {
  std::string text;
  for (const auto& entry : range) text += (text.empty() ? "" : ", ") + std::string(entry.name);
  return text;
}

[[noreturn]] void fail(const std::string& text) {
  throw PackError(QPLAN_INVALID_ARGUMENT, "target: " + text);
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t comma = text.find(',');
    parts.push_back(trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

struct ProfileOptions {
  std::string_view arch = "x86_64";
  std::string_view isa;  // "": the best
};

ProfileOptions parse_options(const std::vector<std::string_view>& parts) {
  ProfileOptions options;
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    const std::string_view key = trim(parts[i].substr(0, equals));
    if (equals == std::string_view::npos)
      fail("option " + in_quotes(parts[i]) + " is not of the form key=value");
    const std::string_view value = trim(parts[i].substr(equals + 1));
    if (key == "arch") {
      options.arch = value;
    } else if (key == "isa") {
      options.isa = value;
    } else {
      fail("option " + in_quotes(key) +
           " of 'cpu' is not known; known: arch, bytes_per_us, clock, isa, macs_per_us, priority");
    }
  }
  return options;
}

}  // namespace

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

TargetProfile parse_target(std::string_view text) {
  const std::vector<std::string_view> parts = split_at_commas(text);
  if (parts[0] != "cpu") fail(in_quotes(parts[0]) + " is not known; known: cpu");
  const ProfileOptions options = parse_options(parts);

  const std::vector<Arch>& archs = known_archs();
  const auto arch =
      std::ranges::find_if(archs, [&](const Arch& known) { return options.arch == known.name; });
  if (arch == archs.end()) {
    fail("arch " + in_quotes(options.arch) + " is not known; known: " + list_names(archs));
  }
  auto best = std::prev(arch->isas.end());
  const std::string_view wanted = options.isa.empty() ? arch->default_isa : options.isa;
  if (!wanted.empty()) {
    best = std::ranges::find_if(arch->isas, [&](const Isa& known) { return wanted == known.name; });
    if (best == arch->isas.end()) {
      fail("isa " + in_quotes(options.isa) + " of arch '" + arch->name +
           "' is not known; known: " + list_names(arch->isas));
    }
  }

  TargetProfile profile;
  profile.name = "cpu";
  profile.arch = arch->name;
  profile.options = std::string("arch=") + arch->name + ",isa=" + best->name;
  profile.pointer_size = arch->pointer_size;
  for (const Isa& isa : arch->isas) {
    if (!isa_within(isa.id, best->id)) continue;
    profile.isas.push_back(isa.id);
    profile.asked_isas.push_back(substitute_of(isa.id, profile.arch));
  }
  if (isa_has_vectors(best->id)) {
    profile.conv2d_layout = kLayout_o16k4;
    profile.fully_connected_layout = kLayout_o16k4;
    profile.depthwise_layout = kLayout_hwo16;
    profile.input_origin = InputOrigin::kDtypeMin;
    profile.adds_weight_rests = profile.arch == "x86_64";
    if (profile.arch == "aarch64") {
      // SMMLA and USMMLA take bytes as they are, SDOT and NEON signed ones.
      profile.prefers_eights = best->id == QPLAN_ISA_I8MM;
      profile.input_origin = profile.prefers_eights ? InputOrigin::kZero : InputOrigin::kDtypeMiddle;
    }
  } else if (best->id == QPLAN_ISA_MVE) {
    profile.conv2d_layout = kLayout_o4k16;
    profile.fully_connected_layout = kLayout_o4k16;
    profile.depthwise_layout = kLayout_hwo16;
  } else if (best->id != QPLAN_ISA_REFERENCE) {
    profile.conv2d_layout = kLayout_o2r4;
    profile.fully_connected_layout = kLayout_o4k4;
    profile.depthwise_layout = kLayout_hwo16;
  }
  if (arch->pointer_size == 8) {
    profile.task_work = kX86TaskWork;
    profile.min_fused_bytes = kX86MinFusedBytes;
  }
  return profile;
}

TargetProfile reference_profile() { return parse_target("cpu,isa=reference"); }

// Lists of targets as texts, and the values of the options that all targets have.

void fail_target(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, "target: " + text); }

int32_t checked_priority(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > 1'000'000) {
    fail_target(cat("priority '", text, "' is not a number from 0 to 1000000"));
  }
  return value;
}

uint64_t checked_clock_khz(std::string_view name, std::string_view text) {
  struct Unit {
    std::string_view name;
    uint64_t hz;
  };
  constexpr Unit kUnits[] = {{"GHz", 1'000'000'000}, {"MHz", 1'000'000}, {"kHz", 1000}, {"Hz", 1}};
  constexpr uint64_t kMinHz = 1000, kMaxHz = 100'000'000'000;
  constexpr size_t kMaxDigits = 12;  // of either half
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.size() <= kMaxDigits &&
           part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    std::string_view number = trim(text.substr(0, text.size() - unit.name.size()));
    const size_t point = number.find('.');
    const std::string_view whole = number.substr(0, point);
    if (!digits(whole) || (point != std::string_view::npos && !digits(number.substr(point + 1)))) break;
    uint64_t hz = mul_div(std::stoull(std::string(whole)), unit.hz, 1);
    if (point != std::string_view::npos) {
      uint64_t of = 1;
      for (size_t i = point + 1; i < number.size(); ++i) of *= 10;
      hz += mul_div(std::stoull(std::string(number.substr(point + 1))), unit.hz, of);
    }
    if (hz < kMinHz || hz > kMaxHz) break;
    return hz / 1000;
  }
  fail_target(cat("clock '", text, "' of '", name,
                  "' is not a frequency from 1kHz to 100GHz with its unit; expected like 250MHz or 1.2GHz"));
}

// A part without '=' begins the next target.
std::vector<TargetText> split_targets(std::string_view text) {
  std::vector<TargetText> targets;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    const std::string_view part = trim(text.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      targets.push_back({std::string(part), {}});
    } else if (targets.empty()) {
      fail_target(
          cat("option '", part, "' comes before any target; expected a name first, like \"vta, cpu\""));
    } else {
      targets.back().options.emplace_back(trim(part.substr(0, equals)), trim(part.substr(equals + 1)));
    }
  }
  return targets;
}

}  // namespace qplan::target
