#include <algorithm>
#include <cstring>

#include "base/trace.h"
#include "program/views.h"
#include "runtime/executor.h"
#include "runtime/pooled_run.h"

namespace heddle::runtime {
namespace {

using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::Port;
using program::Program;

bool is_aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % program::kAlignmentBytes == 0;
}

struct Move {
  char* to;
  const char* from;
  int64_t bytes;
  bool by_device = false;  // one side is device memory, in a program whose ports are on the host
};

// A bound port. `staging` replaces memory that is not aligned or not the device's, `host_staging`
// replaces device memory that the host must access.
struct Binding {
  char* memory = nullptr;
  bool bound = false, on_device = false;
  bool used_by_host = false;  // in a program with spaces, by more than copies across
  int64_t bytes = 0;
  Block staging;
  tensor::Literal host_staging;
};

}  // namespace

struct Context::State {
  State(std::shared_ptr<Executable> owner, Block arena_block, Block scratch_block)
      : executable(std::move(owner)),
        list(executable->device_, executable->program_, executable->functions_,
             executable->run_section_),
        arena(std::move(arena_block)),
        scratch(std::move(scratch_block)),
        host_arena(
            tensor::Shape::array(tensor::Type::u8, {executable->program_.host_memory.plan_bytes})),
        times(static_cast<size_t>(
            program::command_count(executable->program_, executable->program_.commands))) {}

  const Program& program() const { return executable->program_; }
  void set_fixed_bases();
  void find_host_uses();
  Status prepare();
  Status prepare_input(size_t i);
  Status prepare_outputs();
  Status check_bound() const;
  Status check_overlaps() const;
  Result<char*> usable(Binding& binding);
  // Whether a host port of a program with spaces uses the caller's device memory directly.
  bool lies_on_device(const Binding& binding) const {
    return program().own_memory && binding.on_device && !binding.used_by_host;
  }
  Status copy_all(const std::vector<Move>& moves, heddle_hal_stream* stream);
  Status wait_for_all();
  Status run_commands(bool waits);
  Status run(bool waits);
  Status use_streams();
  void reset_streams();

  std::shared_ptr<Executable> executable;
  CommandList list;
  Block arena, scratch;
  tensor::Literal host_arena;         // only if the program has spaces
  std::unique_ptr<PooledRun> pooled;  // only if memory is dynamic; then there is no arena
  std::vector<Binding> inputs, outputs;
  std::vector<tensor::Literal> hidden;  // hidden outputs that are not states
  std::vector<int64_t> alias_of_input;  // output number that aliases input i, or -1
  std::vector<std::vector<BufferId>> buffers_of_output;  // all buffers in its memory
  std::vector<char*> bases;                              // of input and output buffers, by buffer
  std::vector<Move> before, after;                       // copies around the commands
  bool dirty = true;                                     // bindings changed since prepare()
  bool one_stream = false;                               // more streams do not pay off
  bool profile = false;
  std::vector<CommandTime> times;
  std::shared_ptr<Cancellation> cancellation;
};

Context::Context(std::unique_ptr<State> state) : state_(std::move(state)) {}
Context::~Context() = default;

Result<std::unique_ptr<Context>> Executable::make_context(
    std::shared_ptr<Cancellation> cancellation) {
  const heddle_hal& hal = device_.hal();
  const bool dynamic = !program_.pool_blocks.empty();
  auto arena = Block::allocate(device_, dynamic ? 0 : program_.memory.plan_bytes);
  if (!arena) return error_in("program " + program_.name + ": arena", arena.error());
  auto scratch = Block::allocate(device_, scratch_stride_bytes_ * hal.worker_count(hal.device));
  if (!scratch) return error_in("program " + program_.name + ": scratch", scratch.error());
  auto state =
      std::make_unique<Context::State>(shared_from_this(), std::move(*arena), std::move(*scratch));
  if (dynamic) state->pooled = std::make_unique<PooledRun>(device_, program_);
  state->set_fixed_bases();
  state->cancellation = cancellation ? std::move(cancellation) : std::make_shared<Cancellation>();
  state->list.set_cancellation(state->cancellation.get());
  HEDDLE_RETURN_IF_ERROR(state->use_streams());
  std::unique_ptr<Context> context(new Context(std::move(state)));
  HEDDLE_RETURN_IF_ERROR(context->bind_hidden());
  return context;
}

