#include "cost/gpu_waits.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cost/body_cycles.h"

namespace heddle::cost {

namespace {

using stage::LoopKind;
using stage::Own;
using stage::Placed;
using stage::PlacedFusion;
using stage::Row;
using stage::Stage;
using target::Target;

// Latencies of loads, by where the data is found.
constexpr double kMemoryNs = 650, kSecondNs = 300, kFirstNs = 30;
// An exchange between lanes; a barrier of threads, and combining the results of their subgroups.
constexpr double kLanesNs = 90, kThreadsNs = 150, kSubgroupNs = 12;
// The part of the caches that is available for data that a kernel reads again.
constexpr double kFirstShare = 0.5, kSecondShare = 0.6;
// Iterations of a loop without stores whose loads the compiler issues at once.
constexpr double kAhead = 4;

class Waits {
 public:
  Waits(const PlacedFusion& placed, const GpuTask& task, const Target& target)
      : placed_(placed), task_(task), target_(target) {
    for (const TaskRow& row : task.rows)
      for (stage::StageId id : row.row->joined) inside_.insert(id.index());
  }

  GpuWaits run() {
    for (const TaskRow& row : task_.rows) result_.ns += wait(*row.row, row.rounds);
    return result_;
  }

 private:
  double second_bytes() const {
    return target_.caches.size() > 1 ? static_cast<double>(target_.caches[1].bytes) : 0;
  }

  // The time of all rounds of a row: steps, each as long as its slowest load, several at once.
  double wait(const Row& row, double rounds) {
    double steps = 1, vectors = 1, unrolled = 1;
    bool reduces = false, columns = false, stores = false;
    for (size_t m = 0; m < row.joined.size(); ++m) {
      const Stage& stage = placed_.graph.stage(row.joined[m]);
      const Placed& place = placed_.placement.stages[row.joined[m].index()];
      for (const stage::Value& value : stage.values)
        stores |= value.output >= 0 || place.space == stage::Space::global;
      if (!stage.is_reduction()) continue;
      reduces = true;
      columns |= !row.own.empty() && row.own.back().digits[m] < static_cast<int>(stage.out.size());
    }
    for (size_t i = 0; i < row.own.size(); ++i) {
      const Own& own = row.own[i];
      const auto trips =
          static_cast<double>(stage::extent_in_task(placed_, row.joined[0], own.digits[0]));
      if (i + 1 < row.own.size() && own.kind != LoopKind::unrolled) {
        steps *= trips;
        continue;
      }
      vectors *= std::ceil(trips / (task_.lanes * row.width)) * row.width;
      if (own.kind != LoopKind::unrolled)
        unrolled = std::max<double>(unrolled, static_cast<double>(own.by / task_.lanes));
    }
    double farthest = 0;
    for (stage::StageId id : row.joined)
      for (const stage::Load& load : placed_.graph.stage(id).loads)
        farthest = std::max(farthest, distance(id.index(), load, rounds));
    double at_once = stores ? kAhead * row.width : kAhead * unrolled;
    if (columns) at_once = kAhead * std::min(vectors, 4.0);
    const bool meets = reduces && !columns;  // threads wait for each other before the next round
    at_once = std::min(at_once, steps * vectors * (meets ? 1 : rounds));
    double ns = steps * vectors * farthest / at_once;
    const double subgroups = std::ceil(static_cast<double>(task_.lanes) / target_.warp_size);
    if (meets) ns += subgroups > 1 ? kThreadsNs + subgroups * kSubgroupNs : kLanesNs;
    return rounds * ns;
  }

  // The latency of a load. A row that is executed in rounds reads its data in as many parts.
  double distance(size_t reader, const stage::Load& load, double rounds) {
    double bytes = 0;  // of all tasks
    int key = 0;
    const Stage& stage = placed_.graph.stages[reader];
    if (load.source.input >= 0) {
      const tensor::Shape& shape =
          placed_.graph.inputs[static_cast<size_t>(load.source.input)].shape;
      bytes =
          std::min(read_elems(stage, load) * static_cast<double>(tensor::type_bytes(shape.type())),
                   static_cast<double>(shape.bytes()));
      key = load.source.input;
    } else {
      const size_t source = load.source.stage.index();
      const Placed& place = placed_.placement.stages[source];
      if (inside_.count(source) || place.space != stage::Space::global)
        return place.space == stage::Space::reg ? 0 : kFirstNs;
      bytes = static_cast<double>(placed_.graph.stages[source].out_elems()) * 4;
      key = -1 - static_cast<int>(source);
    }
    const double of_task = bytes / std::max(1.0, task_.tasks);
    const bool again = !read_.insert(key).second;
    const double at_once = of_task / std::max(1.0, rounds) * std::min(task_.resident, task_.tasks);
    const auto first = static_cast<double>(target_.caches.empty() ? 0 : target_.caches[0].bytes);
    if (again && at_once < kFirstShare * first * target_.multiprocessors) return kFirstNs;
    if (again && at_once > kSecondShare * second_bytes()) result_.again_bytes += bytes;
    const double found_in = again ? at_once : bytes;
    return found_in < kSecondShare * second_bytes() ? kSecondNs : kMemoryNs;
  }

  const PlacedFusion& placed_;
  const GpuTask& task_;
  const Target& target_;
  std::set<size_t> inside_;
  std::set<int> read_;
  GpuWaits result_;
};

}  // namespace

GpuWaits gpu_waits(const PlacedFusion& placed, const GpuTask& task, const Target& target) {
  return Waits(placed, task, target).run();
}

}  // namespace heddle::cost
