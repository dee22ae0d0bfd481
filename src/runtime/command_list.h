// CommandList: one section of a program, bound: a flat array of records that a run walks without a
// look-up, an allocation or a lock. Addresses are patched into it when buffers are bound. Loops and
// branches are jumps between records; a state that a loop swaps changes its addresses in place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "program/program.h"
#include "runtime/boxes.h"
#include "runtime/branches.h"
#include "runtime/cancellation.h"
#include "runtime/device.h"
#include "runtime/host.h"
#include "runtime/recordings.h"
#include "runtime/stream_set.h"

namespace heddle::runtime {

struct CommandTime {
  int64_t count = 0, total_ns = 0, min_ns = 0;
};

// The part of a section that all contexts of a program share.
struct LinkedSection {
  const std::vector<program::Command>* commands = nullptr;
  const std::vector<program::CommandInfo>* info = nullptr;
  std::vector<HostCallable> host;  // by number of command; empty if it is no host call
  std::vector<std::shared_ptr<LibraryWork>> library;  // likewise, for library calls
};
// Addresses of the phases' functions, by kernel.
using Functions = std::vector<std::vector<const void*>>;

class CommandList {
 public:
  // The arguments must outlive the list.
  CommandList(const Device& device, const program::Program& program, const Functions& functions,
              const LinkedSection& section);

  // `on_device`: the memory bound to a host port of a program with spaces is the device's, so
  // copies across are copies within the device.
  void set_base(program::BufferId buffer, char* base, bool on_device = false);
  // Sets the address at which the host reads a constant, in a program with spaces.
  void set_host_base(program::BufferId buffer, const char* base);
  // Worker w has scratch + w * stride_bytes.
  void set_scratch(char* scratch, int64_t stride_bytes);
  // From now on run() puts the commands on these streams, as planned (program/streams.h).
  void set_streams(StreamSet streams) {
    streams_ = std::make_unique<StreamSet>(std::move(streams));
  }
  // Null: none.
  StreamSet* streams() const { return streams_.get(); }
  void drop_streams() { streams_.reset(); }

  // Every buffer must have a base. Error: from a host function or the device; it names the command.
  Status run();
  Status run_command(size_t command);  // of the section itself, with its regions
  // As run(), adding up wall times by number of command (and trace events, while tracing is on). A
  // loop's time is only its overhead, without its body; it counts once for all its trips.
  Status run_timed(std::span<CommandTime> times);
  Status run_timed_command(size_t command, std::span<CommandTime> times);

  // The same on the streams, one command at a time, starting at the first. wait_for_other(), before
  // it, makes the command's stream wait for the event of `other`, which must record one.
  Status run_on_streams(size_t command);
  Status wait_for_other(size_t command, size_t other);
  bool has_parallel() const { return has_parallel_; }  // whether waking the workers pays off

  // Whether run() without streams lets the device replay recordings of stretches of commands (from
  // the third run with the same addresses on).
  bool is_recorded();

  // Checked before every command; a cancelled run ends with an error of that kind.
  void set_cancellation(const Cancellation* cancellation) { cancellation_ = cancellation; }

