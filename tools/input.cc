#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "tools/command.h"
#include "tools/files.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

[[nodiscard]] bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<uint8_t> load_raw(const std::string& path, const qplan_tensor_info& info,
                              const std::string& label, const std::string& role) {
  const std::string expected = label + " needs " + std::to_string(info.size_bytes);
  std::vector<uint8_t> bytes = read_file(path, role, {info.size_bytes, expected});
  if (bytes.size() != info.size_bytes) {
    throw Failure(role + " '" + path + "': has " + std::to_string(bytes.size()) + " bytes, " + expected);
  }
  return bytes;
}

std::vector<uint8_t> load_npy(const std::string& path, const qplan_tensor_info& info,
                              const std::string& label, const std::string& role) {
  // The error for an array of another type or shape states both, unless the array is far too large.
  constexpr uint64_t kSlack = uint64_t{1} << 24;
  const uint64_t max_bytes = info.size_bytes + kSlack;
  const std::vector<uint8_t> file =
      read_file(path, role, {max_bytes, label + " takes at most " + std::to_string(max_bytes)});
  const NpyHeader header = parse_npy(file, path, role);
  const bool same_shape = header.shape.size() == static_cast<size_t>(info.ndim) &&
                          std::equal(header.shape.begin(), header.shape.end(), info.shape);
  if (!is_type(info.dtype, header.dtype.code, header.dtype.bits) || !same_shape) {
    throw Failure(role + " '" + path + "': is " + dtype_name(header.dtype) +
                  shape_text(header.shape.data(), static_cast<int32_t>(header.shape.size())) + ", expected " +
                  label);
  }
  return {file.begin() + static_cast<std::ptrdiff_t>(header.data_offset), file.end()};
}

template <typename T>
void store(std::vector<uint8_t>& bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

// Writes a real number as an element of the input's dtype: integers are quantised where the tensor has a
// scale, rounded half away from zero and clamped to the dtype's range.
class ElementWriter {
 public:
  ElementWriter(const qplan_tensor_info& info, const std::string& label) : info_(info) {
    const DLDataType type = info.dtype;
    const bool integer = (type.code == kDLInt || type.code == kDLUInt) && type.lanes == 1 &&
                         (type.bits == 8 || type.bits == 16 || type.bits == 32);
    if (!integer && !is_type(type, kDLFloat, 32)) {
      throw Failure(label + ": pictures fill inputs of 8, 16 or 32 bits; give a .npy or raw file");
    }
    if (info.num_scales > 1) throw Failure(label + ": has a scale per channel; give a .npy or raw file");
    bytes_.resize(info.size_bytes);
  }

  void write_real(size_t index, double real) {
    if (info_.dtype.code == kDLFloat) {
      store(bytes_, index, static_cast<float>(real));
      return;
    }
    const double units = info_.num_scales == 1 ? real / static_cast<double>(info_.scales[0]) : real;
    const double zero_point = info_.num_scales == 1 ? info_.zero_points[0] : 0;
    write_integer(index, std::round(units) + zero_point);
  }

  void write_integer(size_t index, double value) {
    const int bits = info_.dtype.bits;
    const bool is_signed = info_.dtype.code == kDLInt;
    const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0;
    const double high = std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
    const auto clamped = static_cast<int64_t>(std::clamp(value, low, high));
    if (bits == 8) {
      store(bytes_, index, static_cast<uint8_t>(clamped));
    } else if (bits == 16) {
      store(bytes_, index, static_cast<uint16_t>(clamped));
    } else {
      store(bytes_, index, static_cast<uint32_t>(clamped));
    }
  }

  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  const qplan_tensor_info& info_;
  std::vector<uint8_t> bytes_;
};

double channel_value(const std::vector<double>& values, uint32_t channel, double otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[channel];
}

void check_channels(const std::vector<double>& values, const char* option, const ImageLayout& layout,
                    const std::string& label) {
  if (values.size() > 1 && values.size() != layout.channels) {
    throw Failure(std::string(option) + " has " + std::to_string(values.size()) + " values, " + label +
                  " has " + std::to_string(layout.channels) +
                  (layout.channels == 1 ? " channel" : " channels"));
  }
}

std::vector<uint8_t> load_picture(const std::string& path, const qplan_tensor_info& info,
                                  const std::string& label, const Normalisation& normalisation) {
  const ImageLayout layout = image_layout(info, label);
  check_channels(normalisation.mean, "--mean", layout, label);
  check_channels(normalisation.std, "--std", layout, label);
  const bool is_8_bit = is_type(info.dtype, kDLUInt, 8) || is_type(info.dtype, kDLInt, 8);
  if (normalisation.empty() && !is_8_bit) {
    throw Failure("input '" + path + "': " + label +
                  " takes a picture only with --mean and --std, which say what a " +
                  "byte means; --mean 0 --std 255 for 0 to 1, --mean 127.5 --std 127.5 for -1 to 1");
  }
  ElementWriter writer(info, label);
  Image image =
      decode_image(read_file(path, "image",
                             {kMaxImageFileBytes, "expected at most " + std::to_string(kMaxImageFileBytes)}),
                   path);
  if (layout.channels == 1) image = to_grey(image);
  image = resize_bilinear(image, layout.width, layout.height);

  const double byte_offset = info.dtype.code == kDLInt ? -128 : 0;
  const size_t plane = static_cast<size_t>(layout.width) * layout.height;
  for (size_t pixel = 0; pixel < plane; ++pixel) {
    for (uint32_t c = 0; c < layout.channels; ++c) {
      const double byte = image.pixels[pixel * layout.channels + c];
      const size_t index = layout.channels_first ? c * plane + pixel : pixel * layout.channels + c;
      if (normalisation.empty()) {
        writer.write_integer(index, byte + byte_offset);
      } else {
        writer.write_real(
            index, (byte - channel_value(normalisation.mean, c, 0)) / channel_value(normalisation.std, c, 1));
      }
    }
  }
  return writer.take();
}

}  // namespace

