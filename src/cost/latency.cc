#include "cost/latency.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cost/body_cycles.h"
#include "cost/chain_cost.h"
#include "cost/gemm_time.h"
#include "cost/gpu_waits.h"
#include "cost/held_registers.h"

namespace heddle::cost {

namespace {

using stage::Loop;
using stage::LoopKind;
using stage::Placed;
using stage::PlacedFusion;
using stage::Row;
using stage::Space;
using stage::Stage;
using target::DeviceKind;
using target::Target;

// Per round of a row: to enter and leave its loops.
constexpr double kRoundCycles = 6;
// Until a masked store has reached the first cache: a masked load of neighbouring bytes waits for
// it (128 sums of three numbers: 13 cycles each on Zen 4).
constexpr double kStoreWaitCycles = 13;
// On a GPU: addresses of a square's lines in memory and in scratch.
constexpr int kTurnRegisters = 12;

class Evaluation {
 public:
  Evaluation(const PlacedFusion& placed, const Target& target)
      : placed_(placed), target_(target), gpu_(target.kind == DeviceKind::gpu) {
    result_.scratch_bytes = placed.placement.scratch_bytes;
  }

  Latency run() {
    for (const Stage& stage : placed_.graph.stages)
      result_.flops += static_cast<double>(stage.points());
    for (size_t phase = 0; phase < placed_.schedule.phases.size(); ++phase) {
      measure(phase);
      result_.bytes += works_.back().bytes;
    }
    settle();
    return std::move(result_);
  }

 private:
  // The work of a group. Groups that run one after the other do not overlap.
  struct GroupWork {
    double cycles = 0;  // of vectors (of warps), all tasks
    double tasks = 0;
    double bytes = 0, scratch_bytes = 0;
    std::vector<double> reads, writes;  // bytes of each array
    std::vector<TaskRow> rows;          // on a GPU
    int lanes = 1;
  };
  struct PhaseWork : GroupWork {  // of all groups together
    std::vector<GroupWork> groups;
  };

  // Measures the rows of a phase, with how often they run.
  void measure(size_t phase) {
    PhaseWork work;
    std::vector<double> read(placed_.graph.inputs.size(), 0);
    for (const stage::Group& group : placed_.schedule.phases[phase]) {
      GroupWork part;
      std::vector<const Row*> rows;
      lanes_ = gpu_ ? std::max(group.lanes, target_.warp_size) : target_.lanes(tensor::Type::f32);
      part.tasks = 1;
      part.lanes = lanes_;
      row_registers_.clear();
      for (int node : group.body) walk(node, 1, &rows, &part);
      keep_registers(rows);
      // A task of a GPU is one warp's or one block's: its threads are the lanes.
      work.tasks += part.tasks;
      work.lanes = std::max(work.lanes, lanes_);
      most_lanes_ = std::max(most_lanes_, lanes_);
      add_arrays(rows, &read, &part);
      work.cycles += part.cycles;
      work.bytes += part.bytes;
      work.scratch_bytes += part.scratch_bytes;
      work.groups.push_back(std::move(part));
    }
    works_.push_back(std::move(work));
  }

  void walk(int node, double rounds, std::vector<const Row*>* rows, GroupWork* work) {
    const stage::ScheduleNode& what = placed_.schedule.nodes[static_cast<size_t>(node)];
    if (const auto* row = std::get_if<Row>(&what)) {
      rows->push_back(row);
      if (gpu_) work->rows.push_back({row, rounds / work->tasks});
      add_row(*row, rounds, work);
      return;
    }
    const Loop& loop = std::get<Loop>(what);
    const auto trips = static_cast<double>(loop.trips);
    if (loop.kind == LoopKind::parallel || loop.kind == LoopKind::block ||
        loop.kind == LoopKind::subgroup)
      work->tasks *= trips;
    for (int inner : loop.body) walk(inner, rounds * trips, rows, work);
  }

