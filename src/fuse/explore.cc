#include "fuse/explore.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "cost/peak_memory.h"
#include "fuse/enumerate.h"
#include "fuse/kernel_order.h"
#include "fuse/pattern_judge.h"
#include "fuse/refine.h"
#include "fuse/regions.h"
#include "fuse/search_space.h"

namespace heddle::fuse {

namespace {

// A cover that raises the peak of memory by more than kMostPeak must gain kGainForPeak.
constexpr double kMostPeak = 1.10, kGainForPeak = 1.05;
constexpr size_t kSmallGraph = 64;     // vertices
constexpr size_t kMostKernels = 1024;  // priced by an enumeration, at most

// Totals of several kernels.
struct Total {
  double ns = 0, price = 0;
  int64_t kernels = 0;
};

// Whether a cover, perhaps of more kernels, may replace the basic one.
bool may_replace(const Total& found, const Total& basic, const SearchOptions& options) {
  return options.covers == Pricing::calls ||
         may_add_kernels(found.price, basic.price, found.kernels - basic.kernels, options);
}

// Whether it is clearly cheaper; if prices are calls, any less is.
bool is_clearly_less(const Total& found, const Total& instead, const SearchOptions& options) {
  return options.covers == Pricing::calls
             ? found.price < instead.price
             : found.price * options.least_gain <= instead.price &&
                   found.price + options.least_gain_ns <= instead.price;
}

// Takes the faster of the basic groups and a searched cover, region by region.
class Choice {
 public:
  Choice(const SearchSpace& space, PatternJudge* judge, const Patterns& patterns,
         const Cover* cover, const SearchOptions& options)
      : space_(space), judge_(*judge), options_(options), regions_(space.graph.vertices.size()) {
    find_basic();
    if (cover) find_searched(patterns, *cover);
  }

  // A whole cover, without a cycle.
  Choice(const SearchSpace& space, PatternJudge* judge, std::vector<Members> kernels,
         const SearchOptions& options)
      : space_(space), judge_(*judge), options_(options), regions_(space.graph.vertices.size()) {
    searched_.reserve(kernels.size());
    for (Members& members : kernels) {
      searched_.push_back(searched_part(std::move(members)));
      chosen_.push_back(&searched_.back());
    }
    add_up();
  }

  // False: the chosen parts would have a cycle.
  bool choose(bool only_searched) {
    std::unordered_map<int, std::pair<Total, Total>> totals;  // basic, searched
    for (const Part& part : basic_) add(part, &totals[regions_.of(part.region)].first);
    for (const Part& part : searched_) add(part, &totals[regions_.of(part.region)].second);
    for (const auto* parts : {&basic_, &searched_}) {
      for (const Part& part : *parts) {
        const auto& [basic, searched] = totals[regions_.of(part.region)];
        const bool take_searched =
            !searched_.empty() && (only_searched || (is_clearly_less(searched, basic, options_) &&
                                                     may_replace(searched, basic, options_)));
        if (take_searched == (parts == &searched_)) chosen_.push_back(&part);
      }
    }
    add_up();
    return order().has_value();
  }

  const Total& total() const { return total_; }
  size_t kernels() const { return chosen_.size(); }

  // The peak of live bytes, with the parts in an order of the graph.
  int64_t peak() const {
    const auto& vertices = space_.graph.vertices;
    const std::optional<KernelOrder> kernels = order();
    if (!kernels) return std::numeric_limits<int64_t>::max();
    std::vector<cost::SequenceStep> steps(vertices.size());
    std::vector<int64_t> bytes(vertices.size(), 0);
    for (int v = 0; v < static_cast<int>(vertices.size()); ++v) {
      const Vertex& vertex = vertices[static_cast<size_t>(v)];
      const auto outside = [&](int other) { return kernels->kernel(other) != kernels->kernel(v); };
      cost::SequenceStep& step = steps[static_cast<size_t>(kernels->place(kernels->kernel(v)))];
      std::copy_if(vertex.producers.begin(), vertex.producers.end(), std::back_inserter(step.reads),
                   outside);
      if (!vertex.consumers.empty() &&
          std::none_of(vertex.consumers.begin(), vertex.consumers.end(), outside))
        continue;
      step.makes.push_back(v);
      const Instr* instr = space_.instr_of[static_cast<size_t>(v)];
      if (instr && !instr->is(Opcode::constant) && !instr->is(Opcode::parameter))
        bytes[static_cast<size_t>(v)] = static_cast<int64_t>(cost::bytes_of(instr->shape()));
    }
    return cost::peak_bytes(steps, bytes, {});
  }

