#include "program/streams.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "program/link_times.h"
#include "program/ranges.h"
#include "program/spaces.h"
#include "program/views.h"

namespace heddle::program {
namespace {

constexpr size_t kMostCommands = 4096;  // between commands that run alone; more: one stream
constexpr size_t kNone = SIZE_MAX;
constexpr double kLeastStep = 0.02;  // least relative gain of another stream

using Bits = std::vector<uint64_t>;
void set_bit(Bits& bits, size_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }
bool has_bit(const Bits& bits, size_t i) { return bits[i / 64] >> (i % 64) & 1; }

bool stands_alone(const Program& program, const Command& command) {
  if (const auto* copy = std::get_if<Copy>(&command)) return is_on_host(program, *copy);
  return !std::holds_alternative<Launch>(command);
}

// Commands [first, end), none of which runs alone. Indices are relative to `first`.
class Section {
 public:
  Section(const Program& program, const std::vector<Command>& commands,
          const std::vector<double>& ns, size_t first, size_t end)
      : first_(first), count_(end - first), ns_(ns) {
    depend(program, commands);
    reduce();
    match();
    find_earliest();
  }

  void assign(const StreamOptions& options, StreamPlan& plan) {
    std::vector<std::vector<size_t>> chains = make_chains();
    place(chains, options.most_streams);
    for (size_t i = 0; i < count_; ++i) {
      plan.stream[first_ + i] = stream_[i];
      plan.streams = std::max(plan.streams, stream_[i] + 1);
      for (size_t p : reduced_[i]) plan.crossing += stream_[p] != stream_[i];
      plan.reduced += static_cast<int64_t>(reduced_[i].size());
    }
    plan.dependences += dependences_;
    wait(options, plan);
  }

 private:
  // Direct dependences: sorted predecessors.
  void depend(const Program& program, const std::vector<Command>& commands) {
    struct Use {
      ByteRange range;
      size_t command;
      bool writes;
    };
    std::map<Memory, std::vector<Use>> uses;
    before_.resize(count_);
    for (size_t i = 0; i < count_; ++i) {
      std::vector<Use> mine;
      for_each_view(commands[first_ + i], [&](const View& view, program::Use use) {
        const ByteRange range = range_of(program, view);
        if (range.memory.first != BufferKind::constant && range.begin < range.end)
          mine.push_back({range, i, use != program::Use::read});
      });
      for (const Use& one : mine)
        for (const Use& other : uses[one.range.memory])
          if ((one.writes || other.writes) && one.range.overlaps(other.range))
            before_[i].push_back(other.command);
      std::sort(before_[i].begin(), before_[i].end());
      before_[i].erase(std::unique(before_[i].begin(), before_[i].end()), before_[i].end());
      dependences_ += static_cast<int64_t>(before_[i].size());
      for (Use& one : mine) uses[one.range.memory].push_back(std::move(one));
    }
  }

  // Drops edges implied by longer paths: visiting predecessors from the last to the first, all
  // ancestors through later ones are known.
  void reduce() {
    std::vector<Bits> ancestors(count_, Bits((count_ + 63) / 64));
    reduced_.resize(count_);
    for (size_t i = 0; i < count_; ++i) {
      for (size_t k = before_[i].size(); k-- > 0;) {
        const size_t p = before_[i][k];
        if (has_bit(ancestors[i], p)) continue;
        reduced_[i].push_back(p);
        for (size_t w = 0; w < ancestors[i].size(); ++w) ancestors[i][w] |= ancestors[p][w];
        set_bit(ancestors[i], p);
      }
    }
  }

  // A maximum matching of predecessors and successors: matched edges stay inside a chain.
  void match() {
    next_.assign(count_, kNone);
    previous_.assign(count_, kNone);
    std::vector<size_t> seen(count_, kNone);
    for (size_t i = 0; i < count_; ++i) augment(i, i, seen);
  }
  bool augment(size_t successor, size_t round, std::vector<size_t>& seen) {
    for (size_t p : reduced_[successor]) {
      if (seen[p] == round) continue;
      seen[p] = round;
      if (next_[p] != kNone && !augment(next_[p], round, seen)) continue;
      next_[p] = successor;
      previous_[successor] = p;
      return true;
    }
    return false;
  }

