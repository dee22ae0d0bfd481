// integer_products: computes a product (dot or convolution) of two quantised values as a sum of
// products of their bytes, u8 on the left and s8 on the right, as byte instructions require:
//
//   Σ sa (a - za) · sb (b - zb)  =  sa sb ( Σ a·b  -  za Σ b  -  zb Σ a  +  K za zb )
//
// Σ b over constant weights is a constant. Sums are exact in s32, while sums of floats round, so
// results may differ by that rounding. Bytes of the other signedness are shifted by 128, with their
// zero points. If a convolution pads, the zero point represents zero.
#include <algorithm>

#include "opt/match.h"
#include "opt/rewriter.h"
#include "precision/passes.h"
#include "precision/quantized_value.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::ConvolutionAttrs;
using hlo::DotAttrs;
using hlo::Opcode;
using hlo::Shape;
using tensor::Literal;
using tensor::Type;

constexpr int64_t kWord = 4;  // bytes per side in one instruction

// A product, and the dimension of its result for each dimension of its operands (-1: summed over).
struct Product {
  Instr* instr;
  Ints summed[2];      // contracted dimensions of each operand
  Ints result_dim[2];  // for each operand's dimensions
};

Product describe_dot(Instr* dot) {
  const auto& attrs = dot->attrs_as<DotAttrs>();
  const Ints* batch[2] = {&attrs.lhs_batch_dims, &attrs.rhs_batch_dims};
  Product product{dot, {attrs.lhs_contracting_dims, attrs.rhs_contracting_dims}, {}};
  auto next = static_cast<int64_t>(attrs.lhs_batch_dims.size());
  for (size_t side : {size_t{0}, size_t{1}}) {
    const int64_t rank = dot->operand(side)->shape().rank();
    for (int64_t d = 0; d < rank; ++d) {
      const auto at = std::find(batch[side]->begin(), batch[side]->end(), d);
      if (at != batch[side]->end())
        product.result_dim[side].push_back(at - batch[side]->begin());
      else
        product.result_dim[side].push_back(opt::contains(product.summed[side], d) ? -1 : next++);
    }
  }
  return product;
}

// Slices of the kernel may be along any dimension, those of the image only along the batch: the
// window mixes the others.
Product describe_convolution(Instr* conv) {
  const auto& dims = conv->attrs_as<ConvolutionAttrs>().dims;
  Product product{conv, {}, {}};
  const int64_t rank = conv->shape().rank();
  product.result_dim[0].assign(static_cast<size_t>(rank), -1);
  product.result_dim[0][static_cast<size_t>(dims.input_batch)] = dims.output_batch;
  for (int64_t d = 0; d < rank; ++d) {
    const bool feature = d == dims.kernel_output_feature;
    product.result_dim[1].push_back(feature ? dims.output_feature : -1);
    if (!feature) product.summed[1].push_back(d);
  }
  return product;
}

// One side: bytes of the required type, and their zero point.
struct Side {
  Instr* bytes;
  PerSlice zero;  // s32; added to known_zero; null: none
  int64_t known_zero = 0;
  bool has_zero() const { return zero.value != nullptr || known_zero != 0; }
};

Instr* shifted(Instr* bytes, Type to, Builder& b) {
  if (const Literal* values = opt::constant_of(bytes)) {
    Literal moved(Shape::array(to, values->shape().extents()));
    const auto* from = static_cast<const uint8_t*>(values->data());
    auto* into = static_cast<uint8_t*>(moved.mutable_data());
    std::transform(from, from + values->elems(), into, [](uint8_t x) { return x ^ 0x80U; });
    return b.constant(std::move(moved));
  }
  Instr* same = b.bitcast_convert(bytes, Shape::array(to, bytes->shape().extents()));
  return b.binary(Opcode::xor_, same, b.full(same->shape(), to == Type::u8 ? 128 : -128));
}

