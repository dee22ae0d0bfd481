#include "lower/trim_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::lower::trimming {
namespace {

using kernel::Phase, kernel::VarId;

class Finder {
 public:
  Finder(const Kernel& kernel, const TrimRequest& request,
         const std::vector<std::vector<TrimDigit>>& left)
      : k_(kernel), request_(request), left_(left) {}

  Refusal run() {
    Accesses found;
    refused_ = find_accesses(k_, request_, &found);
    if (refused_) return refused_;
    variables_ = std::move(found.variables);
    accesses_ = std::move(found.touches);
    parts_ = std::move(found.parts);
    opaque_ = std::move(found.opaque);
    size_t groups = 0;
    for (const Phase& phase : k_.phases) groups += phase.groups.size();
    digits_.resize(k_.buffers.size() * (groups + 1));
    for (size_t b = 0; b < request_.globals.size(); ++b) {
      for (const TrimDigit& digit : request_.globals[b]) {
        if (digit.window) continue;
        const TrimGroup& group = request_.groups[static_cast<size_t>(digit.group)];
        digits_[b].push_back({digit.stride, group.bound, group.bound, digit.group, {}, 0, false});
      }
      sort(&digits_[b]);
    }
    for (const Touch& access : accesses_)
      if (is_given(access.buffer.index())) mark_left(access);
    find_facts();
    return joined_ ? *joined_ : refused_;
  }

  Facts take() { return {std::move(variables_), std::move(accesses_)}; }

