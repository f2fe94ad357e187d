// What a caller sees of a model before it is lowered: modules, their text, comparisons.
#include <utility>

#include "src/packer/pipeline/canonical_body.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/pipeline/targets.h"
#include "src/packer/text/text.h"

namespace qplan {

ir::Module import_model(std::span<const uint8_t> model, std::string_view name, const PackOptions& options) {
  const pipeline::Observer observer(options);
  ir::Module module = pipeline::import_any(model, name, options.log, options.import);
  observer.dump("import", module);
  return module;
}

ir::Module canonical_module(std::span<const uint8_t> model, std::string_view name,
                            const PackOptions& options) {
  const pipeline::Observer observer(options);
  const std::vector<target::Target> targets = pipeline::read_targets(options);
  ir::Module module = import_model(model, name, options);
  pipeline::canonicalize(&module, pipeline::cpu_of(targets).profile, observer,
                         options.canonical_body ? pipeline::Border::kOfTheBody : pipeline::Border::kAsAsked);
  return module;
}

namespace {

// The rewrites' log tells how often the one in question applied.
std::string why_not_text(std::span<const uint8_t> model, std::string_view name, PackOptions options) {
  uint64_t num_fired = 0;
  options.log = [log = options.log, prefix = options.why_not + ": '", &num_fired](uint32_t level,
                                                                                  const std::string& text) {
    if (text.starts_with(prefix)) ++num_fired;
    if (log) log(level, text);
  };
  const pipeline::Observer observer(options);
  const ir::Module module = canonical_module(model, name, options);
  return pipeline::why_not_report(options.why_not, observer.passes(), module, num_fired);
}

}  // namespace

std::string model_text(std::span<const uint8_t> model, std::string_view name, const PackOptions& options,
                       bool canonical) {
  if (!options.why_not.empty()) return why_not_text(model, name, options);
  if (!canonical) return text::print(import_model(model, name, options));
  const ir::Module module = canonical_module(model, name, options);
  if (!options.canonical_body) return text::print(module);
  std::string text;
  for (const ir::Function& body : pipeline::canonical_bodies(module)) {
    text += text::print(body, {.metadata = false, .names = false});
  }
  return text;
}

BodyComparison compare_models(const NamedModel& model, const NamedModel& other, const PackOptions& options) {
  PackOptions of_bodies = options;
  of_bodies.canonical_body = true;
  std::vector<std::vector<ir::Function>> bodies;
  std::vector<std::string> contracts;
  for (const NamedModel& m : {model, other}) {
    bodies.push_back(pipeline::canonical_bodies(canonical_module(m.bytes, m.name, of_bodies)));
    contracts.push_back(pipeline::contracts_of(
        pipeline::import_any(m.bytes, m.name, /*log=*/{}, options.import)));  // what it says was told before
  }
  const pipeline::BodyDifference difference = pipeline::compare_bodies(bodies[0], bodies[1]);
  return {difference.lines.empty(),
          pipeline::describe(difference, bodies[0][0].nodes().size(), contracts[0], contracts[1])};
}

}  // namespace qplan
