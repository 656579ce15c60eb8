// Weights of a few bits in blocks, as ONNX Runtime's exporters pack them (com.microsoft).

#include <array>

#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

// Numbers of 2, 4 or 8 bits, the lowest bits of a byte first: [..., bytes] -> [..., bytes * 8 / bits].
Tensor unpacked(const Tensor& bytes, int bits) {
  std::vector<Tensor> parts;
  for (int from = 0; from < 8; from += bits)
    parts.push_back(imprint::bit_and(imprint::shift_right(bytes, from), (1 << bits) - 1));
  Shape shape = bytes.shape();
  shape[shape.rank() - 1] *= 8 / bits;
  return imprint::reshape(imprint::stack(parts, bytes.rank()), shape);
}

// Packed weights of the file, as float32 [k, n] once. Nothing: they are not known, or have zero points.
std::optional<Tensor> known_weights(OpContext& context, std::int64_t k, std::int64_t n, std::int64_t block,
                                    std::int64_t bits) {
  const Value packed = context.value(1), scales = context.value(2);
  if (!packed.foldable() || !scales.foldable() || !is_float(scales.type()) || context.has(3) ||
      !context.mover().may_fold(ElementType::float32, k * n))
    return std::nullopt;
  const std::int64_t blocks = (k + block - 1) / block;
  HostArray out{.type = ElementType::float32, .shape = {k, n}, .floats = {}, .ints = {}, .strings = {}};
  std::vector<float>& floats = out.floats.own();
  floats.resize(static_cast<std::size_t>(k * n));
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < k; ++row) {
      const std::int64_t position = (column * blocks * block + row) * bits;
      const std::int64_t byte = packed.host()->ints[static_cast<std::size_t>(position / 8)];
      const std::int64_t number = (byte >> position % 8 & ((1 << bits) - 1)) - (1 << (bits - 1));
      floats[static_cast<std::size_t>(row * n + column)] =
          static_cast<float>(number) *
          scales.host()->floats[static_cast<std::size_t>(column * blocks + row / block)];
    }
  return Value::known(std::move(out)).tensor();
}

// A [..., k] times the transposed weights [n, k], which lie in blocks along k, each with a scale.
void matmul_nbits(OpContext& context) {
  const std::int64_t k = context.int_attribute("K", 0), n = context.int_attribute("N", 0),
                     block = context.int_attribute("block_size", 0), bits = context.int_attribute("bits", 4);
  const Tensor a = context.tensor(0), packed = context.tensor(1);
  if (bits != 2 && bits != 4 && bits != 8) return context.unsupported(text("weights of ", bits, " bits"));
  if (context.has(4)) return context.unsupported("g_idx");
  const bool sane = k > 0 && n > 0 && k <= kMaxElements && n <= kMaxElements && block >= 16 &&
                    block <= 65536 && block * bits % 8 == 0;
  const std::int64_t blocks = sane ? (k + block - 1) / block : 1;
  if (!context.require(sane && a.rank() >= 1 && a.extent(a.rank() - 1) == k &&
                           context.checked(Extents{n, blocks, block}).element_count() > 0 &&
                           packed.shape().element_count() == n * blocks * (block * bits / 8) &&
                           context.shape(2).element_count() == n * blocks &&
                           is_integer(context.value(1).type()),
                       text("A ", a.shape().text(), " and weights ", packed.shape().text(), " do not fit ", n,
                            " x ", k, " in blocks of ", block)) ||
      !context.may_make(32))
    return;
  if (const auto known = known_weights(context, k, n, block, bits)) {
    const Tensor product = imprint::matmul(a, *known);
    return context.set(0, context.has(5) ? product + context.tensor(5) : product);
  }
  const Tensor numbers =
      unpacked(imprint::reshape(packed, {n, blocks, block * bits / 8}), static_cast<int>(bits));
  const Tensor scales = imprint::reshape(context.tensor(2), {n, blocks, 1});
  Tensor zero = imprint::full({1, 1, 1}, static_cast<double>(1 << (bits - 1)));
  if (context.has(3)) {
    Tensor given = context.tensor(3);
    if (given.dtype() == DType::int32) {
      const std::int64_t bytes = (blocks * bits + 7) / 8;
      if (!context.require(given.shape().element_count() == n * bytes, "the zero points do not fit")) return;
      given = imprint::narrow(unpacked(imprint::reshape(given, {n, bytes}), static_cast<int>(bits)), 1, 0,
                              blocks);
    }
    if (!context.require(given.shape().element_count() == n * blocks, "the zero points do not fit")) return;
    zero = imprint::reshape(imprint::cast(given, DType::float32), {n, blocks, 1});
  }
  const Tensor weights = imprint::narrow(
      imprint::reshape((imprint::cast(numbers, DType::float32) - zero) * scales, {n, blocks * block}), 1, 0,
      k);
  Tensor out = imprint::matmul(a, imprint::transpose(weights));
  if (context.has(5)) out = out + context.tensor(5);
  context.set(0, out);
}