 private:
  static void sort(std::vector<Digit>* digits) {
    std::sort(digits->begin(), digits->end(),
              [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  }

  // What is known of a variable's parts is known of the variable.
  bool join_parts() {
    for (const auto& [key, number] : parts_) {
      Variable& whole = variables_[key.whole];
      const Variable& part = variables_[number];
      const auto reduced = [&](const Fact& fact) {
        return request_.groups[static_cast<size_t>(fact.group)].reduced;
      };
      if (part.fact && reduced(*part.fact))
        return refused_.because("trim-digit", k_.vars[key.whole].name, part.fact->group);
      if (!key.outer) {  // where it moves does not matter, if it is in no dynamic dimension
        whole.elsewhere = whole.elsewhere || (part.fact && !part.elsewhere);
        continue;
      }
      if (part.elsewhere) whole.elsewhere = true;
      if (!part.fact || part.elsewhere) continue;
      Fact fact = *part.fact;
      const int64_t times = request_.groups[static_cast<size_t>(fact.group)].times;
      if (fact.scale == 1 && fact.factor % key.size == 0 && times % fact.factor == 0) {
        fact.factor /= key.size;  // the last numbers of one of the extent go on as it does
      } else if (fact.factor == 1) {
        fact.scale *= key.size;
        for (auto& [outer, factor] : fact.base) factor *= key.size;
        fact.low *= key.size;
        fact.high *= key.size;
      } else {
        whole.elsewhere = true;
        continue;
      }
      if (!whole.fact) whole.fact = fact;
      if (whole.fact->group != fact.group || whole.fact->scale != fact.scale ||
          whole.fact->factor != fact.factor || !same_base(whole.fact->base, fact.base))
        whole.elsewhere = true;
      whole.fact->low = std::min(whole.fact->low, fact.low);
      whole.fact->high = std::max(whole.fact->high, fact.high);
    }
    for (Touch& access : accesses_) {
      for (Linear::Term& term : access.index.terms)
        if (is_part(term.var.value) && variables_[term.var.index()].parent >= 0)
          term.var = VarId(static_cast<uint32_t>(variables_[term.var.index()].parent));
      std::erase_if(access.index.terms, [&](const auto& term) { return is_part(term.var.value); });
    }
    variables_.resize(k_.vars.size());
    return true;
  }

  bool is_part(uint32_t var) const { return var >= k_.vars.size(); }

  // --- groups of variables -------------------------------------------------------------------

  // But for variables that have one value, 0.
  bool same_base(const Terms& a, const Terms& b) const {
    const auto all_in = [&](const Terms& terms, const Terms& others) {
      return std::all_of(terms.begin(), terms.end(), [&](const auto& term) {
        const auto found = others.find(term.first);
        return variables_[term.first].extent == 1 ||
               (found != others.end() && found->second == term.second);
      });
    };
    return all_in(a, b) && all_in(b, a);
  }

  // Two groups of one extent that a loop moves over at once are one, unless an array has both.
  bool join(int a, int b) {
    const TrimGroup& one = request_.groups[static_cast<size_t>(a)];
    const TrimGroup& other = request_.groups[static_cast<size_t>(b)];
    const auto is_in = [&](const std::vector<TrimDigit>& digits, int group) {
      return std::any_of(digits.begin(), digits.end(),
                         [&](const TrimDigit& digit) { return digit.group == group; });
    };
    const auto& globals = request_.globals;
    if (one.extent != other.extent || one.bound != other.bound || one.times != other.times ||
        one.beyond != 0 || other.beyond != 0 || one.windows || other.windows ||
        std::any_of(globals.begin(), globals.end(),
                    [&](const auto& digits) { return is_in(digits, a) && is_in(digits, b); }))
      return false;
    if (joined_) return true;
    joined_.emplace().because("trim-groups", "two groups are one", std::min(a, b));
    joined_->with = std::max(a, b);
    return true;
  }

  // What a part of an index says of a variable; false: it is at odds with what is known.
  bool learn(uint32_t var, int64_t factor, const Linear& part, const Digit& digit, bool* changed,
             int64_t scale = 1) {
    Fact fact{digit.group, factor, scale, {}, 0, 0};
    for (const Linear::Term& term : part.terms)  // parts stand in a digit by themselves
      if (term.var.value != var &&
          (is_part(term.var.value) ||
           (is_part(var) && variables_[var].parent == static_cast<int>(term.var.value))))
        return false;
    // A variable that has one value, 0, moves nothing: a panel, of which there is one. But where it
    // counts the only tile, whose rows this one goes through, they may become fewer.
    auto add = [&](uint32_t outer, int64_t times) {
      const bool counts = variables_[outer].extent != 1 || times == variables_[var].extent * factor;
      if (outer != var && times != 0 && counts && where_.is_around(outer, var))
        fact.base[outer] += times;
    };
    for (const Linear::Term& term : part.terms) add(term.var.value, term.factor);
    for (const auto& [outer, times] : digit.base) add(outer, times);
    fact.low = fact.high = part.constant + digit.first;
    std::optional<Fact>& known = variables_[var].fact;
    if (!known) {
      known = fact;
      *changed = true;
      return true;
    }
    if (known->scale != fact.scale || known->factor != fact.factor ||
        !same_base(known->base, fact.base))
      return false;
    if (known->group != fact.group) return join(known->group, fact.group);
    *changed = *changed || fact.low < known->low || fact.high > known->high;
    known->low = std::min(known->low, fact.low);
    known->high = std::max(known->high, fact.high);
    return true;
  }

  bool find_facts() {
    bool changed = true;
    for (int round = 0; changed && round < 8; ++round) {
      changed = false;
      // First what the given buffers say, then which digits scratch has, then what these say.
      for (const Touch& access : accesses_)
        if (is_given(access.buffer.index()) && !read_digits(access, &changed)) return false;
      for (const Touch& access : accesses_)
        if (!is_given(access.buffer.index()) && !find_digits(access, &changed)) return false;
      for (const Touch& access : accesses_)
        if (!is_given(access.buffer.index()) && !read_digits(access, &changed)) return false;
    }
    for (const Touch& access : accesses_)
      if (!is_given(access.buffer.index()) && opaque_.count(access.place) &&
          !digits_[access.place].empty() && !give_up(access))
        return false;
    for (Touch& access : accesses_)
      if (!access.store) find_whole(&access);
    return join_parts();
  }

  void mark_left(const Touch& access) {
    for (const TrimDigit& one : left_[access.buffer.index()]) {
      const int64_t bound = request_.groups[static_cast<size_t>(one.group)].bound;
      const Digit digit{one.stride, bound, bound, one.group, {}, 0, false};
      for (const Linear::Term& term : access.index.terms)
        if (variables_[term.var.index()].extent != 1 && where_.moves_in(term, digit))
          variables_[term.var.index()].elsewhere = true;
    }
  }

  void find_whole(Touch* access) const {
    if (unknown_.count(access->place) > 0 || opaque_.count(access->place) > 0)
      for (size_t g = 0; g < request_.groups.size(); ++g)
        access->whole.push_back(static_cast<int>(g));
    for (const Linear::Term& term : access->index.terms) {
      const Variable& variable = variables_[term.var.index()];
      if (variable.extent == 1 || (variable.fact && !variable.elsewhere)) continue;
      const bool looked_up = is_part(term.var.value) && variable.parent < 0;
      for (const Digit& digit : digits_[access->place])
        if (where_.moves_in(term, digit))
          (looked_up ? access->whole : access->over).push_back(digit.group);
    }
    access->whole.insert(access->whole.end(), access->over.begin(), access->over.end());
  }

  bool is_given(size_t buffer) const {
    return buffer < request_.globals.size();  // inputs and outputs; behind them are workspaces
  }

  bool read_digits(const Touch& access, bool* changed) {
    const std::vector<Digit>& digits = digits_[access.place];
    std::vector<uint32_t> rest;
    std::vector<Linear::Term> through;
    const auto parts = where_.split(access, digits, &rest, &through);
    if (!parts) return read_as_one(access, changed);
    for (size_t d = 0; d < digits.size(); ++d) {
      const Linear& part = (*parts)[d];
      const bool is_through =
          std::any_of(through.begin(), through.end(), [&](const Linear::Term& term) {
            return where_.runs_through(term, digits[d]) || part.factor(term.var) != 0;
          });
      const bool crossed = where_.crosses(part, digits[d], access.buffer);
      if (is_through || crossed) {
        if (request_.groups[static_cast<size_t>(digits[d].group)].reduced)
          return refused_.because("trim-reduced",
                                  fmt::format("a loop over {} runs over several dimensions",
                                              k_.buffer(access.buffer).name),
                                  digits[d].group);
        for (const Linear::Term& term : part.terms) {
          const bool is_one = std::any_of(through.begin(), through.end(),
                                          [&](const auto& other) { return other.var == term.var; });
          if (is_one || (!crossed && where_.takes_in(term, access, digits[d]) &&
                         learn(term.var.value, term.factor, part, digits[d], changed)))
            continue;
          variables_[term.var.index()].elsewhere = true;
        }
        continue;
      }
      for (const Linear::Term& term : part.terms)
        if (!learn(term.var.value, term.factor, part, digits[d], changed))
          variables_[term.var.index()].elsewhere = true;
    }
    for (const Linear::Term& term : through) {
      if (learn_through(term, access, changed)) {
        std::erase(rest, term.var.value);
      } else {
        variables_[term.var.index()].elsewhere = true;
      }
    }
    if (!is_given(access.buffer.index())) return true;
    for (uint32_t var : rest) {
      if (request_.made.count(access.buffer.index()) == 0) variables_[var].known_static = true;
      if (access.store) variables_[var].elsewhere = true;
    }
    return true;
  }

  // A variable that runs through all of a dimension that nothing is outside of counts parts of it.
  bool learn_through(const Linear::Term& term, const Touch& access, bool* changed) {
    const Digit& digit = digits_[access.place][0];
    const int64_t unit = term.factor;
    if (digit.stride % unit != 0 ||
        digit.stride * digit.extent != where_.elements_of(access.buffer))
      return false;
    Linear index;  // in units; what moves inside of one does not count
    index.constant = access.index.constant / unit;
    int64_t inside = access.index.constant % unit;
    for (Linear::Term other : access.index.terms) {
      const int64_t extent = variables_[other.var.index()].extent;
      if (other.factor < unit) {
        if (extent < 0 || other.factor < 0) return false;
        inside += other.factor * (extent - 1);
        continue;
      }
      if (other.factor % unit != 0) return false;
      other.factor /= unit;
      index.terms.push_back(other);
    }
    return inside < unit && learn(term.var.value, 1, index, digit, changed, digit.stride / unit);
  }

  // Where loops run through a dimension and what is inside of it in one, as over flat arrays, the
  // elements count, if nothing is outside of that dimension.
  bool read_as_one(const Touch& access, bool* changed) {
    const size_t b = access.buffer.index();
    const std::vector<Digit>& digits = digits_[b];
    if (!is_given(b)) return give_up(access);
    for (const Digit& digit : digits)
      if (request_.groups[static_cast<size_t>(digit.group)].reduced)
        return refused_.because("trim-digit", k_.buffer(access.buffer).name, digit.group);
    const bool flat = digits.size() == 1 &&
                      digits[0].stride * digits[0].extent == where_.elements_of(access.buffer);
    for (const Linear::Term& term : access.index.terms) {
      if (term.factor <= 0 || !flat ||
          !learn(term.var.value, term.factor, access.index, digits[0], changed, digits[0].stride))
        if (access.store) variables_[term.var.index()].elsewhere = true;
    }
    return true;
  }

  // Nothing is known of this scratch: it does not matter where nothing is reduced.
  bool give_up(const Touch& access) {
    const size_t b = access.place;
    std::vector<int> groups;
    for (const Digit& digit : digits_[b]) groups.push_back(digit.group);
    for (const Linear::Term& term : access.index.terms)
      if (const auto& fact = variables_[term.var.index()].fact) groups.push_back(fact->group);
    for (int group : groups)
      if (request_.groups[static_cast<size_t>(group)].reduced)
        return refused_.because("trim-digit", k_.buffer(access.buffer).name, group);
    digits_[b].clear();
    unknown_.insert(b);
    return true;
  }

  // Digits of scratch, from the variables that are known.
  bool find_digits(const Touch& access, bool* changed) {
    std::vector<Digit>& digits = digits_[access.place];
    if (unknown_.count(access.place)) return true;
    for (const Linear::Term& term : access.index.terms) {
      const int64_t factor = term.factor;
      const Variable& variable = variables_[term.var.index()];
      const std::optional<Fact>& fact = variable.fact;
      if (!fact || variable.elsewhere) continue;
      if (fact->scale != 1 && fact->factor == 1) continue;  // parts of a number: no digit
      if (is_result(access, term)) {
        *changed = *changed || !variable.has_results;
        variables_[term.var.index()].has_results = true;
        continue;
      }
      if (factor < 0 || factor % fact->factor != 0 || fact->scale != 1) return give_up(access);
      const int64_t stride = factor / fact->factor;
      const auto known = std::find_if(digits.begin(), digits.end(),
                                      [&](const Digit& d) { return d.stride == stride; });
      const int64_t first = fact->low - access.index.constant / stride;
      if (known != digits.end()) {
        if (known->group != fact->group) return join(known->group, fact->group) || give_up(access);
        // Used for several pieces: what stands in it begins with the first of them.
        if (access.index.constant < stride && first < known->first) {
          known->first = first;
          *changed = true;
        }
        continue;
      }
      Digit digit{stride, 0, INT64_MAX, fact->group, {}, first, true};
      for (const auto& [outer, times] : fact->base) {
        if (access.index.factor(VarId(outer)) != times * stride) digit.base[outer] = times;
      }
      digits.push_back(digit);
      sort(&digits);
      for (size_t d = 1; d < digits.size(); ++d)
        digits[d].round = digits[d - 1].stride / digits[d].stride;
      *changed = true;
    }
    for (Digit& digit : digits) widen(access, &digit);
    return true;
  }

  // An element of scratch stands for all the numbers that a value of the variable does.
  bool is_result(const Touch& access, const Linear::Term& of) const {
    const Fact& fact = *variables_[of.var.index()].fact;
    if (!request_.groups[static_cast<size_t>(fact.group)].reduced) return false;
    return std::all_of(access.index.terms.begin(), access.index.terms.end(), [&](const auto& term) {
      const std::optional<Fact>& other = variables_[term.var.index()].fact;
      return !other || other->group != fact.group ||
             (other->scale == 1 && term.factor > 0 && term.factor < other->factor);
    });
  }

  void widen(const Touch& access, Digit* digit) const {
    int64_t first = digit->first, reach = 0, step = INT64_MAX;
    for (const Linear::Term& term : access.index.terms) {
      const Variable& variable = variables_[term.var.index()];
      if (!variable.fact || variable.elsewhere || variable.fact->group != digit->group ||
          term.factor != variable.fact->factor * digit->stride)
        continue;
      if (variable.extent < 0) reach = INT64_MAX / 4;
      first = std::max(first, variable.fact->low);
      reach += variable.fact->factor * (variable.extent - 1);
      step = std::min(step, variable.fact->factor);
    }
    if (step == INT64_MAX) return;
    reach += step + first - digit->first;  // what moves inside of a step may not be known
    digit->extent = std::min(digit->round, std::max(digit->extent, reach));
  }

  const Kernel& k_;
  const TrimRequest& request_;
  const std::vector<std::vector<TrimDigit>>& left_;  // by given buffer
  std::vector<Variable> variables_;
  Digits where_{k_, variables_};
  std::vector<std::vector<Digit>> digits_;  // by place, the outermost first
  std::map<PartKey, uint32_t> parts_;       // variables behind those of the kernel
  std::vector<Touch> accesses_;
  std::set<size_t> opaque_;        // places with an index that is no sum
  std::set<size_t> unknown_;       // scratch whose digits cannot be told
  std::optional<Refusal> joined_;  // that groups are one
  Refusal refused_;
};

}  // namespace

Refusal find_facts(const Kernel& kernel, const TrimRequest& request,
                   const std::vector<std::vector<TrimDigit>>& left, Facts* facts) {
  Finder finder(kernel, request, left);
  Refusal refused = finder.run();
  if (!refused) *facts = finder.take();
  return refused;
}

}  // namespace heddle::lower::trimming
