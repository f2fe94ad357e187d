// NumPy's .npy files, versions 1 to 3.
#ifndef TOOLS_NPY_H_
#define TOOLS_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "qplan/qplan.h"

namespace qplan::tools {

struct NpyHeader {
  DLDataType dtype{};
  std::vector<int64_t> shape;
  size_t data_offset = 0;  // bytes, where the elements begin
};

// Reads the header of a little-endian array of integers or floats in C order and checks that its elements
// fill the rest of the file. path is for errors.
NpyHeader parse_npy(const std::vector<uint8_t>& file, const std::string& path);

}  // namespace qplan::tools

#endif  // TOOLS_NPY_H_
