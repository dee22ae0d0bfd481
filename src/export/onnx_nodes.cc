#include "export/onnx_nodes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::exports {
namespace {

using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

// Types that ONNX's arithmetic supports.
bool is_number(Type type) {
  return type == Type::f16 || type == Type::bf16 || type == Type::f32 || type == Type::f64 ||
         type == Type::s32 || type == Type::s64;
}

struct Row {
  Opcode opcode;
  std::string_view op_type;
};
// Operators with a node of the same meaning for all numbers (functions: for floats).
constexpr Row kNumbers[] = {
    {Opcode::abs, "Abs"},    {Opcode::negate, "Neg"},   {Opcode::sign, "Sign"},
    {Opcode::add, "Add"},    {Opcode::subtract, "Sub"}, {Opcode::multiply, "Mul"},
    {Opcode::divide, "Div"}, {Opcode::maximum, "Max"},  {Opcode::minimum, "Min"},
};
constexpr Row kFloats[] = {
    {Opcode::acos, "Acos"},        {Opcode::acosh, "Acosh"},
    {Opcode::asin, "Asin"},        {Opcode::asinh, "Asinh"},
    {Opcode::atanh, "Atanh"},      {Opcode::ceil, "Ceil"},
    {Opcode::cosine, "Cos"},       {Opcode::cosh, "Cosh"},
    {Opcode::erf, "Erf"},          {Opcode::exponential, "Exp"},
    {Opcode::floor, "Floor"},      {Opcode::log, "Log"},
    {Opcode::logistic, "Sigmoid"}, {Opcode::round_nearest_even, "Round"},
    {Opcode::sine, "Sin"},         {Opcode::sinh, "Sinh"},
    {Opcode::sqrt, "Sqrt"},        {Opcode::tan, "Tan"},
    {Opcode::tanh, "Tanh"},        {Opcode::power, "Pow"},
};
constexpr Row kBooleans[] = {
    {Opcode::not_, "Not"},   {Opcode::and_, "And"},    {Opcode::or_, "Or"},
    {Opcode::xor_, "Xor"},   {Opcode::add, "Or"},      {Opcode::multiply, "And"},
    {Opcode::maximum, "Or"}, {Opcode::minimum, "And"},
};

template <size_t n>
std::string_view find(const Row (&rows)[n], Opcode opcode) {
  for (const Row& row : rows)
    if (row.opcode == opcode) return row.op_type;
  return {};
}

// The operator of `(a, b) -> op(a, b)`, the computation of a reduction.
std::optional<Opcode> combining(const hlo::Computation& computation) {
  const Instr* root = computation.root();
  if (computation.parameters().size() != 2 || root->operands().size() != 2) return std::nullopt;
  const auto& p = computation.parameters();
  const bool both = (root->operand(0) == p[0] && root->operand(1) == p[1]) ||
                    (root->operand(0) == p[1] && root->operand(1) == p[0]);
  return both ? std::optional(root->opcode()) : std::nullopt;
}

Ints iota(int64_t n) {
  Ints out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

std::string OnnxNodes::step(std::string_view op_type, std::vector<std::string> inputs,
                            std::string output) {
  OnnxNode node;
  node.op_type = op_type;
  node.inputs = std::move(inputs);
  if (output.empty()) output = fresh(op_type);
  node.outputs = {output};
  add(std::move(node));
  return output;
}

std::string OnnxNodes::ints(const Ints& values) {
  return constant(Literal::from<int64_t>(
      Shape::array(Type::s64, {static_cast<int64_t>(values.size())}), values));
}

bool OnnxNodes::plain(const Instr& instr, const std::vector<std::string>& operands,
                      const std::string& result) {
  if (!instr.shape().is_array() || !instr.shape().is_static()) return false;
  return elementwise(instr, operands, result) || movement(instr, operands, result) ||
         gather(instr, operands, result) || reduction(instr, operands, result) ||
         pool(instr, operands, result) || product(instr, operands, result) ||
         convolution(instr, operands, result);
}

bool OnnxNodes::elementwise(const Instr& instr, const std::vector<std::string>& operands,
                            const std::string& result) {
  const Type type = instr.shape().type();
  std::string_view op_type;
  if (is_number(type)) op_type = find(kNumbers, instr.opcode());
  if (op_type.empty() && is_number(type) && tensor::is_float(type))
    op_type = find(kFloats, instr.opcode());
  if (type == Type::pred) op_type = find(kBooleans, instr.opcode());
  if (!op_type.empty()) return step(op_type, operands, result), true;
  switch (instr.opcode()) {
    case Opcode::copy:
      return step("Identity", operands, result), true;
    case Opcode::rsqrt:
      if (!is_number(type)) return false;
      return step("Reciprocal", {step("Sqrt", operands)}, result), true;
    case Opcode::convert: {
      if (tensor::is_complex(type) || tensor::is_complex(instr.operand(0)->shape().type()))
        return false;
      std::vector<std::string> from = operands;
      const Type of = instr.operand(0)->shape().type();
      // HLO saturates; the result of Cast depends on the machine.
      if (is_number(of) && tensor::is_float(of) && tensor::is_integer(type) &&
          tensor::type_bits(type) <= 16 && of != Type::f16) {
        const int bits = tensor::type_bits(type) - (tensor::is_signed_integer(type) ? 1 : 0);
        Literal low(Shape::scalar(of)), high(Shape::scalar(of));
        low.set_f64(0, tensor::is_signed_integer(type) ? -std::ldexp(1.0, bits) : 0);
        high.set_f64(0, std::ldexp(1.0, bits) - 1);
        from = {step("Min", {step("Max", {from[0], constant(low)}), constant(high)})};
      }
      OnnxNode node{"Cast", "", from, {result}, {{"to", type_number(type)}}, {}, {}};
      return add(std::move(node)), true;
    }
    case Opcode::select:
      // A scalar predicate is broadcast, in both.
      return step("Where", operands, result), true;
    case Opcode::clamp:
      if (!is_number(type)) return false;
      return step("Min", {step("Max", {operands[1], operands[0]}), operands[2]}, result), true;
    case Opcode::compare: {
      const auto& attrs = instr.attrs_as<hlo::CompareAttrs>();
      static constexpr std::string_view kTypes[] = {"Equal",   "Equal",       "GreaterOrEqual",
                                                    "Greater", "LessOrEqual", "Less"};
      const bool equality =
          attrs.direction == hlo::Direction::eq || attrs.direction == hlo::Direction::ne;
      const Type of = instr.operand(0)->shape().type();
      if (attrs.type == hlo::CompareType::total_order ||
          !(is_number(of) || (equality && of == Type::pred)))
        return false;
      const std::string_view name = kTypes[static_cast<int>(attrs.direction)];
      if (attrs.direction != hlo::Direction::ne) return step(name, operands, result), true;
      return step("Not", {step(name, operands)}, result), true;
    }
    default:
      return false;
  }
}

bool OnnxNodes::movement(const Instr& instr, const std::vector<std::string>& operands,
                         const std::string& result) {
  const Ints extents = instr.shape().extents();
  const auto put = [&](OnnxNode node) {
    node.outputs = {result};
    add(std::move(node));
    return true;
  };
  const auto reshape = [&](const std::string& value, const Ints& to, const std::string& output) {
    OnnxNode node{"Reshape", "", {value, ints(to)}, {output}, {{"allowzero", 1}}, {}, {}};
    add(std::move(node));
    return output;
  };
  switch (instr.opcode()) {
    case Opcode::bitcast:
      if (instr.shape().type() != instr.operand(0)->shape().type() ||
          !instr.shape().layout_or_default().is_row_major() ||
          !instr.operand(0)->shape().layout_or_default().is_row_major())
        return false;
      [[fallthrough]];
    case Opcode::reshape:
      reshape(operands[0], extents, result);
      return true;
    case Opcode::broadcast: {
      const Ints& dims = instr.dimensions();
      if (!std::is_sorted(dims.begin(), dims.end())) return false;
      Ints to(extents.size(), 1);
      for (size_t i = 0; i < dims.size(); ++i)
        to[static_cast<size_t>(dims[i])] = instr.operand(0)->shape().dim(static_cast<int64_t>(i));
      const std::string lying =
          dims.empty() ? operands[0] : reshape(operands[0], to, fresh("Reshape"));
      return step("Expand", {lying, ints(extents)}, result), true;
    }
    case Opcode::transpose:
      return put({"Transpose", "", operands, {}, {}, {{"perm", instr.dimensions()}}, {}});
    case Opcode::concatenate:
      return put({"Concat", "", operands, {}, {{"axis", instr.dimensions()[0]}}, {}, {}});
    case Opcode::slice: {
      const auto& attrs = instr.attrs_as<hlo::SliceAttrs>();
      return step("Slice",
                  {operands[0], ints(attrs.starts), ints(attrs.limits),
                   ints(iota(instr.shape().rank())), ints(attrs.strides)},
                  result),
             true;
    }
    case Opcode::reverse: {
      const size_t n = instr.dimensions().size();
      return step("Slice",
                  {operands[0], ints(Ints(n, -1)), ints(Ints(n, INT64_MIN)),
                   ints(instr.dimensions()), ints(Ints(n, -1))},
                  result),
             true;
    }
    case Opcode::pad: {
      const auto& attrs = instr.attrs_as<hlo::PadAttrs>();
      const auto is_zero = [](int64_t n) { return n == 0; };
      if (!std::all_of(attrs.interior.begin(), attrs.interior.end(), is_zero)) return false;
      Ints pads = attrs.low;
      pads.insert(pads.end(), attrs.high.begin(), attrs.high.end());
      return step("Pad", {operands[0], ints(pads), operands[1]}, result), true;
    }
    case Opcode::iota: {
      const Type type = instr.shape().type();
      if (!is_number(type)) return false;
      const int64_t dim = instr.attrs_as<hlo::DimensionAttrs>().dimension;
      Literal values(Shape::array(type, {instr.shape().dim(dim)}));
      for (int64_t i = 0; i < values.elems(); ++i) values.set_f64(i, static_cast<double>(i));
      Ints to(extents.size(), 1);
      to[static_cast<size_t>(dim)] = values.elems();
      return step("Expand", {reshape(constant(values), to, fresh("Reshape")), ints(extents)},
                  result),
             true;
    }
    default:
      return false;
  }
}

bool OnnxNodes::reduction(const Instr& instr, const std::vector<std::string>& operands,
                          const std::string& result) {
  if (!instr.is(Opcode::reduce) || operands.size() != 2) return false;
  const Type type = instr.shape().type();
  const std::optional<Opcode> opcode = combining(*instr.called()[0]);
  static constexpr Row kReductions[] = {{Opcode::add, "ReduceSum"},
                                        {Opcode::multiply, "ReduceProd"},
                                        {Opcode::maximum, "ReduceMax"},
                                        {Opcode::minimum, "ReduceMin"}};
  if (!opcode || !is_number(type) || instr.operand(0)->shape().elems() == 0) return false;
  const std::string_view op_type = find(kReductions, *opcode);
  if (op_type.empty()) return false;
  const std::string reduced = fresh(op_type);
  add({std::string(op_type),
       "",
       {operands[0], ints(instr.dimensions())},
       {reduced},
       {{"keepdims", 0}, {"noop_with_empty_axes", 1}},
       {},
       {}});
  // The initial value is combined explicitly: it may be any value.
  return step(find(kNumbers, *opcode), {reduced, operands[1]}, result), true;
}

// Rows along one axis, by indices that HLO clamps.
bool OnnxNodes::gather(const Instr& instr, const std::vector<std::string>& operands,
                       const std::string& result) {
  if (!instr.is(Opcode::gather)) return false;
  const auto& a = instr.attrs_as<hlo::GatherAttrs>();
  const Shape &from = instr.operand(0)->shape(), &at = instr.operand(1)->shape();
  if (a.start_index_map.size() != 1 || a.collapsed_slice_dims != a.start_index_map ||
      !a.operand_batching_dims.empty() || (at.type() != Type::s32 && at.type() != Type::s64))
    return false;
  const int64_t axis = a.start_index_map[0], extent = from.dim(axis);
  // The index vector is the last dimension, of extent 1; or there is none.
  const bool has_vector = a.index_vector_dim < at.rank();
  if (has_vector && (a.index_vector_dim != at.rank() - 1 || at.dim(-1) != 1)) return false;
  const int64_t places = at.rank() - (has_vector ? 1 : 0);
  Ints offsets;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (a.slice_sizes[static_cast<size_t>(d)] != (d == axis ? 1 : from.dim(d))) return false;
    if (d != axis) offsets.push_back(d < axis ? d : d - 1 + places);
  }
  if (a.offset_dims != offsets || extent < 1) return false;
  Literal low(Shape::scalar(at.type())), high(Shape::scalar(at.type()));
  high.set_s64(0, extent - 1);
  std::string indices = operands[1];
  if (has_vector) {
    Ints to = at.extents();
    to.pop_back();
    const std::string lying = fresh("Reshape");
    add({"Reshape", "", {indices, ints(to)}, {lying}, {{"allowzero", 1}}, {}, {}});
    indices = lying;
  }
  indices = step("Min", {step("Max", {indices, constant(low)}), constant(high)});
  add({"Gather", "", {operands[0], indices}, {result}, {{"axis", axis}}, {}, {}});
  return true;
}

// A maximum over windows, in all dimensions but the first two.
bool OnnxNodes::pool(const Instr& instr, const std::vector<std::string>& operands,
                     const std::string& result) {
  if (!instr.is(Opcode::reduce_window) || operands.size() != 2) return false;
  const Type type = instr.shape().type();
  if (!tensor::is_float(type) || !is_number(type) || instr.shape().rank() < 3) return false;
  if (combining(*instr.called()[0]) != Opcode::maximum) return false;
  const Instr* start = instr.operand(1);
  if (!start->is(Opcode::constant) || start->literal().get_f64(0) != -HUGE_VAL) return false;
  Ints sizes, strides, dilations, low, high;
  const auto& dims = instr.attrs_as<hlo::WindowAttrs>().window.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    const hlo::WindowDim& d = dims[i];
    if (i < 2 && !(d == hlo::WindowDim{})) return false;
    if (d.lhs_dilate != 1 || d.reversal || d.pad_low < 0 || d.pad_high < 0) return false;
    if (d.pad_low >= d.size || d.pad_high >= d.size) return false;
    if (i < 2) continue;
    sizes.push_back(d.size);
    strides.push_back(d.stride);
    dilations.push_back(d.rhs_dilate);
    low.push_back(d.pad_low);
    high.push_back(d.pad_high);
  }
  low.insert(low.end(), high.begin(), high.end());
  add({"MaxPool",
       "",
       {operands[0]},
       {result},
       {},
       {{"kernel_shape", sizes}, {"strides", strides}, {"dilations", dilations}, {"pads", low}},
       {}});
  return true;
}