// A recorded run costs the host almost nothing; on streams it would issue every command.
Status Context::State::use_streams() {
  if (!pooled && list.is_recorded()) {
    list.drop_streams();
    return {};
  }
  if (executable->device_.streams() == nullptr || list.streams() != nullptr || one_stream)
    return {};
  HEDDLE_ASSIGN_OR_RETURN(std::optional<StreamSet> streams,
                          StreamSet::make(executable->device_, program()));
  one_stream = !streams;
  if (one_stream) return {};
  if (pooled) {
    pooled->use_streams(streams->plan());
    HEDDLE_RETURN_IF_ERROR(streams->record_too(pooled->last_uses()));
  }
  list.set_streams(std::move(*streams));
  return {};
}

// After an error: broken streams are replaced before the next run.
void Context::State::reset_streams() {
  if (list.streams() == nullptr) return;
  list.streams()->find_lost();
  list.drop_streams();
}

void Context::State::set_fixed_bases() {
  const Program& p = program();
  list.set_scratch(scratch.data(), executable->scratch_stride_bytes_);
  bases.resize(p.buffers.size());
  inputs.resize(p.inputs.size());
  outputs.resize(p.outputs.size());
  buffers_of_output.resize(p.outputs.size());
  alias_of_input.assign(p.inputs.size(), -1);
  for (size_t i = 0; i < inputs.size(); ++i)
    inputs[i].bytes = program::stored_bytes(p.inputs[i].shape);
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i].bytes = program::stored_bytes(p.outputs[i].shape);
  find_host_uses();
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const Buffer& buffer = p.buffers[i];
    const BufferId id(i);
    if (buffer.kind == BufferKind::output) buffers_of_output[buffer.number].push_back(id);
    if (buffer.kind == BufferKind::output && buffer.alias.valid())
      alias_of_input[p.buffers[buffer.alias.index()].number] = buffer.number;
    if (buffer.kind == BufferKind::temporary) {
      // Temporaries of the once section may extend past this arena; they are not used here.
      const bool host = buffer.space == program::Space::host;
      char* data = host ? static_cast<char*>(host_arena.mutable_data()) : arena.data();
      const int64_t bytes = host ? host_arena.bytes() : arena.bytes();
      const bool inside = data != nullptr && buffer.offset_bytes + buffer.bytes <= bytes;
      list.set_base(id, inside ? data + buffer.offset_bytes : nullptr);
    } else if (buffer.kind == BufferKind::once ||
               (buffer.kind == BufferKind::constant && executable->used_by_run_[i])) {
      bases[i] = executable->fixed_base(id);
      list.set_base(id, bases[i]);
      if (!p.own_memory || buffer.kind == BufferKind::once) continue;
      const char* constant = executable->host_constant(id);
      list.set_host_base(id, constant);
      bases[i] = const_cast<char*>(constant);  // read by the host's copies
    }
  }
}

void Context::State::find_host_uses() {
  const Program& p = program();
  for (size_t i = 0; p.own_memory && i < p.buffers.size(); ++i) {
    const Buffer& buffer = p.buffers[i];
    if (!executable->used_by_host_[i]) continue;
    if (buffer.kind == BufferKind::input) inputs[buffer.number].used_by_host = true;
    if (buffer.kind == BufferKind::output) outputs[buffer.number].used_by_host = true;
  }
  // An output shares its memory with the input that it aliases.
  for (const Buffer& buffer : p.buffers)
    if (buffer.kind == BufferKind::output && buffer.alias.valid() &&
        inputs[p.buffers[buffer.alias.index()].number].used_by_host)
      outputs[buffer.number].used_by_host = true;
}

