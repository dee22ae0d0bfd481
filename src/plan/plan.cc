#include "plan/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/trace.h"
#include "hlo/library_call.h"
#include "hlo/state_arrays.h"
#include "plan/arenas.h"
#include "plan/flow.h"
#include "plan/host_call.h"
#include "plan/kernel_label.h"
#include "plan/model_nodes.h"
#include "plan/outputs.h"
#include "plan/pack.h"
#include "plan/partition.h"
#include "plan/sections.h"
#include "plan/sharing.h"
#include "program/link_times.h"
#include "program/streams.h"
#include "program/verify.h"

namespace heddle::plan {
namespace {

using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::Port;
using program::Program;
using program::View;

// "add, reduce, multiply": the operators of a fusion, without repeats, in order of first use.
std::string operators_of(const Node& node) {
  if (node.kind == NodeKind::copy) return "copy";
  if (!node.packed.empty()) {
    std::string text;
    for (const Node& member : node.packed)
      text += (text.empty() ? "" : ", ") + operators_of(member);
    return text;
  }
  if (!node.instr->is(hlo::Opcode::fusion) && !hlo::library_call(*node.instr))
    return std::string(hlo::opcode_text(node.instr->opcode()));
  std::string text;
  std::set<hlo::Opcode> seen;
  auto add = [&](auto& self, const hlo::Computation& computation) -> void {
    for (const hlo::Instr* instr : computation.instrs()) {
      const hlo::Opcode opcode = instr->opcode();
      if (opcode == hlo::Opcode::fusion) self(self, *instr->called()[0]);
      if (opcode == hlo::Opcode::parameter || opcode == hlo::Opcode::constant ||
          opcode == hlo::Opcode::tuple || opcode == hlo::Opcode::fusion ||
          opcode == hlo::Opcode::get_tuple_element || !seen.insert(opcode).second)
        continue;
      text += (text.empty() ? "" : ", ") + std::string(hlo::opcode_text(opcode));
    }
  };
  add(add, *node.instr->called()[0]);
  return text;
}

class Planner {
 public:
  Planner(const hlo::Module& module, const Names& names, const target::Target& target,
          const Options& options, Flow flow, std::vector<Output> outputs)
      : module_(module),
        names_(names),
        target_(target),
        options_(options),
        flow_(std::move(flow)),
        outputs_(std::move(outputs)) {}

  Result<Program> plan() {
    find_kinds();
    if (options_.most_streams > 1) find_streams();
    make_sections();
    const int64_t limit = options_.memory_limit_bytes;
    if (limit >= 0 && needed_bytes() > limit && options_.most_streams != 1) {
      options_.most_streams = 1;
      make_sections();
    }
    if (limit >= 0 && needed_bytes() > limit && options_.order != Order::cheapest &&
        !options_.keep_order) {
      options_.order = Order::cheapest;
      make_sections();
    }
    make_program();
    if (limit >= 0 && needed_bytes() > limit)
      return error_of(
          ErrorKind::memory,
          "{}: temporaries need {} bytes (at least {} in this order), the limit is {}; raise "
          "--memory-limit{} or make the batch smaller",
          module_.name(), needed_bytes(), program_.memory.lower_bound_bytes, limit,
          options_.keep_order && options_.order != Order::cheapest ? ", leave out --order" : "");
    return std::move(program_);
  }

 private:
  void make_program() {
    program_.name = module_.name();
    program_.pool_blocks = run_.pool_blocks;
    program_.memory = memory_numbers(false);
    program_.own_memory = flow_.own_memory;
    if (flow_.own_memory) program_.host_memory = memory_numbers(true);
    if (!streams_.empty() && options_.most_streams > 1)
      program_.notes.push_back(
          fmt::format("memory is planned for {} streams", options_.most_streams));
    nodes_ = model_nodes(flow_);
    add_inputs();
    add_outputs();
    add_states();
    add_commands(once_, 0, program_.once, program_.once_info);
    add_commands(run_, std::ssize(once_.sequence.nodes), program_.commands, program_.command_info);
  }