// As an Einsum equation: batch letters, then the free ones of each side.
bool OnnxNodes::product(const Instr& instr, const std::vector<std::string>& operands,
                        const std::string& result) {
  if (!instr.is(Opcode::dot) || operands.size() != 2) return false;
  const Type type = instr.shape().type();
  const Shape &lhs = instr.operand(0)->shape(), &rhs = instr.operand(1)->shape();
  if (!is_number(type) || lhs.type() != type || rhs.type() != type) return false;
  if (lhs.rank() + rhs.rank() > 26) return false;
  const auto& attrs = instr.attrs_as<hlo::DotAttrs>();
  std::string left(static_cast<size_t>(lhs.rank()), ' '),
      right(static_cast<size_t>(rhs.rank()), ' '), out;
  char letter = 'a';
  const auto pair = [&](const Ints& l, const Ints& r, bool kept) {
    for (size_t i = 0; i < l.size(); ++i, ++letter) {
      left[static_cast<size_t>(l[i])] = right[static_cast<size_t>(r[i])] = letter;
      if (kept) out += letter;
    }
  };
  pair(attrs.lhs_batch_dims, attrs.rhs_batch_dims, true);
  pair(attrs.lhs_contracting_dims, attrs.rhs_contracting_dims, false);
  for (std::string* side : {&left, &right})
    for (char& c : *side)
      if (c == ' ') out += (c = letter++);
  const std::string equation = left + "," + right + "->" + out;
  // The common case has a node of its own.
  const size_t batches = attrs.lhs_batch_dims.size();
  const bool is_matrix = lhs.rank() == rhs.rank() &&
                         lhs.rank() == static_cast<int64_t>(batches) + 2 &&
                         attrs.lhs_batch_dims == iota(static_cast<int64_t>(batches)) &&
                         attrs.rhs_batch_dims == attrs.lhs_batch_dims &&
                         attrs.lhs_contracting_dims == Ints{lhs.rank() - 1} &&
                         attrs.rhs_contracting_dims == Ints{rhs.rank() - 2};
  if (is_matrix) return step("MatMul", operands, result), true;
  add({"Einsum", "", operands, {result}, {}, {}, {{"equation", equation}}});
  return true;
}

