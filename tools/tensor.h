// Tensors: their descriptions, their elements, what the steps of a session write into them, and the files
// that hold inputs.
#ifndef QPLAN_TOOLS_TENSOR_H_
#define QPLAN_TOOLS_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qplan/qplan.h"
#include "tools/files.h"

namespace qplan::tools {

std::string dtype_name(DLDataType dtype);                    // "uint8"
std::string shape_text(const int64_t* shape, int32_t ndim);  // "[1,128,128,3]"
std::string describe(int direction, uint32_t index,
                     const qplan_tensor_info& info);  // "input 0 'x' uint8[1,64]"

// DLPack's code of booleans, of which each is a byte, 0 or 1; older dlpack.h lack its name.
inline constexpr uint8_t kBoolCode = 6;

[[nodiscard]] bool is_type(DLDataType dtype, uint8_t code, uint8_t bits);
[[nodiscard]] uint64_t element_count(const qplan_tensor_info& info);

// All inputs or outputs of the plan's main function.
std::vector<qplan_tensor_info> tensor_infos(const qplan_plan& plan, int direction);

// The stored element, without scale; nothing for dtypes that have no plain C type (int4, float16, ...).
std::optional<double> element(const qplan_tensor_info& info, const void* bytes, uint64_t index);
// The real number that it represents: scale * (element - zero_point), per axis where the tensor is quantised
// so.
std::optional<double> real_value(const qplan_tensor_info& info, const void* bytes, uint64_t index);

// The element as text: integers in full, float32 with nine digits (reads back to the same value).
std::string element_text(const qplan_tensor_info& info, const void* bytes, uint64_t index);

// A packed row-major DLTensor over bytes.
DLTensor packed_tensor(const qplan_tensor_info& info, void* bytes);

// Class names for the values of a classifier's output.
struct Score {
  uint64_t index;  // of the value in the output
  double score;    // its real value
};

// The count largest values, largest first; of equal ones the first. Empty for dtypes without a plain C type.
std::vector<Score> top_scores(const qplan_tensor_info& info, const void* bytes, uint32_t count);

// A text file, without the mark (BOM) that some editors put before UTF-8. what: as for read_file.
std::string read_text(const std::string& path, std::string_view what);
// Its lines, without the empty ones at the end.
std::vector<std::string> read_lines(const std::string& path, std::string_view what);

class Labels {
 public:
  // One name per line.
  explicit Labels(const std::string& path);
  // Names that come from elsewhere; where: in place of the path.
  Labels(std::string where, std::vector<std::string> names)
      : path_(std::move(where)), names_(std::move(names)) {}

