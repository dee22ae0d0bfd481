// StableHLO: operations that apply a region to elements: reductions, windows, sort, map, scan.
#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

// The types in which the region computes: operands are converted to them.
std::vector<Shape> region_scalars(ShloOp& op, size_t arrays) {
  const MlirRegion& region = op.region(0);
  if (region.blocks.empty() || region.blocks[0].arguments.size() != 2 * arrays)
    fail("the region has {} arguments, wanted {}",
         region.blocks.empty() ? 0 : region.blocks[0].arguments.size(), 2 * arrays);
  std::vector<Shape> scalars;
  for (size_t i = 0; i < 2 * arrays; ++i) {
    const MlirType& type = op.importer.type_of(region.blocks[0].arguments[i]);
    if (!type.is_tensor() || !type.dims.empty()) fail("the region takes {}", to_string(type));
    scalars.push_back(Shape::scalar(type.element));
  }
  for (size_t i = 0; i < arrays; ++i) {
    const tensor::Type type = scalars[i].type();
    if (scalars[arrays + i].type() != type) fail("the region's arguments differ in type");
    op.operands[i] = op.b.convert(op.operand(i), type);
    op.operands[arrays + i] = op.b.convert(op.operand(arrays + i), type);
  }
  return scalars;
}

size_t half(const ShloOp& op) {
  if (op.count() == 0 || op.count() % 2 != 0)
    fail("{} operands, wanted arrays and as many initial values", op.count());
  return op.count() / 2;
}

void give_all(ShloOp& op, Instr* result, size_t arrays) {
  if (!op.b.status()) return;
  if (arrays == 1 && !result->shape().is_tuple()) return op.give(result);
  op.give_tuple(result);
}

void reduce(ShloOp& op) {
  const size_t arrays = half(op);
  const std::vector<Shape> scalars = region_scalars(op, arrays);
  hlo::Computation* body = op.importer.scalar_region(op, op.region(0), scalars);
  const auto middle = op.operands.begin() + static_cast<int64_t>(arrays);
  give_all(op,
           op.b.reduce(Instrs(op.operands.begin(), middle), Instrs(middle, op.operands.end()),
                       op.ints("dimensions"), body),
           arrays);
}

Ints or_ones(const ShloOp& op, std::string_view name, size_t rank) {
  Ints values = op.ints(name, Ints(rank, 1));
  if (values.size() != rank) fail("{}: {} values, wanted {}", name, values.size(), rank);
  return values;
}

// `padding`: low and high for each dimension.
hlo::Window window_of(const ShloOp& op, const Ints& padding) {
  const Ints sizes = op.ints("window_dimensions");
  const size_t rank = sizes.size();
  const Ints strides = or_ones(op, "window_strides", rank);
  const Ints base = or_ones(op, "base_dilations", rank);
  const Ints dilations = or_ones(op, "window_dilations", rank);
  if (padding.size() != 2 * rank) fail("padding: {} values, wanted {}", padding.size(), 2 * rank);
  hlo::Window window;
  for (size_t d = 0; d < rank; ++d) {
    hlo::WindowDim& dim = window.dims.emplace_back();
    dim.size = sizes[d];
    dim.stride = strides[d];
    dim.lhs_dilate = base[d];
    dim.rhs_dilate = dilations[d];
    dim.pad_low = padding[2 * d];
    dim.pad_high = padding[2 * d + 1];
  }
  return window;
}

void reduce_window(ShloOp& op) {
  const size_t arrays = half(op);
  const std::vector<Shape> scalars = region_scalars(op, arrays);
  hlo::Computation* body = op.importer.scalar_region(op, op.region(0), scalars);
  const size_t rank = op.ints("window_dimensions").size();
  hlo::WindowAttrs attrs{window_of(op, op.ints("padding", Ints(2 * rank, 0)))};
  give_all(op, op.b.make(Opcode::reduce_window, op.operands, std::move(attrs), {body}), arrays);
}