// Values of 4-bit numbers whose steps are uneven: bitsandbytes' FP4 and NF4 (QLoRA: Dettmers et al. 2023,
// appendix E).
constexpr std::array<float, 16> kFloat4{
    0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
constexpr std::array<float, 16> kNormal4{-1.0f,
                                         -0.6961928009986877f,
                                         -0.5250730514526367f,
                                         -0.39491748809814453f,
                                         -0.28444138169288635f,
                                         -0.18477343022823334f,
                                         -0.09105003625154495f,
                                         0.0f,
                                         0.07958029955625534f,
                                         0.16093020141124725f,
                                         0.24611230194568634f,
                                         0.33791524171829224f,
                                         0.44070982933044434f,
                                         0.5626170039176941f,
                                         0.7229568362236023f,
                                         1.0f};

// A [..., k] times the transposed weights [n, k] of a file: 4 bits each, the high ones of a byte first, with
// the largest magnitude of each block of the whole.
void matmul_uneven(OpContext& context) {
  const std::int64_t k = context.int_attribute("K", 0), n = context.int_attribute("N", 0),
                     block = context.int_attribute("block_size", 0),
                     kind = context.int_attribute("quant_type", 1);
  const Tensor a = context.tensor(0);
  const Value packed = context.value(1), largest = context.value(2);
  if (kind != 0 && kind != 1) return context.unsupported(text("quant_type ", kind));
  if (context.int_attribute("transB", 1) == 0) return context.unsupported("transB 0");
  const bool sane = k > 0 && n > 0 && k <= kMaxElements / n && block >= 16 && block <= 65536;
  const std::int64_t count = sane ? n * k : 1;
  if (!context.require(sane && a.rank() >= 1 && a.extent(a.rank() - 1) == k &&
                           packed.type() == ElementType::uint8 &&
                           packed.shape().element_count() == (count + 1) / 2 && is_float(largest.type()) &&
                           largest.shape().element_count() == (count + block - 1) / block,
                       text("A ", a.shape().text(), " and weights ", packed.shape().text(), " do not fit ", n,
                            " x ", k, " in blocks of ", block)))
    return;
  if (!packed.foldable() || !largest.foldable()) return context.unsupported("weights of run time");
  if (!context.mover().may_fold_weight(ElementType::float32, count))
    return context.unsupported("weights of this size");
  const std::array<float, 16>& values = kind == 0 ? kFloat4 : kNormal4;
  HostArray out{.type = ElementType::float32, .shape = {k, n}, .floats = {}, .ints = {}, .strings = {}};
  std::vector<float>& floats = out.floats.own();
  floats.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t byte = packed.host()->ints[static_cast<std::size_t>(i / 2)];
    const auto number = static_cast<std::size_t>((i % 2 == 0 ? byte >> 4 : byte) & 15);
    floats[static_cast<std::size_t>(i % k * n + i / k)] =
        values[number] * largest.host()->floats[static_cast<std::size_t>(i / block)];
  }
  context.set(0, imprint::matmul(a, Value::known(std::move(out)).tensor()));
}

