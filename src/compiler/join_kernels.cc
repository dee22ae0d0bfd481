#include "compiler/join_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "compiler/inner_kernels.h"
#include "cost/rates.h"
#include "hlo/in_place.h"
#include "hlo/leaves.h"
#include "stitch/inline_phases.h"

namespace heddle::compiler {

namespace {

using hlo::Instr;
using hlo::Opcode;
using kernel::BufferId;
using stitch::Stitched;

class KernelJoiner {
 public:
  KernelJoiner(const hlo::Computation& computation, const std::string& name,
               const target::Target& target)
      : computation_(computation), k_(result_.kernel) {
    k_.name = name;
    k_.target = target.name;
  }

  // `run`: null: as phases; else as a table.
  Stitched join(const stitch::KernelOf& kernel_of, const RunPass* run) {
    if (run) inner_.emplace(&k_, *run);
    for (const Instr* instr : computation_.instrs()) {
      if (!instr->is(Opcode::fusion)) continue;
      launches_.push_back({instr, &kernel_of(instr), 0});
      if (inner_) inner_->add(launches_.back().stitched->kernel, instr);
    }
    if (inner_) inner_->finish();
    add_ports();
    for (Launch& launch : launches_) add_values(&launch);
    for (const Launch& launch : launches_) add_phases(launch);
    if (inner_) {
      turn_rows();
      join_small_phases();
    }
    for (const Launch& launch : launches_) find_boxes(launch);
    find_in_place();
    return std::move(result_);
  }

 private:
  struct Launch {
    const Instr* fusion;
    const Stitched* stitched;
    size_t first_phase;
    std::vector<BufferId> buffers = {};
  };
  // A value for its readers: its buffer, and the first phase in which it is available.
  struct Value {
    BufferId buffer;
    size_t phase = 0;
  };
  using Key = std::pair<const Instr*, size_t>;

  BufferId global(const std::string& name, tensor::Type type, int64_t elems,
                  kernel::Access access) {
    kernel::Buffer made;
    made.name = name;
    made.type = type;
    made.extents = {elems};
    made.access = access;
    return k_.add_buffer(std::move(made));
  }

  static Key key_of(const Instr* value) {
    const hlo::Origin from = hlo::origin_of(value);
    return {from.maker, from.leaf};
  }

  void add_ports() {
    for (const Instr* parameter : computation_.parameters()) {
      const BufferId buffer =
          global(fmt::format("in{}", parameter->parameter_number()), parameter->shape().type(),
                 parameter->shape().elems(), kernel::Access::in);
      values_.emplace(Key{parameter, 0}, Value{buffer});
      result_.min_bytes += parameter->shape().bytes();
    }
    const Instr* root = computation_.root();
    for (const Instr* output :
         root->is(Opcode::tuple) ? root->operands() : std::vector<Instr*>{computation_.root()}) {
      const tensor::Shape& shape = output->shape();
      const BufferId buffer = global(fmt::format("out{}", outputs_++), shape.type(), shape.elems(),
                                     kernel::Access::out);
      HEDDLE_CHECK(values_.emplace(key_of(output), Value{buffer}).second, "{} has a result twice",
                   computation_.name());
      result_.min_bytes += shape.bytes();
    }
    result_.in_place.assign(outputs_, -1);
    result_.in_part.assign(outputs_, false);
    result_.may_overwrite.resize(outputs_);
  }

  void add_values(Launch* launch) {
    const Instr* fusion = launch->fusion;
    const kernel::Kernel& kernel = launch->stitched->kernel;
    for (const Instr* operand : fusion->operands()) {
      const Value& value = values_.at(key_of(operand));
      launch->buffers.push_back(value.buffer);
      launch->first_phase = std::max(launch->first_phase, value.phase);
    }
    const size_t behind = launch->first_phase + kernel.phases.size();
    for (size_t r = 0; r < hlo::leaf_count(fusion->shape()); ++r) {
      const auto [value, added] = values_.try_emplace({fusion, r});
      if (added) value->second.buffer = workspace(kernel.buffers[launch->buffers.size()]);
      value->second.phase = behind;
      launch->buffers.push_back(value->second.buffer);
    }
    while (std::ssize(launch->buffers) < kernel.global_count())
      launch->buffers.push_back(workspace(kernel.buffers[launch->buffers.size()]));
    for (size_t b = 0; b < launch->buffers.size(); ++b) {
      kernel::Buffer& buffer = k_.buffers[launch->buffers[b].index()];
      buffer.aligned_bytes = std::max(buffer.aligned_bytes, kernel.buffers[b].aligned_bytes);
      if (kernel.buffers[b].access == kernel::Access::inout) buffer.access = kernel::Access::inout;
    }
    result_.flops += launch->stitched->flops;
  }

