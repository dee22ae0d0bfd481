// Accesses of a thread to adjacent elements become one of up to 16 bytes. A wide load is placed at
// its first element's load, a wide store at its last element's store.
#include <algorithm>
#include <map>
#include <tuple>

#include "emit/cuda/cuda_emitter.h"
#include "kernel/linear.h"

namespace heddle::emit::cuda {

namespace {

constexpr int64_t kMostBytes = 16;

// An index without its constant: two equal ones differ by their constants only.
using Place = std::vector<std::pair<uint32_t, int64_t>>;

struct Access {
  size_t first = 0, last = 0;  // statements that use it
  ExprId load;                 // of a load
  ExprId index;
};

struct Group {
  BufferId buffer;
  Place place;
  auto operator<=>(const Group& other) const {
    return std::tie(buffer.value, place) <=> std::tie(other.buffer.value, other.place);
  }
  bool operator==(const Group&) const = default;
};
using Accesses = std::map<Group, std::map<int64_t, Access>>;  // by constant

// Whether every term of the place is a multiple of `count` elements.
bool divides(const Place& place, int64_t count) {
  return std::all_of(place.begin(), place.end(),
                     [&](const auto& term) { return term.second % count == 0; });
}

}  // namespace

// Plans wide accesses for consecutive statements that only compute and store.
class WidePlanner {
 public:
  WidePlanner(const kernel::Kernel& kernel, const std::vector<Stmt>& body, size_t begin, size_t end)
      : k_(kernel), body_(body), begin_(begin), end_(end) {}

  void run(CudaEmitter::WidePlan* plan) {
    for (size_t s = begin_; s < end_; ++s) see(s);
    for (const auto& [group, accesses] : loads_) take_loads(group, accesses, plan);
    for (const auto& [group, accesses] : stores_) take_stores(group, accesses, plan);
  }

 private:
  bool in_memory(BufferId id) const { return !is_register(k_.buffer(id)); }

  // False: the index is not a sum of multiples.
  bool find_place(const std::vector<ExprId>& indices, Place* place, int64_t* constant) const {
    if (indices.size() != 1) return false;
    const kernel::Linear form = kernel::linear(k_, indices[0]);
    for (const kernel::Linear::Term& term : form.terms) {
      if (!term.dims.empty()) return false;
      place->emplace_back(term.atom.value, term.factor);
    }
    std::sort(place->begin(), place->end());
    *constant = form.constant;
    return true;
  }

  void see(size_t s) {
    const Stmt& stmt = body_[s];
    for (ExprId id : kernel::reachable(k_, kernel::expressions(stmt))) {
      const Expr& expr = k_.expr(id);
      if (expr.op != Op::load || !in_memory(expr.buffer)) continue;
      Place place;
      int64_t constant = 0;
      const bool whole = !expr.guarded && find_place(expr.operands, &place, &constant);
      if (!whole) {
        loose_[expr.buffer.value].push_back(s);
        continue;
      }
      auto& access = loads_[{expr.buffer, place}][constant];
      if (!access.load.valid()) access = {s, s, id, expr.operands[0]};
      access.last = s;
    }
    if (stmt.kind != StmtKind::store || !in_memory(stmt.buffer)) return;
    Place place;
    int64_t constant = 0;
    if (!find_place(stmt.indices, &place, &constant)) {
      scattered_.insert(stmt.buffer.value);
      return;
    }
    auto& at = stores_[{stmt.buffer, place}];
    if (stmt.mask.valid() || at.contains(constant))
      scattered_.insert(stmt.buffer.value);  // one wide store could not keep their order
    at[constant] = {s, s, ExprId(), stmt.indices[0]};
  }

  int64_t most(BufferId id) const {
    return kMostBytes / std::max<int64_t>(1, tensor::type_bytes(k_.buffer(id).type));
  }

  template <typename F>
  void each_run(const Group& group, const std::map<int64_t, Access>& accesses, const F& found) {
    const kernel::Buffer& buffer = k_.buffer(group.buffer);
    const bool aligned =
        buffer.space == kernel::Space::scratch || buffer.aligned_bytes >= kMostBytes;
    if (!aligned) return;
    for (auto it = accesses.begin(); it != accesses.end();) {
      int64_t count = most(group.buffer);
      for (; count > 1; count /= 2) {
        bool all = it->first % count == 0 && divides(group.place, count);
        for (int64_t i = 1; i < count && all; ++i) all = accesses.contains(it->first + i);
        if (all) break;
      }
      if (count > 1) found(it->first, count);
      std::advance(it, std::max<int64_t>(count, 1));
    }
  }

