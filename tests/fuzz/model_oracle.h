// The common parts of targets that take models: options that vary with the input, and all that must hold of a
// model's text and plan.
#ifndef QPLAN_TESTS_FUZZ_MODEL_ORACLE_H_
#define QPLAN_TESTS_FUZZ_MODEL_ORACLE_H_

#include <string>

#include "src/packer/error.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"
#include "tests/fuzz/pack_oracle.h"

namespace qplan::fuzz {

inline constexpr const char* kTensors[] = {"1", "3"};

// Most inputs take the defaults; the others one option that leads through other code.
inline void vary(qplan_pack_options* options, uint64_t hash) {
  switch (hash >> 8 & 31) {
    case 0:
      options->fuse = QPLAN_FUSE_ALL;
      break;
    case 1:
      options->fuse = QPLAN_FUSE_OFF;
      break;
    case 2:
      options->io = "int8";
      break;
    case 3:
      options->io = "float";
      break;
    case 4:
      options->io_layout = "nchw";
      break;
    case 5:
      options->io_layout = "nhwc";
      break;
    case 6:
      options->contract = "f32e";
      break;
    case 7:
      options->contract = "tfl2";
      break;
    case 8:
      options->keep_float = 1;
      break;
    case 9:
    case 10:
    case 11:
      options->target = "vta, cpu";
      break;
    case 12:
      options->target = "vta,sram=quarter, cpu,isa=avx2";
      options->no_cost_gate = 1;
      break;
    case 13:
      options->target = "cpu,isa=reference";
      break;
    case 14:
      options->strip_names = 1;
      break;
    case 15:
      options->log_level = QPLAN_LOG_DEBUG;
      options->log = drop_log;
      options->dump_after = "all";
      options->dump = drop_text;
      break;
    // Tensors that a .tflite file has by number.
    case 16:
      options->end_at = kTensors;
      options->num_end_at = 1;
      break;
    case 17:
      options->begin_at = kTensors;
      options->num_begin_at = 1;
      options->end_at = kTensors + 1;
      options->num_end_at = 1;
      break;
    default:
      break;
  }
}

// As imported and as canonical: print(parse(print(m))) == print(m).
inline void check_text(const uint8_t* model, size_t size, const char* name, const ImportOptions& import,
                       bool canonical) {
  PackOptions options;
  options.import = import;
  std::string text;
  try {
    const ir::Module module = canonical ? canonical_module({model, size}, name, options)
                                        : import_model({model, size}, name, options);
    text = text::print(module);
  } catch (const PackError& error) {
    FUZZ_CHECK(error.status() != QPLAN_INTERNAL, "%s", error.what());
    return;
  }
  // Larger ones say nothing new.
  if (text.size() > 1 << 16) return;
  try {
    const std::string again = text::print(text::parse(text, "printed"));
    FUZZ_CHECK(text == again, "first:\n%s\nsecond:\n%s", text.c_str(), again.c_str());
  } catch (const PackError& error) {
    FUZZ_CHECK(false, "what was printed does not parse: %s\n%s", error.what(), text.c_str());
  }
}

// import: the same as in the options.
inline void check_model(const uint8_t* model, size_t size, const char* name, qplan_pack_options options,
                        const ImportOptions& import = {}) {
  const uint64_t hash = fingerprint(model, size);
  vary(&options, hash);
  Bytes plan;
  const bool packed = pack(model, size, name, options, &plan);
  if (packed) check_plan(plan, hash);
  // The text costs a second import; canonical forms have more to say.
  if (packed || hash % 4 == 0) check_text(model, size, name, import, packed && hash % 2 == 0);
}

}  // namespace qplan::fuzz

#endif  // QPLAN_TESTS_FUZZ_MODEL_ORACLE_H_