  void add_row(const Row& row, double rounds, GroupWork* work) {
    int registers = 0, sums = 0, ahead = 0;
    const std::vector<int> held = held_values(row);
    double unroll = 1;
    for (const stage::Own& own : row.own)
      if (own.kind == LoopKind::unrolled) unroll *= 4;
    for (size_t m = 0; m < row.joined.size(); ++m) {
      const Stage& stage = placed_.graph.stage(row.joined[m]);
      const Placed& place = placed_.placement.stages[row.joined[m].index()];
      const bool vectors = !row.own.empty() && (row.own.back().kind == LoopKind::vector ||
                                                row.own.back().kind == LoopKind::thread);
      BodyForm form;
      form.lane_digit = vectors ? row.own.back().digits[m] : -1;
      if (stage.scatter >= 0) form.lane_digit = static_cast<int>(stage.out.size()) - 1;
      form.recompute = place.recompute;
      form.stored = place.space == (gpu_ ? Space::global : Space::scratch);
      for (const stage::Value& value : stage.values) form.stored |= value.output >= 0;
      form.lanes = gpu_ ? lanes_ : 0;
      form.width = row.width;
      form.turned = gpu_ && row.turn();
      if (gpu_ && form.lane_digit >= 0 && form.lane_digit < std::ssize(place.need))
        form.strip = place.need[static_cast<size_t>(form.lane_digit)].extent;
      double cycles = body_cycles(stage, form, target_);
      cycles += store_waits(row.joined[m], form.lane_digit) * kStoreWaitCycles;
      if (row.winograd()) cycles *= 16.0 / 36;
      if (row.gemm() && m == 0) cycles /= rate_of(*row.gemm());
      // Lanes are combined at the end of a round.
      const int out = static_cast<int>(stage.out.size());
      if (stage.is_reduction() && form.lane_digit >= out)
        cycles +=
            rounds * 3 * std::log2(std::max(2, lanes_)) * static_cast<double>(stage.values.size());
      work->cycles += cycles * warps_of_task();
      const int list = gpu_ ? list_registers(stage, row) : 0;
      registers = std::max(registers, live_values(stage) + held[m] + list);
      // Registers of loads that are issued at once.
      if (row.turn()) ahead += kTurnRegisters;
      if (row.width > 1) ahead += row.width * static_cast<int>(stage.loads.size());
      if (stage.is_reduction()) sums += static_cast<int>(unroll);
    }
    registers += std::max(sums, sums * row.width) + ahead;
    work->cycles += rounds * kRoundCycles * warps_of_task();
    row_registers_.push_back(registers + (gpu_ ? 16 : 0));
  }

  // How often an accumulator in memory that does not fill a vector is loaded right after its
  // neighbour was stored.
  double store_waits(stage::StageId id, int lane_digit) const {
    const Stage& stage = placed_.graph.stage(id);
    if (gpu_ || lane_digit < 0 || lane_digit >= static_cast<int>(stage.out.size()) ||
        stage.out[static_cast<size_t>(lane_digit)].extent >= lanes_ ||
        !stage::is_swept(placed_, id.index()))
      return 0;
    return static_cast<double>(stage.points()) /
           static_cast<double>(stage.out[static_cast<size_t>(lane_digit)].extent);
  }

  // The most registers of a row of the group, with values that are held from one row to another.
  void keep_registers(const std::vector<const Row*>& rows) {
    std::vector<int> held(rows.size(), 0);
    int64_t bytes = 0;  // that the placement has in scratch
    if (gpu_) held = held_registers(placed_, rows, lanes_, &bytes);
    held_bytes_ = std::max(held_bytes_, bytes);
    for (size_t r = 0; r < rows.size(); ++r)
      result_.registers = std::max(result_.registers, row_registers_[r] + held[r]);
  }