 private:
  enum class Kind : uint8_t {
    launch,
    copy,         // buffers[0] -> buffers[1], tasks bytes; jump: Crossing; index: the host's buffer
    host_copy,    // the same, by the host
    host,         // hosts_[index]
    update,       // updates_[index]; buffers: operand, update, result, starts
    concatenate,  // joins_[index]; buffers: the pieces, the result
    library,      // library_runs_[index]; buffers: arguments, result
    aim,          // updates_[index]; *aimed becomes the slice's address; buffers: as of update
    nothing,      // an update whose slice was stored in place
    enter,        // a loop or a branch begins
    test,         // if *buffers[0] is false, go to `jump`
    again,        // loops_[index] exchanges addresses; go to `jump`
    leave,        // undoes the exchange
    select,       // go to targets_[index + value of buffers[0]], of tasks
    go,           // to `jump`
  };
  struct Record {
    heddle_hal_launch launch{};
    Kind kind = Kind::launch;
    bool begins = false;    // the first record of its command
    uint32_t together = 0;  // launches_[together - 1] runs this record and some that follow
    uint32_t stretch = 0;   // stretches_[stretch - 1] begins here
    uint32_t command = 0, index = 0, jump = 0;
  };
  enum Crossing : uint32_t { stays, to_device, to_host };
  struct HostRecord {
    const HostCallable* function;
    std::vector<HostArgument> arguments;
    std::vector<HostResult> results;
    // For a device with memory of its own and a program without spaces: the host's copies of
    // arguments and results, allocated at first use.
    std::vector<std::vector<char>> copies;
  };
  // The state of a library call; its tasks get it through the launch's dims.
  struct LibraryRun {
    LibraryWork* work;
    int64_t self;  // address of this object, as the launch's only dimension
    std::mutex mutex;
    Status status;  // the first error of the tasks
  };
  struct UpdateRecord {
    struct Dim {
      int64_t limit, stride_bytes;  // of the start; of the operand
      tensor::Type type;            // of the start
    };
    std::vector<Dim> dims;
    // The slice as contiguous runs: counts and strides of the loops around a run, outermost first.
    struct Loop {
      int64_t count, to_stride_bytes;
    };
    std::vector<Loop> loops;
    std::vector<int64_t> at;  // counters of the loops
    uint32_t aimed = 0;       // slot in the launch's arguments
    int64_t run_bytes = 0;
    bool on_host = false;
  };
  struct JoinRecord {
    std::vector<int64_t> row_bytes;  // by piece
    int64_t rows = 1, stride_bytes = 0;
    bool on_host = false;
  };
  struct Swap {
    program::BufferId state, next;
    int64_t bytes = 0;
    bool on_host = false;
  };
  struct LoopRecord {
    std::vector<Swap> swaps;
    bool odd = false;  // the addresses are exchanged
  };
  // Records [first, first + count) as one launch (program/side_by_side.h).
  struct Together {
    const Record* first;
    size_t count;
    int64_t self;  // address of this object, as the launch's only dimension
    heddle_hal_launch launch;
  };
  // Records [first, end) that only launch, and copy within the device, and always run from the
  // first to the last: no jump leads into the middle.
  struct Stretch {
    size_t first, end;
    size_t first_slot, slots;  // their addresses
  };
  struct Patch {
    uint32_t slot;
    int64_t offset_bytes;
  };

  // `own`: the section's top-level commands, not those of a region.
  void add_commands(const std::vector<program::Command>& commands,
                    const std::vector<program::CommandInfo>& info, bool own);
  void add(const program::Launch& launch);
  void add(const program::Copy& copy);
  void add(const program::HostCall& call);
  void add(const program::Update& update);
  void add_box(const program::Update& update);
  void add(const program::Concatenate& concatenate);
  void add(const program::LibraryCall& call);
  void add(const program::Loop& loop);
  void add(const program::Branch& branch);
  void add_region(program::RegionId id);
  void add_slot(const program::View& view, program::Space space = program::Space::device);
  Record& add_record(Kind kind, uint32_t command);
  void* const* next_slots() const { return slots_.data() + slots_.size(); }

