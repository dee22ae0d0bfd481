#include "api/bounded.h"

#include <cstring>

#include "hlo/module.h"

namespace heddle::api {
namespace {

using hlo::Instr;
using hlo::Opcode;
using import::Imported;
using tensor::Literal;
using tensor::Shape;

// Larger constants do not come from shape arithmetic (import::Options::max_fold_elems).
constexpr int64_t kMostFolded = 1 << 14;

// Whether the smaller one is the beginning, in each dimension, of the larger one.
bool begins_alike(const Literal& a, const Literal& b) {
  if (a.type() != b.type() || a.shape().rank() != b.shape().rank()) return false;
  if (a.shape() == b.shape() && a.elems() > kMostFolded) return true;
  const std::vector<int64_t> x = a.shape().extents(), y = b.shape().extents();
  std::vector<int64_t> box(x.size());
  int64_t count = 1;
  for (size_t d = 0; d < x.size(); ++d) count *= box[d] = std::min(x[d], y[d]);
  std::vector<int64_t> at(x.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t in_a = 0, in_b = 0;
    for (size_t d = 0; d < x.size(); ++d) {
      in_a = in_a * x[d] + at[d];
      in_b = in_b * y[d] + at[d];
    }
    if (tensor::is_complex(a.type()) ? a.get_complex(in_a) != b.get_complex(in_b)
                                     : a.get_bits(in_a) != b.get_bits(in_b))
      return false;
    for (size_t d = x.size(); d-- > 0 && ++at[d] == box[d];) at[d] = 0;
  }
  return true;
}

bool attributes_agree(const Instr* a, const Instr* b) {
  if (a->is(Opcode::constant)) return begins_alike(a->literal(), b->literal());
  if (a->is(Opcode::slice)) {
    const auto &x = a->attrs_as<hlo::SliceAttrs>(), &y = b->attrs_as<hlo::SliceAttrs>();
    if (x.starts != y.starts || x.strides != y.strides) return false;
    for (size_t d = 0; d < x.limits.size(); ++d)
      if (x.limits[d] != y.limits[d] && x.strides[d] != 1) return false;
    return true;
  }
  if (a->is(Opcode::reduce_window)) {
    const auto &x = a->attrs_as<hlo::WindowAttrs>().window.dims,
               &y = b->attrs_as<hlo::WindowAttrs>().window.dims;
    if (x.size() != y.size()) return false;
    for (size_t d = 0; d < x.size(); ++d) {
      const auto i = static_cast<int64_t>(d);
      const bool running = hlo::runs_up(x[d], a->operand(0)->shape().dim(i)) &&
                           hlo::runs_up(y[d], b->operand(0)->shape().dim(i));
      if (x[d] != y[d] && !running) return false;
    }
    return true;
  }
  return a->attrs() == b->attrs();
}

// The extents of leaf dimensions of two modules of equal structure; calls differ(instr, leaf, d).
class Comparison {
 public:
  Comparison(const Imported& a, const Imported& b, const std::string& symbol)
      : a_(*a.module), b_(*b.module), symbol_(symbol) {}

  Status depends(const std::string& what) const {
    return user_error(
        "dimension '{}' cannot be bounded: {} depends on its value; bind it to a "
        "number",
        symbol_, what);
  }

  // Every computation, instruction by instruction.
  Status same_structure() const {
    const auto &x = a_.computations(), &y = b_.computations();
    if (x.size() != y.size()) return depends("the number of its computations");
    for (size_t c = 0; c < x.size(); ++c) {
      const auto &p = x[c]->instrs(), &q = y[c]->instrs();
      if (p.size() != q.size()) return depends("the number of its operators");
      std::map<const Instr*, size_t> first, second;
      for (size_t i = 0; i < p.size(); ++i) {
        first.emplace(p[i], i);
        second.emplace(q[i], i);
        bool same = p[i]->opcode() == q[i]->opcode() &&
                    p[i]->operands().size() == q[i]->operands().size() &&
                    attributes_agree(p[i], q[i]);
        for (size_t k = 0; same && k < p[i]->operands().size(); ++k)
          same = first.at(p[i]->operand(k)) == second.at(q[i]->operand(k));
        if (!same) return depends(p[i]->name());
      }
    }
    return {};
  }

  // Dimensions that differ are those that the symbol's class has.
  Status same_classes(const hlo::Symbol& symbol, int64_t other) const {
    hlo::DimClasses classes(a_);
    HEDDLE_RETURN_IF_ERROR(classes.assign({symbol}));
    const auto &p = a_.entry()->instrs(), &q = b_.entry()->instrs();
    for (size_t i = 0; i < p.size(); ++i) {
      if (!p[i]->shape().is_array()) continue;
      for (int64_t d = 0; d < p[i]->shape().rank(); ++d) {
        const int64_t x = p[i]->shape().dim(d), y = q[i]->shape().dim(d);
        const bool follows = classes.symbol_of(p[i], d) >= 0;
        if (follows != (x != y) || (follows && x * other != y * symbol.bound))
          return depends(p[i]->name());
      }
    }
    return {};
  }