  // For each position of the row: values of stages before it that it or a later one reads.
  std::vector<int> held_values(const Row& row) const {
    std::vector<size_t> last(row.joined.size(), 0);
    for (size_t m = 0; m < row.joined.size(); ++m)
      for (const stage::Load& load : placed_.graph.stage(row.joined[m]).loads)
        for (size_t i = 0; i < m && load.source.input < 0; ++i)
          if (load.source.stage == row.joined[i]) last[i] = m;
    std::vector<int> held(row.joined.size(), 0);
    for (size_t i = 0; i < row.joined.size(); ++i)
      for (size_t m = i + 1; m <= last[i]; ++m)
        held[m] += static_cast<int>(placed_.graph.stage(row.joined[i]).values.size());
    return held;
  }

  // The rate of a tile's instruction, relative to plain multiply-adds.
  double rate_of(const stage::GemmTile& tile) const {
    return flops_per_ns(tile.record, tile.shape.type, target_) /
           target_.peak_flops_per_ns(tile.shape.type);
  }

  double warps_of_task() const {
    return gpu_ ? static_cast<double>(lanes_) / target_.warp_size : 1;
  }

  // Every input and output counts once per phase: data that is read again is in a cache by then.
  // `read_so_far`: bytes of each input that the phase's groups have read so far.
  void add_arrays(const std::vector<const Row*>& rows, std::vector<double>* read_so_far,
                  GroupWork* work) {
    std::vector<double>& read = *read_so_far;
    const std::vector<double> before = read;
    for (const Row* row : rows) {
      for (stage::StageId id : row->joined) {
        const Stage& stage = placed_.graph.stage(id);
        const Placed& place = placed_.placement.stages[id.index()];
        for (const stage::Load& load : stage.loads) {
          if (load.source.input < 0) continue;
          const tensor::Shape& shape =
              placed_.graph.inputs[static_cast<size_t>(load.source.input)].shape;
          double& bytes = read[static_cast<size_t>(load.source.input)];
          bytes += read_elems(stage, load) * tensor::type_bytes(shape.type());
          bytes = std::min(bytes, static_cast<double>(shape.bytes()));
        }
        for (const stage::Value& value : stage.values) {
          const double size = static_cast<double>(stage.out_elems()) *
                              static_cast<double>(tensor::type_bytes(value.type));
          const bool kept = value.output < 0 && place.space == Space::global;
          if (value.output >= 0 || kept) work->writes.push_back(size);
          if (kept) work->reads.push_back(size);
          if (place.space == Space::scratch) work->scratch_bytes += 2 * size * place.recompute;
        }
      }
    }
    for (size_t i = 0; i < read.size(); ++i)
      if (read[i] > before[i]) work->reads.push_back(read[i] - before[i]);
    for (double bytes : work->writes) work->bytes += bytes;
    for (double bytes : work->reads) work->bytes += bytes;
  }

  // Registers beyond the available ones are spilled and reloaded, in each round of the body.
  double spill_factor() {
    const int limit =
        gpu_ ? std::min(255, target_.registers_per_multiprocessor / std::max(1, most_lanes_))
             : std::max(1, target_.vector_registers);
    result_.spilled = std::max(0, result_.registers - limit);
    return 1 + 0.5 * result_.spilled / limit;
  }

  void settle() {
    double flops_bytes = 0, tasks = 0;
    for (const PhaseWork& work : works_) {
      flops_bytes += work.bytes;
      tasks = std::max(tasks, work.tasks);
    }
    result_.serial = !gpu_ && runs_serially(result_.flops, flops_bytes, tasks);
    const int cores = result_.serial ? 1 : core_count(target_);
    result_.call_ns = call_ns(result_.serial, static_cast<int>(works_.size()), target_);
    result_.ns = result_.call_ns;
    const double spills = spill_factor();
    for (const PhaseWork& work : works_) {
      PhaseLatency phase;
      phase.tasks = work.tasks;
      phase.bytes = work.bytes;
      phase.compute_ns = (gpu_ ? warp_cycles(work, &phase) : core_cycles(work, cores, &phase)) *
                         spills / target_.clock_ghz;
      phase.ns = settle_groups(work, cores, &phase);
      result_.compute_ns += phase.compute_ns;
      result_.moved_ns += phase.moved_ns;
      result_.ns += phase.ns;
      result_.phases.push_back(phase);
    }
  }