  // Chooses streams by the dependences of commands whose memory is shared only in place. One
  // stream: several do not pay off.
  void find_streams() {
    Planner draft = *this;
    draft.options_.most_streams = 0;
    draft.apart_ = true;
    draft.make_sections();
    draft.make_program();
    program::StreamOptions wanted;
    wanted.most_streams = options_.most_streams;
    const std::vector<program::Command>& commands = draft.program_.commands;
    const program::StreamPlan found = program::plan_streams(
        draft.program_, commands,
        program::rough_ns(draft.program_, commands,
                          [&](double bytes) { return target_.memory_bytes_of_link(bytes); }),
        wanted);
    options_.most_streams = found.streams;
    if (found.streams == 1) return;
    streams_.assign(flow_.nodes.size(), 0);
    size_t command = 0;
    for (NodeId id : draft.run_.sequence.nodes)
      if (flow_.node(id).region.index() == 0) streams_[id.index()] = found.stream[command++];
  }

  void make_sections() {
    orders_.emplace(flow_, kinds_, options_, streams_);
    once_ = orders_->section(true);
    run_ = orders_->section(false);
    place_blocks(flow_, options_, apart_, once_);
    place_blocks(flow_, options_, apart_, run_);
  }

  // Bytes for temporaries of the run; for a pool a lower bound, the bytes live at one time.
  int64_t needed_bytes() const {
    return options_.static_memory ? run_.device.offsets.height_bytes
                                  : lower_bound_bytes(run_.device.blocks);
  }

  void find_kinds() {
    std::vector<bool> used_by_run(flow_.storages.size());
    for (const Node& node : flow_.nodes)
      if (!node.once)
        for (const Leaf& leaf : node.operands) used_by_run[leaf.storage.index()] = true;
    for (size_t r = 1; r < flow_.regions.size(); ++r)
      for (const Leaf& leaf : flow_.regions[r].results) used_by_run[leaf.storage.index()] = true;
    for (size_t i = 0; i < flow_.storages.size(); ++i) {
      const Storage& storage = flow_.storages[i];
      BufferKind kind = BufferKind::temporary;
      if (storage.kind == StorageKind::input) kind = BufferKind::input;
      if (storage.kind == StorageKind::constant) kind = BufferKind::constant;
      if (storage.output >= 0) kind = BufferKind::output;
      if (storage.output < 0 && storage.producer.valid() && flow_.node(storage.producer).once &&
          used_by_run[i])
        kind = BufferKind::once;
      kinds_.push_back(kind);
    }
  }

  program::MemoryNumbers memory_numbers(bool host) const {
    const Arena& arena = host ? run_.host : run_.device;
    program::MemoryNumbers memory;
    memory.lower_bound_bytes = lower_bound_bytes(arena.blocks, arena.conflicts);
    memory.plan_bytes = arena.offsets.height_bytes;
    memory.optimal = arena.offsets.optimal;
    Section apart;
    apart.sequence = run_.sequence;
    orders_->find_blocks(apart, false);
    for (const Block& block : (host ? apart.host : apart.device).blocks)
      memory.unshared_bytes += block.bytes;
    return memory;
  }

  BufferId add_buffer(Buffer buffer, tensor::Literal value = {}) {
    program_.buffers.push_back(std::move(buffer));
    program_.constants.push_back(std::move(value));
    return BufferId(program_.buffers.size() - 1);
  }

  // Space of the caller's memory.
  program::Space ports_space() const {
    return flow_.own_memory ? program::Space::host : program::Space::device;
  }

  static std::string name_or(const std::vector<std::string>& names, size_t i,
                             const std::string& otherwise) {
    return i < names.size() && !names[i].empty() ? names[i] : otherwise;
  }

