#include "lower/trim_stops.h"

#include <fmt/format.h>

#include <algorithm>

#include "lower/trim_parts.h"

namespace heddle::lower::trimming {

using kernel::Group, kernel::Phase, kernel::Stmt, kernel::StmtKind;

Stops::Stops(const Kernel& kernel, const TrimRequest& request, Facts facts,
             std::vector<int64_t> counted, bool reduces_all)
    : k_(kernel),
      request_(request),
      variables_(std::move(facts.variables)),
      accesses_(std::move(facts.touches)),
      counted_(std::move(counted)),
      reduces_all_(reduces_all),
      lanes_(most_lanes(kernel)) {}

Refusal Stops::find() {
  for (const Phase& phase : k_.phases)
    for (const Group& group : phase.groups) find_parts(group.body);
  find_reach();
  check_reduced();
  return refused_;
}

const uint32_t* Stops::parts_of(uint32_t var) const {
  const auto parts = parts_.find(var);
  return parts == parts_.end() ? nullptr : &parts->second;
}

int64_t Stops::reads(size_t buffer, int group) const {
  const int64_t times = request_.groups[static_cast<size_t>(group)].times;
  const int64_t numbers = read_[place(buffer, group)];
  return numbers == 1 ? 1 : common_reach(numbers, times) / times;
}

const TrimGroup& Stops::group_of(const Fact& fact) const {
  return request_.groups[static_cast<size_t>(fact.group)];
}

bool Stops::can_stop(const Variable& variable) const {
  return variable.fact && !variable.elsewhere && !variable.has_results && variable.extent >= 0;
}

// The numbers that one value of an outer variable stands for, where this one moves inside them;
// 0: nothing around it is in the group.
int64_t Stops::share(const Variable& variable) const {
  int64_t least = 0;
  for (const auto& [outer, times] : variable.fact->base)
    if (least == 0 || times < least) least = times;
  return least;
}

bool Stops::stops(const Variable& variable) const {
  if (!can_stop(variable) || variable.kind == LoopKind::unrolled) return false;
  const int64_t around = share(variable), own = variable.extent * variable.fact->factor;
  if (variable.fact->scale != 1) return around == 0 || own > 64;
  if (around == 0) return own > 1;
  if (variable.kind == LoopKind::vector) return own > 64;
  return (variable.kind == LoopKind::serial || variable.grid) && own > 1;
}

// Loops whose steps are several parts written out, as vectors of a sum: the last step may be
// fewer.
void Stops::find_parts(const std::vector<Stmt>& body) {
  for (const Stmt& stmt : body) {
    find_parts(stmt.body);
    find_parts(stmt.otherwise);
    if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::serial || stmt.body.size() != 1 ||
        !stops(variables_[stmt.var.index()]))
      continue;
    const Stmt& inner = stmt.body[0];
    if (inner.kind != StmtKind::loop || inner.loop != LoopKind::unrolled) continue;
    const Variable& part = variables_[inner.var.index()];
    if (!can_stop(part)) continue;
    const Fact &whole = *variables_[stmt.var.index()].fact, &fact = *part.fact;
    const auto around = fact.base.find(stmt.var.value);
    if (fact.group == whole.group && group_of(whole).reduced && around != fact.base.end() &&
        around->second == whole.factor && part.extent * fact.factor == whole.factor &&
        whole.scale == 1 && fact.scale == 1 && whole.low == 0 && whole.high == 0 && fact.low == 0 &&
        fact.high == 0 && may_be_cut(inner, fact.factor))
      parts_.emplace(stmt.var.value, inner.var.value);
  }
}

// Vectors, or steps of a sum that could be a loop as well.
bool Stops::may_be_cut(const Stmt& parts, int64_t each) const {
  return each == 1 ? !numbers_registers(k_, parts.body, parts.var)
                   : lanes_ > 1 && each % lanes_ == 0;
}

bool Stops::is_part(uint32_t var) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const auto& pair) { return pair.second == var; });
}

// What one step of a variable takes of its group; all that it moves over where it is not a loop
// that stops.
int64_t Stops::step(uint32_t var) const {
  const Variable& variable = variables_[var];
  if (const auto parts = parts_.find(var); parts != parts_.end())
    return variables_[parts->second].fact->factor;
  if (is_part(var)) return variable.fact->factor;
  const int64_t own = variable.extent * variable.fact->factor;
  if (!stops(variable)) return own;
  const int64_t lanes = variable.kind == LoopKind::vector ? lanes_ : 1;
  return std::min(own, std::max(variable.fact->factor, lanes));
}

