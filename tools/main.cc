// qplan: packs models, runs plans, prints their content.
#include <cstdint>
#include <string>

#include "qplan/qplan.h"
#include "tools/command.h"
#include "tools/commit.h"  // generated: QPLAN_COMMIT

namespace {

// What 'qplan --version' prints, without the newline at the end.
std::string version_text() {
  std::string here;
  for (uint32_t isa = QPLAN_ISA_AUTO + 1; isa < 256; ++isa) {
    const char* name = qplan_isa_name(isa);
    if (name != nullptr && qplan_isa_available(isa) != 0)
      here += (here.empty() ? "" : " ") + std::string(name);
  }
  return "qplan " QPLAN_VERSION "\ncommit            " QPLAN_COMMIT "\ncompiler          " QPLAN_COMPILER
         ", " QPLAN_BUILD_TYPE "\ninstruction sets  " +
         here + " (of this build, on this machine)";
}

}  // namespace

int main(int argc, char** argv) { return qplan::tools::run_command_line(argc, argv, version_text); }
