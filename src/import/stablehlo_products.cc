// StableHLO: contractions, convolution, linear algebra, fft, normalisation, random numbers.
#include "hlo/shape_inference.h"
#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

// The extents are inferred; the result's element type may be wider than that of the operands.
void give_product(ShloOp& op, Instr* a, Instr* c, hlo::DotAttrs attrs) {
  attrs.operand_precision = op.precision();
  const Shape* const shapes[] = {&a->shape(), &c->shape()};
  Shape shape = value_or_throw(hlo::infer_shape(Opcode::dot, shapes, attrs, {}));
  shape.set_type(op.result_type(0).element);
  op.give(op.b.make(Opcode::dot, {a, c}, std::move(attrs), {}, &shape));
}

void dot_general(ShloOp& op) {
  const MlirAttr& numbers = op.attr("dot_dimension_numbers");
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = integer_field(numbers, "lhs_batching_dimensions");
  attrs.rhs_batch_dims = integer_field(numbers, "rhs_batching_dimensions");
  attrs.lhs_contracting_dims = integer_field(numbers, "lhs_contracting_dimensions");
  attrs.rhs_contracting_dims = integer_field(numbers, "rhs_contracting_dimensions");
  give_product(op, op.operand(0), op.operand(1), std::move(attrs));
}

// For vectors and matrices.
void dot(ShloOp& op) {
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {op.operand(0)->shape().rank() - 1};
  attrs.rhs_contracting_dims = {0};
  give_product(op, op.operand(0), op.operand(1), std::move(attrs));
}

// "ab,bc->ac": common letters are batch dimensions if the result has them, else contracted.
void einsum(ShloOp& op) {
  const std::string config = op.text("einsum_config");
  const size_t comma = config.find(','), arrow = config.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma)
    fail("einsum_config {}", quoted(config));
  const std::string a = config.substr(0, comma), c = config.substr(comma + 1, arrow - comma - 1),
                    out = config.substr(arrow + 2);
  if (static_cast<int64_t>(a.size()) != op.operand(0)->shape().rank() ||
      static_cast<int64_t>(c.size()) != op.operand(1)->shape().rank())
    fail("einsum_config {} does not fit the operands", quoted(config));
  hlo::DotAttrs attrs;
  std::string made;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t other = c.find(a[i]);
    if (other == std::string::npos) continue;
    const bool batch = out.find(a[i]) != std::string::npos;
    (batch ? attrs.lhs_batch_dims : attrs.lhs_contracting_dims).push_back(static_cast<int64_t>(i));
    (batch ? attrs.rhs_batch_dims : attrs.rhs_contracting_dims)
        .push_back(static_cast<int64_t>(other));
    if (batch) made += a[i];
  }
  for (const char letter : a)
    if (c.find(letter) == std::string::npos) made += letter;
  for (const char letter : c)
    if (a.find(letter) == std::string::npos) made += letter;
  if (made.size() != out.size()) fail("einsum_config {} is not supported", quoted(config));
  give_product(op, op.operand(0), op.operand(1), std::move(attrs));
  if (made == out) return;
  Ints permutation;
  for (const char letter : out) {
    const size_t at = made.find(letter);
    if (at == std::string::npos) fail("einsum_config {} is not supported", quoted(config));
    permutation.push_back(static_cast<int64_t>(at));
  }
  op.results[0] = op.b.transpose(op.results[0], permutation);
}

// "ab->b": letters missing in the result are summed, the others permuted.
void unary_einsum(ShloOp& op) {
  const std::string config = op.text("einsum_config");
  const size_t arrow = config.find("->");
  const std::string in = config.substr(0, arrow);
  if (arrow == std::string::npos ||
      static_cast<int64_t>(in.size()) != op.operand(0)->shape().rank())
    fail("einsum_config {} does not fit the operand", quoted(config));
  const std::string out = config.substr(arrow + 2);
  Ints summed, permutation;
  std::string kept;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in.find(in[i]) != i) fail("einsum_config {} is not supported", quoted(config));
    if (out.find(in[i]) == std::string::npos)
      summed.push_back(static_cast<int64_t>(i));
    else
      kept += in[i];
  }
  for (const char letter : out) {
    const size_t at = kept.find(letter);
    if (at == std::string::npos) fail("einsum_config {} is not supported", quoted(config));
    permutation.push_back(static_cast<int64_t>(at));
  }
  if (permutation.size() != kept.size()) fail("einsum_config {} is not supported", quoted(config));
  Instr* sum = summed.empty() ? op.operand(0) : op.b.reduce(Opcode::add, op.operand(0), summed);
  op.give(kept == out ? sum : op.b.transpose(sum, permutation));
}