  // Whether no store to the buffer changes the elements before a load's last use.
  bool is_read_early(const Group& group, const std::map<int64_t, Access>& accesses, int64_t from,
                     int64_t count) const {
    if (scattered_.contains(group.buffer.value)) return false;
    for (const auto& [other, stores] : stores_) {
      if (other.buffer != group.buffer) continue;
      for (const auto& [constant, store] : stores) {
        if (other.place != group.place) return false;
        if (constant < from || constant >= from + count) continue;
        if (accesses.at(constant).last > store.first) return false;
      }
    }
    return true;
  }

  void take_loads(const Group& group, const std::map<int64_t, Access>& accesses,
                  CudaEmitter::WidePlan* plan) {
    each_run(group, accesses, [&](int64_t from, int64_t count) {
      if (!is_read_early(group, accesses, from, count)) return;
      CudaEmitter::WideLoad wide{group.buffer, accesses.at(from).index, {}};
      size_t first = end_;
      for (int64_t i = 0; i < count; ++i) {
        const Access& access = accesses.at(from + i);
        wide.loads.push_back(access.load);
        first = std::min(first, access.first);
      }
      plan->loads[first].push_back(std::move(wide));
    });
  }

  // Takes stores if nothing reads the buffer between the first of them and the last.
  void take_stores(const Group& group, const std::map<int64_t, Access>& accesses,
                   CudaEmitter::WidePlan* plan) {
    if (scattered_.contains(group.buffer.value)) return;
    for (const auto& [other, stores] : stores_)
      if (other.buffer == group.buffer && other.place != group.place) return;
    each_run(group, accesses, [&](int64_t from, int64_t count) {
      size_t first = end_, last = begin_;
      for (int64_t i = 0; i < count; ++i) {
        first = std::min(first, accesses.at(from + i).first);
        last = std::max(last, accesses.at(from + i).first);
      }
      for (const auto& [other, loads] : loads_)
        if (other.buffer == group.buffer)
          for (const auto& [constant, load] : loads)
            if (load.last > first && load.first <= last) return;
      if (const auto loose = loose_.find(group.buffer.value); loose != loose_.end()) return;
      for (int64_t i = 0; i < count; ++i) {
        const size_t s = accesses.at(from + i).first;
        plan->stores[s] = {accesses.at(from).index,
                           static_cast<int>(count),
                           static_cast<int>(i),
                           s == first,
                           s == last,
                           plan->groups};
      }
      ++plan->groups;
    });
  }

  const kernel::Kernel& k_;
  const std::vector<Stmt>& body_;
  const size_t begin_, end_;
  Accesses loads_, stores_;
  std::map<uint32_t, std::vector<size_t>> loose_;  // loads of a buffer at other places
  std::set<uint32_t> scattered_;                   // buffers with stores at other places
};

CudaEmitter::WidePlan CudaEmitter::plan_wide(const std::vector<Stmt>& body) const {
  WidePlan plan;
  const auto plain = [](const Stmt& stmt) {
    return stmt.kind == StmtKind::let || stmt.kind == StmtKind::store;
  };
  for (size_t s = 0; s < body.size();) {
    size_t end = s;
    while (end < body.size() && plain(body[end])) ++end;
    if (end - s > 1) WidePlanner(kernel_, body, s, end).run(&plan);
    s = std::max(end, s + 1);
  }
  return plan;
}

std::string CudaEmitter::pack_type(const kernel::Buffer& buffer, size_t count) {
  return fmt::format("{}<{}, {}>", helper("Pack"), memory_type(buffer.type), count);
}

void CudaEmitter::emit_wide_load(const WideLoad& wide) {
  const kernel::Buffer& buffer = kernel_.buffer(wide.buffer);
  prepare({wide.index});
  const std::string pack = pack_type(buffer, wide.loads.size());
  const std::string name = fmt::format("q{}_", temporaries_++);
  line(fmt::format("const {} {} = *(const {}*)&{};", pack, name, pack,
                   element(wide.buffer, {wide.index})));
  for (size_t i = 0; i < wide.loads.size(); ++i) {
    const std::string one = fmt::format("{}.x[{}]", name, i);
    wide_[wide.loads[i].value] = buffer.type == Type::pred ? "(" + one + " != 0)" : one;
  }
}

void CudaEmitter::emit_wide_store(const Stmt& stmt, const WideStore& wide) {
  const kernel::Buffer& buffer = kernel_.buffer(stmt.buffer);
  const std::string pack = pack_type(buffer, static_cast<size_t>(wide.count));
  std::string& name = packs_[wide.key];
  if (wide.first) {
    name = fmt::format("w{}_", temporaries_++);
    line(fmt::format("{} {};", pack, name));
  }
  prepare({stmt.value});
  std::string what = value(stmt.value);
  if (buffer.type == Type::pred) what = "(unsigned char)" + what;
  line(fmt::format("{}.x[{}] = {};", name, wide.place, bare(what)));
  if (!wide.last) return;
  prepare({wide.index});
  line(fmt::format("*({}*)&{} = {};", pack, element(stmt.buffer, {wide.index}), name));
}

}  // namespace heddle::emit::cuda
