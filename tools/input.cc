#include "tools/input.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tools/error.h"
#include "tools/files.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

[[nodiscard]] bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<uint8_t> load_raw(const std::string& path, const qplan_tensor_info& info,
                              const std::string& label) {
  const std::string expected = label + " needs " + std::to_string(info.size_bytes);
  std::vector<uint8_t> bytes = read_file(path, "input", {info.size_bytes, expected});
  if (bytes.size() != info.size_bytes) {
    throw Failure("input '" + path + "': has " + std::to_string(bytes.size()) + " bytes, " + expected);
  }
  return bytes;
}

std::vector<uint8_t> load_npy(const std::string& path, const qplan_tensor_info& info,
                              const std::string& label) {
  // The error for an array of another type or shape states both, unless the array is far too large.
  constexpr uint64_t kSlack = uint64_t{1} << 24;
  const uint64_t max_bytes = info.size_bytes + kSlack;
  const std::vector<uint8_t> file =
      read_file(path, "input", {max_bytes, label + " takes at most " + std::to_string(max_bytes)});
  const NpyHeader header = parse_npy(file, path);
  const bool same_shape = header.shape.size() == static_cast<size_t>(info.ndim) &&
                          std::equal(header.shape.begin(), header.shape.end(), info.shape);
  if (!is_type(info.dtype, header.dtype.code, header.dtype.bits) || !same_shape) {
    throw Failure("input '" + path + "': is " + dtype_name(header.dtype) +
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
                                const std::string& label, const Normalisation& normalisation) {
  if (has_image_extension(path)) return load_picture(path, info, label, normalisation);
  if (ends_with(path, ".npy")) return load_npy(path, info, label);
  return load_raw(path, info, label);
}

}  // namespace qplan::tools
