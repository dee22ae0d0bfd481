// Elementwise operators and map, in blocks of lanes.
#include <algorithm>
#include <cstring>

#include "interp/evaluator.h"

namespace heddle::interp {

using hlo::Instr;

namespace {

constexpr int64_t kBlock = 1024;

// One operand of a Body over an array: a scalar operand is the same in every lane.
class Source {
 public:
  Source(const Literal& x, int64_t elems) : x_(x), spread_(x.shape().is_scalar() && elems != 1) {}
  void load(int64_t begin, int64_t n, Cell* cells) {
    if (!spread_) return load_cells(x_.type(), x_.data(), begin, n, cells);
    if (begin == 0) std::fill_n(cells, n, load_cell(x_, 0));  // later blocks are not longer
  }

 private:
  const Literal& x_;
  bool spread_;
};

Result<Literal> run_body(Evaluator& e, const Instr& instr, Body& body, Operands& operands) {
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const int64_t elems = out.elems();
  std::vector<Source> sources;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Literal& x = operands[i];
    if (!x.shape().is_scalar() && x.elems() != elems) {
      return user_error("{}: operand {} is {}, the result {}", describe(instr), i,
                        tensor::to_string(x.shape()), tensor::to_string(out.shape()));
    }
    sources.emplace_back(x, elems);
  }
  void* data = out.mutable_data();
  for (int64_t begin = 0; begin < elems; begin += kBlock) {
    int64_t n = std::min(kBlock, elems - begin);
    for (size_t i = 0; i < sources.size(); ++i) sources[i].load(begin, n, body.input(i));
    body.run(n);
    store_cells(out.type(), data, begin, n, body.output(0));
  }
  return out;
}

int64_t lanes_for(const Instr& instr) {
  int64_t elems = 1;
  for (int64_t extent : instr.shape().extents()) {
    elems *= std::clamp<int64_t>(extent, 1, kBlock);
    if (elems >= kBlock) return kBlock;
  }
  return elems;
}

}  // namespace

Result<Literal> eval_elementwise(Evaluator& e, const Instr& instr, Operands& operands) {
  auto body = Body::compile(instr, e.widen(), lanes_for(instr));
  HEDDLE_CHECK(body.has_value());  // refusal() has checked that
  return run_body(e, instr, *body, operands);
}

Result<Literal> eval_map(Evaluator& e, const Instr& instr, Operands& operands) {
  const hlo::Computation& to_apply = *instr.called()[0];
  HEDDLE_ASSIGN_OR_RETURN(Function * function, e.function(to_apply, operands.size(), 1));
  if (auto body = Body::compile(to_apply, e.widen(), lanes_for(instr)))
    return run_body(e, instr, *body, operands);
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  void* data = out.mutable_data();
  std::vector<Cell> in(operands.size());
  for (int64_t i = 0; i < out.elems(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) in[k] = load_cell(operands[k], i);
    Cell result;
    HEDDLE_RETURN_IF_ERROR(function->call(in.data(), &result));
    store_cells(out.type(), data, i, 1, &result);
  }
  return out;
}

namespace {

// Complex types do not fit a word; they are reinterpreted as arrays of floats.
Result<Literal> bitcast_bytes(Evaluator& e, const Instr& instr, const Literal& x) {
  HEDDLE_ASSIGN_OR_RETURN(Shape from, static_shape(instr.operand(0)->shape()));
  HEDDLE_ASSIGN_OR_RETURN(Shape to, static_shape(instr.shape()));
  HEDDLE_ASSIGN_OR_RETURN(Literal source, convert_floats(x, from));
  HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(to));
  if (source.bytes() != out.bytes()) {
    return user_error("{}: {} does not have as many bytes as {}", describe(instr),
                      tensor::to_string(from), tensor::to_string(to));
  }
  if (out.bytes() > 0)
    std::memcpy(out.mutable_data(), source.data(), static_cast<size_t>(out.bytes()));
  return e.hold(std::move(out));
}

}  // namespace

// If the widths differ, an element becomes several, in a new last dimension, the low bits first; or
// the inverse. The encodings are those of the declared types, so a widened operand is rounded
// first.
Result<Literal> eval_bitcast_convert(Evaluator& e, const Instr& instr, Operands& operands) {
  Type from = instr.operand(0)->shape().type(), to = instr.shape().type();
  if (tensor::is_complex(from) || tensor::is_complex(to))
    return bitcast_bytes(e, instr, operands[0]);
  const int from_bits = bitcast_bits(from), to_bits = bitcast_bits(to);
  if (from_bits == to_bits) return eval_elementwise(e, instr, operands);
  const Literal& x = operands[0];
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const int narrow = std::min(from_bits, to_bits);
  const int64_t parts = std::max(from_bits, to_bits) / narrow;
  if (x.elems() * from_bits != out.elems() * to_bits) {
    return user_error("{}: {} does not have as many bits as {}", describe(instr),
                      tensor::to_string(x.shape()), tensor::to_string(out.shape()));
  }
  const uint64_t mask = (uint64_t{1} << narrow) - 1;
  void* data = out.mutable_data();
  for (int64_t i = 0; i < std::min(x.elems(), out.elems()); ++i) {
    uint64_t whole = from_bits > to_bits ? cell_to_bits(from, load_cell(x, i)) : 0;
    for (int64_t k = 0; k < parts; ++k) {
      const int shift = static_cast<int>(k) * narrow;
      if (from_bits > to_bits) {
        Cell part = cell_from_bits(to, whole >> shift & mask);
        store_cells(out.type(), data, i * parts + k, 1, &part);
      } else {
        whole |= cell_to_bits(from, load_cell(x, i * parts + k)) << shift;
      }
    }
    if (from_bits < to_bits) {
      Cell cell = cell_from_bits(to, whole);
      store_cells(out.type(), data, i, 1, &cell);
    }
  }
  return out;
}

}  // namespace heddle::interp