std::vector<double> parse_channel_values(const std::string& text, const std::string& option) {
  std::vector<double> values;
  const char* at = text.c_str();
  for (;;) {
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    if (end == at || !std::isfinite(value) || (*end != '\0' && *end != ',')) {
      throw UsageError(option + ": '" + text +
                       "' is not a number or a list of three: 127.5 or 123.7,116.3,103.5");
    }
    values.push_back(value);
    if (*end == '\0') break;
    at = end + 1;
  }
  if (values.size() != 1 && values.size() != 3) {
    throw UsageError(option + ": '" + text + "' has " + std::to_string(values.size()) +
                     " values, expected 1 or 3");
  }
  return values;
}

ImageLayout image_layout(const qplan_tensor_info& info, const std::string& label) {
  std::vector<int64_t> shape(info.shape, info.shape + info.ndim);
  if (shape.size() == 4 && shape[0] == 1) shape.erase(shape.begin());
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  // Sides of at most this many pixels also keep width * height * channels far from overflow.
  constexpr int64_t kMaxSide = 1 << 16;
  ImageLayout layout;
  if (shape.size() == 3 && std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n <= kMaxSide; })) {
    const auto a = static_cast<uint32_t>(shape[0]);
    const auto b = static_cast<uint32_t>(shape[1]);
    const auto c = static_cast<uint32_t>(shape[2]);
    if (is_channels(shape[2])) return {a, b, c, false};
    if (is_channels(shape[0])) return {b, c, a, true};
  }
  throw Failure(
      label + ": is not the shape of a picture ([1,h,w,c] or [1,c,h,w], c 1 or 3); give a .npy or raw file");
}

std::vector<uint8_t> load_input(const std::string& path, const qplan_tensor_info& info,
                                const std::string& label, const Normalisation& normalisation,
                                const std::string& role) {
  if (has_image_extension(path)) return load_picture(path, info, label, normalisation);
  if (ends_with(path, ".npy")) return load_npy(path, info, label, role);
  return load_raw(path, info, label, role);
}

// ---- .npy files