  // The time of the groups; `phase` has the time that they compute in total.
  double settle_groups(const PhaseWork& work, int cores, PhaseLatency* phase) const {
    const double by_cycle = phase->compute_ns / std::max(1.0, work.cycles);
    double ns = 0;
    phase->compute_ns = 0;
    for (const GroupWork& group : work.groups) {
      double compute = group.cycles * by_cycle;
      const double moved = moved_ns(group, gpu_ ? busy_cores(group, cores) : cores);
      // A tile in scratch is written and read again.
      const auto tile = static_cast<double>(result_.scratch_bytes - (gpu_ ? held_bytes_ : 0));
      if (tile > 0 && group.scratch_bytes > 0)
        compute += group.scratch_bytes / tile *
                   transfer_ns(Transition::near_reg, tile, 1, target_) / cores;
      phase->compute_ns += compute;
      phase->moved_ns += moved;
      ns += overlapped_ns(compute, moved);
    }
    if (!gpu_) return ns;
    // The multiprocessors of a GPU run parts of all groups at once.
    const double waited = waited_ns(work, cores, phase);
    return std::max(waited, overlapped_ns(phase->compute_ns, phase->moved_ns));
  }

  // The number of multiprocessors that have blocks.
  static int busy_cores(const GroupWork& group, int cores) {
    const double blocks = std::ceil(std::max(1.0, group.tasks) * group.lanes / 128);
    return static_cast<int>(std::min<double>(cores, blocks));
  }

  // The time of waves of tasks that wait for their loads; data that no cache held for them is added
  // to what `phase` moves.
  double waited_ns(const PhaseWork& work, int cores, PhaseLatency* phase) const {
    double most = 0;
    for (const GroupWork& group : work.groups) {
      const double resident = resident_warps_ * target_.warp_size / group.lanes * cores;
      const GpuWaits waits =
          gpu_waits(placed_, {group.rows, group.lanes, group.tasks, resident}, target_);
      if (waits.again_bytes > 0)
        phase->moved_ns += transfer_ns(Transition::memory_reg, waits.again_bytes, cores, target_);
      most = std::max(most, waits.ns * std::max(1.0, group.tasks / std::max(1.0, resident)));
    }
    return most;
  }

  double moved_ns(const GroupWork& group, int cores) const {
    double both = 0, read = 0;
    for (double bytes : group.writes)
      both += transfer_ns(Transition::memory_reg, bytes, cores, target_);
    for (double bytes : group.reads) {
      both += transfer_ns(Transition::memory_reg, bytes, cores, target_);
      read += transfer_ns(Transition::read, bytes, cores, target_);
    }
    return std::max(both, read);
  }

  // The cycles of the core that finishes last.
  static double core_cycles(const PhaseWork& work, int cores, PhaseLatency* phase) {
    phase->waves = std::ceil(std::max(1.0, work.tasks) / cores);
    double cycles = work.cycles / std::min<double>(cores, std::max(1.0, work.tasks));
    for (const GroupWork& group : work.groups) {
      const double tasks = std::max(1.0, group.tasks);
      cycles = std::max(cycles, group.cycles / tasks * std::ceil(tasks / cores));
    }
    return cycles;
  }

