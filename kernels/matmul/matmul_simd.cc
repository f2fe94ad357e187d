// fully_connected as a matrix product of rows and packed weights.
#include <stddef.h>
#include <stdint.h>

#include "kernels/matmul/fully_connected_rows.h"
#include "kernels/matmul/matmul.h"
#include "kernels/numeric/gemm.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {

// ---- fully_connected ----

namespace {

inline void fully_connected_gemm(const FullyConnectedArgs& args, uint32_t begin, uint32_t end,
                                 void* scratch) {
  auto* terms = static_cast<int32_t*>(scratch);
  uint8_t* copies = static_cast<uint8_t*>(scratch) + term_bytes(args);
  const bool direct = rows_are_input(args);
  constexpr size_t kNoOffset[1] = {0};
  Gemm product = gemm_of(args);
  product.has_eights = layout_group(args.weights_layout) == 8;
  if (!direct && row_copy_sign_bias(args, kKeepsBytes) != 0) product.sign_bias = 0;
  product.first_row = copies;
  product.row_stride = direct ? args.input_c : row_copy_bytes(args);
  product.num_taps = 1;
  product.tap_bytes = args.input_c;
  product.tap_offsets = kNoOffset;
  product.row_term = args.weights_zero_point != 0 ? terms : nullptr;
  const uint32_t groups = num_groups(args), most_rows = row_chunk(args), most_blocks = block_group(args);
  for (uint32_t work_item = begin; work_item < end; ++work_item) {
    const uint32_t first = work_item / groups * most_rows, group = work_item % groups;
    if (work_item == begin || group == 0) {  // another chunk of rows
      const uint32_t left = args.rows - first;
      product.num_rows = left < most_rows ? left : most_rows;
      product.first_out = static_cast<uint8_t*>(args.output) + first * product.out_stride;
      if (direct) {
        product.first_row = static_cast<const uint8_t*>(args.input) + size_t{first} * args.input_c;
      } else {
        copy_rows<copy_run, kKeepsBytes>(args, first, product.num_rows, copies);
      }
      // sum u * (w - z) = sum u * w - z * sum u
      if (args.weights_zero_point != 0) row_sums(product, -args.weights_zero_point, terms);
    }
    const uint32_t first_block = group * most_blocks;
    const uint32_t end_block = first_block + most_blocks;
    QPLAN_SIMD_VARIANT(gemm)::run(product, first_block,
                                  end_block < num_blocks(args) ? end_block : num_blocks(args));
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(fully_connected) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FullyConnectedArgs& args) {
  return rows_accepts(args, kProductMakesSums, is_product_origin(args.input_dtype, args.input_zero_point),
                      kProductTakesEights);
}

size_t scratch_bytes(const FullyConnectedArgs& args) { return rows_scratch_bytes(args); }

uint32_t work_items(const FullyConnectedArgs& args) { return row_work_items(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FullyConnectedArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  fully_connected_gemm(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(fully_connected)

// ---- batch_matmul: each second matrix is packed as if it were weights, with zero points that enter a bias
// and a term for each row ----

namespace {

// A work item is a chunk of rows. The next item of the same matrix finds it packed; packing takes about as
// long as the products of so many rows.
constexpr uint32_t kMatmulRows = 64;
// What needs more is the reference's: scratch would be most of a session's memory.
constexpr uint64_t kMatmulMostScratch = uint64_t{1} << 22;

inline uint32_t matmul_chunk(const BatchMatmulArgs& a) { return a.m < kMatmulRows ? a.m : kMatmulRows; }
inline uint32_t matmul_chunks(const BatchMatmulArgs& a) { return (a.m + kMatmulRows - 1) / kMatmulRows; }
inline uint64_t matmul_channels(const BatchMatmulArgs& a) { return (uint64_t{a.n} + 15) / 16 * 16; }
inline uint64_t matmul_packed_bytes(const BatchMatmulArgs& a) {
  return matmul_channels(a) * ((uint64_t{a.k} + 3) / 4 * 4);
}
// Copies of rows reach over their ends.
inline size_t matmul_copy_bytes(const BatchMatmulArgs& a) {
  return static_cast<size_t>(aligned_to_64(a.k)) + 64;
}
inline bool matmul_is_direct(const BatchMatmulArgs& a) { return a.k % 4 == 0; }  // rows are read as they are

// The parts of the scratch memory, in their order.
struct MatmulScratch {
  int8_t* packed;
  int32_t* bias;  // these: of each column, rounded up to 16
  int32_t* multiplier;
  int32_t* shift;
  float* scale;
  int32_t* terms;   // of each row of a chunk
  uint8_t* copies;  // of the rows

  MatmulScratch(const BatchMatmulArgs& a, void* scratch) {
    auto* bytes = static_cast<uint8_t*>(scratch);
    const auto take = [&](uint64_t size) {
      void* part = bytes;
      bytes += aligned_to_64(size);
      return part;
    };
    packed = static_cast<int8_t*>(take(matmul_packed_bytes(a)));
    bias = static_cast<int32_t*>(take(matmul_channels(a) * 4));
    multiplier = static_cast<int32_t*>(take(matmul_channels(a) * 4));
    shift = static_cast<int32_t*>(take(matmul_channels(a) * 4));
    scale = static_cast<float*>(take(matmul_channels(a) * 4));
    terms = static_cast<int32_t*>(take(kMatmulRows * 4));
    copies = bytes;
  }
};

// acc = sum u * w - u_zero * sum w - w_zero * sum u + k * u_zero * w_zero, modulo 2^32: u is a as uint8, w is
// b as int8 in layout o16k4. The part of sum u is the row's term.
inline void pack_matrix(const BatchMatmulArgs& a, const uint8_t* b, const MatmulScratch& s) {
  const bool is_signed = a.dtype == Dtype::kS8;
  const auto u_zero = static_cast<uint32_t>(is_signed ? a.a_zero_point + 128 : a.a_zero_point);
  const auto w_zero = static_cast<uint32_t>(is_signed ? a.b_zero_point : a.b_zero_point - 128);
  const uint8_t sign_bias = is_signed ? 0 : 0x80;
  const uint64_t padded_k = (uint64_t{a.k} + 3) / 4 * 4;
  int8_t* to = s.packed;
  for (uint64_t first = 0; first < matmul_channels(a); first += 16) {
    const uint64_t count = a.n - first < 16 ? a.n - first : 16;
    uint32_t sums[16] = {};
    for (uint64_t k = 0; k < padded_k; k += 4, to += 64) {
      for (uint64_t j = 0; j < 4; ++j) {
        const uint64_t columns = k + j < a.k ? count : 0;
        const uint8_t* from = b + (k + j) * a.b_k_stride + first * a.b_n_stride;
        for (uint64_t n = 0; n < columns; ++n) {
          const auto w = static_cast<int8_t>(from[n * a.b_n_stride] ^ sign_bias);
          to[n * 4 + j] = w;
          sums[n] += static_cast<uint32_t>(int32_t{w});
        }
        for (uint64_t n = columns; n < 16; ++n) to[n * 4 + j] = 0;
      }
    }
    for (uint64_t n = 0; n < 16; ++n) {
      s.bias[first + n] = static_cast<int32_t>(a.k * u_zero * w_zero - u_zero * sums[n]);
      s.multiplier[first + n] = a.output_multiplier;
      s.shift[first + n] = a.output_shift;
      s.scale[first + n] = a.scale;
    }
  }
}

inline uint64_t matmul_scratch(const BatchMatmulArgs& a) {
  const uint64_t copies = matmul_is_direct(a) ? 0 : uint64_t{matmul_chunk(a)} * matmul_copy_bytes(a);
  return aligned_to_64(matmul_packed_bytes(a)) + 4 * aligned_to_64(matmul_channels(a) * 4) +
         aligned_to_64(kMatmulRows * 4) + copies;
}

inline Gemm matmul_gemm(const BatchMatmulArgs& a, const MatmulScratch& s, const size_t* no_offset) {
  Gemm g;
  g.weights = s.packed;
  g.bias = s.bias;
  g.multiplier = s.multiplier;
  g.shift = s.shift;
  g.scale = s.scale;
  g.contract = a.contract;
  g.num_channels = a.n;
  g.out_stride = a.n;
  g.output_zero_point = a.output_zero_point;
  g.clamp_min = a.clamp_min;
  g.clamp_max = a.clamp_max;
  g.num_taps = 1;
  g.tap_bytes = a.k;
  g.tap_offsets = no_offset;
  return g;
}

inline void batch_matmul_items(const BatchMatmulArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const MatmulScratch s(args, scratch);
  constexpr size_t kNoOffset[1] = {0};
  Gemm g = matmul_gemm(args, s, kNoOffset);
  const bool is_signed = args.dtype == Dtype::kS8;
  const uint8_t sign_bias = is_signed ? 0x80 : 0;
  const int32_t w_zero = is_signed ? args.b_zero_point : args.b_zero_point - 128;
  const bool is_direct = matmul_is_direct(args);
  if (w_zero != 0) g.row_term = s.terms;
  const uint32_t chunks = matmul_chunks(args);
  uint64_t packed = UINT64_MAX;  // the matrix that is packed
  for (uint32_t item = begin; item < end; ++item) {
    const uint32_t batch = item / chunks, first = item % chunks * kMatmulRows;
    for_each_broadcast_run(
        args.batches, batch, batch + 1, [&](uint64_t, uint64_t a_batch, uint64_t b_batch, uint64_t) {
          if (packed != b_batch)
            pack_matrix(args, static_cast<const uint8_t*>(args.b) + b_batch * args.k * args.n, s);
          packed = b_batch;
          const uint8_t* rows = static_cast<const uint8_t*>(args.a) + (a_batch * args.m + first) * args.k;
          g.num_rows = args.m - first < kMatmulRows ? args.m - first : kMatmulRows;
          g.first_out = static_cast<uint8_t*>(args.output) + (uint64_t{batch} * args.m + first) * args.n;
          g.first_row = is_direct ? rows : s.copies;
          g.row_stride = is_direct ? args.k : matmul_copy_bytes(args);
          g.sign_bias = is_direct ? sign_bias : 0;
          for (uint32_t p = 0; !is_direct && p < g.num_rows; ++p, rows += args.k) {
            uint8_t* copy = s.copies + p * matmul_copy_bytes(args);
            copy_run(copy, rows, args.k, sign_bias);
            for (uint32_t k = args.k; k % 4 != 0; ++k) copy[k] = 0;
          }
          if (w_zero != 0) row_sums(g, -w_zero, s.terms);
          QPLAN_SIMD_VARIANT(gemm)::run(g, 0, (args.n + 15) / 16);
        });
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(batch_matmul) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const BatchMatmulArgs& args) {
  if (args.dtype == Dtype::kS16) return Refusal::kDtype;
  if (args.m < 4) return Refusal::kTooSmall;  // packing takes longer than the products
  return args.k < (1u << 30) && matmul_scratch(args) <= kMatmulMostScratch ? Refusal::kNone
                                                                           : Refusal::kTooLarge;
}

size_t scratch_bytes(const BatchMatmulArgs& args) { return static_cast<size_t>(matmul_scratch(args)); }

uint32_t work_items(const BatchMatmulArgs& args) {
  return static_cast<uint32_t>(args.batches.elements) * matmul_chunks(args);
}
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const BatchMatmulArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  batch_matmul_items(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(batch_matmul)

}  // namespace qplan
