// StableHLO: several processes in one module (interpreter.run_parallel). Each process runs until it
// meets the others of its group in a collective operation, which moves values between them. A
// program for one process may have collectives with groups of one.
#include <algorithm>
#include <deque>
#include <map>

#include "import/stablehlo_ops.h"

namespace heddle::import {

struct Process {
  int64_t replica = 0, partition = 0;
  const MlirBlock* body = nullptr;
  size_t next = 0;  // its next operation
  Frame frame;
  Instrs results;
  bool done = false;
};

namespace {

using Members = std::vector<Process*>;

enum class Grouping { replicas, partitions, both, devices };

// The members of a process's group in a collective, in order; empty: it has none.
Members group_of(ShloOp& op, const Process& process, const std::vector<Process*>& all,
                 bool partitions_by_channel) {
  int64_t partitions = 1;
  for (const Process* one : all) partitions = std::max(partitions, one->partition + 1);
  const MlirAttr* channel = op.op.attr("channel_handle");
  const MlirAttr* handle = channel == nullptr ? nullptr : channel->field("handle");
  const bool has_channel = handle != nullptr && handle->integer > 0;
  const Grouping grouping = !has_channel                       ? Grouping::replicas
                            : partitions_by_channel            ? Grouping::partitions
                            : op.flag("use_global_device_ids") ? Grouping::devices
                                                               : Grouping::both;
  const MlirAttr& groups = op.attr("replica_groups");
  Ints ids;
  if (!integers_of(groups, &ids)) fail("replica_groups: wanted integers");
  const auto width = groups.type.dims.size() == 2 ? static_cast<size_t>(groups.type.dims[1]) : 0;
  const int64_t self = grouping == Grouping::partitions ? process.partition
                       : grouping == Grouping::devices
                           ? process.replica * partitions + process.partition
                           : process.replica;
  Members members;
  const auto add = [&](int64_t replica, int64_t partition) {
    for (Process* one : all)
      if (one->replica == replica && one->partition == partition) members.push_back(one);
  };
  if (ids.empty()) ids.push_back(self);
  for (size_t row = 0; row < ids.size(); row += std::max<size_t>(width, 1)) {
    Ints group(
        ids.begin() + static_cast<int64_t>(row),
        ids.begin() + static_cast<int64_t>(std::min(ids.size(), row + std::max<size_t>(width, 1))));
    std::erase(group, -1);
    if (std::find(group.begin(), group.end(), self) == group.end()) continue;
    if (grouping == Grouping::both) {
      for (int64_t partition = 0; partition < partitions; ++partition)
        for (const int64_t id : group) add(id, partition);
    } else {
      for (const int64_t id : group)
        add(grouping == Grouping::replicas  ? id
            : grouping == Grouping::devices ? id / partitions
                                            : process.replica,
            grouping == Grouping::replicas  ? process.partition
            : grouping == Grouping::devices ? id % partitions
                                            : id);
    }
    return members;
  }
  return members;
}

// Operand `i` of the same collective in each member.
Instrs operands_of(const ShloOp& op, const Members& members, size_t i) {
  Instrs values;
  for (const Process* member : members) {
    const MlirOp& same = member->body->ops[member->next];
    if (i >= same.operands.size()) fail("{}: operand {} is missing in a process", same.name, i);
    values.push_back(op.importer.value(same.operands[i], member->frame));
  }
  return values;
}

Instr* zeros(ShloOp& op, size_t i) { return op.b.full(op.operand(i)->shape(), 0); }

// Applies the region to the values elementwise.
Instr* combine(ShloOp& op, const Instrs& values) {
  const Shape scalar = Shape::scalar(values[0]->shape().type());
  hlo::Computation* body = op.importer.scalar_region(op, op.region(0), {scalar, scalar});
  Ints dims(static_cast<size_t>(values[0]->shape().rank()));
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
  Instr* sum = values[0];
  for (size_t i = 1; i < values.size(); ++i)
    sum = op.b.make(Opcode::map, {sum, values[i]}, hlo::DimensionsAttrs{dims}, {body});
  return sum;
}

// Part `index` of `count` along a dimension.
Instr* part(ShloOp& op, Instr* x, int64_t dimension, int64_t index, int64_t count) {
  if (dimension < 0 || dimension >= x->shape().rank() || count < 1 ||
      x->shape().dim(dimension) % count != 0)
    fail("dimension {} of {} in {} parts", dimension, tensor::to_string(x->shape(), false), count);
  Ints starts(static_cast<size_t>(x->shape().rank()), 0), limits = x->shape().extents();
  const int64_t size = x->shape().dim(dimension) / count;
  starts[static_cast<size_t>(dimension)] = index * size;
  limits[static_cast<size_t>(dimension)] = (index + 1) * size;
  return op.b.slice(x, starts, limits, {});
}

Instr* join(ShloOp& op, const Instrs& parts, int64_t dimension) {
  return parts.size() == 1 ? parts[0] : op.b.concatenate(parts, dimension);
}

// Computes one member's result for each operand. `self`: its index in the group.
using Collective = void (*)(ShloOp& op, const Members& members, int64_t self);

void all_gather(ShloOp& op, const Members& members, int64_t) {
  for (size_t i = 0; i < op.count(); ++i)
    op.give(join(op, operands_of(op, members, i), op.integer("all_gather_dim")));
}

void all_reduce(ShloOp& op, const Members& members, int64_t) {
  for (size_t i = 0; i < op.count(); ++i) op.give(combine(op, operands_of(op, members, i)));
}

void cross_replica_sum(ShloOp& op, const Members& members, int64_t) {
  Instr* sum = nullptr;
  for (Instr* value : operands_of(op, members, 0))
    sum = sum == nullptr ? value : op.b.binary(Opcode::add, sum, value);
  op.give(sum);
}

void collective_reduce(ShloOp& op, const Members& members, int64_t self) {
  for (size_t i = 0; i < op.count(); ++i)
    op.give(self == 0 ? combine(op, operands_of(op, members, i)) : zeros(op, i));
}

void reduce_scatter(ShloOp& op, const Members& members, int64_t self) {
  for (size_t i = 0; i < op.count(); ++i)
    op.give(part(op, combine(op, operands_of(op, members, i)), op.integer("scatter_dimension"),
                 self, static_cast<int64_t>(members.size())));
}

void all_to_all(ShloOp& op, const Members& members, int64_t self) {
  const int64_t count = op.integer("split_count");
  if (count != static_cast<int64_t>(members.size()))
    fail("split_count {} in a group of {}", count, members.size());
  for (size_t i = 0; i < op.count(); ++i) {
    Instrs parts;
    for (Instr* value : operands_of(op, members, i))
      parts.push_back(part(op, value, op.integer("split_dimension"), self, count));
    op.give(join(op, parts, op.integer("concat_dimension")));
  }
}

// Selects one of the values by a run-time number.
Instr* choose(ShloOp& op, const Instrs& values, Instr* number) {
  const Shape& shape = values[0]->shape();
  std::vector<int64_t> extents = shape.extents();
  extents.insert(extents.begin(), 1);
  Instrs rows, starts{number};
  for (Instr* value : values) rows.push_back(op.b.reshape(value, extents));
  Instr* zero = op.b.scalar(number->shape().type(), 0);
  for (int64_t d = 0; d < shape.rank(); ++d) starts.push_back(zero);
  return op.b.reshape(op.b.dynamic_slice(join(op, rows, 0), starts, extents), shape.extents());
}

// From the group's first member; with has_dynamic_root the last operand gives the sender of each of
// the other operands.
void collective_broadcast(ShloOp& op, const Members& members, int64_t) {
  const bool dynamic_root = op.flag("has_dynamic_root");
  const size_t data = op.count() - (dynamic_root ? 1 : 0);
  for (size_t i = 0; i < data; ++i) {
    if (members.empty()) {
      op.give(zeros(op, i));
    } else if (dynamic_root) {
      const auto at = static_cast<int64_t>(i);
      Instr* root = op.b.slice(op.operand(data), {at}, {at + 1}, {});
      op.give(choose(op, operands_of(op, members, i), op.b.reshape(root, {})));
    } else {
      op.give(operands_of(op, members, i)[0]);
    }
  }
}

struct CollectiveEntry {
  std::string_view name;
  Collective apply;
  bool partitions_by_channel = false, may_be_outside = false;
};
constexpr CollectiveEntry kCollectives[] = {
    {"stablehlo.all_gather", all_gather},
    {"stablehlo.all_reduce", all_reduce},
    {"stablehlo.reduce_scatter", reduce_scatter},
    {"stablehlo.cross-replica-sum", cross_replica_sum},
    {"stablehlo.collective_reduce", collective_reduce, true},
    {"stablehlo.all_to_all", all_to_all, true},
    {"stablehlo.collective_broadcast", collective_broadcast, true, true},
    {"stablehlo.collective_permute", nullptr, true, true},
};

const CollectiveEntry* find_collective(std::string_view name) {
  for (const CollectiveEntry& entry : kCollectives)
    if (entry.name == name) return &entry;
  return nullptr;
}

// Sends its operand to the target of each pair; processes that are not a target get zeros.
void permute(ShloOp& op, const Process& process, const std::vector<Process*>& all) {
  const MlirAttr* channel = op.op.attr("channel_handle");
  const MlirAttr* handle = channel == nullptr ? nullptr : channel->field("handle");
  const bool by_partition = handle != nullptr && handle->integer > 0;
  const int64_t self = by_partition ? process.partition : process.replica;
  const Ints pairs = op.ints("source_target_pairs");
  for (size_t i = 0; i < op.count(); ++i) {
    Instr* result = nullptr;
    for (size_t p = 0; p + 1 < pairs.size(); p += 2) {
      if (pairs[p + 1] != self) continue;
      for (Process* one : all)
        if (by_partition ? one->replica == process.replica && one->partition == pairs[p]
                         : one->replica == pairs[p] && one->partition == process.partition)
          result = operands_of(op, {one}, i)[0];
    }
    op.give(result == nullptr ? zeros(op, i) : result);
  }
}

// Once all members have reached the same collective, computes the results of each, and all
// continue.
class Grid {
 public:
  Grid(ShloOp& op, std::vector<Process*> all) : outer_(op), all_(std::move(all)) {}