void triangular_solve(ShloOp& op) {
  hlo::TriangularSolveAttrs attrs;
  attrs.left_side = op.flag("left_side");
  attrs.lower = op.flag("lower");
  attrs.unit_diagonal = op.flag("unit_diagonal");
  const std::string transpose = op.word("transpose_a", "NO_TRANSPOSE");
  attrs.transpose_a = transpose == "ADJOINT" ? hlo::TriangularSolveAttrs::Transpose::adjoint
                      : transpose == "TRANSPOSE"
                          ? hlo::TriangularSolveAttrs::Transpose::transpose
                          : hlo::TriangularSolveAttrs::Transpose::no_transpose;
  op.give(op.b.make(Opcode::triangular_solve, op.operands, attrs));
}

void cholesky(ShloOp& op) {
  hlo::CholeskyAttrs attrs;
  attrs.lower = op.flag("lower");
  op.give(op.b.make(Opcode::cholesky, op.operands, attrs));
}

void fft(ShloOp& op) {
  hlo::FftAttrs attrs;
  attrs.fft_length = op.ints("fft_length");
  const std::string type = op.word("fft_type", "");
  using Kind = hlo::FftAttrs::Kind;
  if (type != "FFT" && type != "IFFT" && type != "RFFT" && type != "IRFFT")
    fail("fft_type {}", quoted(type));
  attrs.kind = type == "FFT"    ? Kind::fft
               : type == "IFFT" ? Kind::ifft
               : type == "RFFT" ? Kind::rfft
                                : Kind::irfft;
  op.give(op.b.make(Opcode::fft, op.operands, std::move(attrs)));
}

template <Opcode kOpcode>
void batch_norm(ShloOp& op) {
  hlo::BatchNormAttrs attrs;
  attrs.epsilon = op.number("epsilon", 0);
  attrs.feature_index = op.integer("feature_index");
  Instr* result = op.b.make(kOpcode, op.operands, attrs);
  if (kOpcode == Opcode::batch_norm_inference) return op.give(result);
  op.give_tuple(result);
}

void rng(ShloOp& op) {
  hlo::RngAttrs attrs;
  attrs.normal = op.word("rng_distribution", "UNIFORM") == "NORMAL";
  const Shape shape = Shape::array(op.result_type(0).element, op.known_ints(2));
  op.give(op.b.make(Opcode::rng, {op.operand(0), op.operand(1)}, attrs, {}, &shape));
}

void rng_bit_generator(ShloOp& op) {
  hlo::RngBitGeneratorAttrs attrs;
  const std::string word = op.word("rng_algorithm", "DEFAULT");
  using Algorithm = hlo::RngBitGeneratorAttrs::Algorithm;
  attrs.algorithm = word == "THREE_FRY" ? Algorithm::three_fry
                    : word == "PHILOX"  ? Algorithm::philox
                                        : Algorithm::any;
  const Shape shape = Shape::make_tuple({op.operand(0)->shape(), op.result_shape(1)});
  op.give_tuple(op.b.make(Opcode::rng_bit_generator, {op.operand(0)}, attrs, {}, &shape));
}

constexpr ShloEntry kOps[] = {
    {"stablehlo.dot_general", dot_general, 2, 2},
    {"stablehlo.dot", dot, 2, 2},
    {"stablehlo.einsum", einsum, 2, 2},
    {"stablehlo.unary_einsum", unary_einsum, 1, 1},
    {"stablehlo.triangular_solve", triangular_solve, 2, 2},
    {"stablehlo.cholesky", cholesky, 1, 1},
    {"stablehlo.fft", fft, 1, 1},
    {"stablehlo.batch_norm_training", batch_norm<Opcode::batch_norm_training>, 3, 3},
    {"stablehlo.batch_norm_inference", batch_norm<Opcode::batch_norm_inference>, 5, 5},
    {"stablehlo.batch_norm_grad", batch_norm<Opcode::batch_norm_grad>, 5, 5},
    {"stablehlo.rng", rng, 3, 3},
    {"stablehlo.rng_bit_generator", rng_bit_generator, 1, 1},
};

}  // namespace

std::span<const ShloEntry> shlo_product_ops() { return kOps; }

}  // namespace heddle::import