  // Refines the choice in small steps; basic groups stay if they hold copies that the search would
  // not make. Kernels up to the number in `basic` need no extra gain.
  void refine(const Total& basic) {
    std::vector<CoverPart> parts;
    for (const Part* part : chosen_) {
      if (part->own.empty()) continue;
      bool fixed = part->alone != nullptr;
      if (part->group) {
        fixed = space_.with_views(part->own) != space_.in_order(part->group->members);
      }
      parts.push_back({part->own, part->ns, fixed});
    }
    if (!fuse::refine(space_.graph, &judge_, options_, basic.kernels - total_.kernels, &parts))
      return;
    std::map<Members, bool> wanted;  // whether it exists already
    for (CoverPart& part : parts) wanted.emplace(std::move(part.members), false);
    std::vector<const Part*> kept;
    for (const Part* part : chosen_) {
      const auto found = wanted.find(part->own);
      if (!part->own.empty() && found == wanted.end()) continue;
      if (found != wanted.end()) found->second = true;
      kept.push_back(part);
    }
    for (const auto& [members, known] : wanted) {
      if (known) continue;
      refined_.push_back(std::make_unique<Part>(searched_part(members)));
      kept.push_back(refined_.back().get());
    }
    chosen_ = std::move(kept);
    add_up();
  }

  void finish(Explored* result) {
    for (const Part* part : chosen_) {
      if (part->group) {
        result->groups.push_back(part->group);
        continue;
      }
      auto group = std::make_unique<Group>();
      group->members =
          part->alone ? std::vector<Instr*>{part->alone} : space_.with_views(part->own);
      for (const Instr* member : group->members)
        if (space_.is_view(member)) group->copies.insert(member);
      result->groups.push_back(group.get());
      result->made.push_back(std::move(group));
    }
    result->groups.insert(result->groups.end(), space_.kept.begin(), space_.kept.end());
    settle_copies(result);
  }

 private:
  // None: the parts have a cycle.
  std::optional<KernelOrder> order() const {
    std::vector<Members> joined;
    for (const Part* part : chosen_)
      if (part->own.size() > 1) joined.push_back(part->own);
    return KernelOrder::of(space_.graph, joined);
  }

  struct Part {
    Members own;     // vertices that it computes
    int region = 0;  // one of its vertices
    double ns = 0;   // by the latency evaluator
    double price = 0;
    Group* group = nullptr;  // basic
    Instr* alone = nullptr;  // searched: one instruction without the views it reads
  };

  // Views alone do not count as kernels: either cover may need them.
  static void add(const Part& part, Total* total) {
    total->ns += part.ns;
    total->price += part.price;
    total->kernels += !part.own.empty();
  }

  void add_up() {
    total_ = {};
    for (const Part* part : chosen_) add(*part, &total_);
  }

  void set_price(const Judged& judged, Part* part) const {
    part->ns = judged.ns;
    part->price = options_.covers == Pricing::calls   ? 1
                  : options_.covers == Pricing::delta ? judged.delta_ns
                                                      : judged.ns;
  }

  void find_basic() {
    for (Group* group : space_.free) {
      Part part;
      part.own = space_.vertices_of(*group, /*own=*/true);
      part.group = group;
      set_price(judge_.judge(*group), &part);
      Members touched = space_.vertices_of(*group, /*own=*/false);
      // A view alone belongs to the regions of its readers.
      if (part.own.empty())
        for (const Instr* member : group->members) add_readers(member, &touched);
      if (touched.empty()) touched.push_back(0);
      part.region = touched[0];
      regions_.unite(touched);
      basic_.push_back(std::move(part));
    }
  }

  void add_readers(const Instr* view, Members* found) const {
    for (const Instr* user : view->users()) {
      const int vertex = space_.vertex(user);
      if (vertex >= 0)
        found->push_back(vertex);
      else if (space_.is_view(user))
        add_readers(user, found);
    }
  }