  // Whether the names fit an output of this many values: as many, or one more (the first, background, is
  // skipped).
  [[nodiscard]] bool fits(uint64_t values) const {
    return names_.size() == values || names_.size() == values + 1;
  }
  [[nodiscard]] const std::string& name(uint64_t index, uint64_t values) const {
    return names_[index + (names_.size() - values)];
  }
  [[nodiscard]] size_t count() const { return names_.size(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> names_;
};

// ---- what each step of a session writes, through the platform's hooks: for files and for comparisons

// A tensor that a step has written, of one run.
struct StepTensor {
  uint32_t step = 0;    // position in the plan
  uint32_t output = 0;  // of the step
  std::string op;
  std::string kernel;  // the variant that wrote it
  std::string step_name;
  std::string name;        // of the source model; "" where stripped
  qplan_tensor_info info;  // its pointers are good as long as the plan
  std::vector<uint8_t> bytes;
};

// Copies every output of every step while a session runs.
class StepTensors {
 public:
  // Before the session is made: both must outlive it. Functions that were there before are still called.
  void attach(qplan_platform& platform);
  // After.
  void watch(qplan_session* session) { session_ = session; }
  void clear() { tensors_.clear(); }
  // In the order in which they were written. Failure where one could not be read.
  [[nodiscard]] const std::vector<StepTensor>& tensors() const;

 private:
  static void on_end(void* user, const qplan_event* event, qplan_status status);

  qplan_platform before_{};
  qplan_session* session_ = nullptr;
  qplan_status status_ = QPLAN_OK;
  std::vector<StepTensor> tensors_;
};

// "conv1_Relu6" of "conv1/Relu6;conv1/Conv2D": letters, digits and -._ of the first of joined names, at most
// 80 of them; "" of nothing.
std::string file_stem(std::string_view name);

// A little-endian .npy file (version 1) of the tensor; of dtypes that NumPy lacks its bytes as uint8.
std::string npy_file(const qplan_tensor_info& info, const void* bytes);

// The files of `run --dump-tensors`: one .npy for each tensor, and tensors.json, which lists them and the
// steps that hide tensors. prefix: of the files of this run, "run0_" or "". Names are unique over all calls
// with one list.
struct TensorFiles {
  std::vector<std::string> names;
  std::vector<std::string> contents;
  nlohmann::ordered_json index = nlohmann::ordered_json::array();

  void add(const std::vector<StepTensor>& tensors, const std::string& prefix);
  // Adds tensors.json. plan: for the steps that hide tensors.
  void finish(const PlanFile& plan);
  [[nodiscard]] std::vector<NamedBytes> files() const;
};

// The steps of a plan (as `inspect --json` prints it) inside which are tensors that no step writes, with the
// reason and what shows them: [{"step", "name", "reason"}, ...].
nlohmann::ordered_json hidden_tensors(const nlohmann::ordered_json& inspected);

// ---- files that hold inputs (input.cc, image.cc): pictures, NumPy's arrays, raw bytes

// Pictures as network inputs: decode, grey, resize.

// Rows from top to bottom, channels interleaved.
struct Image {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;
  std::vector<uint8_t> pixels;
};

// Whether the file's name ends like a picture: .bmp .png .jpg .jpeg, in any case.
[[nodiscard]] bool has_image_extension(const std::string& path);

// Limits of a picture, checked with its header before a pixel is decoded. A picture within these limits may
// still need more memory to decode than kMaxDecoderBytes (16 bits per channel, say): it is refused then.
inline constexpr uint32_t kMaxImageSide = 16384;
inline constexpr uint64_t kMaxImagePixels = uint64_t{1} << 25;
inline constexpr size_t kMaxImageFileBytes = size_t{1} << 28;
inline constexpr size_t kMaxDecoderBytes = size_t{1} << 29;

// BMP, PNG or JPEG (the content decides) as three channels, red first; transparency is dropped. path is for
// errors. Failure where the file is no such picture, has no pixels, or exceeds the limits. Holds at most
// kMaxDecoderBytes at a time beside file, 3 bytes per pixel of which stay.
Image decode_image(const std::vector<uint8_t>& file, const std::string& path);

// One channel: luma = 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), rounded half up.
Image to_grey(const Image& image);

// image must have pixels. Bilinear without antialiasing: output centre i + 0.5 falls on (i + 0.5) * n_in /
// n_out of the source, edges are clamped, all in float64, first along rows, then along columns, rounded half
// up. This order of operations gives the same bytes as
//   x = (arange(n_out) + 0.5) * n_in / n_out - 0.5
// and (p * (1 - fx) + q * fx) * (1 - fy) + (r * (1 - fx) + s * fx) * fy in NumPy.
Image resize_bilinear(const Image& image, uint32_t width, uint32_t height);

// NumPy's .npy files, versions 1 to 3.
struct NpyHeader {
  DLDataType dtype{};
  std::vector<int64_t> shape;
  size_t data_offset = 0;  // bytes, where the elements begin
};

// Reads the header of a little-endian array of booleans, integers or floats in C order and checks that its
// elements fill the rest of the file. path and role (what the file is) are for errors.
NpyHeader parse_npy(const std::vector<uint8_t>& file, const std::string& path,
                    const std::string& role = "input");

// One input file of `qplan run` -> the bytes of one input tensor.

// The conversion of a picture's bytes: (byte - mean) / std, one value for all channels or one per channel.
// Empty: 8-bit inputs take the byte itself (int8: byte - 128).
struct Normalisation {
  std::vector<double> mean;
  std::vector<double> std;
  [[nodiscard]] bool empty() const { return mean.empty() && std.empty(); }
};

// "127.5" or "123.7,116.3,103.5"; option names it in errors. UsageError.
std::vector<double> parse_channel_values(const std::string& text, const std::string& option);

// Where a picture's pixels go in a tensor of this shape.
struct ImageLayout {
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t channels = 0;  // 1 or 3
  bool channels_first = false;
};
// [1,h,w,c], [1,c,h,w], [h,w,c], [c,h,w] or [1,h,w] with c 1 or 3. Failure, with label, for other shapes.
ImageLayout image_layout(const qplan_tensor_info& info, const std::string& label);

// path is a .npy, a picture, or raw bytes, by its extension. In errors label describes the tensor, and role
// says what the file is.
std::vector<uint8_t> load_input(const std::string& path, const qplan_tensor_info& info,
                                const std::string& label, const Normalisation& normalisation,
                                const std::string& role = "input");

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_TENSOR_H_