  void add_inputs() {
    buffer_of_.resize(flow_.storages.size());
    const auto& parameters = module_.entry()->parameters();
    size_t number = 0;
    for (size_t p = 0; p < parameters.size(); ++p) {
      for (const std::string& suffix : leaf_suffixes(parameters[p]->shape())) {
        const Leaf& leaf = flow_.inputs[number];
        Port port;
        port.name = name_or(names_.inputs, number, "arg" + std::to_string(p) + suffix);
        const bool named = number < names_.inputs.size() && !names_.inputs[number].empty();
        port.alias_name =
            name_or(names_.input_aliases, number, named ? "" : parameters[p]->name() + suffix);
        if (port.alias_name == port.name) port.alias_name.clear();
        port.shape = leaf.shape;
        Buffer buffer{port.name, BufferKind::input, flow_.storage(leaf.storage).bytes};
        buffer.space = ports_space();
        buffer.number = static_cast<int64_t>(number++);
        port.buffer = add_buffer(std::move(buffer));
        buffer_of_[leaf.storage.index()] = port.buffer;
        program_.inputs.push_back(std::move(port));
      }
    }
  }

  void add_outputs() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Output& output = outputs_[i];
      Port port;
      port.name = name_or(names_.outputs, i, "out" + std::to_string(i));
      port.shape = flow_.outputs()[i].shape;
      Buffer buffer{port.name, BufferKind::output, flow_.storage(output.storage).bytes};
      buffer.space = ports_space();
      buffer.number = static_cast<int64_t>(i);
      if (output.alias >= 0) buffer.alias = program_.inputs[output.alias].buffer;
      port.buffer = add_buffer(std::move(buffer));
      buffer_of_[output.storage.index()] = port.buffer;
      program_.outputs.push_back(std::move(port));
    }
  }

  void add_states() {
    for (const tensor::Literal& start : hlo::states_of(module_)) {
      const auto* bytes = static_cast<const uint8_t*>(start.data());
      program_.states.push_back({{bytes, bytes + start.bytes()}});
    }
  }

  void add_commands(const Section& section, int64_t first_command,
                    std::vector<program::Command>& commands,
                    std::vector<program::CommandInfo>& info) {
    add_temporaries(section, first_command);
    for (NodeId id : section.sequence.nodes)
      if (flow_.node(id).region.index() == 0) add_command(flow_.node(id), commands, info);
  }

  void add_command(const Node& node, std::vector<program::Command>& commands,
                   std::vector<program::CommandInfo>& info) {
    commands.push_back(command(node));
    std::string name =
        node.instr != nullptr ? node.instr->name() : flow_.storage(node.results[0].storage).name;
    const auto number = static_cast<size_t>(&node - flow_.nodes.data());
    info.push_back({std::move(name), operators_of(node), nodes_[number]});
  }

  // Each value has a buffer; values that share memory get offsets inside their home's bytes.
  void add_temporaries(const Section& section, int64_t first_command) {
    const Lifetimes& lifetimes = section.lifetimes;
    std::vector<int64_t> offset_of(flow_.storages.size(), -1);
    for (const Arena* arena : {&section.device, &section.host})
      for (size_t t = 0; t < arena->temporaries.size(); ++t)
        offset_of[arena->temporaries[t].index()] = arena->offsets.offsets[t];
    for (size_t i = 0; i < flow_.storages.size(); ++i) {
      if (kinds_[i] != BufferKind::temporary || lifetimes.own_first[i] < 0) continue;
      const StorageId home = lifetimes.home[i];
      Buffer buffer{flow_.storages[i].name, kinds_[home.index()], flow_.storages[i].bytes};
      buffer.space = flow_.storages[i].space;
      if (buffer.kind == BufferKind::output) {
        buffer.number = flow_.storage(home).output;
        buffer.space = ports_space();
      } else {
        buffer.offset_bytes = offset_of[home.index()];
        buffer.first_command = first_command + lifetimes.own_first[i];
        buffer.last_command = first_command + lifetimes.own_last[i];
      }
      buffer_of_[i] = add_buffer(std::move(buffer));
    }
  }

