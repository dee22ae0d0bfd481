// Program: the compiled artefact. Code, constants, buffers with offsets, and the list of commands
// of one run. It needs no compiler to be loaded and run (docs/architecture.md).
//
// Memory. A buffer is an array of bytes with a kind. Temporaries live in one arena per context, at
// the offsets of the plan; constants in one read-only image; inputs and outputs are bound by the
// caller at each run. A View is a piece of a buffer with a shape: what commands name. All
// alignments are 64 bytes.
//
// The `once` section is a list of commands that is run a single time, after loading: it packs
// weights and computes large constant sub-graphs. It writes `once` buffers, which commands of the
// run read as constants.
//
// Commands run in order. Each is parallel inside (the tasks of its kernel's phases are split over
// the workers).
//
// Control flow. A Loop and a Branch run regions: lists of commands of their own, each the region of
// one command, on the same arena. Nothing is copied on the way in or out: a region names buffers of
// the commands around it, and its results are renamed in place (Carried, Joined).
//
// Spaces. A program for a device with its own memory (Program::own_memory) has a space for each
// buffer: device or host. Kernels access device memory, host calls host memory; inputs and outputs
// are the caller's, on the host; constants are readable on both sides. A Copy moves a value from
// one space to the other. The host evaluates the conditions of loops and branches, and the start
// indices of updates.
//
// Commands are numbered consecutively: those of the once section first, then those of the run; the
// commands of a command's regions (for_each_command, in views.h) follow it. A temporary belongs to
// one of the two sections; each section has its own arena (the once section's is released when it
// has run), and MemoryNumbers describe the run's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "tensor/index_check.h"
#include "tensor/literal.h"
#include "tensor/shape.h"