namespace {

// Reads the header's text, a Python dict literal: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }
class DictReader {
 public:
  // where: "input 'x.npy'", for errors.
  DictReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  void read() {
    expect('{');
    while (!accept('}')) {
      const std::string key = read_string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') fail("holds a structured dtype, expected a plain one");
        descr = read_string();
      } else if (key == "fortran_order") {
        fortran_order = read_bool();
      } else if (key == "shape") {
        shape = read_shape();
      } else {
        fail("its header has an unknown key '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (peek() != '\0' || at_ < text_.size()) malformed();  // NumPy pads with blanks alone
    if (!descr || !fortran_order || !shape) fail("its header lacks 'descr', 'fortran_order' or 'shape'");
  }

  [[noreturn]] void fail(const std::string& reason) const { throw Failure(where_ + ": " + reason); }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed();
  }
  [[noreturn]] void malformed() const {
    fail("its .npy header is malformed at character " + std::to_string(at_));
  }

  std::string read_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) malformed();
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool read_bool() {
    peek();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    }
    malformed();
  }
  int64_t read_extent() {
    constexpr int64_t kMax = int64_t{1} << 40;  // far past any tensor; keeps the product of extents in range
    if (peek() < '0' || peek() > '9') malformed();
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + (text_[at_] - '0');
      if (value > kMax) malformed();
    }
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2's long
    return value;
  }
  std::vector<int64_t> read_shape() {
    std::vector<int64_t> extents;
    expect('(');
    while (!accept(')')) {
      extents.push_back(read_extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

DLDataType parse_descr(const DictReader& header) {
  const std::string& descr = *header.descr;  // byte order, kind, bytes: "<i4"
  const auto unknown = [&]() {
    header.fail("has dtype '" + descr + "', expected booleans, or integers or floats of 1, 2, 4 or 8 bytes");
  };
  if (descr.size() != 3 || std::strchr("<>|=", descr[0]) == nullptr) unknown();
  const int bytes = descr[2] - '0';
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) unknown();
  if (descr[1] == 'b' && bytes == 1) return DLDataType{kBoolCode, 8, 1};
  uint8_t code = kDLInt;
  switch (descr[1]) {
    case 'i':
      code = kDLInt;
      break;
    case 'u':
      code = kDLUInt;
      break;
    case 'f':
      code = kDLFloat;
      break;
    default:
      unknown();
  }
  if (descr[0] == '>' && bytes > 1) {
    header.fail("is big-endian ('" + descr +
                "'), expected little-endian; save array.astype(array.dtype.newbyteorder('<'))");
  }
  return DLDataType{code, static_cast<uint8_t>(bytes * 8), 1};
}

}  // namespace

NpyHeader parse_npy(const std::vector<uint8_t>& file, const std::string& path, const std::string& role) {
  const std::string where = role + " '" + path + "'";
  const auto fail = [&](const std::string& reason) { throw Failure(where + ": " + reason); };
  constexpr size_t kMagicBytes = 8;  // "\x93NUMPY", major, minor
  if (file.size() < kMagicBytes + 2 || std::memcmp(file.data(), "\x93NUMPY", 6) != 0) {
    fail("is not a .npy file");
  }
  const uint8_t major = file[6];
  if (major < 1 || major > 3) fail("has .npy version " + std::to_string(major) + ", expected 1, 2 or 3");
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t text_begin = kMagicBytes + length_bytes;
  size_t length = 0;
  for (size_t i = 0; i < length_bytes && kMagicBytes + i < file.size(); ++i) {
    length |= static_cast<size_t>(file[kMagicBytes + i]) << (8 * i);
  }
  if (file.size() < text_begin || file.size() - text_begin < length) fail("is cut off in its .npy header");

  DictReader header({reinterpret_cast<const char*>(file.data()) + text_begin, length}, where);
  header.read();
  NpyHeader result;
  result.dtype = parse_descr(header);
  result.shape = *header.shape;
  result.data_offset = text_begin + length;
  if (*header.fortran_order && result.shape.size() > 1) {
    fail("is in Fortran order, expected C order; save numpy.ascontiguousarray(array)");
  }
  const uint64_t found = file.size() - result.data_offset;
  uint64_t expected = result.dtype.bits / 8;
  for (const int64_t extent : result.shape) {
    if (__builtin_mul_overflow(expected, static_cast<uint64_t>(extent), &expected))
      fail("has an impossible shape");
  }
  if (found != expected) {
    fail("holds " + std::to_string(found) + " bytes after its header, its shape " +
         shape_text(result.shape.data(), static_cast<int32_t>(result.shape.size())) + " of " +
         dtype_name(result.dtype) + " needs " + std::to_string(expected));
  }
  return result;
}

}  // namespace qplan::tools