  // Merges adjacent launches into one as `groups` says; commands[i] has its record at firsts[i].
  void join_launches(const std::vector<size_t>& groups, const std::vector<size_t>& firsts);
  static void run_together(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                           void* scratch);
  // Runs records [at, end), whose jumps stay inside. `step` is called before and after each record.
  // `joined`: merged launches run as one, which is then one step.
  Status run_timed_records(size_t at, size_t end, std::span<CommandTime> times);
  // `recorded`: stretches are replayed where possible; `step` is not called for them.
  template <bool joined, bool recorded = false, typename Step>
  Status run_records(size_t at, size_t end, Step&& step);
  Status run_streams();
  Status run_on_stream(size_t command);
  Status wait_for_all(const Record& record);
  // Waits until the device no longer accesses the host's memory; `writes_only`: no longer writes
  // it.
  Status settle(const Record& record, bool writes_only = false);
  Status copy_bytes(const Record& record, bool on_host, void* to, const void* from, int64_t bytes);
  Status execute_copy(const Record& record);
  // Runs one record; sets `next` if it jumps.
  Status execute(const Record& record, size_t* next);
  Result<char*> box_address(const UpdateRecord& update, void* const* slots);
  Status execute_aim(const Record& record);
  Status execute_update(const Record& record);
  Status execute_join(const Record& record);
  // copy(to, from, bytes) by rows of the pieces, until one fails.
  template <typename Copy>
  Status copy_pieces(const Record& record, Copy&& copy);
  bool stays_on_device(const Record& copy) const {
    return copy.kind == Kind::copy && (copy.jump == stays || on_device_[copy.index]);
  }
  // Stretches: see recorded.cc.
  void find_stretches();
  std::vector<bool> jump_targets() const;
  bool is_recordable(const Record& record) const;
  bool issue(const Stretch& stretch);
  bool issue(const Record& record, heddle_hal_stream* stream);
  bool replayed(const Record& first, size_t* next);
  Status execute_host(const Record& record);
  Status execute_host_apart(const Record& record);
  // The integer at `data`, after all earlier launches have run.
  Result<int64_t> read_now(const void* data, tensor::Type type);
  Status execute_library(const Record& record);
  static void run_library(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                          void* scratch);
  void point_slots(program::BufferId buffer, char* base);
  void exchange(LoopRecord& loop, bool odd);
  Status leave(LoopRecord& loop, const Record& record);
  Status failed(const Record& record, Error error);

  Device device_;
  const Cancellation* cancellation_ = nullptr;
  const program::Program* program_;
  const Functions* functions_;
  const LinkedSection* section_;
  const PlacedBoxes boxes_;
  std::vector<Record> records_;
  std::vector<uint32_t> first_record_;              // by command of the section, then the end
  std::vector<const program::CommandInfo*> infos_;  // by number of command
  std::vector<void*> slots_;                        // addresses; records point into this array
  std::vector<std::vector<Patch>> patches_;         // by buffer
  std::vector<std::vector<Patch>> host_patches_;    // by buffer: constants read by the host
  std::vector<char*> bases_;                        // by buffer
  std::vector<HostRecord> hosts_;
  std::vector<std::unique_ptr<LibraryRun>> library_runs_;
  std::vector<UpdateRecord> updates_;
  std::vector<std::unique_ptr<Together>> launches_;
  std::vector<JoinRecord> joins_;
  std::vector<LoopRecord> loops_;
  std::vector<uint32_t> targets_;
  Recordings recordings_;
  std::vector<Stretch> stretches_;
  std::vector<bool> on_device_;  // by buffer: set_base()
  bool stretches_are_found_ = false, branches_are_made_ = false;
  std::unique_ptr<Branches> branches_;  // null: none
  std::vector<int64_t> dims_;
  std::vector<heddle_hal_access> accesses_;  // of launches
  std::unique_ptr<StreamSet> streams_;       // null: commands run in order
  bool all_waited_ = false;  // on streams: everything that could still run has been waited for
  bool has_parallel_ = false;
  // In a program with spaces: whether the device may still be writing or reading host memory.
  bool writes_host_ = true, reads_host_ = true;
};

template <typename Copy>
Status CommandList::copy_pieces(const Record& record, Copy&& copy) {
  const JoinRecord& join = joins_[record.index];
  void* const* slots = record.launch.buffers;
  const size_t pieces = join.row_bytes.size();
  if (join.stride_bytes == 0) return {};
  auto* to = static_cast<char*>(slots[pieces]);
  for (size_t p = 0; p < pieces; ++p) {
    const int64_t bytes = join.row_bytes[p];
    const auto* from = static_cast<const char*>(slots[p]);
    for (int64_t row = 0; row < join.rows && bytes > 0; ++row)
      HEDDLE_RETURN_IF_ERROR(copy(to + row * join.stride_bytes, from + row * bytes, bytes));
    to += bytes;
  }
  return {};
}

}  // namespace heddle::runtime