Side side_of(QuantizedValue value, Type wanted, Builder& b) {
  Side side{nullptr, value.zero, value.known_zero};
  if (value.bytes->shape().type() != wanted) {
    value.bytes = shifted(value.bytes, wanted, b);
    side.known_zero += wanted == Type::u8 ? 128 : -128;
  }
  side.bytes = moved_bytes(value, b);
  if (side.zero.value && side.known_zero != 0)
    side.zero.value = b.binary(Opcode::add, b.convert(side.zero.value, Type::s32),
                               b.full(Shape::array(Type::s32, side.zero.value->shape().extents()),
                                      static_cast<double>(side.known_zero)));
  return side;
}

class IntegerProduct {
 public:
  IntegerProduct(Product product, const QuantizedValue& a, const QuantizedValue& c, Builder& b)
      : product_(std::move(product)), values_{a, c}, b_(b) {}

  Instr* build() {
    for (size_t i : {size_t{0}, size_t{1}})
      sides_[i] = side_of(values_[i], i == 0 ? Type::u8 : Type::s8, b_);
    extents_ = product_.instr->shape().extents();
    Instr* sums = product_.instr->is(Opcode::dot) ? dot() : convolution();
    for (size_t i : {size_t{0}, size_t{1}})
      if (sides_[i].has_zero())
        sums = b_.binary(Opcode::subtract, sums,
                         b_.binary(Opcode::multiply, zero_of(i), sums_of(1 - i)));
    if (sides_[0].has_zero() && sides_[1].has_zero()) {
      int64_t k = 1;
      for (int64_t d : product_.summed[1]) k *= product_.instr->operand(1)->shape().dim(d);
      Instr* both = b_.binary(Opcode::multiply, zero_of(0), zero_of(1));
      Instr* count = b_.full(both->shape(), static_cast<double>(k));
      sums = b_.binary(Opcode::add, sums, b_.binary(Opcode::multiply, both, count));
    }
    return scaled(sums);
  }

 private:
  Instr* dot() {
    const Shape shape = Shape::array(Type::s32, extents_);
    return b_.make(Opcode::dot, {sides_[0].bytes, sides_[1].bytes}, product_.instr->attrs(), {},
                   &shape);
  }

  Instr* convolution() {
    auto attrs = product_.instr->attrs_as<ConvolutionAttrs>();
    pad(&attrs);
    const Shape shape = Shape::array(Type::s32, extents_);
    return b_.make(Opcode::convolution, {sides_[0].bytes, sides_[1].bytes}, attrs, {}, &shape);
  }

  // Pads with the zero point, if it is not 0, where the window would pad with zeros; fills input
  // features up to whole words, for which the kernel is zero.
  void pad(ConvolutionAttrs* attrs) {
    const hlo::ConvolutionDims& dims = attrs->dims;
    const Ints none(attrs->window.dims.size() + 2, 0);
    Ints low = none, high = none, interior = none;
    for (size_t i = 0; i < attrs->window.dims.size() && sides_[0].has_zero(); ++i) {
      hlo::WindowDim& window = attrs->window.dims[i];
      const auto at = static_cast<size_t>(dims.input_spatial[i]);
      low[at] = std::exchange(window.pad_low, 0);
      high[at] = std::exchange(window.pad_high, 0);
      interior[at] = std::exchange(window.lhs_dilate, 1) - 1;
    }
    const auto feature = static_cast<size_t>(dims.input_feature);
    const int64_t features = sides_[0].bytes->shape().dim(dims.input_feature);
    if (attrs->feature_group_count == 1) high[feature] = (kWord - features % kWord) % kWord;
    if (high[feature] > 0) {
      Ints more = none;
      more[static_cast<size_t>(dims.kernel_input_feature)] = high[feature];
      sides_[1].bytes = b_.pad(sides_[1].bytes, b_.scalar(Type::s8, 0), none, more, none);
    }
    if (low == none && high == none && interior == none) return;
    sides_[0].bytes = b_.pad(sides_[0].bytes, byte_of_zero(), low, high, interior);
  }

