#include "api/extent_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "api/bounded.h"
#include "hlo/module.h"

namespace heddle::api {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;

// An exact integer; no value: it is not an integer, or a float too large to be exact.
std::optional<int64_t> whole(const Literal& x, int64_t i) {
  if (tensor::is_complex(x.type()) || x.type() == tensor::Type::pred) return std::nullopt;
  if (!tensor::is_float(x.type())) return x.get_s64(i);
  constexpr double kExact = 1 << 24;
  const double value = x.get_f64(i);
  const bool wide = x.type() == tensor::Type::f32 || x.type() == tensor::Type::f64;
  if (!wide || !(std::abs(value) < kExact) || value != std::trunc(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

bool same_element(const Literal& a, int64_t i, const Literal& b, int64_t k) {
  return tensor::is_complex(a.type()) ? a.get_complex(i) == b.get_complex(k)
                                      : a.get_bits(i) == b.get_bits(k);
}

// The common difference between the elements of a and b at equal positions; no value: they differ
// by different numbers.
std::optional<int64_t> difference(const Literal& a, const Literal& b) {
  if (a.type() != b.type() || a.shape().rank() != b.shape().rank()) return std::nullopt;
  const bool same_shape = a.shape() == b.shape();
  if (same_shape && (a.elems() > kMostFolded || a.data() == b.data() ||
                     std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0))
    return 0;
  const std::vector<int64_t> x = a.shape().extents(), y = b.shape().extents();
  std::vector<int64_t> box(x.size());
  int64_t count = 1;
  for (size_t d = 0; d < x.size(); ++d) count *= box[d] = std::min(x[d], y[d]);
  std::vector<int64_t> at(x.size(), 0);
  std::optional<int64_t> all;
  for (int64_t i = 0; i < count; ++i) {
    int64_t in_a = 0, in_b = 0;
    for (size_t d = 0; d < x.size(); ++d) {
      in_a = in_a * x[d] + at[d];
      in_b = in_b * y[d] + at[d];
    }
    int64_t one = 0;
    if (!same_element(a, in_a, b, in_b)) {
      const std::optional<int64_t> p = whole(a, in_a), q = whole(b, in_b);
      if (!p || !q || __builtin_sub_overflow(*p, *q, &one)) return std::nullopt;
    }
    if (all && *all != one) return std::nullopt;
    all = one;
    for (size_t d = x.size(); d-- > 0 && ++at[d] == box[d];) at[d] = 0;
  }
  return all ? all : 0;
}

using Grows = std::function<bool(int64_t dimension, int64_t more)>;

bool slices_agree(const Instr* a, const Instr* b, const Grows& grows) {
  const auto &x = a->attrs_as<hlo::SliceAttrs>(), &y = b->attrs_as<hlo::SliceAttrs>();
  if (x.strides != y.strides) return false;
  for (size_t d = 0; d < x.limits.size(); ++d) {
    const int64_t further = x.starts[d] - y.starts[d];
    if (!grows(static_cast<int64_t>(d), further)) return false;
    if (x.limits[d] != y.limits[d] && x.strides[d] != 1) return false;
  }
  return true;
}

// A constant, or a slice of one, of which only gathers and slices read: the additional elements of
// a longer one are not read.
bool is_table(const Instr& instr) {
  const Instr* whole = &instr;
  while (whole->is(Opcode::slice)) whole = whole->operand(0);
  const std::vector<Instr*>& users = instr.users();
  return whole->is(Opcode::constant) &&
         std::all_of(users.begin(), users.end(), [&](const Instr* user) {
           return user->is(Opcode::slice) ||
                  (user->is(Opcode::gather) && user->operand(0) == &instr &&
                   user->operand(1) != &instr);
         });
}

// Whether all that read it take the lesser of it and a count that is never larger.
bool limits_nothing(const Instr* constant) {
  const auto counts_fewer = [&](const Instr* count) {
    const std::vector<Instr*>& users = count->users();
    return std::any_of(users.begin(), users.end(), [&](const Instr* user) {
      return hlo::is_first_rows(*user) && user->operand(1) == count &&
             user->shape().dim(0) <= constant->literal().get_s64(0);
    });
  };
  const std::vector<Instr*>& users = constant->users();
  return constant->is(Opcode::constant) && constant->shape().is_scalar() &&
         tensor::is_integer(constant->shape().type()) && !users.empty() &&
         std::all_of(users.begin(), users.end(), [&](const Instr* user) {
           return user->is(Opcode::minimum) &&
                  counts_fewer(user->operand(user->operand(0) == constant ? 1 : 0));
         });
}

// Slices of all that there is of a dimension are.
bool gathers_agree(const Instr* a, const Instr* b) {
  auto x = a->attrs_as<hlo::GatherAttrs>();
  const auto& y = b->attrs_as<hlo::GatherAttrs>();
  for (size_t d = 0; d < x.slice_sizes.size() && d < y.slice_sizes.size(); ++d) {
    const auto i = static_cast<int64_t>(d);
    if (x.slice_sizes[d] == a->operand(0)->shape().dim(i) &&
        y.slice_sizes[d] == b->operand(0)->shape().dim(i))
      x.slice_sizes[d] = y.slice_sizes[d];
  }
  return x == y;
}

bool attributes_agree(const Instr* a, const Instr* b, const Grows& grows) {
  if (a->is(Opcode::slice)) return slices_agree(a, b, grows);
  if (a->is(Opcode::gather)) return gathers_agree(a, b);
  if (a->is(Opcode::constant)) {
    const std::optional<int64_t> more = difference(a->literal(), b->literal());
    return more && grows(-1, *more);
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

}  // namespace

Status ExtentComparison::depends(const std::string& what) const {
  return user_error(
      "dimension '{}' cannot be bounded: {} depends on its value; bind it to a "
      "number",
      symbol_, what);
}

Status ExtentComparison::same_structure(const Growth& growth) const {
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
                  attributes_agree(p[i], q[i], [&](int64_t d, int64_t more) {
                    return x[c].get() == a_.entry() ? growth(i, d, more) : more == 0;
                  });
      // The k largest of so few that k says nothing.
      same = same || (p[i]->is(Opcode::constant) && limits_nothing(q[i]) &&
                      p[i]->literal().get_s64(0) >= q[i]->literal().get_s64(0));
      for (size_t k = 0; same && k < p[i]->operands().size(); ++k)
        same = first.at(p[i]->operand(k)) == second.at(q[i]->operand(k));
      if (!same) return depends(p[i]->name());
    }
  }
  return {};
}

// By class: the rows of calls that say how many there are, in both.
std::map<int, std::pair<int64_t, int64_t>> ExtentComparison::counts(
    const hlo::DimClasses& classes) const {
  std::map<int, std::pair<int64_t, int64_t>> result;
  const auto &p = a_.entry()->instrs(), &q = b_.entry()->instrs();
  for (size_t i = 0; i < p.size(); ++i)
    if (hlo::is_first_rows(*p[i]))
      result.emplace(classes.of(p[i], 0), std::pair(p[i]->shape().dim(0), q[i]->shape().dim(0)));
  return result;
}

Status ExtentComparison::same_classes(hlo::SymbolTable table, const hlo::SliceExtents& slices,
                                      const Sizes& others) const {
  hlo::DimClasses classes(a_);
  HEDDLE_RETURN_IF_ERROR(classes.derive(&table, slices));
  const auto counts = this->counts(classes);
  const auto &p = a_.entry()->instrs(), &q = b_.entry()->instrs();
  for (size_t i = 0; i < p.size(); ++i) {
    if (!p[i]->shape().is_array()) continue;
    for (int64_t d = 0; d < p[i]->shape().rank(); ++d) {
      const int64_t x = p[i]->shape().dim(d), y = q[i]->shape().dim(d);
      const int s = classes.symbol_of(p[i], d);
      int64_t wanted = x;
      if (s >= 0) {
        const auto number = static_cast<size_t>(s);
        wanted = x / table.symbols[number].bound * table.of[number].at(others);
      } else if (const auto count = counts.find(classes.of(p[i], d)); count != counts.end()) {
        const auto& [in_a, in_b] = count->second;
        if (in_a > 0 && x % in_a == 0) wanted = x / in_a * in_b;
      }
      if (y != wanted && !is_table(*p[i])) return depends(p[i]->name());
    }
  }
  return {};
}

std::vector<std::pair<size_t, int64_t>> ExtentComparison::slices() const {
  std::vector<std::pair<size_t, int64_t>> result;
  const auto &p = a_.entry()->instrs(), &q = b_.entry()->instrs();
  for (size_t i = 0; i < p.size(); ++i) {
    if (!p[i]->is(Opcode::slice)) continue;
    const tensor::Shape &x = p[i]->operand(0)->shape(), &y = q[i]->operand(0)->shape();
    for (int64_t d = 0; d < x.rank(); ++d)
      if (x.dim(d) != y.dim(d)) result.emplace_back(i, d);
  }
  return result;
}

Status ExtentComparison::find_numbered(size_t s, int64_t apart, int64_t base, int64_t later_base,
                                       Numbered* numbered) const {
  HEDDLE_RETURN_IF_ERROR(same_structure([&](size_t instr, int64_t d, int64_t more) {
    if (d >= 0 && more < 0) return false;  // starts cannot move backwards
    if (more != 0 && more % apart == 0) numbered->growing.push_back({instr, d, s, more / apart});
    return more % apart == 0;
  }));
  const auto &p = a_.entry()->instrs(), &q = b_.entry()->instrs();
  for (const auto& [instr, d] : slices()) {
    const int64_t extent = p[instr]->shape().dim(d);
    const int64_t more = extent - q[instr]->shape().dim(d), factor = more / apart;
    // Of a quotient, so much less than the operand has, or what follows from the slice.
    const int64_t whole = p[instr]->operand(0)->shape().dim(d);
    const bool is_quotient = more % apart != 0;
    if (is_quotient && whole - q[instr]->operand(0)->shape().dim(d) != more) continue;
    auto known = std::find_if(
        numbered->slices.begin(), numbered->slices.end(),
        [&, i = instr, d = d](const auto& one) { return one.instr == i && one.dimension == d; });
    if (is_quotient) {
      if (known == numbered->slices.end())
        numbered->slices.push_back({instr, d, {extent - whole, {{hlo::kOperandExtent, 1}}}});
      continue;
    }
    if (known == numbered->slices.end())
      known = numbered->slices.insert(known, {instr, d, {extent - factor * base, {}}});
    else
      known->extent.constant -= factor * later_base;
    known->extent =
        known->extent.plus(tensor::Extent::of_symbol(static_cast<int64_t>(s)).times(factor));
  }
  return {};
}

bool Numbered::moves(size_t instr, int64_t dimension) const {
  return std::any_of(growing.begin(), growing.end(), [&](const Growing& one) {
    return one.instr == instr && one.dimension == dimension;
  });
}

hlo::SliceExtents Numbered::extents_of(const hlo::Module& module) const {
  hlo::SliceExtents result;
  const std::vector<Instr*>& instrs = module.entry()->instrs();
  for (const auto& [instr, dimension, extent] : slices) result[{instrs[instr], dimension}] = extent;
  return result;
}

ExtentComparison::Growth growth_of(const Numbered& numbered, const Sizes& differences) {
  std::map<std::pair<size_t, int64_t>, int64_t> wanted;
  for (const Numbered::Growing& one : numbered.growing)
    wanted[{one.instr, one.dimension}] += one.factor * differences[one.symbol];
  return [wanted = std::move(wanted)](size_t instr, int64_t dimension, int64_t more) {
    const auto found = wanted.find({instr, dimension});
    return more == (found == wanted.end() ? 0 : found->second);
  };
}

}  // namespace heddle::api
