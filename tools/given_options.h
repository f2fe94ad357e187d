// The options that a command line has: those that would do nothing are refused, and those of one command are
// repeated in the next one.
#ifndef QPLAN_TOOLS_GIVEN_OPTIONS_H_
#define QPLAN_TOOLS_GIVEN_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace qplan::tools {

// UsageError where one of these options was given: "--top: has no effect without --labels".
void refuse_without_effect(const CLI::App& command, const std::vector<std::string>& options,
                           const std::string& where);

// --mean and --std, unless one of the inputs is a picture.
void refuse_unused_normalisation(const CLI::App& command, const std::vector<std::string>& inputs);

// The names of all options of add_model_options and add_placement_options: how a plan is made of a model.
std::vector<std::string> model_option_names();
// Them and --fuse, of a command to which a plan was given. --custom-operators stays: its steps may need them.
void refuse_options_of_models(const CLI::App& command);

// Those of them that were given and shape the plan, and --fuse: " --target 'vta, cpu' --io int8".
std::string given_model_options(const CLI::App& command);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_GIVEN_OPTIONS_H_