  void run() {
    for (;;) {
      bool moved = false, waits = false;
      for (Process* process : all_) moved |= advance(*process);
      for (Process* process : all_) {
        if (process->done) continue;
        waits = true;
        moved |= meet(*process);
      }
      if (!waits) return;
      if (!moved) fail("the processes wait for each other");
    }
  }
  void set_infeed(std::deque<std::string> names) { infeed_ = std::move(names); }

 private:
  const MlirOp& next_of(const Process& process) const { return process.body->ops[process.next]; }

  // Runs up to a collective or a value that was not sent yet. Returns whether it made progress.
  bool advance(Process& process) {
    bool moved = false;
    while (!process.done) {
      if (process.next >= process.body->ops.size()) fail("a function without a return");
      const MlirOp& op = next_of(process);
      if (op.name == "func.return") {
        for (const MlirValue value : op.operands)
          process.results.push_back(outer_.importer.value(value, process.frame));
        process.done = true;
      } else if (find_collective(op.name) != nullptr) {
        return moved;
      } else if (op.name == "stablehlo.send" || op.name == "stablehlo.recv" ||
                 op.name == "stablehlo.infeed" || op.name == "stablehlo.outfeed") {
        if (!exchange(process)) return moved;
      } else {
        outer_.importer.operation(op, process.frame);
      }
      ++process.next;
      moved = true;
    }
    return moved;
  }