  // Earliest start of each command with unlimited streams.
  void find_earliest() {
    begin_ns_.assign(count_, 0);
    for (size_t i = 0; i < count_; ++i)
      for (size_t p : reduced_[i])
        begin_ns_[i] = std::max(begin_ns_[i], begin_ns_[p] + ns_[first_ + p]);
  }

  std::vector<std::vector<size_t>> make_chains() const {
    std::vector<std::vector<size_t>> chains;
    for (size_t i = 0; i < count_; ++i) {
      if (previous_[i] != kNone) continue;
      chains.emplace_back();
      for (size_t at = i; at != kNone; at = next_[at]) chains.back().push_back(at);
    }
    return chains;
  }

  double ns_of(const std::vector<size_t>& chain) const {
    return std::accumulate(chain.begin(), chain.end(), 0.0,
                           [&](double sum, size_t i) { return sum + ns_[first_ + i]; });
  }

  // Longest chain first; each goes to the stream with the least work during its time, among equals
  // to the one that it has the most edges with.
  void place(std::vector<std::vector<size_t>>& chains, int64_t most_streams) {
    std::stable_sort(chains.begin(), chains.end(),
                     [&](const auto& a, const auto& b) { return ns_of(a) > ns_of(b); });
    stream_.assign(count_, -1);
    const auto most = static_cast<size_t>(std::max<int64_t>(most_streams, 1));
    std::vector<std::vector<size_t>> placed(most);
    for (const std::vector<size_t>& chain : chains) {
      size_t best = 0;
      double best_load = 0;
      int64_t best_edges = -1;
      const double begin_ns = begin_ns_[chain.front()];
      const double end_ns = begin_ns_[chain.back()] + ns_[first_ + chain.back()];
      for (size_t s = 0; s < most; ++s) {
        double load = 0;
        for (size_t other : placed[s])
          if (begin_ns_[other] < end_ns && begin_ns_[other] + ns_[first_ + other] > begin_ns)
            load += ns_[first_ + other];
        const int64_t edges = edges_with(chain, static_cast<int64_t>(s));
        if (best_edges >= 0 && (load > best_load || (load == best_load && edges <= best_edges)))
          continue;
        best = s;
        best_load = load;
        best_edges = edges;
      }
      for (size_t i : chain) {
        stream_[i] = static_cast<int64_t>(best);
        placed[best].push_back(i);
      }
    }
  }
  int64_t edges_with(const std::vector<size_t>& chain, int64_t stream) const {
    int64_t edges = 0;
    for (size_t i : chain)
      for (size_t p : reduced_[i]) edges += stream_[p] == stream;
    for (size_t i = 0; i < count_; ++i)
      if (stream_[i] == stream)
        for (size_t p : reduced_[i])
          edges += std::find(chain.begin(), chain.end(), p) != chain.end();
    return edges;
  }

  // Adds the waits that vector clocks do not imply, and the resulting time.
  void wait(const StreamOptions& options, StreamPlan& plan) const {
    const auto streams = static_cast<size_t>(*std::max_element(stream_.begin(), stream_.end()) + 1);
    using Clock = std::vector<int64_t>;
    std::vector<Clock> now(streams, Clock(streams, 0)), at(count_);
    std::vector<double> free_ns(streams, 0), end_ns(count_, 0);
    for (size_t i = 0; i < count_; ++i) {
      const auto mine = static_cast<size_t>(stream_[i]);
      double start_ns = free_ns[mine];
      for (size_t p : reduced_[i]) {  // latest first: it may imply the others
        const auto other = static_cast<size_t>(stream_[p]);
        if (other == mine || now[mine][other] >= at[p][other]) continue;
        plan.waits[first_ + i].push_back(first_ + p);
        if (!plan.recorded[first_ + p]) ++plan.events;
        plan.recorded[first_ + p] = true;
        for (size_t s = 0; s < streams; ++s) now[mine][s] = std::max(now[mine][s], at[p][s]);
        start_ns = std::max(start_ns, end_ns[p]) + options.wait_ns;
      }
      ++now[mine][mine];
      at[i] = now[mine];
      end_ns[i] = free_ns[mine] = start_ns + ns_[first_ + i];
    }
    plan.ns += *std::max_element(end_ns.begin(), end_ns.end());
  }