  program::Command command(const Node& node) {
    std::vector<View> operands, results;
    for (const Leaf& leaf : node.operands) operands.push_back(view(leaf.storage, leaf.shape));
    for (const Leaf& leaf : node.results) results.push_back(view(leaf.storage, leaf.shape));
    switch (node.kind) {
      case NodeKind::copy:
        return program::Copy{operands[0], results[0]};
      case NodeKind::update:
        return program::Update{
            operands[0], operands[1], results[0], {operands.begin() + 2, operands.end()}};
      case NodeKind::concatenate:
        return program::Concatenate{std::move(operands), results[0],
                                    node.instr->dimensions().at(0)};
      case NodeKind::loop:
        return loop(node, operands, results);
      case NodeKind::branch:
        return branch(node, operands[0], results);
      case NodeKind::work:
        break;
    }
    if (node.use == nullptr)
      if (const std::optional<hlo::LibraryCall> call = hlo::library_call(*node.instr))
        return library_call(*call, std::move(operands), results.at(0));
    if (node.use == nullptr)
      return program::HostCall{
          "interp", node.packed.empty() ? host_module_text(*node.instr) : packed_module_text(node),
          std::move(operands), std::move(results)};
    program::Launch launch;
    launch.kernel = kernel(node.use->kernel, *node.instr);
    launch.inputs = static_cast<int64_t>(operands.size());
    launch.outputs = static_cast<int64_t>(results.size());
    launch.in_place.assign(node.use->in_place.begin(), node.use->in_place.end());
    launch.in_part.assign(node.use->in_part.begin(), node.use->in_part.end());
    launch.dims = node.use->dims;
    launch.arguments = std::move(operands);
    launch.arguments.insert(launch.arguments.end(), results.begin(), results.end());
    for (StorageId workspace : node.workspaces)
      launch.arguments.push_back(view(
          workspace, tensor::Shape::array(tensor::Type::u8, {flow_.storage(workspace).bytes})));
    return launch;
  }

  program::LibraryCall library_call(const hlo::LibraryCall& call, std::vector<View> operands,
                                    View result) const {
    program::LibraryCall made;
    made.library = call.library;
    made.operation = call.operation;
    made.tasks = call.tasks;
    made.flops = call.flops;
    made.min_bytes = program::stored_bytes(result.shape);
    for (size_t i = 0; i < operands.size(); ++i) {
      made.min_bytes += program::stored_bytes(operands[i].shape);
      const BufferKind kind = program_.buffers[operands[i].buffer.index()].kind;
      if (kind == BufferKind::constant || kind == BufferKind::once)
        made.fixed.push_back(static_cast<int64_t>(i));
    }
    made.arguments = std::move(operands);
    made.result = std::move(result);
    return made;
  }

  program::RegionId region(RegionId id) {
    program::Region made;
    for (NodeId inside : orders_->nodes_of(id))
      add_command(flow_.node(inside), made.commands, made.info);
    program_.regions.push_back(std::move(made));
    return program::RegionId(program_.regions.size() - 1);
  }

  View result_view(RegionId id, size_t i) {
    const Leaf& leaf = flow_.region(id).results[i];
    return view(leaf.storage, leaf.shape);
  }

  program::Loop loop(const Node& node, const std::vector<View>& operands,
                     const std::vector<View>& results) {
    program::Loop made;
    made.condition = region(node.regions[0]);
    made.body = region(node.regions[1]);
    made.predicate = result_view(node.regions[0], 0);
    for (size_t i = 0; i < results.size(); ++i)
      made.carried.push_back({operands[i], results[i], result_view(node.regions[1], i),
                              static_cast<bool>(node.swapped[i])});
    return made;
  }

