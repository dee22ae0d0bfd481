#include "compiler/table_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "hlo/leaves.h"
#include "kernel/text.h"
#include "schedule/place.h"

namespace heddle::compiler {

namespace {

using hlo::Instr;
using hlo::Opcode;
using kernel::BufferId;
using stitch::Stitched;

// The inner kernels, by the kernels that they stand for.
class InnerKernels {
 public:
  InnerKernels(kernel::Kernel* to, const RunPass& run) : to_(*to), run_(run) {}

  // The kernel of a fusion.
  void add(const kernel::Kernel& kernel, const Instr* fusion) {
    if (!seen_.emplace(kernel::to_string(kernel), Use{}).second) return;
    lower::OpenExtents open = lower::opened(kernel, open_pass(run_, nullptr));
    Form& form = forms_[kernel::to_string(open.kernel)];
    if (form.kernels.empty()) form.open = std::move(open.kernel);
    form.kernels.push_back(kernel);
    form.fusions.push_back(fusion);
    form.values.push_back(std::move(open.dims));
  }

  void finish() {
    for (const auto& [text, form] : forms_) {
      std::optional<lower::SharedExtents> shared;
      if (form.kernels.size() > 1) shared = lower::share_extents(form.open, form.values);
      int common = -1;
      for (size_t i = 0; i < form.kernels.size(); ++i) {
        Use& use = seen_.at(kernel::to_string(form.kernels[i]));
        use.inner = static_cast<int>(to_.inner.size());
        kernel::Kernel open = form.kernels[i];
        if (!shared || !open_pass(run_, form.fusions[i])(&open, {})) {
          push(form.kernels[i]);
          continue;
        }
        use.dims = shared->dims[i];
        if (common < 0) {
          common = use.inner;
          push(shared->kernel);
        }
        use.inner = common;
      }
    }
  }

  struct Use {
    int inner = -1;
    std::vector<int64_t> dims;
  };
  const Use& of(const kernel::Kernel& kernel) const { return seen_.at(kernel::to_string(kernel)); }

 private:
  struct Form {
    kernel::Kernel open;
    std::vector<kernel::Kernel> kernels;
    std::vector<const Instr*> fusions;
    std::vector<std::vector<int64_t>> values;
  };

  void push(kernel::Kernel kernel) {
    kernel.name = fmt::format("i{}", to_.inner.size());
    kernel.target.clear();
    to_.scratch_bytes = std::max(to_.scratch_bytes, kernel.scratch_bytes);
    to_.inner.push_back(std::move(kernel));
  }

  kernel::Kernel& to_;
  const RunPass& run_;
  std::map<std::string, Form> forms_;  // by opened text
  std::map<std::string, Use> seen_;    // by text
};

class TableMaker {
 public:
  TableMaker(const hlo::Computation& computation, const std::string& name,
             const target::Target& target, const TableLimits& small,
             const stitch::KernelOf& kernel_of, const RunPass& run)
      : computation_(computation),
        small_(small),
        kernel_of_(kernel_of),
        k_(result_.kernel),
        inner_(&result_.kernel, run) {
    k_.name = name;
    k_.target = target.name;
  }

