#include <algorithm>
#include <cstring>

#include "base/trace.h"
#include "program/nodes_text.h"
#include "program/spaces.h"
#include "program/verify.h"
#include "program/views.h"
#include "runtime/executor.h"
#include "target/target.h"

namespace heddle::runtime {
namespace {

using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::Command;
using program::Program;
using program::Use;
using program::View;
using tensor::Literal;

constexpr int64_t kScratchAlignment = 128;  // two lines, for adjacent-line prefetch

bool is_aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % program::kAlignmentBytes == 0;
}

int64_t align_up(int64_t bytes) {
  return (bytes + program::kAlignmentBytes - 1) / program::kAlignmentBytes *
         program::kAlignmentBytes;
}

// A gathered table of at least this size is read in place, at any alignment: copying it would delay
// the start. Smaller constants, and those read from end to end in every run, are worth an aligned
// copy.
constexpr int64_t kReadInPlace = int64_t{1} << 20;

// Whether the device can read the value in place.
bool is_readable(const Device& device, const Literal& value) {
  return value.bytes() == 0 || (is_aligned(value.data()) && !device.has_own_memory());
}

// The cpu's kernels read inputs at any address.
bool reads_anywhere(const Device& device) { return std::string_view(device.hal().name) == "cpu"; }

// Constants, by buffer, that the run only reads as tables of rows (Kernel::gathered).
std::vector<bool> gathered_constants(const Program& program) {
  std::vector<bool> gathered(program.buffers.size(), true);
  program::for_each_command(
      program, program.commands, program.command_info,
      [&](const Command& command, const program::CommandInfo&, int) {
        const auto* launch = std::get_if<program::Launch>(&command);
        if (launch == nullptr)
          return program::for_each_view(
              command, [&](const View& view, Use) { gathered[view.buffer.index()] = false; });
        const std::vector<int64_t>& rows = program.kernels[launch->kernel.index()].gathered;
        for (size_t i = 0; i < launch->arguments.size(); ++i)
          if (std::find(rows.begin(), rows.end(), static_cast<int64_t>(i)) == rows.end())
            gathered[launch->arguments[i].buffer.index()] = false;
      });
  return gathered;
}

Status copy_to(const Device& device, char* to, const Literal& value) {
  const heddle_hal& hal = device.hal();
  if (hal.copy(hal.device, to, value.data(), value.bytes()) != 0)
    return device.last_error("cannot copy a constant");
  return {};
}

// Code for another processor would end in an illegal instruction, so every feature is compared.
Status check_target(const Program& program) {
  if (program.target.empty()) return {};
  auto target = target::parse_target(program.target);
  if (!target) return error_in("program " + program.name, target.error());
  if (target->kind != target::DeviceKind::cpu) return {};
  const target::Target host = target::host_target();
  std::string missing;
  for (const std::string& feature : target->features)
    if (!host.has(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  if (missing.empty()) return {};
  return user_error(
      "program {}: compiled for {}, this machine lacks {}; compile the model again here",
      program.name, target->name, missing);
}

// The constants of the once section, each kept until its last use. Constants that the device cannot
// read in place are copied before every command that reads them, all to one staging block: touching
// new memory costs more than the copy.
class OnceConstants {
 public:
  // `uploaded`: addresses of the run's constants in the device's own memory, by buffer.
  OnceConstants(Program& program, const std::vector<bool>& used_by_run,
                const std::vector<char*>& uploaded, CommandList& list, const Device& device)
      : program_(program),
        used_by_run_(used_by_run),
        uploaded_(uploaded),
        list_(list),
        device_(device),
        last_use_(program.buffers.size(), -1) {
    for (size_t i = 0; i < program.once.size(); ++i) {
      for (size_t b : constants_of(i)) last_use_[b] = static_cast<int64_t>(i);
      staging_bytes_ = std::max(staging_bytes_, copied_bytes(i));
    }
    // Constants that nothing uses are freed at once.
    for (size_t b = 0; b < last_use_.size(); ++b)
      if (last_use_[b] < 0 && !used_by_run_[b]) program_.constants[b] = Literal();
  }

  Status before(size_t command) {
    if (staging_.bytes() < staging_bytes_) {
      HEDDLE_ASSIGN_OR_RETURN(staging_, Block::allocate(device_, staging_bytes_));
    }
    char* free = staging_.data();
    for (size_t b : constants_of(command)) {
      const Literal& value = program_.constants[b];
      list_.set_host_base(BufferId(b), static_cast<const char*>(value.data()));
      if (!uploaded_.empty() && uploaded_[b] != nullptr) {
        list_.set_base(BufferId(b), uploaded_[b]);
        continue;
      }
      const bool stays = is_read_in_place(command, value);
      list_.set_base(BufferId(b),
                     stays ? const_cast<char*>(static_cast<const char*>(value.data())) : free);
      if (stays) continue;
      HEDDLE_RETURN_IF_ERROR(copy_to(device_, free, value));
      free += align_up(value.bytes());
      drop_after(b, command);  // frees its pages of the model file before results are written
    }
    return {};
  }

  void after(size_t command) {
    for (size_t b : constants_of(command)) drop_after(b, command);
  }

 private:
  void drop_after(size_t b, size_t command) {
    if (last_use_[b] == static_cast<int64_t>(command) && !used_by_run_[b])
      program_.constants[b] = Literal();
  }

  // Without repeats.
  std::vector<size_t> constants_of(size_t command) const {
    std::vector<size_t> result;
    auto constants = [&](const View& view, Use) {
      if (program_.buffers[view.buffer.index()].kind == BufferKind::constant)
        result.push_back(view.buffer.index());
    };
    program::for_each_view(program_.once[command], constants);
    for (program::RegionId id : program::regions_of(program_.once[command]))
      program::for_each_view_within(program_, program_.regions[id.index()].commands, constants);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  int64_t copied_bytes(size_t command) const {
    int64_t bytes = 0;
    for (size_t b : constants_of(command)) {
      const Literal& value = program_.constants[b];
      if (!is_read_in_place(command, value)) bytes += align_up(value.bytes());
    }
    return bytes;
  }

  bool is_read_in_place(size_t command, const Literal& value) const {
    if (is_readable(device_, value)) return true;
    return reads_anywhere(device_) &&
           std::holds_alternative<program::Launch>(program_.once[command]);
  }

  Program& program_;
  const std::vector<bool>& used_by_run_;
  const std::vector<char*>& uploaded_;
  CommandList& list_;
  const Device& device_;
  std::vector<int64_t> last_use_;
  int64_t staging_bytes_ = 0;
  Block staging_;
};

}  // namespace

Executable::Executable(Program program, const Device& device)
    : program_(std::move(program)), device_(device) {}

Result<std::shared_ptr<Executable>> Executable::load(Program program, const Device& device,
                                                     const HostFunctions& host_functions,
                                                     const LibraryFunction& library) {
  trace::Span span("load");
  HEDDLE_RETURN_IF_ERROR(program::verify(program));
  HEDDLE_RETURN_IF_ERROR(check_target(program));
  std::shared_ptr<Executable> executable(new Executable(std::move(program), device));
  HEDDLE_RETURN_IF_ERROR(executable->link(host_functions, library));
  HEDDLE_RETURN_IF_ERROR(executable->use_states(std::make_shared<StateArrays>()));
  return executable;
}

Status Executable::use_states(std::shared_ptr<StateArrays> states) {
  if (program_.states.empty()) return {};
  HEDDLE_RETURN_IF_ERROR(states->begin(program_));
  states_ = std::move(states);
  return {};
}

Status Executable::link(const HostFunctions& host_functions, const LibraryFunction& library) {
  if (!program_.kernels.empty()) {
    auto code = Code::load(device_, program_.object);
    if (!code) return error_in("program " + program_.name, code.error());
    code_ = std::move(*code);
  }
  for (const program::Kernel& kernel : program_.kernels) {
    std::vector<const void*>& phases = functions_.emplace_back();
    for (const program::Phase& phase : kernel.phases) {
      auto function = code_.find(phase.symbol.c_str());
      if (!function) return error_in("program " + program_.name, function.error());
      phases.push_back(*function);
    }
    const int64_t stride =
        (kernel.scratch_bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    scratch_stride_bytes_ = std::max(scratch_stride_bytes_, stride);
  }
  HEDDLE_RETURN_IF_ERROR(
      link_section(once_section_, program_.once, program_.once_info, host_functions, library));
  HEDDLE_RETURN_IF_ERROR(link_section(run_section_, program_.commands, program_.command_info,
                                      host_functions, library));
  find_uses();
  HEDDLE_RETURN_IF_ERROR(align_run_constants());
  auto block = Block::allocate(device_, program_.once_bytes);
  if (!block) return error_in("program " + program_.name, block.error());
  once_block_ = std::make_shared<Block>(std::move(*block));
  auto host_once =
      Literal::make(tensor::Shape::array(tensor::Type::u8, {program_.host_once_bytes}));
  if (!host_once) return error_in("program " + program_.name, host_once.error());
  host_once_ = std::make_shared<Literal>(std::move(*host_once));
  if (program_.once.empty()) once_done_ = true;
  return {};
}

// Finds the constants that the run uses, and those that the host uses in either section.
void Executable::find_uses() {
  used_by_run_.assign(program_.buffers.size(), false);
  used_by_host_ = used_by_device_ = used_by_run_;
  program::for_each_view_within(program_, program_.commands, [&](const View& view, Use) {
    used_by_run_[view.buffer.index()] = true;
  });
  for (const program::Port& port : program_.outputs)
    if (port.source.buffer.valid())
      used_by_run_[port.source.buffer.index()] = used_by_host_[port.source.buffer.index()] = true;
  if (!program_.own_memory) return;
  const auto find = [&](const Command& command, const program::CommandInfo&, int) {
    program::for_each_view(command, [&](const View& view, Use) {
      const bool host = program::is_read_by_host(program_, command, view);
      (host ? used_by_host_ : used_by_device_)[view.buffer.index()] = true;
    });
  };
  program::for_each_command(program_, program_.once, program_.once_info, find);
  program::for_each_command(program_, program_.commands, program_.command_info, find);
}

Status Executable::link_library(const program::LibraryCall& call, const program::CommandInfo& about,
                                const LibraryFunction& library,
                                std::shared_ptr<LibraryWork>* work) const {
  const std::string where =
      "program " + program_.name + ": " + program::where_text(about.name, about.nodes);
  if (std::string_view(device_.hal().name) != "cpu")
    return user_error("{}: library calls run on the cpu, not on {}", where, device_.hal().name);
  if (!library)
    return user_error("{}: it needs the library {}, and libraries are not used here", where,
                      call.library);
  auto made = library(call);
  if (!made) return error_in(where, made.error());
  *work = std::move(*made);
  return {};
}

Status Executable::link_section(LinkedSection& section, const std::vector<Command>& commands,
                                const std::vector<program::CommandInfo>& info,
                                const HostFunctions& host_functions,
                                const LibraryFunction& library) const {
  section.commands = &commands;
  section.info = &info;
  Status status;
  program::for_each_command(
      program_, commands, info,
      [&](const Command& command, const program::CommandInfo& about, int) {
        HostCallable& callable = section.host.emplace_back();
        std::shared_ptr<LibraryWork>& work = section.library.emplace_back();
        if (const auto* one = std::get_if<program::LibraryCall>(&command))
          if (status) status = link_library(*one, about, library, &work);
        const auto* call = std::get_if<program::HostCall>(&command);
        if (call == nullptr || !status) return;
        auto found = host_functions.find(call->function);
        if (found == host_functions.end()) {
          status = user_error("program {}: {}: no host function '{}' is registered", program_.name,
                              program::where_text(about.name, about.nodes), call->function);
          return;
        }
        auto made = found->second(call->text);
        if (made) {
          callable = std::move(*made);
        } else {
          status = error_in(program::where_text(about.name, about.nodes), made.error());
        }
      });
  return status;
}

// Constants may be views of a model file, where nothing is aligned. Copies share one block: many
// are small, and one block can use large pages.
Status Executable::align_run_constants() {
  const std::vector<bool> gathered = gathered_constants(program_);
  for (size_t i = 0; program_.own_memory && i < program_.constants.size(); ++i) {
    Literal& value = program_.constants[i];
    if (!used_by_host_[i] || value.bytes() == 0 || is_aligned(value.data())) continue;
    Literal aligned(value.shape());
    std::memcpy(aligned.mutable_data(), value.data(), static_cast<size_t>(value.bytes()));
    value = std::move(aligned);
  }
  auto is_copied = [&](size_t i) {
    const Literal& value = program_.constants[i];
    const bool in_place = gathered[i] && value.bytes() >= kReadInPlace && reads_anywhere(device_);
    const bool used = used_by_run_[i] && (!program_.own_memory || used_by_device_[i]);
    return used && !is_readable(device_, value) && !in_place;
  };
  int64_t bytes = 0;
  for (size_t i = 0; i < program_.constants.size(); ++i)
    if (is_copied(i)) bytes += align_up(program_.constants[i].bytes());
  auto block = Block::allocate(device_, bytes);
  if (!block) return error_in("program " + program_.name + ": constants", block.error());
  const auto held = std::make_shared<Block>(std::move(*block));
  if (device_.has_own_memory()) {
    uploaded_.assign(program_.buffers.size(), nullptr);
    constant_block_ = held;
  }
  char* free = held->data();
  for (size_t i = 0; i < program_.constants.size(); ++i) {
    if (!is_copied(i)) continue;
    Literal& value = program_.constants[i];
    HEDDLE_RETURN_IF_ERROR(copy_to(device_, free, value));
    const int64_t used = align_up(value.bytes());
    if (device_.has_own_memory())
      uploaded_[i] = free;
    else
      value = Literal::view(value.shape(), free, held);
    free += used;
  }
  return {};
}

char* Executable::fixed_base(BufferId id) const {
  const Buffer& buffer = program_.buffers[id.index()];
  if (buffer.kind == BufferKind::once) {
    if (buffer.bytes == 0) return nullptr;
    char* block = once_block_->data();
    if (buffer.space == program::Space::host)
      block = const_cast<char*>(static_cast<const char*>(host_once_->data()));
    return block + buffer.offset_bytes;
  }
  if (device_.has_own_memory()) return uploaded_[id.index()];
  return const_cast<char*>(static_cast<const char*>(program_.constants[id.index()].data()));
}

const char* Executable::host_constant(BufferId id) const {
  return static_cast<const char*>(program_.constants[id.index()].data());
}

Status Executable::run_once() {
  if (once_done_.load(std::memory_order_acquire)) return once_status_;
  std::lock_guard lock(once_mutex_);
  if (!once_done_.load(std::memory_order_relaxed)) {
    // A failure is final: some constants may have been freed.
    once_status_ = do_once();
    once_done_.store(true, std::memory_order_release);
  }
  return once_status_;
}

Status Executable::do_once() {
  trace::Span span("once");
  CommandList list(device_, program_, functions_, once_section_);
  int64_t arena_bytes = 0, host_bytes = 0;
  program::for_each_view_within(program_, program_.once, [&](const View& view, Use) {
    const Buffer& buffer = program_.buffers[view.buffer.index()];
    if (buffer.kind != BufferKind::temporary) return;
    int64_t& bytes = buffer.space == program::Space::host ? host_bytes : arena_bytes;
    bytes = std::max(bytes, buffer.offset_bytes + buffer.bytes);
  });
  Literal host_arena(tensor::Shape::array(tensor::Type::u8, {host_bytes}));
  HEDDLE_ASSIGN_OR_RETURN(const Block arena, Block::allocate(device_, arena_bytes));
  const heddle_hal& hal = device_.hal();
  HEDDLE_ASSIGN_OR_RETURN(
      const Block scratch,
      Block::allocate(device_, scratch_stride_bytes_ * hal.worker_count(hal.device)));
  list.set_scratch(scratch.data(), scratch_stride_bytes_);
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& buffer = program_.buffers[i];
    if (buffer.kind == BufferKind::once) list.set_base(BufferId(i), fixed_base(BufferId(i)));
    // The run's temporaries have another arena; commands of the once section do not use them.
    const bool host = buffer.space == program::Space::host;
    char* base = host ? static_cast<char*>(host_arena.mutable_data()) : arena.data();
    if (buffer.kind == BufferKind::temporary && base != nullptr &&
        buffer.offset_bytes + buffer.bytes <= (host ? host_bytes : arena_bytes))
      list.set_base(BufferId(i), base + buffer.offset_bytes);
  }
  OnceConstants constants(program_, used_by_run_, uploaded_, list, device_);
  const bool spin =
      list.has_parallel() && heddle_hal_has(&hal, begin_run) && heddle_hal_has(&hal, end_run);
  if (spin) hal.begin_run(hal.device);
  Status status;
  for (size_t i = 0; i < program_.once.size() && status; ++i) {
    status = constants.before(i);
    if (status) status = list.run_command(i);
    if (status && hal.wait(hal.device) != 0) status = device_.last_error("cannot wait");
    constants.after(i);
  }
  if (spin) hal.end_run(hal.device);
  return status;
}

Result<Literal> Executable::once_results() {
  HEDDLE_RETURN_IF_ERROR(run_once());
  const int64_t host_bytes = program_.host_once_bytes, bytes = program_.once_bytes + host_bytes;
  const tensor::Shape shape = tensor::Shape::array(tensor::Type::u8, {bytes});
  if (bytes == 0) return Literal(shape);
  if (!device_.has_own_memory() && host_bytes == 0)
    return Literal::view(shape, once_block_->data(), once_block_);
  auto copy = std::make_shared<std::vector<char>>(static_cast<size_t>(bytes));
  if (program_.once_bytes > 0)
    HEDDLE_RETURN_IF_ERROR(
        device_.copy_now(copy->data(), once_block_->data(), program_.once_bytes));
  if (host_bytes > 0)
    std::memcpy(copy->data() + program_.once_bytes, host_once_->data(),
                static_cast<size_t>(host_bytes));
  return Literal::view(shape, copy->data(), copy);
}

Result<Program> Executable::take_once() {
  HEDDLE_ASSIGN_OR_RETURN(const Literal results, once_results());
  return program::fold_once(program_, results);
}

}  // namespace heddle::runtime