  // False: nothing to receive yet.
  bool exchange(Process& process) {
    ShloOp op(&outer_.importer, next_of(process), &process.frame);
    const MlirAttr* channel = op.op.attr("channel_handle");
    const MlirAttr* handle = channel == nullptr ? nullptr : channel->field("handle");
    std::deque<Instrs>& queue = sent_[handle == nullptr ? 0 : handle->integer];
    if (op.op.name == "stablehlo.send") {
      queue.emplace_back(op.operands.begin(), op.operands.end() - (op.count() > 0 ? 1 : 0));
    } else if (op.op.name == "stablehlo.recv") {
      if (queue.empty()) return false;
      op.results = queue.front();
      queue.pop_front();
    } else if (op.op.name == "stablehlo.infeed") {
      if (infeed_.empty()) fail("nothing is left to be fed in");
      op.results = op.importer.call(infeed_.front(), {}, process.frame);
      infeed_.pop_front();
    }
    op.give(op.b.make(Opcode::after_all, {}));
    store(process, op);
    return true;
  }

  void store(Process& process, const ShloOp& op) {
    if (op.results.size() != op.op.results.size())
      fail("{}: {} results, wanted {}", op.op.name, op.op.results.size(), op.results.size());
    for (size_t i = 0; i < op.results.size(); ++i)
      process.frame.values[op.op.results[i]] = op.results[i];
  }

  bool meet(Process& process) {
    const MlirOp& at = next_of(process);
    const CollectiveEntry* entry = find_collective(at.name);
    if (entry == nullptr) return false;
    ShloOp first(&outer_.importer, at, &process.frame);
    Members members = entry->apply == nullptr
                          ? all_
                          : group_of(first, process, all_, entry->partitions_by_channel);
    const bool alone = members.empty();
    if (alone && !entry->may_be_outside) fail("{}: a process is in no group", at.name);
    if (alone) members = {&process};
    for (const Process* member : members)
      if (member->done || next_of(*member).name != at.name) return false;
    std::vector<std::pair<Process*, Instrs>> results;
    for (size_t i = 0; i < members.size(); ++i) {
      ShloOp op(&outer_.importer, next_of(*members[i]), &members[i]->frame);
      if (entry->apply == nullptr) {
        permute(op, *members[i], all_);
      } else {
        entry->apply(op, alone ? Members{} : members, static_cast<int64_t>(i));
      }
      if (op.results.size() != op.op.results.size()) fail("{}: wrong number of results", at.name);
      results.emplace_back(members[i], op.results);
    }
    for (auto& [member, values] : results) {
      const MlirOp& op = next_of(*member);
      for (size_t i = 0; i < values.size(); ++i) member->frame.values[op.results[i]] = values[i];
      ++member->next;
    }
    return true;
  }