  Part searched_part(Members members) {
    Part part;
    part.region = members[0];
    const Judged& judged = judge_.judge(members);
    set_price(judged, &part);
    // Its views cannot be read in place: they become separate kernels.
    if (members.size() == 1 && !judged.builds)
      part.alone = space_.instr_of[static_cast<size_t>(members[0])];
    part.own = std::move(members);
    return part;
  }

  void find_searched(const Patterns& patterns, const Cover& cover) {
    std::vector<bool> taken(space_.graph.vertices.size(), false);
    auto add = [&](Members members) {
      regions_.unite(members);
      searched_.push_back(searched_part(std::move(members)));
    };
    for (PatternId id : cover.patterns) {
      for (int member : patterns.pattern(id).members) taken[static_cast<size_t>(member)] = true;
      add(patterns.pattern(id).members);
    }
    for (int v = 0; v < static_cast<int>(taken.size()); ++v)
      if (!taken[static_cast<size_t>(v)] && space_.graph.vertices[static_cast<size_t>(v)].can_fuse)
        add({v});
  }

  // Finds the instructions that only their readers' groups compute; one that is also read
  // elsewhere, and computed by no group, gets a separate kernel (a reshape stays: it is no work).
  void settle_copies(Explored* result) const {
    std::unordered_map<const Instr*, std::vector<const Group*>> holders;
    std::unordered_set<const Instr*> made;
    for (const Group* group : result->groups)
      for (const Instr* member : group->members) {
        holders[member].push_back(group);
        if (!group->copies.count(member)) made.insert(member);
      }
    const std::vector<Instr*>& order = space_.computation().instrs();
    for (size_t i = order.size(); i-- > 0;) {
      Instr* instr = order[i];
      const auto held = holders.find(instr);
      if (made.count(instr) || (held == holders.end() && !space_.is_view(instr))) continue;
      auto holds = [&](const Group* group) { return has(*group, instr); };
      bool needed = instr == space_.computation().root();
      for (const Instr* user : instr->users()) {
        const auto readers = holders.find(user);
        if (readers == holders.end()) {
          needed |= !result->copies.count(user);
        } else {
          needed |= !std::all_of(readers->second.begin(), readers->second.end(), holds);
        }
      }
      if (!needed) {
        result->copies.insert(instr);
      } else if (!instr->is(Opcode::reshape) && !instr->is(Opcode::bitcast) &&
                 !instr->is(Opcode::constant)) {
        auto group = std::make_unique<Group>();
        group->members = {instr};
        holders[instr].push_back(group.get());
        result->groups.push_back(group.get());
        result->made.push_back(std::move(group));
      }
    }
  }

  const SearchSpace& space_;
  PatternJudge& judge_;
  const SearchOptions& options_;
  Regions regions_;
  std::vector<Part> basic_, searched_;
  std::vector<const Part*> chosen_;
  std::vector<std::unique_ptr<Part>> refined_;
  Total total_;
};

}  // namespace

namespace {

int64_t movable_count(const Graph& graph) {
  return std::count_if(graph.vertices.begin(), graph.vertices.end(),
                       [](const Vertex& vertex) { return vertex.can_fuse; });
}

// One search: prices the covers of the basic fusion and of the patterns, and refines the best.
class Exploration {
 public:
  // Precondition: `space` has an order, and something to search.
  Exploration(const SearchSpace& space, const target::Target& target, PlacedFacts* facts,
              const SearchOptions& options)
      : options_(options),
        space_(space),
        judge_(space, target, facts, options.patterns),
        patterns_(space.graph, &judge_, options) {}

  // Returns no groups if nothing was found.
  Explored run() {
    // The groups of the basic fusion are candidates too.
    for (const Group* group : space_.free)
      if (Members members = space_.vertices_of(*group, /*own=*/false); members.size() > 1)
        patterns_.offer(std::move(members));
    int broken = 0;
    covers_ = search_covers(space_.graph, &patterns_, options_, &broken);
    if (broken > 0)
      result_.decision = Decision::no(kInternalCycle, "{} plans have a cycle", broken);
    if (covers_.empty()) return std::move(result_);
    price_basic();
    for (const Cover& cover : covers_) price(cover);
    if (options_.covers == Pricing::latency && options_.refinements > 0) refine();
    SearchReport& report = result_.report;
    report.ns = best_->total().ns;
    report.peak_bytes = best_->peak();
    report.kernels = static_cast<int64_t>(best_->kernels());
    best_->finish(&result_);
    report.placements = judge_.placements();
    report.unions = patterns_.unions();
    return std::move(result_);
  }