  Instr* byte_of_zero() {
    const Side& side = sides_[0];
    if (!side.zero.value) return b_.scalar(Type::u8, static_cast<double>(side.known_zero));
    return b_.convert(b_.reshape(side.zero.value, {}), Type::u8);
  }

  // A side's zero point, broadcast to the result.
  Instr* zero_of(size_t i) {
    const Side& side = sides_[i];
    if (!side.zero.value)
      return b_.full(Shape::array(Type::s32, extents_), static_cast<double>(side.known_zero));
    PerSlice zero = side.zero;
    zero.value = b_.convert(zero.value, Type::s32);
    return spread(of_result(zero, i), extents_, b_);
  }

  PerSlice of_result(PerSlice slices, size_t i) const {
    if (slices.dim >= 0) slices.dim = product_.result_dim[i][static_cast<size_t>(slices.dim)];
    return slices;
  }

  // Sums of a side's bytes over the contracted dimensions.
  Instr* sums_of(size_t i) {
    Instr* sums =
        b_.reduce(Opcode::add, b_.convert(sides_[i].bytes, Type::s32), product_.summed[i]);
    Ints dims;
    for (int64_t dim : product_.result_dim[i])
      if (dim >= 0) dims.push_back(dim);
    return b_.broadcast(sums, extents_, dims);
  }

  // Multiplies by both scales, combined into one factor if they are along one dimension.
  Instr* scaled(Instr* sums) {
    if (product_.instr->shape().type() == Type::s32) return sums;
    Instr* x = b_.convert(sums, Type::f32);
    PerSlice factors[2];
    for (size_t i : {size_t{0}, size_t{1}}) factors[i] = of_result(values_[i].scale, i);
    if (const std::optional<PerSlice> factor =
            combined(Opcode::multiply, factors[0], factors[1], b_))
      return b_.binary(Opcode::multiply, x, spread(*factor, extents_, b_));
    for (const PerSlice& factor : factors)
      x = b_.binary(Opcode::multiply, x, spread(factor, extents_, b_));
    return x;
  }

  Product product_;
  QuantizedValue values_[2];
  Builder& b_;
  Side sides_[2];
  Ints extents_;
};

bool is_whole(const PerSlice& slices) { return !slices.value || slices.dim < 0; }

// Whether the slices are along dimensions of the result.
bool fits(const Product& product, const QuantizedValue& value, size_t side) {
  for (const PerSlice& slices : {value.scale, value.zero})
    if (!is_whole(slices) && product.result_dim[side][static_cast<size_t>(slices.dim)] < 0)
      return false;
  return true;
}

// The zero point after conversion of the bytes to `wanted`, if it is known.
std::optional<int64_t> zero_point(const QuantizedValue& value, Type wanted) {
  if (value.zero.value) return std::nullopt;
  const int64_t shift = value.bytes->shape().type() == wanted ? 0 : wanted == Type::u8 ? 128 : -128;
  return value.known_zero + shift;
}

// Whether a byte can represent zero for padding: true for ONNX operators, whose zero points are
// bytes; HLO could contain any s32.
bool is_byte(const QuantizedValue& value) {
  constexpr int64_t kMostByte = 255;
  if (const std::optional<int64_t> zero = zero_point(value, Type::u8))
    return *zero >= 0 && *zero <= kMostByte;
  const Instr* x = value.zero.value;
  while (x->is(Opcode::reshape)) x = x->operand(0);
  return value.known_zero == 0 && x->is(Opcode::convert) &&
         x->operand(0)->shape().type() == value.bytes->shape().type();
}

