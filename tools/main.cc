// qplan: packs models, runs plans, prints their content.
#include "tools/command_line.h"
#include "tools/version/version.h"

int main(int argc, char** argv) {
  return qplan::tools::run_command_line(argc, argv, qplan::tools::version_text);
}