  program::Branch branch(const Node& node, const View& selector, const std::vector<View>& results) {
    program::Branch made;
    made.selector = selector;
    for (RegionId id : node.regions) made.regions.push_back(region(id));
    for (size_t i = 0; i < results.size(); ++i) {
      program::Joined joined;
      for (RegionId id : node.regions) joined.sources.push_back(result_view(id, i));
      joined.result = results[i];
      made.joined.push_back(std::move(joined));
    }
    return made;
  }

  program::KernelId kernel(const program::Kernel& kernel, const hlo::Instr& fusion) {
    auto [found, added] =
        kernels_.try_emplace(kernel.name, program::KernelId(program_.kernels.size()));
    if (added) {
      program_.kernels.push_back(kernel);
      program_.kernels.back().label = labels_.label_of(fusion);
      return found->second;
    }
    const program::Kernel& first = program_.kernels[found->second.index()];
    bool same =
        first.phases.size() == kernel.phases.size() && first.scratch_bytes == kernel.scratch_bytes;
    for (size_t p = 0; same && p < kernel.phases.size(); ++p)
      same = first.phases[p].symbol == kernel.phases[p].symbol &&
             first.phases[p].tasks == kernel.phases[p].tasks;
    HEDDLE_CHECK(same, "two kernels are named {}", kernel.name);
    return found->second;
  }

  View view(StorageId storage, const tensor::Shape& shape) {
    BufferId& buffer = buffer_of_[storage.index()];
    if (!buffer.valid()) buffer = add_fixed(storage);
    return {buffer, 0, shape};
  }

  // Adds a constant or once result at its first use; tokens have no bytes.
  BufferId add_fixed(StorageId id) {
    const Storage& storage = flow_.storage(id);
    const BufferKind kind = kinds_[id.index()];
    Buffer buffer{storage.name, kind, storage.bytes};
    if (kind != BufferKind::constant) buffer.space = storage.space;
    if (kind == BufferKind::temporary) {
      HEDDLE_CHECK(storage.bytes == 0, "{} has no place", storage.name);
      return add_buffer(std::move(buffer));
    }
    HEDDLE_CHECK(kind == BufferKind::constant || kind == BufferKind::once, "{} has no place",
                 storage.name);
    int64_t& end = kind == BufferKind::constant            ? constant_end_bytes_
                   : storage.space == program::Space::host ? program_.host_once_bytes
                                                           : program_.once_bytes;
    buffer.offset_bytes = end;
    end += align_up(storage.bytes);
    return add_buffer(std::move(buffer), storage.value);
  }

  const hlo::Module& module_;
  const Names& names_;
  const target::Target& target_;
  Options options_;
  Flow flow_;
  std::vector<Output> outputs_;
  std::vector<BufferKind> kinds_;  // by storage
  std::vector<int64_t> streams_;   // by node; empty: unknown
  bool apart_ = false;             // blocks share no memory
  std::optional<Orders> orders_;
  Section once_, run_;
  Program program_;
  std::vector<BufferId> buffer_of_;              // by storage
  std::vector<std::vector<std::string>> nodes_;  // model nodes, by node of the flow
  KernelLabels labels_;
  std::map<std::string, program::KernelId> kernels_;
  int64_t constant_end_bytes_ = 0;
};

}  // namespace

Result<Program> plan(const hlo::Module& module, const Kernels& kernels, const Names& names,
                     const target::Target& target, const Options& options) {
  trace::Span span("plan");
  HEDDLE_ASSIGN_OR_RETURN(Flow flow, make_flow(module, kernels));
  if (options.own_memory) {
    partition(flow, target);
    pack_shape_arithmetic(flow);
  }
  share_memory(flow);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Output> outputs, place_outputs(module, flow));
  finish_updates(flow);
  HEDDLE_ASSIGN_OR_RETURN(
      Program program,
      Planner(module, names, target, options, std::move(flow), std::move(outputs)).plan());
  program.target = target::to_string(target);
  const Status status = program::verify(program);
  HEDDLE_CHECK(status, "{}", status.error().message);
  return program;
}

}  // namespace heddle::plan