  ShloOp& outer_;
  std::vector<Process*> all_;
  std::map<int64_t, std::deque<Instrs>> sent_;  // by channel
  std::deque<std::string> infeed_;
};

// programs = [[@replica0_partition0, @replica0_partition1], [...]]: operands and results are those
// of all processes in order.
void run_parallel(ShloOp& op) {
  std::deque<Process> processes;
  std::vector<Process*> all;
  size_t next = 0;
  const MlirAttr& programs = op.attr("programs");
  for (size_t replica = 0; replica < programs.elements.size(); ++replica) {
    const MlirAttr& row = programs.elements[replica];
    for (size_t partition = 0; partition < row.elements.size(); ++partition) {
      Process& process = processes.emplace_back();
      process.replica = static_cast<int64_t>(replica);
      process.partition = static_cast<int64_t>(partition);
      process.body = &op.importer.function(row.elements[partition].text).regions[0].blocks[0];
      process.frame.builder = op.frame.builder;
      process.frame.process = &process;
      for (const MlirValue argument : process.body->arguments)
        process.frame.values[argument] = op.operand(next++);
      all.push_back(&process);
    }
  }
  Grid grid(op, all);
  if (const MlirAttr* infeed = op.op.attr("infeed")) {
    std::deque<std::string> names;
    for (const MlirAttr& name : infeed->elements) names.push_back(name.text);
    grid.set_infeed(std::move(names));
  }
  grid.run();
  for (const Process* process : all)
    op.results.insert(op.results.end(), process->results.begin(), process->results.end());
}

template <bool kReplica>
void process_id(ShloOp& op) {
  const Process* process = op.frame.process;
  const int64_t id = process == nullptr ? 0 : kReplica ? process->replica : process->partition;
  op.give(op.b.scalar(op.result_type(0).element, static_cast<double>(id)));
}

// Whether process 0 is in a group with others.
bool has_company(const MlirAttr& groups) {
  Ints ids;
  if (!integers_of(groups, &ids)) fail("replica_groups: wanted integers");
  const size_t width = groups.type.dims.size() == 2
                           ? static_cast<size_t>(std::max<int64_t>(groups.type.dims[1], 1))
                           : std::max<size_t>(ids.size(), 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != 0) continue;
    const size_t row = i / width * width;
    for (size_t k = row; k < std::min(ids.size(), row + width); ++k)
      if (ids[k] > 0) return true;
  }
  return false;
}

// Outside a grid there is one process, which is a group by itself.
void alone(ShloOp& op) {
  Process self;
  MlirBlock body;
  body.ops.push_back(op.op);
  self.body = &body;
  self.frame = op.frame;
  const CollectiveEntry* entry = find_collective(op.op.name);
  if (entry->apply == nullptr) {
    const Ints pairs = op.ints("source_target_pairs");
    if (std::any_of(pairs.begin(), pairs.end(), [](int64_t id) { return id > 0; }))
      fail("this program is for several devices (source_target_pairs); one is supported");
    return permute(op, self, {&self});
  }
  if (has_company(op.attr("replica_groups")))
    fail("this program is for several devices (replica_groups); one is supported");
  entry->apply(op, {&self}, 0);
}

void not_alone(ShloOp&) { fail("this operation needs another process or the host"); }

constexpr ShloEntry kOps[] = {
    {"interpreter.run_parallel", run_parallel},
    {"stablehlo.partition_id", process_id<false>, 0, 0},
    {"stablehlo.replica_id", process_id<true>, 0, 0},
    {"stablehlo.all_gather", alone, 1},
    {"stablehlo.all_reduce", alone, 1},
    {"stablehlo.reduce_scatter", alone, 1},
    {"stablehlo.cross-replica-sum", alone, 1, 1},
    {"stablehlo.collective_reduce", alone, 1},
    {"stablehlo.all_to_all", alone, 1},
    {"stablehlo.collective_broadcast", alone, 1},
    {"stablehlo.collective_permute", alone, 1},
    {"stablehlo.send", not_alone},
    {"stablehlo.recv", not_alone},
    {"stablehlo.infeed", not_alone},
    {"stablehlo.outfeed", not_alone},
};

}  // namespace

std::span<const ShloEntry> shlo_parallel_ops() { return kOps; }

}  // namespace heddle::import
