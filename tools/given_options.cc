#include "tools/given_options.h"

#include <algorithm>

#include "tools/command.h"
#include "tools/model_options.h"
#include "tools/tensor.h"

namespace qplan::tools {

void refuse_without_effect(const CLI::App& command, const std::vector<std::string>& options,
                           const std::string& where) {
  for (const std::string& option : options) {
    const CLI::Option* known = command.get_option_no_throw(option);
    if (known != nullptr && known->count() > 0) throw UsageError(option + ": has no effect " + where);
  }
}

void refuse_unused_normalisation(const CLI::App& command, const std::vector<std::string>& inputs) {
  if (std::ranges::none_of(inputs, has_image_extension))
    refuse_without_effect(command, {"--mean", "--std"}, "without a picture after --input");
}

std::vector<std::string> model_option_names() {
  CLI::App command;
  ModelOptions model;
  PlacementOptions placement;
  command.set_help_flag();
  add_model_options(command, model);
  add_placement_options(command, placement);
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) names.push_back(option->get_name());
  }
  return names;
}

void refuse_options_of_models(const CLI::App& command) {
  std::vector<std::string> names = model_option_names();
  std::erase(names, "--custom-operators");
  names.emplace_back("--fuse");
  refuse_without_effect(command, names, "on a plan, which is packed already; give its model");
}

std::string given_model_options(const CLI::App& command) {
  std::vector<std::string> names = model_option_names();
  for (const char* talk : {"--dump-after", "--log-level", "--verbose"}) std::erase(names, talk);
  names.emplace_back("--fuse");
  std::string text;
  for (const std::string& name : names) {
    const CLI::Option* option = command.get_option(name);
    if (option->count() == 0) continue;
    if (option->get_items_expected_max() == 0) {
      text += " " + name;  // a flag
      continue;
    }
    for (const std::string& value : option->results()) text += " " + name + " " + shell_word(value);
  }
  return text;
}

}  // namespace qplan::tools
