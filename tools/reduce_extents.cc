// Smaller extents: shapes that a module declares and attributes that hold sizes are mapped, all
// others are inferred anew.
#include <algorithm>
#include <cstring>
#include <set>

#include "hlo/shape_inference.h"
#include "reduce_edits.h"

namespace heddle::tools {
namespace {

using hlo::Instr;
using hlo::Shape;
using tensor::Literal;

struct Mapping {
  int64_t from, to;
  bool multiples;
  int64_t operator()(int64_t extent) const {
    if (extent == from) return to;
    return multiples && extent > from && extent % from == 0 ? extent / from * to : extent;
  }
  void all(hlo::Ints& sizes) const {
    for (int64_t& size : sizes) size = (*this)(size);
  }
};

Shape mapped(const Shape& shape, const Mapping& map) {
  if (shape.is_tuple()) {
    std::vector<Shape> elements;
    for (const Shape& element : shape.elements()) elements.push_back(mapped(element, map));
    return Shape::make_tuple(std::move(elements));
  }
  Shape result = shape;
  bool changed = false;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const int64_t size = map(shape.dim(i));
    changed = changed || size != shape.dim(i);
    if (size != shape.dim(i)) result.set_dim(i, size);
  }
  return changed ? result.without_layout() : result;
}

// Its first elements along every dimension.
Literal corner(const Literal& literal, const Shape& shape) {
  Literal result(shape);
  const std::vector<int64_t> old = literal.shape().extents(), now = shape.extents();
  const auto width = static_cast<size_t>(tensor::type_bytes(shape.type()));
  const auto* from = static_cast<const char*>(literal.data());
  auto* to = static_cast<char*>(result.mutable_data());
  for (int64_t i = 0; i < result.elems(); ++i) {
    int64_t left = i, place = 0, stride = 1;
    for (size_t d = now.size(); d-- > 0;) {
      place += left % now[d] * stride;
      left /= now[d];
      stride *= old[d];
    }
    std::memcpy(to + static_cast<size_t>(i) * width, from + static_cast<size_t>(place) * width,
                width);
  }
  return result;
}

void map_attributes(Instr& instr, const Mapping& map) {
  switch (instr.opcode()) {
    case hlo::Opcode::slice:
      map.all(instr.mutable_attrs_as<hlo::SliceAttrs>().limits);
      if (map.multiples) map.all(instr.mutable_attrs_as<hlo::SliceAttrs>().starts);
      return;
    case hlo::Opcode::dynamic_slice:
      return map.all(instr.mutable_attrs_as<hlo::DynamicSliceAttrs>().slice_sizes);
    case hlo::Opcode::gather:
      return map.all(instr.mutable_attrs_as<hlo::GatherAttrs>().slice_sizes);
    case hlo::Opcode::fft:
      return map.all(instr.mutable_attrs_as<hlo::FftAttrs>().fft_length);
    default:
      return;
  }
}

bool infer_anew(Instr& instr, const Mapping& map) {
  if (instr.is(hlo::Opcode::constant)) {
    const Literal value = instr.literal();
    if (!value.shape().is_array()) return true;
    const Shape shape = mapped(value.shape(), map);
    if (shape.extents() == value.shape().extents()) return true;
    instr.mutable_attrs_as<hlo::ConstantAttrs>().value = corner(value, shape);
    instr.set_shape(shape);
    return true;
  }
  const Shape declared = mapped(instr.shape(), map);
  std::vector<const Shape*> operands;
  for (const Instr* operand : instr.operands()) operands.push_back(&operand->shape());
  const bool wants = hlo::shape_is_declared(instr.opcode());
  Result<Shape> shape = hlo::infer_shape(instr.opcode(), operands, instr.attrs(), instr.called(),
                                         wants ? &declared : nullptr);
  if (!shape && !wants)  // a type that is declared
    shape = hlo::infer_shape(instr.opcode(), operands, instr.attrs(), instr.called(), &declared);
  if (!shape) return false;
  instr.set_shape(*shape);
  return true;
}

void collect(const Shape& shape, std::set<int64_t, std::greater<>>& extents) {
  for (const Shape& element : shape.elements()) collect(element, extents);
  if (!shape.is_array()) return;
  for (const tensor::Dim& dim : shape.dims())
    if (!dim.dynamic && dim.size > 1) extents.insert(dim.size);
}

}  // namespace

std::vector<int64_t> extents_of(const hlo::Module& module) {
  std::set<int64_t, std::greater<>> extents;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->instrs()) collect(instr->shape(), extents);
  return {extents.begin(), extents.end()};
}

bool shrink_extent(hlo::Module& module, int64_t from, int64_t to, bool multiples) {
  const Mapping map{from, to, multiples};
  for (hlo::Computation* computation : module.post_order())
    for (Instr* instr : computation->instrs()) {
      map_attributes(*instr, map);
      if (!infer_anew(*instr, map)) return false;
    }
  return true;
}

}  // namespace heddle::tools