void select_and_scatter(ShloOp& op) {
  // The scatter may use a wider type: the result's.
  const Shape scalar = Shape::scalar(op.result_type(0).element);
  for (Instr*& operand : op.operands) operand = op.b.convert(operand, scalar.type());
  hlo::Computation* select = op.importer.scalar_region(op, op.region(0), {scalar, scalar});
  hlo::Computation* scatter = op.importer.scalar_region(op, op.region(1), {scalar, scalar});
  const auto rank = static_cast<size_t>(op.operand(0)->shape().rank());
  hlo::Window window;
  const Ints sizes = or_ones(op, "window_dimensions", rank);
  const Ints strides = or_ones(op, "window_strides", rank);
  const Ints padding = op.ints("padding", Ints(2 * rank, 0));
  if (padding.size() != 2 * rank) fail("padding: {} values, wanted {}", padding.size(), 2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    hlo::WindowDim& dim = window.dims.emplace_back();
    dim.size = sizes[d];
    dim.stride = strides[d];
    dim.pad_low = padding[2 * d];
    dim.pad_high = padding[2 * d + 1];
  }
  op.give(op.b.make(Opcode::select_and_scatter, op.operands, hlo::WindowAttrs{std::move(window)},
                    {select, scatter}));
}

void sort(ShloOp& op) {
  if (op.count() == 0) fail("no operands");
  std::vector<Shape> scalars;
  for (const Instr* operand : op.operands)
    for (int i = 0; i < 2; ++i) scalars.push_back(Shape::scalar(operand->shape().type()));
  hlo::Computation* less = op.importer.scalar_region(op, op.region(0), scalars);
  const int64_t rank = op.operand(0)->shape().rank();
  int64_t dimension = op.integer("dimension", -1);
  if (dimension < 0) dimension += rank;
  if (dimension < 0 || dimension >= rank)
    fail("dimension {} of {}", dimension, tensor::to_string(op.operand(0)->shape(), false));
  give_all(op, op.b.sort(op.operands, dimension, op.flag("is_stable"), less), op.count());
}

void map(ShloOp& op) {
  std::vector<Shape> scalars;
  for (const Instr* operand : op.operands)
    scalars.push_back(Shape::scalar(operand->shape().type()));
  hlo::Computation* body = op.importer.scalar_region(op, op.region(0), scalars);
  op.give(op.b.make(Opcode::map, op.operands, hlo::DimensionsAttrs{op.ints("dimensions")}, {body}));
}

// Operands: arrays, then the carries' initial values; the region has slices and carries.
void scan(ShloOp& op) {
  const MlirRegion& region = op.region(0);
  if (region.blocks.empty()) fail("a region without a block");
  hlo::ScanAttrs attrs;
  attrs.dimension = op.integer("dimension");
  const Ints segments = op.ints("operandSegmentSizes");
  if (segments.size() != 2) fail("operandSegmentSizes: {} values, wanted two", segments.size());
  attrs.num_carries = segments[1];
  attrs.is_reverse = op.flag("is_reverse");
  std::vector<Shape> parameters;
  for (const MlirValue argument : region.blocks[0].arguments)
    parameters.push_back(shlo_shape(op.importer.type_of(argument)));
  hlo::Computation* body = op.importer.scalar_region(op, region, parameters);
  give_all(op, op.b.make(Opcode::scan, op.operands, attrs, {body}), op.op.results.size());
}

constexpr ShloEntry kOps[] = {
    {"stablehlo.reduce", reduce, 2},
    {"stablehlo.reduce_window", reduce_window, 2},
    {"stablehlo.select_and_scatter", select_and_scatter, 3, 3},
    {"stablehlo.sort", sort, 1},
    {"stablehlo.map", map, 1},
    {"chlo.scan", scan, 1},
};

}  // namespace

std::span<const ShloEntry> shlo_reduction_ops() { return kOps; }

}  // namespace heddle::import