// How far readers make writers go: what is read of a buffer reaches as far as its readers' loops,
// and a loop that stores reaches as far as what it stores into is read.
void Stops::find_reach() {
  // What results are counted on may go through loops of which nothing is known.
  std::vector<int64_t> numbers;  // by group
  for (size_t g = 0; g < counted_.size(); ++g)
    numbers.push_back(counted_[g] == 1 ? 1 : counted_[g] * request_.groups[g].times);
  reach_.assign(variables_.size(), 1);
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (!variables_[v].fact) continue;
    const Fact& fact = *variables_[v].fact;
    reach_[v] = numbers[static_cast<size_t>(fact.group)];
    if (group_of(fact).reduced) reach_[v] = common_reach(reach_[v], step(static_cast<uint32_t>(v)));
  }
  for (size_t b = 0; b < k_.buffers.size(); ++b)
    read_.insert(read_.end(), numbers.begin(), numbers.end());
  const auto reads_all = [&](const Touch& access, int group) {
    read_[place(access.buffer.index(), group)] = request_.groups[static_cast<size_t>(group)].bound;
  };
  // A reduction over a group that is left reads all of it, also of scratch where it belongs to
  // another one; and a loop of which nothing is known may reduce a group that is reduced.
  for (const Touch& access : accesses_) {
    for (size_t i = 0; reduces_all_ && i < access.whole.size(); ++i)
      reads_all(access, access.whole[i]);
    for (const int group : access.over)
      if (request_.groups[static_cast<size_t>(group)].reduced) reads_all(access, group);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Touch& access : accesses_) {
      for (const Linear::Term& term : access.index.terms) {
        const uint32_t var = term.var.value;
        if (!variables_[var].fact || is_bounded_inside(access, var)) continue;
        int64_t& of_buffer = read_[place(access.buffer.index(), variables_[var].fact->group)];
        int64_t& from = access.store ? of_buffer : reach_[var];
        int64_t& to = access.store ? reach_[var] : of_buffer;
        const int64_t both = common_reach(to, from);
        if (to == both) continue;
        to = both;
        changed = true;
      }
    }
  }
}

// A variable with results runs to its bound, but what is touched with one inside of it that stops
// goes only as far as that one.
bool Stops::is_bounded_inside(const Touch& access, uint32_t var) const {
  return variables_[var].has_results &&
         std::any_of(access.index.terms.begin(), access.index.terms.end(), [&](const auto& term) {
           const Variable& inner = variables_[term.var.index()];
           return stops(inner) && inner.fact->base.count(var) > 0;
         });
}

size_t Stops::place(size_t buffer, int group) const {
  return buffer * request_.groups.size() + static_cast<size_t>(group);
}

// All that moves over a reduced group stops at the granule, or stays inside of one.
bool Stops::check_reduced() {
  for (size_t v = 0; v < variables_.size(); ++v) {
    const Variable& variable = variables_[v];
    if (!variable.fact || !group_of(*variable.fact).reduced || variable.extent == 1) continue;
    const Fact& fact = *variable.fact;
    const int64_t granule = std::min(reach_[v], group_of(fact).bound);
    auto no = [&](const char* why) {
      return refused_.because("trim-reduced", fmt::format("{} {}", k_.vars[v].name, why),
                              fact.group);
    };
    if (variable.has_results && !variable.elsewhere) continue;  // find_reach says what it reads
    if (!can_stop(variable)) return no("moves elsewhere too");
    const int64_t own = (is_part(static_cast<uint32_t>(v)) ? 1 : variable.extent) * fact.factor;
    if (fact.low % fact.factor != 0 && stops(variable)) return no("begins between steps");
    if (fact.high - fact.low >= std::max(stops(variable) ? fact.factor : granule, int64_t{1}))
      return no("reaches further");
    if (!stops(variable) && own > granule && own < group_of(fact).bound) return no("does not stop");
    for (const auto& [outer, times] : fact.base)
      if (times % std::min(own, granule) != 0 && granule % times != 0)
        return no("does not line up");
  }
  return true;
}

}  // namespace heddle::lower::trimming