// Whether the convolution has a kernel for words: groups narrower than a vector that divide its
// lanes, or whole vectors (schedule/group_lanes.cc); other products could only be computed in
// floats.
bool fits_convolution(const Instr* conv, const QuantizedValue& a, const QuantizedValue& b) {
  const auto& attrs = conv->attrs_as<ConvolutionAttrs>();
  constexpr int64_t kLanes = 16;  // of a vector
  const int64_t groups = attrs.feature_group_count;
  const int64_t inputs = conv->operand(0)->shape().dim(attrs.dims.input_feature) / groups;
  const int64_t outputs = conv->shape().dim(attrs.dims.output_feature) / groups;
  const bool pads = std::any_of(attrs.window.dims.begin(), attrs.window.dims.end(),
                                [](const auto& d) { return d.pad_low < 0 || d.pad_high < 0; });
  return attrs.rest.empty() && attrs.batch_group_count == 1 && !pads && is_whole(a.scale) &&
         is_whole(a.zero) && is_byte(a) && zero_point(b, Type::s8) == 0 &&
         (groups == 1 || (inputs % kWord == 0 && (outputs >= kLanes || kLanes % outputs == 0)));
}

// Short sums of byte differences stay below 2^24 and are exact in floats, for which narrow groups
// have kernels. Null: the sums may be inexact.
Instr* convolution_in_floats(const Instr* conv, Builder& b) {
  const auto& attrs = conv->attrs_as<ConvolutionAttrs>();
  const Shape& kernel = conv->operand(1)->shape();
  const int64_t k = kernel.elems() / kernel.dim(attrs.dims.kernel_output_feature);
  constexpr int64_t kMost = (1 << 24) / (255 * 255);
  const bool is_narrow =
      attrs.feature_group_count > 1 && kernel.dim(attrs.dims.kernel_input_feature) > 1;
  if (conv->shape().type() != Type::s32 || !is_narrow || k > kMost) return nullptr;
  const Shape shape = Shape::array(Type::f32, conv->shape().extents());
  return b.convert(
      b.make(Opcode::convolution,
             {b.convert(conv->operand(0), Type::f32), b.convert(conv->operand(1), Type::f32)},
             attrs, {}, &shape),
      Type::s32);
}

// Plain bytes, or the result of match_quantized().
std::optional<QuantizedValue> match_side(Instr* x) {
  if (x->shape().type() != Type::s8 && x->shape().type() != Type::u8) return match_quantized(x);
  QuantizedValue bytes;
  bytes.bytes = x;
  return bytes;
}

opt::Rewriter::Proposal visit(Instr* x, Builder& b) {
  const bool convolution = x->is(Opcode::convolution);
  if (!convolution && !(x->is(Opcode::dot) && x->operands().size() == 2)) return {};
  if (!opt::are_static_arrays(x) || x->shape().elems() == 0) return {};
  if (!convolution && !x->attrs_as<DotAttrs>().rest.empty()) return {};
  const auto type_of = [&](size_t side) { return x->operand(side)->shape().type(); };
  if (type_of(0) == Type::u8 && type_of(1) == Type::s8) return {};  // already done
  if (x->shape().type() != Type::s32 && x->shape().type() != Type::f32) return {};
  const std::optional<QuantizedValue> a = match_side(x->operand(0));
  const std::optional<QuantizedValue> c = a ? match_side(x->operand(1)) : std::nullopt;
  if (!c || (x->shape().type() == Type::f32) != (a->scale.value != nullptr) ||
      (a->scale.value != nullptr) != (c->scale.value != nullptr))
    return {};
  if (convolution && !fits_convolution(x, *a, *c)) {
    Instr* made = convolution_in_floats(x, b);
    if (!made) return {};
    return {made, "product"};
  }
  Product product = convolution ? describe_convolution(x) : describe_dot(x);
  if (!fits(product, *a, 0) || !fits(product, *c, 1)) return {};
  return {IntegerProduct(std::move(product), *a, *c, b).build(), "product"};
}

}  // namespace

Result<bool> integer_products(hlo::Module& module, const PassContext& context) {
  return opt::rewrite_module(module, context, "integer_products", visit, [](const Instr* instr) {
    return instr->is(Opcode::dot) || instr->is(Opcode::convolution);
  });
}

}  // namespace heddle::precision