Status Context::bind(bool input, int64_t number, char* data, bool on_device) {
  std::vector<Binding>& bindings = input ? state_->inputs : state_->outputs;
  const char* what = input ? "input" : "output";
  if (number < 0 || number >= std::ssize(bindings))
    return user_error("program {}: no {} {}, it has {}", state_->program().name, what, number,
                      bindings.size());
  const Device& device = state_->executable->device_;
  if (on_device && !device.has_own_memory())
    return user_error("program {}: {} {}: device {} has no memory of its own; bind the host's",
                      state_->program().name, what, number, device.hal().name);
  if (on_device && !is_aligned(data))
    return user_error("program {}: {} {}: memory of device {} must be {}-byte aligned",
                      state_->program().name, what, number, device.hal().name,
                      program::kAlignmentBytes);
  Binding& binding = bindings[static_cast<size_t>(number)];
  if (binding.bound && binding.memory == data && binding.on_device == on_device) return {};
  binding.memory = data;
  binding.on_device = on_device;
  binding.bound = true;
  state_->dirty = true;
  return {};
}

Status Context::bind_input(int64_t number, const void* data) {
  return bind(true, number, const_cast<char*>(static_cast<const char*>(data)), false);
}
Status Context::bind_output(int64_t number, void* data) {
  return bind(false, number, static_cast<char*>(data), false);
}
Status Context::bind_device_input(int64_t number, const void* data) {
  return bind(true, number, const_cast<char*>(static_cast<const char*>(data)), true);
}
Status Context::bind_device_output(int64_t number, void* data) {
  return bind(false, number, static_cast<char*>(data), true);
}

// A state's output is bound to the memory of its input, so that a run updates it in place.
Status Context::bind_hidden() {
  const Program& program = state_->program();
  const size_t states = program.states.size(), first = program::shown_outputs(program);
  for (size_t i = first; i + states < program.outputs.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(tensor::Literal memory,
                            tensor::Literal::make(program.outputs[i].shape.without_layout()));
    state_->hidden.push_back(std::move(memory));
    HEDDLE_RETURN_IF_ERROR(
        bind_output(static_cast<int64_t>(i), state_->hidden.back().mutable_data()));
  }
  for (size_t i = 0; i < states; ++i) {
    void* memory = state_->executable->states_->memory(i);
    const size_t input = program.inputs.size() - states + i;
    const size_t output = program.outputs.size() - states + i;
    HEDDLE_RETURN_IF_ERROR(bind_input(static_cast<int64_t>(input), memory));
    HEDDLE_RETURN_IF_ERROR(bind_output(static_cast<int64_t>(output), memory));
  }
  return {};
}

const void* Context::hidden_output(size_t number) const {
  const size_t port = program::shown_outputs(state_->program()) + number;
  HEDDLE_CHECK(port < state_->outputs.size(), "no hidden output {}", number);
  return state_->outputs[port].memory;
}

Status Context::State::check_bound() const {
  for (const bool input : {true, false}) {
    const auto& bindings = input ? inputs : outputs;
    const auto& ports = input ? program().inputs : program().outputs;
    for (size_t i = 0; i < bindings.size(); ++i)
      if (!bindings[i].bound || (bindings[i].memory == nullptr && bindings[i].bytes > 0))
        return user_error("program {}: {} {} is not bound to memory", program().name,
                          input ? "input" : "output", ports[i].name);
  }
  return {};
}

// No output may overlap another output or an input, except the input that it aliases.
Status Context::State::check_overlaps() const {
  struct Range {
    const char *begin, *end;
    bool output;
    size_t number;
  };
  std::vector<Range> ranges;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].bytes > 0)
      ranges.push_back({inputs[i].memory, inputs[i].memory + inputs[i].bytes, false, i});
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].bytes > 0)
      ranges.push_back({outputs[i].memory, outputs[i].memory + outputs[i].bytes, true, i});
  // If several begin at one address, outputs come first, so that the input finds its output.
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.output > b.output;
  });
  auto name = [&](const Range& r) {
    return r.output ? "output " + program().outputs[r.number].name
                    : "input " + program().inputs[r.number].name;
  };
  auto one_memory = [&](const Range& out, const Range& in) {
    return out.begin == in.begin && out.end == in.end &&
           alias_of_input[in.number] == static_cast<int64_t>(out.number);
  };
  const Range* last_output = nullptr;  // the output that ends last; the same for inputs
  const Range* last_input = nullptr;
  for (const Range& range : ranges) {
    const bool on_output = last_output && range.begin < last_output->end &&
                           (range.output || !one_memory(*last_output, range));
    const bool on_input = range.output && last_input && range.begin < last_input->end;
    if (on_output || on_input)
      return user_error("program {}: {} overlaps {}; bind it to memory of its own", program().name,
                        name(range), name(on_output ? *last_output : *last_input));
    const Range*& last = range.output ? last_output : last_input;
    if (last == nullptr || range.end > last->end) last = &range;
  }
  return {};
}