  BufferId workspace(const kernel::Buffer& like) {
    int64_t elems = 1;
    for (int64_t extent : like.extents) elems *= extent;
    result_.workspace_bytes.push_back(elems * tensor::type_bytes(like.type));
    return global(fmt::format("w{}", result_.workspace_bytes.size() - 1), like.type, elems,
                  kernel::Access::out);
  }

  void add_phases(const Launch& launch) {
    const Stitched& stitched = *launch.stitched;
    const size_t count = stitched.kernel.phases.size(), behind = launch.first_phase + count;
    if (behind > k_.phases.size()) {
      k_.phases.resize(behind);
      result_.phase_flops.resize(behind);
      result_.phase_bytes.resize(behind);
    }
    const InnerKernels::Use* use = inner_ ? &inner_->of(stitched.kernel) : nullptr;
    std::vector<kernel::Phase> phases;
    if (!use) phases = stitch::inline_phases(stitched.kernel, launch.buffers, &k_);
    k_.scratch_bytes = std::max(k_.scratch_bytes, stitched.kernel.scratch_bytes);
    for (size_t p = 0; p < count; ++p) {
      const size_t at = launch.first_phase + p;
      const bool several = p < stitched.phase_flops.size();
      result_.phase_flops[at] += several ? stitched.phase_flops[p] : stitched.flops;
      result_.phase_bytes[at] += several ? stitched.phase_bytes[p] : stitched.min_bytes;
      if (use) {
        table(&k_.phases[at], use->inner, static_cast<int>(p))
            .table.push_back({launch.buffers, use->dims});
        continue;
      }
      for (kernel::Group& group : phases[p].groups)
        k_.phases[at].groups.push_back(std::move(group));
    }
  }

  // A phase that reads arrays of an earlier phase begins with those read last: they are still in
  // the caches.
  void turn_rows() {
    std::unordered_map<uint32_t, bool> read;  // arrays, and whether in reverse order of rows
    for (kernel::Phase& phase : k_.phases) {
      bool turned = false;
      auto for_each_array = [&](auto&& visit) {
        for (const kernel::Group& group : phase.groups)
          for (const kernel::Instance& row : group.table)
            for (const BufferId buffer : row.buffers)
              if (k_.buffer(buffer).extents[0] > 1) visit(buffer.value);
      };
      for_each_array([&](uint32_t array) {
        const auto known = read.find(array);
        if (known != read.end()) turned = !known->second;
      });
      for_each_array([&](uint32_t array) { read[array] = turned; });
      if (!turned) continue;
      std::reverse(phase.groups.begin(), phase.groups.end());
      for (kernel::Group& group : phase.groups)
        std::reverse(group.table.begin(), group.table.end());
    }
  }

  static kernel::Group& table(kernel::Phase* phase, int inner, int inner_phase) {
    for (kernel::Group& group : phase->groups)
      if (group.inner == inner && group.inner_phase == inner_phase) return group;
    kernel::Group made;
    made.inner = inner;
    made.inner_phase = inner_phase;
    return phase->groups.emplace_back(std::move(made));
  }

  bool is_small(size_t phase) const {
    return result_.phase_flops[phase] < cost::kSerialFlops &&
           result_.phase_bytes[phase] < cost::kSerialBytes;
  }

  void join_small_phases() {
    std::vector<kernel::Phase> phases;
    std::vector<int64_t> flops, bytes;
    for (size_t p = 0; p < k_.phases.size(); ++p) {
      const bool joins = p > 0 && is_small(p - 1) && is_small(p) &&
                         flops.back() + result_.phase_flops[p] < cost::kSerialFlops &&
                         bytes.back() + result_.phase_bytes[p] < cost::kSerialBytes;
      if (!joins) {
        phases.push_back(std::move(k_.phases[p]));
        flops.push_back(result_.phase_flops[p]);
        bytes.push_back(result_.phase_bytes[p]);
        continue;
      }
      phases.back().in_order = true;
      for (kernel::Group& group : k_.phases[p].groups)
        phases.back().groups.push_back(std::move(group));
      flops.back() += result_.phase_flops[p];
      bytes.back() += result_.phase_bytes[p];
    }
    k_.phases = std::move(phases);
    result_.phase_flops = std::move(flops);
    result_.phase_bytes = std::move(bytes);
  }