  // Formula 1: waves of resident warps, each as long as its warps' instructions take.
  double warp_cycles(const PhaseWork& work, PhaseLatency* phase) {
    constexpr double kBlock = 256;  // for tasks of one warp each
    const double block = std::max<double>(work.lanes, kBlock);
    const double warps_of_block = block / target_.warp_size;
    double blocks = target_.threads_per_multiprocessor / block;
    blocks = std::min(blocks, target_.registers_per_multiprocessor /
                                  (std::max(16.0, std::ceil(result_.registers / 8.0) * 8) * block));
    const double scratch =
        static_cast<double>(result_.scratch_bytes - held_bytes_) * block / work.lanes;
    if (scratch > 0)
      blocks =
          std::min(blocks, static_cast<double>(target_.shared_bytes_per_multiprocessor) / scratch);
    blocks = std::max(1.0, std::floor(blocks));
    const double resident = blocks * warps_of_block;  // on a multiprocessor
    resident_warps_ = resident;
    result_.occupancy = std::min(
        1.0, resident * target_.warp_size / std::max(1, target_.threads_per_multiprocessor));
    const double warps = std::max(1.0, work.tasks) * work.lanes / target_.warp_size;
    phase->waves = std::ceil(warps / (resident * std::max(1, target_.multiprocessors)));
    const double of_warp = work.cycles / warps;
    // The last wave may hold fewer; few warps cannot hide the latency of an instruction.
    const double held = std::min(resident, std::ceil(warps / std::max(1, target_.multiprocessors)));
    constexpr double kLatencyOverRate = 16;
    // A multiprocessor starts one block after the other.
    constexpr double kBlockCycles = 100;
    const double started = warps * target_.warp_size / std::max<double>(work.lanes, 128) /
                           std::max(1, target_.multiprocessors) * kBlockCycles;
    return std::max(started, phase->waves * of_warp * std::max(held, kLatencyOverRate));
  }

  const PlacedFusion& placed_;
  const Target& target_;
  const bool gpu_;
  int lanes_ = 1;                   // of the current group
  int most_lanes_ = 1;              // of all groups
  int64_t held_bytes_ = 0;          // of scratch, in registers of a GPU's threads
  double resident_warps_ = 1;       // on a multiprocessor of a GPU, in the current phase
  std::vector<int> row_registers_;  // of the group's rows, without held values
  std::vector<PhaseWork> works_;
  Latency result_;
};

Latency of_template(const PlacedFusion& placed, const Target& target) {
  Latency result;
  result.by_template = true;
  result.serial = false;
  result.ns = cost::predicted_ns(placed, target);
  result.call_ns = target.launch_ns;
  result.scratch_bytes = placed.placement.scratch_bytes;
  for (const Stage& stage : placed.graph.stages) {
    const bool product = stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv;
    result.flops += (product ? 2.0 : 1.0) * static_cast<double>(stage.points());
  }
  for (const stage::Input& input : placed.graph.inputs)
    result.bytes += static_cast<double>(input.shape.bytes());
  for (const stage::Output& output : placed.graph.outputs) {
    result.bytes += static_cast<double>(placed.graph.stored_bytes(output));
    if (output.array >= 0)  // updated in place, not read
      result.bytes -=
          static_cast<double>(placed.graph.inputs[static_cast<size_t>(output.array)].shape.bytes());
  }
  return result;
}

}  // namespace

Latency latency(const PlacedFusion& placed, const Target& target) {
  if (target.kind == DeviceKind::cpu && stage::is_gemm(placed)) return of_template(placed, target);
  return Evaluation(placed, target).run();
}

int live_values(const Stage& stage) {
  std::vector<int> last(stage.nodes.size(), -1);
  for (size_t n = 0; n < stage.nodes.size(); ++n)
    for (int operand : stage.nodes[n].operands)
      last[static_cast<size_t>(operand)] = static_cast<int>(n);
  for (const stage::Value& value : stage.values)
    if (value.result >= 0)
      last[static_cast<size_t>(value.result)] = static_cast<int>(stage.nodes.size());
  int alive = 0, most = 0;
  std::vector<int> ends(stage.nodes.size() + 1, 0);
  for (size_t n = 0; n < stage.nodes.size(); ++n) {
    const bool in_register = stage.nodes[n].kind == stage::Node::Kind::load ||
                             stage.nodes[n].kind == stage::Node::Kind::op;
    alive -= ends[n];  // a result may overwrite an operand that is read for the last time
    if (in_register && last[n] >= 0) {
      ++alive;
      ++ends[static_cast<size_t>(last[n])];
    }
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace heddle::cost
