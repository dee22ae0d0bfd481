#include "interp/uses.h"

#include <algorithm>
#include <set>

#include "hlo/combiner.h"
#include "interp/body.h"

namespace heddle::interp {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using Path = std::vector<int64_t>;  // into a tuple, outermost first

class Tracer {
 public:
  explicit Tracer(Wants& wants) : wants_(wants) {}

  void follow(const Instr& value, const Path& path) {
    pending_.push_back({&value, path});
    while (!pending_.empty() && seen_.size() < kMaxVisits) {
      auto [instr, at] = pending_.back();
      pending_.pop_back();
      if (!seen_.insert({instr, at}).second) continue;
      for (const Instr* user : instr->users()) {
        for (size_t i = 0; i < user->operands().size(); ++i) {
          if (user->operand(i) == instr) use(*user, i, at);
        }
      }
      if (instr == instr->parent()->root()) leave(*instr, at);
    }
  }

 private:
  static constexpr size_t kMaxVisits = 20000;

  void push(const Instr& value, Path path) { pending_.push_back({&value, std::move(path)}); }
  void enter(const Computation& computation, size_t parameter, const Path& path) {
    if (parameter < computation.parameters().size())
      push(*computation.parameters()[parameter], path);
  }
  // The result of a called computation flows to its callers; that of a loop's body, also back to
  // its start.
  void leave(const Instr& root, const Path& path) {
    auto callers = callers_.find(root.parent());
    if (callers == callers_.end()) return;
    for (const Instr* caller : callers->second) {
      push(*caller, path);
      if (caller->is(Opcode::while_)) enter_all(*caller, path);
    }
  }
  void enter_all(const Instr& loop, const Path& path) {
    for (const Computation* called : loop.called()) enter(*called, 0, path);
  }
  void call(const Instr& user, const Computation& computation, size_t parameter, const Path& path) {
    callers_[&computation].insert(&user);
    enter(computation, parameter, path);
  }

  void limit(size_t component, size_t components, int64_t largest) {
    std::vector<int64_t>& limits = wants_.limits;
    if (limits.empty()) limits.assign(components, INT64_MAX);
    largest = std::max<int64_t>(largest, 0);
    if (limits.size() == components) {
      limits[component] = std::min(limits[component], largest);
    } else {  // used in two ways: take values that fit both everywhere
      for (int64_t& each : limits) each = std::min(each, largest);
    }
  }

  void use(const Instr& user, size_t i, const Path& path);
  void use_as_value(const Instr& user, size_t i, const Path& path);
  void use_as_indices(const Instr& user, const tensor::Shape& x, const tensor::Shape& indices,
                      const hlo::Ints& map, int64_t vector_dim, const hlo::Ints& windows);
  void use_in_scatter(const Instr& user);
  void use_as_start(const Instr& user, size_t i, size_t first);