// The bound memory, or its staging buffer.
Result<char*> Context::State::usable(Binding& binding) {
  if (binding.bytes == 0) return nullptr;
  if (binding.on_device) {
    if (!binding.used_by_host) return binding.memory;
    if (binding.host_staging.bytes() != binding.bytes)
      binding.host_staging =
          tensor::Literal(tensor::Shape::array(tensor::Type::u8, {binding.bytes}));
    return static_cast<char*>(binding.host_staging.mutable_data());
  }
  if (program().own_memory) return binding.memory;  // host memory needs no alignment
  if (is_aligned(binding.memory) && !executable->device_.has_own_memory()) return binding.memory;
  if (binding.staging.bytes() == 0) {
    HEDDLE_ASSIGN_OR_RETURN(binding.staging, Block::allocate(executable->device_, binding.bytes));
  }
  return binding.staging.data();
}

Status Context::State::prepare() {
  HEDDLE_RETURN_IF_ERROR(check_bound());
  HEDDLE_RETURN_IF_ERROR(check_overlaps());
  before.clear();
  after.clear();
  HEDDLE_RETURN_IF_ERROR(prepare_outputs());
  for (size_t i = 0; i < inputs.size(); ++i) HEDDLE_RETURN_IF_ERROR(prepare_input(i));
  // Outputs that are inputs, constants or other outputs are copied after all commands.
  for (size_t i = 0; i < outputs.size(); ++i) {
    const program::View& source = program().outputs[i].source;
    if (program().outputs[i].buffer.valid() || outputs[i].bytes == 0) continue;
    after.push_back({outputs[i].memory, bases[source.buffer.index()] + source.offset_bytes,
                     outputs[i].bytes, outputs[i].on_device});
  }
  dirty = false;
  return {};
}

Status Context::State::prepare_outputs() {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BufferId id = program().outputs[i].buffer;
    if (!id.valid()) continue;
    HEDDLE_ASSIGN_OR_RETURN(char* base, usable(outputs[i]));
    if (base != outputs[i].memory && outputs[i].bytes > 0)
      after.push_back({outputs[i].memory, base, outputs[i].bytes, outputs[i].on_device});
    for (BufferId buffer : buffers_of_output[i]) {
      bases[buffer.index()] = base;
      list.set_base(buffer, base, lies_on_device(outputs[i]));
    }
  }
  return {};
}

Status Context::State::prepare_input(size_t i) {
  Binding& input = inputs[i];
  const BufferId id = program().inputs[i].buffer;
  char* base = nullptr;
  bool by_device = input.on_device, on_device = lies_on_device(input);
  if (alias_of_input[i] >= 0) {
    // Input and output share the output's memory. If the caller's input is elsewhere, it is copied
    // there.
    const Binding& output = outputs[static_cast<size_t>(alias_of_input[i])];
    base = bases[program().outputs[alias_of_input[i]].buffer.index()];
    by_device = by_device || output.on_device;
    on_device = lies_on_device(output);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(base, usable(input));
  }
  if (base != input.memory && input.bytes > 0)
    before.push_back({base, input.memory, input.bytes, by_device});
  bases[id.index()] = base;
  list.set_base(id, base, on_device);
  return {};
}