// ---- rows of quantised tables ----

// Numbers and zero points as the file packs them: uint8 may hold several numbers along the last axis.
Tensor several_bits(const Value& value, int bits) {
  return value.type() == ElementType::uint8 && bits < 8 ? unpacked(value.tensor(), bits) : value.tensor();
}

// Gather of numbers that have a scale for each block along an axis, as real numbers.
void gather_quantised(OpContext& context) {
  const Value data = context.value(0), scales = context.value(2);
  const std::int64_t bits = context.int_attribute("bits", 4),
                     block = context.int_attribute("block_size", 128);
  if (data.type() != ElementType::uint8 && data.type() != ElementType::int4 &&
      data.type() != ElementType::uint4)
    return context.unsupported("numbers of type " + element_type_name(data.type()));
  if (bits != 2 && bits != 4 && bits != 8) return context.unsupported(text("numbers of ", bits, " bits"));
  const int rank = data.rank(), along = context.axis(context.int_attribute("gather_axis", 0), rank),
            blocks = context.axis(context.int_attribute("quantize_axis", 1), rank);
  const int last = rank - 1;
  Extents real = extents_of(data.shape());
  const bool is_packed = data.type() == ElementType::uint8 && bits < 8;
  bool fits = !context.failure() && along != blocks && (!is_packed || along != last) && block >= 16 &&
              block <= kMaxElements && scales.rank() == rank;
  if (fits && is_packed) real[static_cast<std::size_t>(last)] *= 8 / bits;
  for (int axis = 0; fits && axis < rank; ++axis) {
    const std::int64_t extent = real[static_cast<std::size_t>(axis)];
    fits = scales.shape()[axis] == (axis == blocks ? (extent + block - 1) / block : extent);
  }
  if (!context.require(fits, text("data ", data.shape().text(), " and scales ", scales.shape().text(),
                                  " do not fit blocks of ", block, " along axis ", blocks)) ||
      !context.may_make(32))
    return;
  const auto indices = normal_indices(context, 1, data.shape(), along);
  if (!indices) return;
  const auto rows = [&](const Value& value) { return context.mover().take(value, along, *indices); };
  const int to = blocks < along ? blocks : blocks + indices->rank() - 1;
  const auto spread = [&](const Tensor& x) {
    return imprint::narrow(imprint::repeat_interleave(x, to, block), to, 0,
                           real[static_cast<std::size_t>(blocks)]);
  };
  Tensor numbers = imprint::cast(several_bits(rows(data), static_cast<int>(bits)), DType::float32);
  if (context.has(3)) {
    const Value zeros = rows(context.value(3));
    Tensor zero = imprint::cast(several_bits(zeros, static_cast<int>(bits)), DType::float32);
    const std::int64_t each = scales.shape()[blocks];  // the last byte of a row may hold fewer
    if (zero.rank() > to && zero.extent(to) > each) zero = imprint::narrow(zero, to, 0, each);
    numbers = numbers - spread(zero);
  } else if (data.type() == ElementType::uint8) {
    numbers = numbers - static_cast<double>(std::int64_t{1} << (bits - 1));
  }
  context.set(0, numbers * spread(rows(scales).tensor()), scales.type());
}

constexpr std::array kPackedWeightsOps{
    OpHandler{"com.microsoft.GatherBlockQuantized", gather_quantised},
    OpHandler{"com.microsoft.MatMulBnb4", matmul_uneven},
    OpHandler{"com.microsoft.MatMulNBits", matmul_nbits},
};

}  // namespace

std::span<const OpHandler> packed_weights_ops() { return kPackedWeightsOps; }

}  // namespace imprint::onnx