  size_t first_, count_;
  const std::vector<double>& ns_;
  int64_t dependences_ = 0;
  std::vector<std::vector<size_t>> before_, reduced_;  // reduced: latest first
  std::vector<size_t> next_, previous_;                // in chains
  std::vector<double> begin_ns_;
  std::vector<int64_t> stream_;
};

StreamPlan one_stream(size_t count) {
  StreamPlan plan;
  plan.stream.assign(count, 0);
  plan.waits.resize(count);
  plan.recorded.assign(count, false);
  plan.alone.assign(count, false);
  return plan;
}

StreamPlan plan_on(const Program& program, std::vector<Section>& sections,
                   const std::vector<Command>& commands, const std::vector<double>& command_ns,
                   const StreamOptions& options) {
  StreamPlan plan = one_stream(commands.size());
  for (Section& section : sections) section.assign(options, plan);
  for (size_t i = 0; i < commands.size(); ++i) {
    plan.alone[i] = stands_alone(program, commands[i]);
    if (plan.alone[i]) plan.ns += command_ns[i];
  }
  return plan;
}

}  // namespace

std::vector<double> rough_ns(const Program& program, const std::vector<Command>& commands) {
  return rough_ns(program, commands, {});
}

std::vector<double> rough_ns(const Program& program, const std::vector<Command>& commands,
                             const std::function<double(double bytes)>& link_bytes) {
  std::vector<double> result;
  for (const Command& command : commands) {
    double ns = 1;
    if (const auto* launch = std::get_if<Launch>(&command)) {
      const Kernel& kernel = program.kernels[launch->kernel.index()];
      ns += static_cast<double>(kernel.min_bytes) / 8 + static_cast<double>(kernel.flops) / 32;
    } else if (const auto* copy = std::get_if<Copy>(&command);
               copy != nullptr && link_bytes &&
               (goes_to_device(program, *copy) || goes_to_host(program, *copy))) {
      // Twice: as below, it is read and written.
      ns += 2 * link_bytes(static_cast<double>(stored_bytes(copy->to.shape))) / 8;
    } else {
      for_each_view(command, [&](const View& view, Use) {
        ns += static_cast<double>(stored_bytes(view.shape)) / 8;
      });
    }
    result.push_back(ns);
  }
  return result;
}

StreamPlan plan_streams(const Program& program, const std::vector<Command>& commands,
                        const std::vector<double>& command_ns, const StreamOptions& options) {
  std::vector<Section> sections;
  bool too_long = false;
  for (size_t first = 0; first < commands.size();) {
    size_t end = first;
    while (end < commands.size() && !stands_alone(program, commands[end])) ++end;
    too_long = too_long || end - first > kMostCommands;
    if (end > first && !too_long) sections.emplace_back(program, commands, command_ns, first, end);
    first = end + 1;
  }
  StreamPlan one = one_stream(commands.size());
  for (size_t i = 0; i < commands.size(); ++i) one.alone[i] = stands_alone(program, commands[i]);
  one.serial_ns = one.ns = std::accumulate(command_ns.begin(), command_ns.end(), 0.0);
  if (too_long) return one;
  StreamPlan best;
  for (int64_t most = 1; most <= std::max<int64_t>(options.most_streams, 1); ++most) {
    StreamOptions tried = options;
    tried.most_streams = most;
    StreamPlan plan = plan_on(program, sections, commands, command_ns, tried);
    if (most == 1 || plan.ns < best.ns * (1 - kLeastStep)) best = std::move(plan);
  }
  best.serial_ns = one.serial_ns;
  if (best.streams > 1 && best.ns <= best.serial_ns * (1 - options.least_gain)) return best;
  one.dependences = best.dependences;
  one.reduced = best.reduced;
  return one;
}

}  // namespace heddle::program