  // The array that a part updates in place: no other part uses it (fuse/form_composites.cc). Only
  // the updated slice is stored.
  void find_boxes(const Launch& launch) {
    const std::vector<bool>& in_part = launch.stitched->in_part;
    if (std::find(in_part.begin(), in_part.end(), true) == in_part.end()) return;
    const size_t inputs = computation_.parameters().size();
    const size_t operands = launch.fusion->operands().size();
    for (size_t r = 0; r < in_part.size(); ++r) {
      if (!in_part[r]) continue;
      const size_t output = launch.buffers[operands + r].index() - inputs;
      const size_t array =
          launch.buffers[static_cast<size_t>(launch.stitched->in_place[r])].index();
      HEDDLE_CHECK(output < outputs_ && array < inputs, "{} puts a box into what stays inside",
                   launch.fusion->name());
      result_.in_place[output] = static_cast<int>(array);
      result_.in_part[output] = true;
    }
    result_.min_bytes += hlo::stored_bytes(*launch.fusion);
    for (const tensor::Shape& leaf : hlo::leaves_of(launch.fusion->shape()))
      result_.min_bytes -= leaf.bytes();
    for (const int64_t parameter : hlo::updated_parameters(*launch.fusion->called()[0]))
      if (parameter >= 0)
        result_.min_bytes -=
            launch.fusion->operand(static_cast<size_t>(parameter))->shape().bytes();
  }

  // A result may overwrite an input of its launch if all other readers of that input run in earlier
  // phases.
  void find_in_place() {
    const size_t inputs = computation_.parameters().size();
    struct Reading {
      int64_t count = 0;
      size_t last = 0, before = 0;  // the phases after the last reader, and after the others
    };
    std::vector<Reading> readings(inputs);
    for (const Launch& launch : launches_) {
      const size_t end = launch.first_phase + launch.stitched->kernel.phases.size();
      for (size_t o = 0; o < launch.fusion->operands().size(); ++o) {
        if (launch.buffers[o].index() >= inputs) continue;
        Reading& reading = readings[launch.buffers[o].index()];
        ++reading.count;
        reading.before = std::max(reading.before, std::min(reading.last, end));
        reading.last = std::max(reading.last, end);
      }
    }
    std::vector<bool> taken(inputs);
    for (const int array : result_.in_place)
      if (array >= 0) taken[static_cast<size_t>(array)] = true;
    for (const Launch& launch : launches_) {
      const size_t operands = launch.fusion->operands().size();
      const size_t end = launch.first_phase + launch.stitched->kernel.phases.size();
      for (size_t r = 0; r < launch.stitched->in_place.size(); ++r) {
        const size_t output = launch.buffers[operands + r].index() - inputs;
        if (output >= outputs_ || result_.in_part[output]) continue;
        for (int from : stitch::overwritable(*launch.stitched, r)) {
          const size_t input = launch.buffers[static_cast<size_t>(from)].index();
          if (input >= inputs) continue;
          // This launch must be the last reader, and the others end before it begins.
          const Reading& reading = readings[input];
          if (reading.last != end || (reading.count > 1 && reading.before > launch.first_phase))
            continue;
          result_.may_overwrite[output].push_back(static_cast<int>(input));
          if (result_.in_place[output] >= 0 || taken[input]) continue;
          result_.in_place[output] = static_cast<int>(input);
          taken[input] = true;
        }
      }
    }
  }

  const hlo::Computation& computation_;
  Stitched result_;
  kernel::Kernel& k_;
  std::optional<InnerKernels> inner_;  // of a table
  std::vector<Launch> launches_;
  std::map<Key, Value> values_;
  size_t outputs_ = 0;
};

}  // namespace

Stitched join_kernels(const hlo::Computation& computation, hlo::Join join, const std::string& name,
                      const target::Target& target, const stitch::KernelOf& kernel_of,
                      const RunPass& run) {
  return KernelJoiner(computation, name, target)
      .join(kernel_of, join == hlo::Join::table ? &run : nullptr);
}

}  // namespace heddle::compiler