bool OnnxNodes::convolution(const Instr& instr, const std::vector<std::string>& operands,
                            const std::string& result) {
  if (!instr.is(Opcode::convolution)) return false;
  const auto& attrs = instr.attrs_as<hlo::ConvolutionAttrs>();
  const Type type = instr.shape().type();
  if (!tensor::is_float(type) || !is_number(type) || attrs.batch_group_count != 1) return false;
  if (attrs.window.dims.empty() || instr.operand(0)->shape().type() != type) return false;
  Ints strides, dilations, low, high;
  for (const hlo::WindowDim& d : attrs.window.dims) {
    if (d.lhs_dilate != 1 || d.reversal || d.pad_low < 0 || d.pad_high < 0) return false;
    strides.push_back(d.stride);
    dilations.push_back(d.rhs_dilate);
    low.push_back(d.pad_low);
    high.push_back(d.pad_high);
  }
  low.insert(low.end(), high.begin(), high.end());
  const auto order = [](int64_t first, int64_t second, const Ints& spatial) {
    Ints perm = {first, second};
    perm.insert(perm.end(), spatial.begin(), spatial.end());
    return perm;
  };
  const hlo::ConvolutionDims& d = attrs.dims;
  const auto moved = [&](const std::string& value, const Ints& perm, std::string output) {
    if (output.empty() && std::is_sorted(perm.begin(), perm.end())) return value;
    if (output.empty()) output = fresh("Transpose");
    add({"Transpose", "", {value}, {output}, {}, {{"perm", perm}}, {}});
    return output;
  };
  const std::string x =
      moved(operands[0], order(d.input_batch, d.input_feature, d.input_spatial), {});
  const std::string w = moved(
      operands[1], order(d.kernel_output_feature, d.kernel_input_feature, d.kernel_spatial), {});
  const Ints out = order(d.output_batch, d.output_feature, d.output_spatial);
  const bool as_it_is = std::is_sorted(out.begin(), out.end());
  OnnxNode node{"Conv",
                "",
                {x, w},
                {as_it_is ? result : fresh("Conv")},
                {{"group", attrs.feature_group_count}},
                {{"strides", strides}, {"dilations", dilations}, {"pads", low}},
                {}};
  const std::string made = node.outputs[0];
  add(std::move(node));
  if (as_it_is) return true;
  Ints back(out.size());
  for (size_t i = 0; i < out.size(); ++i)
    back[static_cast<size_t>(out[i])] = static_cast<int64_t>(i);
  moved(made, back, result);
  return true;
}

}  // namespace heddle::exports