 private:
  const hlo::Module &a_, &b_;
  const std::string& symbol_;
};

std::vector<Shape> results_of(const hlo::Module& module) {
  const Shape& shape = module.entry()->root()->shape();
  return shape.is_tuple() ? shape.elements() : std::vector<Shape>{shape};
}

}  // namespace

Status same_structure(const Imported& a, const Imported& b, const std::string& name) {
  const Comparison comparison(a, b, name);
  HEDDLE_RETURN_IF_ERROR(comparison.same_structure());
  if (a.index_checks != b.index_checks) return comparison.depends("the range of an index");
  return {};
}

Result<int64_t> first_extent(const hlo::Symbol& symbol, const std::vector<std::string>& inputs,
                             const OpenOptions& options) {
  int64_t extent = symbol.bound;
  std::string by = "--dim";
  if (const auto asked = options.dims.find(symbol.name); asked != options.dims.end()) {
    extent = asked->second;
  } else {
    for (const auto& [parameter, dimension] : symbol.places) {
      const auto hint = options.hints.find(inputs.at(static_cast<size_t>(parameter)));
      if (hint == options.hints.end() || static_cast<size_t>(dimension) >= hint->second.size())
        continue;
      extent = hint->second[static_cast<size_t>(dimension)];
      by = "input " + hint->first;
      break;
    }
  }
  if (extent < 1 || extent > symbol.bound)
    return user_error("dimension '{}' is {} from {}, wanted 1 to {}", symbol.name, extent, by,
                      symbol.bound);
  return extent;
}

Result<std::shared_ptr<const Bounded>> find_bounded(
    std::function<Result<Imported>(const Extents&)> import_at, const OpenOptions& options) {
  const Extents& bounds = options.bounds;
  auto result = std::make_shared<Bounded>();
  result->import_at = std::move(import_at);
  for (const auto& [name, bound] : bounds) {
    if (bound < 4)
      return user_error("dimension '{}': a bound of {}; wanted at least 4", name, bound);
    Extents at = bounds;
    const int64_t extents[2] = {bound - 1, bound - 3 > 1 ? bound - 3 : 2};
    at[name] = extents[0];
    HEDDLE_ASSIGN_OR_RETURN(const Imported a, result->import_at(at));
    at[name] = extents[1];
    HEDDLE_ASSIGN_OR_RETURN(const Imported b, result->import_at(at));
    const Comparison comparison(a, b, name);
    HEDDLE_RETURN_IF_ERROR(same_structure(a, b, name));
    hlo::Symbol symbol;
    symbol.name = name;
    symbol.bound = extents[0];
    const auto &p = a.module->entry()->parameters(), &q = b.module->entry()->parameters();
    for (size_t i = 0; i < p.size(); ++i)
      for (int64_t d = 0; p[i]->shape().is_array() && d < p[i]->shape().rank(); ++d)
        if (p[i]->shape().dim(d) != q[i]->shape().dim(d))
          symbol.places.emplace_back(static_cast<int64_t>(i), d);
    if (symbol.places.empty())
      return user_error(
          "no input has a dynamic dimension '{}'; only dynamic dimensions have bounds", name);
    HEDDLE_RETURN_IF_ERROR(comparison.same_classes(symbol, extents[1]));
    const std::vector<Shape> x = results_of(*a.module), y = results_of(*b.module);
    result->outputs.resize(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      for (int64_t d = 0; x[i].is_array() && d < x[i].rank(); ++d)
        if (x[i].dim(d) != y[i].dim(d)) result->outputs[i].emplace_back(d, result->symbols.size());
    symbol.bound = bound;
    HEDDLE_ASSIGN_OR_RETURN(result->first[name], first_extent(symbol, a.input_names, options));
    result->symbols.push_back(std::move(symbol));
  }
  return std::shared_ptr<const Bounded>(std::move(result));
}

void copy_box(const void* from, const std::vector<int64_t>& from_extents, void* to,
              const std::vector<int64_t>& to_extents, const std::vector<int64_t>& box,
              int64_t element_bytes) {
  // What is whole in both is one piece, with the dimension outside of it.
  size_t whole = box.size();
  int64_t bytes = element_bytes;
  while (whole > 0 && from_extents[whole - 1] == box[whole - 1] &&
         to_extents[whole - 1] == box[whole - 1])
    bytes *= box[--whole];
  if (whole > 0) bytes *= box[--whole];
  int64_t pieces = 1;
  for (size_t d = 0; d < whole; ++d) pieces *= box[d];
  if (bytes <= 0) return;
  int64_t inner_from = element_bytes, inner_to = element_bytes;
  for (size_t d = whole; d < box.size(); ++d) {
    inner_from *= from_extents[d];
    inner_to *= to_extents[d];
  }
  std::vector<int64_t> at(whole, 0);
  for (int64_t i = 0; i < pieces; ++i) {
    int64_t in_from = 0, in_to = 0;
    for (size_t d = 0; d < whole; ++d) {
      in_from = in_from * from_extents[d] + at[d];
      in_to = in_to * to_extents[d] + at[d];
    }
    std::memcpy(static_cast<char*>(to) + in_to * inner_to,
                static_cast<const char*>(from) + in_from * inner_from, static_cast<size_t>(bytes));
    for (size_t d = whole; d-- > 0 && ++at[d] == box[d];) at[d] = 0;
  }
}

}  // namespace heddle::api