 private:
  void price_basic() {
    best_ = std::make_unique<Choice>(space_, &judge_, patterns_, nullptr, options_);
    best_->choose(false);
    basic_total_ = best_->total();
    result_.report.basic_ns = basic_total_.ns;
    result_.report.basic_kernels = static_cast<int64_t>(best_->kernels());
    result_.report.basic_peak_bytes = best_->peak();
  }

  void price(const Cover& cover) {
    for (const bool only_searched : {false, true}) {
      auto choice = std::make_unique<Choice>(space_, &judge_, patterns_, &cover, options_);
      if (!choice->choose(only_searched)) continue;
      const Total& found = choice->total();
      // If all regions are taken, some may lose.
      const bool better = only_searched ? is_clearly_less(found, basic_total_, options_) &&
                                              may_replace(found, basic_total_, options_)
                                        : found.price < basic_total_.price;
      const bool grows = needs_more(*choice, result_.report.basic_peak_bytes);
      if (better && found.price < best_->total().price &&
          (!grows || found.price * kGainForPeak < basic_total_.price)) {
        is_searched_ = true;
        best_ = std::move(choice);
      }
      if (!only_searched) break;  // it had no cycle: the second try is not needed
    }
  }

  static bool needs_more(const Choice& choice, int64_t peak_bytes) {
    return static_cast<double>(choice.peak()) > kMostPeak * static_cast<double>(peak_bytes);
  }

  void take(std::unique_ptr<Choice> other) {
    if (is_clearly_less(other->total(), best_->total(), options_) &&
        may_replace(other->total(), basic_total_, options_) &&
        (!needs_more(*other, best_->peak()) ||
         other->total().ns * kGainForPeak < best_->total().ns))
      best_ = std::move(other);
  }

  // Refines the best cover; of a small graph with few covers, tries all of them.
  void refine() {
    const bool small = space_.graph.vertices.size() <= kSmallGraph;
    const auto price = [&](const Members& members) {
      const Judged& judged = judge_.judge(members);
      return judged.builds || members.size() == 1 ? judged.ns
                                                  : std::numeric_limits<double>::infinity();
    };
    if (small && movable_count(space_.graph) <= options_.most_enumerated) {
      if (auto exact = best_cover(space_.graph, kMostKernels, price)) {
        take(std::make_unique<Choice>(space_, &judge_, std::move(*exact), options_));
        return;
      }
    }
    if (!small && !is_searched_) return;
    best_->refine(basic_total_);
    if (!small) return;
    // For a small graph there is time for a second starting point: the basic fusion may be far from
    // the best.
    auto other = std::make_unique<Choice>(space_, &judge_, patterns_, &covers_.front(), options_);
    if (!other->choose(/*only_searched=*/true)) return;
    other->refine(basic_total_);
    take(std::move(other));
  }

  const SearchOptions& options_;
  const SearchSpace& space_;
  PatternJudge judge_;
  Patterns patterns_;
  std::vector<Cover> covers_;
  Explored result_;
  std::unique_ptr<Choice> best_;  // of basic and searched parts, so far
  Total basic_total_;
  bool is_searched_ = false;
};

}  // namespace

Explored explore(const Basic& basic, const target::Target& target, PlacedFacts* facts,
                 const std::function<bool(const Group&)>& stays, const SearchOptions& options) {
  const SearchSpace space(basic, target, facts, stays, options);
  Explored result;
  if (!space.has_order())
    result.decision = Decision::no(kInternalCycle, "the basic fusion has a cycle");
  else if (!space.free.empty() && !space.graph.vertices.empty())
    result = Exploration(space, target, facts, options).run();
  if (result.groups.empty()) {
    result.groups = basic.groups;
    result.copies = basic.copies;
  }
  return result;
}

void add_report(const SearchReport& from, SearchReport* to) {
  to->ns += from.ns;
  to->basic_ns += from.basic_ns;
  to->peak_bytes = std::max(to->peak_bytes, from.peak_bytes);
  to->basic_peak_bytes = std::max(to->basic_peak_bytes, from.basic_peak_bytes);
  to->kernels += from.kernels;
  to->basic_kernels += from.basic_kernels;
  to->placements += from.placements;
  to->unions += from.unions;
}

}  // namespace heddle::fuse