  Wants& wants_;
  std::vector<std::pair<const Instr*, Path>> pending_;
  std::set<std::pair<const Instr*, Path>> seen_;
  std::unordered_map<const Computation*, std::set<const Instr*>> callers_;
};

void Tracer::use_as_indices(const Instr& user, const tensor::Shape& x, const tensor::Shape& indices,
                            const hlo::Ints& map, int64_t vector_dim, const hlo::Ints& windows) {
  const bool is_last = vector_dim >= indices.rank() - 1;
  for (size_t k = 0; k < map.size(); ++k) {
    const int64_t largest = x.dim(map[k]) - windows[static_cast<size_t>(map[k])];
    limit(is_last ? k : 0, is_last ? map.size() : 1, largest);
  }
}

void Tracer::use_in_scatter(const Instr& user) {
  const auto& attrs = user.attrs_as<hlo::ScatterAttrs>();
  const size_t count = user.operands().size() / 2;
  const tensor::Shape &x = user.operand(0)->shape(), &updates = user.operand(count + 1)->shape();
  hlo::Ints windows(static_cast<size_t>(x.rank()), 1);
  size_t next = 0;
  for (int64_t d = 0; d < x.rank(); ++d) {
    auto in = [&](const hlo::Ints& list) {
      return std::find(list.begin(), list.end(), d) != list.end();
    };
    if (in(attrs.inserted_window_dims) || in(attrs.input_batching_dims)) continue;
    if (next < attrs.update_window_dims.size())
      windows[static_cast<size_t>(d)] = updates.dim(attrs.update_window_dims[next++]);
  }
  use_as_indices(user, x, user.operand(count)->shape(), attrs.scatter_dims_to_operand_dims,
                 attrs.index_vector_dim, windows);
  wants_.is_sorted |= attrs.indices_are_sorted;
  wants_.is_unique |= attrs.unique_indices;
}

// Starts of a dynamic slice or update, from operand `first` on: one scalar per dimension, or all of
// them in one array.
void Tracer::use_as_start(const Instr& user, size_t i, size_t first) {
  const tensor::Shape& x = user.operand(0)->shape();
  const tensor::Shape& window = first == 1 ? user.shape() : user.operand(1)->shape();
  const auto rank = static_cast<size_t>(x.rank());
  if (user.operand(i)->shape().rank() == 1) {
    for (size_t d = 0; d < rank; ++d)
      limit(d, rank, x.dim(static_cast<int64_t>(d)) - window.dim(static_cast<int64_t>(d)));
  } else {
    const auto d = static_cast<int64_t>(i - first);
    limit(0, 1, x.dim(d) - window.dim(d));
  }
}

// Uses of tuples and by instructions with called computations.
void Tracer::use(const Instr& user, size_t i, const Path& path) {
  switch (user.opcode()) {
    case Opcode::tuple: {
      Path longer = {static_cast<int64_t>(i)};
      longer.insert(longer.end(), path.begin(), path.end());
      return push(user, std::move(longer));
    }
    case Opcode::get_tuple_element:
      if (path.empty() || path[0] != user.tuple_index()) return;
      return push(user, Path(path.begin() + 1, path.end()));
    case Opcode::call:
    case Opcode::fusion:
      return call(user, *user.called()[0], i, path);
    case Opcode::while_:
      for (const Computation* called : user.called()) call(user, *called, 0, path);
      return push(user, path);
    case Opcode::conditional:
      if (i > 0) call(user, *user.called()[i - 1], 0, path);
      return;
    case Opcode::opt_barrier:
    case Opcode::domain:
    case Opcode::add_dependency:
    case Opcode::custom_call:
      return push(user, path);
    default:
      if (path.empty()) use_as_value(user, i, path);
  }
}

void Tracer::use_as_value(const Instr& user, size_t i, const Path& path) {
  const bool is_integer = tensor::is_integer(user.operand(i)->shape().type());
  switch (user.opcode()) {
    case Opcode::gather: {
      if (i != 1) return;
      const auto& attrs = user.attrs_as<hlo::GatherAttrs>();
      use_as_indices(user, user.operand(0)->shape(), user.operand(1)->shape(),
                     attrs.start_index_map, attrs.index_vector_dim, attrs.slice_sizes);
      wants_.is_sorted |= attrs.indices_are_sorted;
      return;
    }
    case Opcode::scatter:
      if (i == user.operands().size() / 2) use_in_scatter(user);
      return;
    case Opcode::dynamic_slice:
      if (i >= 1) use_as_start(user, i, 1);
      return;
    case Opcode::dynamic_update_slice:
      if (i >= 2) use_as_start(user, i, 2);
      return;
    case Opcode::set_dimension_size:
      if (i == 1)
        wants_.exactly =
            user.operand(0)->shape().dim(user.attrs_as<hlo::DimensionAttrs>().dimension);
      return;
    case Opcode::reduce:
    case Opcode::reduce_window:
      if (i >= user.operands().size() / 2) wants_.neutral = hlo::combiner_of(*user.called()[0]);
      return;
    case Opcode::select_and_scatter:
      if (i == 2) wants_.neutral = hlo::combiner_of(*user.called()[1]);
      return;
    case Opcode::divide:
    case Opcode::remainder:
      if (i == 1 && is_integer) wants_.nonzero = true;
      return;
    case Opcode::shift_left:
    case Opcode::shift_right_arithmetic:
    case Opcode::shift_right_logical:
      if (i == 1) limit(0, 1, tensor::type_bits(user.operand(i)->shape().type()) - 1);
      return;
    case Opcode::log:
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::acosh:
      wants_.positive = true;
      return;
    case Opcode::power:
      if (i == 0) wants_.positive = true;
      return;
    case Opcode::batch_norm_inference:
      if (i == 4) wants_.positive = true;
      return;
    case Opcode::batch_norm_grad:
      if (i == 3) wants_.positive = true;
      return;
    case Opcode::cholesky:
      wants_.definite = true;
      return;
    case Opcode::triangular_solve:
      if (i == 0) wants_.definite = true;
      return;
    case Opcode::add:
    case Opcode::maximum:
      // A variance plus epsilon, before a root.
      if (!is_integer && user.operands().size() == 2) push(user, path);
      return;
    case Opcode::select:  // negative indices count from the end: select(i < 0, i + n, i)
      if (i > 0 && is_integer) push(user, path);
      return;
    case Opcode::clamp:
      if (i == 1 && is_integer) push(user, path);
      return;
    case Opcode::copy:
    case Opcode::convert:
    case Opcode::reshape:
    case Opcode::bitcast:
    case Opcode::broadcast:
    case Opcode::transpose:
    case Opcode::slice:
    case Opcode::concatenate:
    case Opcode::reverse:
      return push(user, path);
    default:
      return;
  }
}

void leaves(const tensor::Shape& shape, Path& path, std::vector<Path>& out) {
  if (!shape.is_tuple()) {
    out.push_back(path);
    return;
  }
  for (size_t i = 0; i < shape.elements().size(); ++i) {
    path.push_back(static_cast<int64_t>(i));
    leaves(shape.elements()[i], path, out);
    path.pop_back();
  }
}

}  // namespace

std::vector<Wants> wants_of_parameters(const hlo::Module& module) {
  std::vector<Wants> result;
  for (const Instr* parameter : module.entry()->parameters()) {
    std::vector<Path> paths;
    Path path;
    leaves(parameter->shape(), path, paths);
    for (const Path& leaf : paths) {
      Wants wants;
      Tracer(wants).follow(*parameter, leaf);
      result.push_back(std::move(wants));
    }
  }
  return result;
}

}  // namespace heddle::interp
