// Keeps a command from replacing a file that it reads.
#ifndef TOOLS_OUTPUT_FILE_H_
#define TOOLS_OUTPUT_FILE_H_

#include <string>
#include <vector>

namespace qplan::tools {

// A file of the command line; role names it in errors: "model", "--bind", "--output".
struct NamedFile {
  std::string role;
  std::string path;  // empty: not given
};

// Failure where writing an output would replace an input, or two outputs are one file. Files are the same
// when the system says so (device and inode), whatever their paths; devices and pipes are never the same. To
// be called before anything is read or written.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

}  // namespace qplan::tools

#endif  // TOOLS_OUTPUT_FILE_H_