  Stitched run() {
    for (const Instr* instr : computation_.instrs()) {
      if (!instr->is(Opcode::fusion)) continue;
      launches_.push_back({instr, &kernel_of_(instr), 0});
      inner_.add(launches_.back().stitched->kernel, instr);
    }
    inner_.finish();
    add_ports();
    for (Launch& launch : launches_) add_values(&launch);
    add_rows();
    join_small_phases();
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
  // A value as those that read it see it: its buffer, and the phase from which on it is there.
  struct Value {
    BufferId buffer;
    size_t phase = 0;
  };

  BufferId global(const std::string& name, tensor::Type type, int64_t elems,
                  kernel::Access access) {
    kernel::Buffer made;
    made.name = name;
    made.type = type;
    made.extents = {elems};
    made.access = access;
    return k_.add_buffer(std::move(made));
  }

  static std::pair<const Instr*, size_t> key_of(const Instr* value) {
    const hlo::Origin from = hlo::origin_of(value);
    return {from.maker, from.leaf};
  }

  void add_ports() {
    for (const Instr* parameter : computation_.parameters()) {
      values_[{parameter, 0}] = {global(fmt::format("in{}", values_.size()),
                                        parameter->shape().type(), parameter->shape().elems(),
                                        kernel::Access::in)};
      result_.min_bytes += parameter->shape().bytes();
    }
    const Instr* root = computation_.root();
    for (size_t o = 0; o < root->operands().size(); ++o) {
      const tensor::Shape& shape = root->operand(o)->shape();
      const BufferId buffer =
          global(fmt::format("out{}", o), shape.type(), shape.elems(), kernel::Access::out);
      HEDDLE_CHECK(values_.emplace(key_of(root->operand(o)), Value{buffer}).second,
                   "{} has a result twice", computation_.name());
      result_.min_bytes += shape.bytes();
    }
    outputs_ = root->operands().size();
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
    const size_t results = fusion->shape().is_tuple() ? fusion->shape().elements().size() : 1;
    for (size_t r = 0; r < results; ++r) {
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

  void add_rows() {
    for (const Launch& launch : launches_) {
      const InnerKernels::Use& use = inner_.of(launch.stitched->kernel);
      for (size_t p = 0; p < launch.stitched->kernel.phases.size(); ++p) {
        const size_t at = launch.first_phase + p;
        if (at >= k_.phases.size()) {
          k_.phases.resize(at + 1);
          result_.phase_flops.resize(at + 1);
          result_.phase_bytes.resize(at + 1);
        }
        const bool several = p < launch.stitched->phase_flops.size();
        result_.phase_flops[at] +=
            several ? launch.stitched->phase_flops[p] : launch.stitched->flops;
        result_.phase_bytes[at] +=
            several ? launch.stitched->phase_bytes[p] : launch.stitched->min_bytes;
        table(&k_.phases[at], use.inner, static_cast<int>(p))
            .table.push_back({launch.buffers, use.dims});
      }
    }
    turn_rows();
  }

  // A phase that reads arrays which an earlier one has read begins with those that it read last:
  // they are in the caches still.
  void turn_rows() {
    std::unordered_map<uint32_t, bool> read;  // arrays, and whether from the last row on
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
    return result_.phase_flops[phase] < small_.flops && result_.phase_bytes[phase] < small_.bytes;
  }

  void join_small_phases() {
    std::vector<kernel::Phase> phases;
    std::vector<int64_t> flops, bytes;
    for (size_t p = 0; p < k_.phases.size(); ++p) {
      const bool joins = p > 0 && is_small(p - 1) && is_small(p) &&
                         flops.back() + result_.phase_flops[p] < small_.flops &&
                         bytes.back() + result_.phase_bytes[p] < small_.bytes;
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

  // A result may lie on what its own launch may overwrite, if all others that read that have run in
  // phases before.
  void find_in_place() {
    result_.in_place.assign(outputs_, -1);
    result_.may_overwrite.resize(outputs_);
    const size_t inputs = computation_.parameters().size();
    struct Reading {
      int64_t count = 0;
      size_t last = 0, before = 0;  // the phases behind the last reader, and behind the others
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
    for (const Launch& launch : launches_) {
      const size_t operands = launch.fusion->operands().size();
      const size_t end = launch.first_phase + launch.stitched->kernel.phases.size();
      for (size_t r = 0; r < launch.stitched->in_place.size(); ++r) {
        const size_t output = launch.buffers[operands + r].index() - inputs;
        if (output >= outputs_) continue;
        for (int from : stitch::overwritable(*launch.stitched, r)) {
          const size_t input = launch.buffers[static_cast<size_t>(from)].index();
          if (input >= inputs) continue;
          // Its own reading is the last one; the others end before it begins.
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
  const TableLimits small_;
  const stitch::KernelOf& kernel_of_;
  Stitched result_;
  kernel::Kernel& k_;
  InnerKernels inner_;
  std::vector<Launch> launches_;
  std::map<std::pair<const Instr*, size_t>, Value> values_;
  size_t outputs_ = 0;
};

}  // namespace

Stitched make_table(const hlo::Computation& computation, const std::string& name,
                    const target::Target& target, const TableLimits& small,
                    const stitch::KernelOf& kernel_of, const RunPass& run) {
  return TableMaker(computation, name, target, small, kernel_of, run).run();
}

}  // namespace heddle::compiler