Status Context::State::copy_all(const std::vector<Move>& moves, heddle_hal_stream* stream) {
  const heddle_hal& hal = executable->device_.hal();
  if (program().own_memory && !moves.empty()) {  // all host memory but for bound
    if (hal.wait(hal.device) != 0) return executable->device_.last_error("cannot wait");
    for (const Move& move : moves) {
      if (move.by_device)
        HEDDLE_RETURN_IF_ERROR(executable->device_.copy_now(move.to, move.from, move.bytes));
      else
        std::memmove(move.to, move.from, static_cast<size_t>(move.bytes));
    }
    return {};
  }
  for (const Move& move : moves)
    if ((stream != nullptr ? hal.copy_on(hal.device, stream, move.to, move.from, move.bytes)
                           : hal.copy(hal.device, move.to, move.from, move.bytes)) != 0)
      return executable->device_.last_error("cannot copy");
  return {};
}

Status Context::State::wait_for_all() {
  const Device& device = executable->device_;
  if (device.streams() != nullptr) return device.streams()->sync_all();
  return device.hal().wait(device.hal().device) == 0 ? Status() : device.last_error("cannot wait");
}

Status Context::State::run_commands(bool waits) {
  const StreamSet* streams = list.streams();
  HEDDLE_RETURN_IF_ERROR(copy_all(before, streams != nullptr ? streams->to_device() : nullptr));
  const bool timed = profile || trace::recording();
  if (trace::recording()) {
    int64_t bytes = 0;
    for (const program::Buffer& buffer : program().buffers)
      if (buffer.kind == program::BufferKind::constant) bytes += buffer.bytes;
    trace::add_counter("constants", trace::now_ns(), bytes);
  }
  // Timed commands run on the device's own stream.
  if (timed && streams != nullptr) HEDDLE_RETURN_IF_ERROR(wait_for_all());
  if (pooled) {
    const std::span<CommandTime> into = timed ? std::span(times) : std::span<CommandTime>();
    HEDDLE_RETURN_IF_ERROR(pooled->run(list, into));
  } else {
    HEDDLE_RETURN_IF_ERROR(timed ? list.run_timed(times) : list.run());
  }
  if (streams != nullptr) HEDDLE_RETURN_IF_ERROR(wait_for_all());
  HEDDLE_RETURN_IF_ERROR(copy_all(after, streams != nullptr ? streams->to_host() : nullptr));
  if (waits || pooled || streams != nullptr) HEDDLE_RETURN_IF_ERROR(wait_for_all());
  if (pooled) pooled->end_run();
  return {};
}

Status Context::State::run(bool waits) {
  trace::Span span("run");
  std::unique_lock<std::timed_mutex> turn;
  if (executable->states_ && !executable->states_->take_turn(turn, *cancellation))
    return cancelled_error("cancelled");
  HEDDLE_RETURN_IF_ERROR(executable->run_once());
  if (dirty) HEDDLE_RETURN_IF_ERROR(prepare());
  HEDDLE_RETURN_IF_ERROR(use_streams());
  const heddle_hal& hal = executable->device_.hal();
  const bool spin =
      list.has_parallel() && heddle_hal_has(&hal, begin_run) && heddle_hal_has(&hal, end_run);
  if (spin) hal.begin_run(hal.device);
  Status status = run_commands(waits || executable->states_);
  // Work submitted before the error must not touch the caller's memory later.
  if (!status) (void)wait_for_all();
  if (!status && whose(status.error().kind) == ErrorKind::machine) reset_streams();
  if (spin) hal.end_run(hal.device);
  if (!status && status.error().kind == ErrorKind::cancelled) cancellation->take();
  return status;
}

Status Context::run() { return state_->run(/*waits=*/true); }
Status Context::start() { return state_->run(/*waits=*/false); }
Status Context::wait() { return state_->wait_for_all(); }

void Context::cancel() { state_->cancellation->ask(); }

void Context::set_profile(bool on) { state_->profile = on; }

std::vector<CommandProfile> Context::profile() const {
  std::vector<CommandProfile> result;
  const Program& program = state_->program();
  program::for_each_command(program, program.commands, program.command_info,
                            [&](const program::Command&, const program::CommandInfo& info, int) {
                              result.push_back({&info, state_->times[result.size()]});
                            });
  return result;
}

void Context::reset_profile() {
  std::fill(state_->times.begin(), state_->times.end(), CommandTime());
}

int64_t Context::arena_bytes() const {
  return state_->pooled ? state_->pooled->numbers().held_bytes : state_->arena.bytes();
}

}  // namespace heddle::runtime
