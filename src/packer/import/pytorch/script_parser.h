// Reads code/**.py of an archive: classes with methods, and functions. A function that is not called is not
// parsed beyond its name, so that unsupported code does no harm where it is not needed.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_PARSER_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_PARSER_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/import/pytorch/script_ast.h"
#include "src/packer/import/pytorch/script_lexer.h"

namespace qplan::pt {

class ScriptFile {
 public:
  // PackError "line 3: ..."; also where there are more tokens than max_tokens.
  ScriptFile(std::string_view text, size_t max_tokens);
  size_t num_tokens() const { return tokens_.size(); }

  // A function of the file (class_name empty) or a method; null when there is none. Parsed when first asked
  // for.
  const FunctionBody* find(std::string_view class_name, std::string_view function);

 private:
  struct Function {
    size_t begin = 0;  // token after the name
    std::unique_ptr<FunctionBody> body;
  };

  void find_functions();

  std::vector<Token> tokens_;
  std::map<std::pair<std::string, std::string>, Function, std::less<>> functions_;  // (class, name)
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_PARSER_H_
