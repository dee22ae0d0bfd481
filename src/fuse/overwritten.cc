#include "fuse/overwritten.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/holds.h"
#include "hlo/loop_trips.h"

namespace heddle::fuse {

namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using Number = std::optional<int64_t>;

constexpr int64_t kMostTrips = 4096;

bool is_integer(const tensor::Shape& shape) {
  return shape.is_array() && shape.is_static() && shape.elems() == 1 &&
         !tensor::is_float(shape.type()) && !tensor::is_complex(shape.type());
}

// The integers of one step, computed from the state's.
class Step {
 public:
  Step(const Computation& body, const std::vector<Number>& state) : body_(body), state_(state) {
    for (const Instr* instr : body.instrs())
      if (instr->is(Opcode::fusion)) callers_[instr->called()[0]] = instr;
  }

  Number value(const Instr* instr) {
    const auto known = known_.find(instr);
    if (known != known_.end()) return known->second;
    return known_[instr] = compute(instr);
  }

 private:
  Number compute(const Instr* instr) {
    if (instr->is(Opcode::get_tuple_element)) {
      const Instr* from = instr->operand(0);
      const auto index = static_cast<size_t>(instr->tuple_index());
      if (from == body_.parameters()[0]) return state_[index];
      if (!from->is(Opcode::fusion)) return {};
      const Instr* root = from->called()[0]->root();
      return root->is(Opcode::tuple) ? value(root->operand(index)) : std::nullopt;
    }
    if (!is_integer(instr->shape())) return {};
    if (instr->is(Opcode::fusion)) return value(instr->called()[0]->root());
    if (instr->is(Opcode::parameter)) {
      const auto caller = callers_.find(instr->parent());
      if (caller == callers_.end()) return {};
      return value(caller->second->operand(static_cast<size_t>(instr->parameter_number())));
    }
    if (instr->is(Opcode::constant)) return instr->literal().get_s64(0);
    std::vector<int64_t> x;
    for (const Instr* operand : instr->operands()) {
      const Number one = is_integer(operand->shape()) ? value(operand) : std::nullopt;
      if (!one) return {};
      x.push_back(*one);
    }
    switch (instr->opcode()) {
      case Opcode::bitcast:
      case Opcode::broadcast:
      case Opcode::convert:
      case Opcode::copy:
      case Opcode::reshape:
        return x[0];
      case Opcode::add:
        return x[0] + x[1];
      case Opcode::subtract:
        return x[0] - x[1];
      case Opcode::maximum:
        return std::max(x[0], x[1]);
      case Opcode::minimum:
        return std::min(x[0], x[1]);
      case Opcode::select:
        return x[0] ? x[1] : x[2];
      case Opcode::compare:
        return hlo::holds(instr->attrs_as<hlo::CompareAttrs>().direction, x[0], x[1]);
      default:
        return {};
    }
  }

  const Computation& body_;
  const std::vector<Number>& state_;
  std::unordered_map<const Instr*, Number> known_;
  std::unordered_map<const Computation*, const Instr*> callers_;
};

}  // namespace

bool is_overwritten(const Instr* loop, int64_t leaf) {
  const Computation& body = *loop->called()[1];
  const int64_t trips = hlo::known_trips(loop).value_or(kMostTrips + 1);
  const Instr* next = body.root()->operand(static_cast<size_t>(leaf));
  const Instr* init = loop->operand(0);
  if (trips > kMostTrips || !init->is(Opcode::tuple) || !next->is(Opcode::dynamic_update_slice))
    return false;
  const std::vector<int64_t> all = next->shape().extents();
  const std::vector<int64_t> box = next->operand(1)->shape().extents();
  int64_t along = -1;
  for (size_t d = 0; d < all.size(); ++d) {
    if (all[d] == box[d]) continue;
    if (along >= 0 || box[d] != 1) return false;
    along = static_cast<int64_t>(d);
  }
  if (along < 0) return trips > 0;
  std::vector<Number> state;
  for (const Instr* value : init->operands())
    state.push_back(value->is(Opcode::constant) && is_integer(value->shape())
                        ? Number(value->literal().get_s64(0))
                        : Number());
  std::vector<bool> written(static_cast<size_t>(all[static_cast<size_t>(along)]), false);
  for (int64_t trip = 0; trip < trips; ++trip) {
    Step step(body, state);
    const Number at = step.value(next->operand(static_cast<size_t>(2 + along)));
    if (!at) return false;
    written[static_cast<size_t>(std::clamp<int64_t>(*at, 0, std::ssize(written) - 1))] = true;
    std::vector<Number> after;
    for (const Instr* value : body.root()->operands())
      after.push_back(is_integer(value->shape()) ? step.value(value) : Number());
    state = std::move(after);
  }
  return std::find(written.begin(), written.end(), false) == written.end();
}

}  // namespace heddle::fuse