namespace heddle::program {

inline constexpr int64_t kAlignmentBytes = 64;

using BufferId = Id<struct BufferTag>;
using KernelId = Id<struct KernelTag>;
using RegionId = Id<struct RegionTag>;

// A buffer holds one value. If a value is made in place of another one, each has a buffer, on the
// same bytes; one output may have several buffers: its port refers to the one with the final value.
enum class BufferKind : uint8_t {
  input,      // bound by the caller
  output,     // bound by the caller; may alias an input (Buffer::alias)
  constant,   // in the constant image
  once,       // computed by the once section, kept
  temporary,  // in the arena, at `offset_bytes`
};

enum class Space : uint8_t { device, host };

struct Buffer {
  std::string name;  // of the value that it was planned for
  BufferKind kind = BufferKind::temporary;
  int64_t bytes = 0;
  int64_t offset_bytes =
      0;                // constant: in the image; once: in the once block; temporary: in the arena
  int64_t number = -1;  // input, output: position in Program::inputs / outputs
  BufferId alias;       // an output that must share this input buffer's memory; or none
  // Temporary: first and last command (inclusive) that touch it. For the checker and reports.
  int64_t first_command = 0, last_command = -1;
  Space space = Space::device;  // if the program has spaces; constants: both
};

// Bytes [offset, offset + shape.bytes()) of a buffer, row-major unless the shape has a layout.
struct View {
  BufferId buffer;
  int64_t offset_bytes = 0;
  tensor::Shape shape;
};

struct Phase {
  std::string symbol;   // function in the object
  int64_t tasks = 1;    // with run-time dimensions at their bounds
  bool serial = false;  // too small to wake the workers for
};

struct Kernel {
  std::string name;
  std::string label;  // readable: "softmax_select.2", of its operators; unique in the program
  std::vector<Phase> phases;
  int64_t scratch_bytes = 0;
  // Per launch: arithmetic operations, and the least bytes to move (each input and output once).
  int64_t flops = 0, min_bytes = 0;
  // Inputs (argument numbers) that are gathered: only the rows selected by other inputs are read.
  std::vector<int64_t> gathered;
  std::string schedule;  // text, for explain
  std::string text;      // kernel text; may be dropped when saved
};

// The kernel reads the first `inputs` arguments and writes the next `outputs`; the others are its
// workspace. Output i may alias input in_place[i], on all its bytes; otherwise written memory must
// not overlap anything. If in_part[i] is not 0 it must alias it: the kernel updates a slice of it,
// as an Update does, and leaves the rest unchanged.
struct Launch {
  KernelId kernel;
  std::vector<View> arguments;  // in the ABI order of the kernel's global buffers
  std::vector<int64_t> dims;    // run-time dimensions
  int64_t inputs = 0, outputs = 0;
  std::vector<int64_t> in_place;  // by output; -1 or missing: not
  std::vector<int64_t> in_part;   // by output; missing: 0
};
struct Copy {  // dense bytes; sizes equal; between spaces or within one
  View from, to;
};
// A slice of `operand` becomes `update` (dynamic-update-slice): the rest is not touched, so
// `result` must be all of the memory of `operand`. Row-major; element types and ranks are equal.
struct Update {
  View operand, update, result;
  std::vector<View> starts;  // one integer scalar per dimension, clamped so that the slice fits
};
// Concatenates the pieces along a dimension. Row-major; element types and the other dimensions are
// equal.
struct Concatenate {
  std::vector<View> pieces;
  View result;
  int64_t dimension = 0;
};
// An operator without a kernel: a function that `api` registers as `function` does it on the host
// ("interp": evaluates the HLO in `text`, a module whose entry has one parameter per argument).
struct HostCall {
  std::string function, text;
  std::vector<View> arguments, results;
};
// An operator that a vendor library computes; `library` is looked up when the program is loaded. It
// runs as `tasks` parts that write disjoint bytes of the result, each on one thread.
struct LibraryCall {
  std::string library, operation;  // "onednn"; the operation as text (library/operation.h)
  std::vector<View> arguments;     // f32: A, B, and a bias if the operation has one
  View result;
  std::vector<int64_t> fixed;  // arguments that are constants or once results
  int64_t tasks = 1;
  int64_t flops = 0, min_bytes = 0;  // as for a kernel
};
// One array of a loop's state. Before the first trip `init` becomes `state`, in the same memory;
// after each trip, `next` does. `next` is in the same memory, too, or (swapped) in a buffer of
// equal size that exchanges contents with the state's; the executor exchanges addresses.
struct Carried {
  View init, state, next;
  bool swapped = false;
};
// Runs `condition`; while it leaves `predicate` true, runs `body` and `condition` again.
struct Loop {
  RegionId condition, body;
  View predicate;  // pred[]
  std::vector<Carried> carried;
};
// After region r, sources[r] becomes `result`, in the same memory.
struct Joined {
  std::vector<View> sources;  // by region
  View result;
};
// Runs one region: if the selector is pred, the first for true, the second for false; if it is a
// number, the region of that index, or the last if it is out of range.
struct Branch {
  View selector;  // pred[] or an integer scalar
  std::vector<RegionId> regions;
  std::vector<Joined> joined;
};
using Command =
    std::variant<Launch, Copy, HostCall, Update, Loop, Branch, Concatenate, LibraryCall>;

struct CommandInfo {      // beside each command
  std::string name;       // the HLO instruction it came from
  std::string operators;  // "add, reduce, multiply": for profile and inspect
  // The model nodes (hlo/node_names.h) whose work it does, its own first, then those of views of
  // its results and of constant work prepared for it. Commands of a region have names of their own;
  // the loop around them does not repeat these.
  std::vector<std::string> nodes;
};

struct Region {
  std::vector<Command> commands;
  std::vector<CommandInfo> info;
};

struct Port {  // an input or an output
  std::string name;
  std::string alias_name;  // another accepted name; may be empty
  tensor::Shape shape;
  BufferId buffer;  // invalid for an output without a buffer: see `source`
  View source;      // output that is an input or a constant: copied at the end of a run
};

struct MemoryNumbers {            // always reported together (docs/architecture.md)
  int64_t lower_bound_bytes = 0;  // peak of the bytes live at one command
  int64_t plan_bytes = 0;         // size of the arena
  int64_t unshared_bytes = 0;     // sum of all temporaries
  bool optimal = false;  // no plan of this order is smaller: it equals the bound, or was proved
};

// A part of the run's arena that is allocated separately if memory is dynamic.
struct PoolBlock {
  int64_t offset_bytes = 0, bytes = 0;
};

// An array kept from run to run: a run reads it as an input and writes it as an output, which
// aliases the input if the plan allows. After loading it has these bytes.
struct StateArray {
  std::vector<uint8_t> start;  // of the ports' shape, dense and row-major
  bool operator==(const StateArray&) const = default;
};

struct Program {
  static constexpr int kVersion = 10;
  static constexpr int kMaxNesting = 8;  // of regions
  std::string name;
  std::string target;              // target text it was compiled for (JSON)
  std::string build_id;            // of the compiler that made it
  std::string options;             // level, fuse, memory, precision, numerics: as text
  std::vector<std::string> notes;  // named rewrites used, defaults taken: printed in summaries
  std::vector<uint8_t> object;     // relocatable ELF, one or several in a row (runtime/loader.h)
  std::vector<Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<Port> inputs, outputs;
  // Hidden ports come after the visible ones (shown_inputs, shown_outputs): outputs for the
  // computed ones of `index_checks`, in order; then an input and an output for each of `states`.
  // The executor allocates their memory.
  std::vector<tensor::IndexCheck> index_checks;  // what its inputs must be
  std::vector<StateArray> states;
  std::vector<Command> once, commands;
  std::vector<CommandInfo> once_info, command_info;
  std::vector<Region> regions;  // of all loops and branches
  // Values of `constant` buffers, by BufferId::index(); others empty. Literals may be views of the
  // mapped model file, so that weights are never copied.
  std::vector<tensor::Literal> constants;
  int64_t once_bytes = 0;  // size of the block of once buffers
  MemoryNumbers memory;
  bool own_memory = false;  // for a device that has: buffers have spaces, and the host an arena
  int64_t host_once_bytes = 0;
  MemoryNumbers host_memory;
  // Dynamic memory: the run's temporaries are in these blocks, each allocated from a pool from the
  // first command that touches it to the last. Sorted by offset, disjoint. Empty: the arena is one
  // block.
  std::vector<PoolBlock> pool_blocks;
};

// The number of visible inputs and outputs; these come first.
size_t shown_inputs(const Program& program);
size_t shown_outputs(const Program& program);

// Bytes that an array takes in a buffer: dense, or with the padding of its layout; dynamic
// dimensions at their bound. Tokens take none. INT64_MAX if that overflows or a dimension has no
// bound.
int64_t stored_bytes(const tensor::Shape& shape);

// Turns once-section results into constants: `values` holds the bytes of every once buffer, by
// BufferId::index() (others are ignored). The result has no once section, and none of the buffers
// and constants that only the once section used.
Program fold_once(const Program& program, const std::vector<tensor::Literal>& values);
// The same for the whole block of once buffers, u8[once_bytes + host_once_bytes] (the host's last);
// the constants share its memory.
Program fold_once(const Program& program, const tensor::Literal& once_block);

}  // namespace heddle::program
