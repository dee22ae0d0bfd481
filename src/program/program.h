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
// Commands run in order. Each is parallel inside (its kernel's phases are split over the workers).
//
// Control flow. A Loop and a Branch run regions: lists of commands of their own, each the region of
// one command, on the same arena. Nothing is copied on the way in or out: a region names buffers of
// the commands around it, and what it passes on is renamed in place (Carried, Joined).
//
// Spaces. A program for a device with a memory of its own (Program::own_memory) says where each
// buffer lies: on the device, or in the host's memory. Kernels read and write the device's, host
// calls the host's; inputs and outputs are the caller's, on the host; constants are readable on
// both sides. What crosses is a Copy between the two. The host evaluates the conditions of loops
// and branches, and the positions of boxes.
//
// Commands are numbered consecutively: those of the once section first, then those of the run; the
// commands of a command's regions (for_each_command, in views.h) follow it. A temporary belongs to
// one of the two sections; each section has an arena of its own (the once section's is released
// when it has run), and MemoryNumbers describe the run's.
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

// A buffer holds one value. Where a value is made in place of another one both have a buffer, and
// these lie on the same bytes; several buffers may be of one output, the port's own with the last
// value.
enum class BufferKind : uint8_t {
  input,      // bound by the caller
  output,     // bound by the caller; may alias an input (Buffer::alias)
  constant,   // in the constant image
  once,       // computed by the once section, kept
  temporary,  // in the arena, at `offset_bytes`
};

enum class Space : uint8_t { device, host };

struct Buffer {
  std::string name;  // of the value it was planned for
  BufferKind kind = BufferKind::temporary;
  int64_t bytes = 0;
  int64_t offset_bytes =
      0;                // constant: in the image; once: in the once block; temporary: in the arena
  int64_t number = -1;  // input, output: position in Program::inputs / outputs
  BufferId alias;       // output that must be the same memory as this input buffer; or none
  // Temporary: first and last command (inclusive) that touch it. For the checker and reports.
  int64_t first_command = 0, last_command = -1;
  Space space = Space::device;  // where the program has spaces; constants: both
};

// Bytes [offset, offset + shape.bytes()) of a buffer, row-major unless the shape has a layout.
struct View {
  BufferId buffer;
  int64_t offset_bytes = 0;
  tensor::Shape shape;
};

struct Phase {
  std::string symbol;   // function in the object
  int64_t tasks = 1;    // with the run-time dimensions at their bound
  bool serial = false;  // too small to be worth waking the workers
};

struct Kernel {
  std::string name;
  std::string label;  // for readers: "softmax_select.2", of its operators; unique in the program
  std::vector<Phase> phases;
  int64_t scratch_bytes = 0;
  // Per launch: arithmetic, and least bytes that must move (each input and output once).
  int64_t flops = 0, min_bytes = 0;
  // Inputs (numbers of arguments) of which only the rows are read that other inputs name.
  std::vector<int64_t> gathered;
  std::string schedule;  // text, for explain
  std::string text;      // kernel text; may be dropped when saved
};

// The kernel reads the first `inputs` arguments and writes the next `outputs`; the others are its
// workspace. Output i may lie on input in_place[i], on all its bytes; otherwise what is written
// overlaps nothing. Where in_part[i] is not 0 it must lie there: the kernel puts a box into it, as
// an Update does, and leaves the rest.
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
// A box of `operand` becomes `update`: the rest is not touched, so `result` is the memory of
// `operand`, all of it. Row-major; element types and ranks are equal.
struct Update {
  View operand, update, result;
  std::vector<View> starts;  // an integer scalar a dimension, clamped so that the box fits
};
// The pieces one behind the other along a dimension. Row-major; element types and the other
// dimensions are equal.
struct Concatenate {
  std::vector<View> pieces;
  View result;
  int64_t dimension = 0;
};
// An operator that has no kernel: done on the host by a function that `api` registers under
// `function` ("interp": the HLO in `text`, a module whose entry has one parameter an argument).
struct HostCall {
  std::string function, text;
  std::vector<View> arguments, results;
};
// An operator that a vendor library does, found by `library` when the program is loaded. It runs in
// `tasks` parts that write different bytes of the result, each on one thread.
struct LibraryCall {
  std::string library, operation;  // "onednn"; what is done, as text (library/operation.h)
  std::vector<View> arguments;     // f32: A, B, and a bias where the operation has one
  View result;
  std::vector<int64_t> fixed;  // arguments that are constants or once results
  int64_t tasks = 1;
  int64_t flops = 0, min_bytes = 0;  // as of a kernel
};
// One array of a loop's state. Before the first trip `init` becomes `state`, which is the same
// memory; after each, `next` does. `next` is the same memory too, or (swapped) a buffer of its own
// of equal size that exchanges contents with the state's; the executor exchanges addresses.
struct Carried {
  View init, state, next;
  bool swapped = false;
};
// Runs `condition`, and while it leaves `predicate` true, `body` and `condition` again.
struct Loop {
  RegionId condition, body;
  View predicate;  // pred[]
  std::vector<Carried> carried;
};
// After region r, sources[r] becomes `result`, which is the same memory.
struct Joined {
  std::vector<View> sources;  // by region
  View result;
};
// Runs one region: by a pred true the first, false the second; by a number the one that it says,
// the last where there is none.
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
  // Of the model's own nodes (hlo/node_names.h) whose work it does, its own first, then those of
  // views of its results and of what was prepared for it. A command of a region, not the loop
  // around it, has the names of what it does.
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
  BufferId buffer;  // output without a buffer of its own: see `source`
  View source;      // output that is an input or a constant: copied at the end of a run
};

struct MemoryNumbers {            // always reported as three (docs/architecture.md)
  int64_t lower_bound_bytes = 0;  // most bytes live at one command
  int64_t plan_bytes = 0;         // size of the arena
  int64_t unshared_bytes = 0;     // sum of all temporaries
  bool optimal = false;           // no plan of this order is lower: at the bound, or proved
};

// Bytes of the run's arena that live on their own where memory is dynamic.
struct PoolBlock {
  int64_t offset_bytes = 0, bytes = 0;
};

// An array that goes on from run to run: a run reads it as an input and leaves it as an output,
// which lies on that input where the plan could have it so. Loaded, it begins with these bytes.
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
  // Hidden ports stand behind those that callers see (shown_inputs, shown_outputs): outputs of the
  // computed ones of `index_checks`, in order; then an input and an output for each of `states`.
  // The executor gives them memory.
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
  // Dynamic memory: the run's temporaries lie in these blocks, which a pool gives out one by one,
  // each from the first command that touches it to the last. By offset; none overlap. Empty: the
  // arena is one block.
  std::vector<PoolBlock> pool_blocks;
};

// How many of the inputs and of the outputs, the first ones, are not hidden.
size_t shown_inputs(const Program& program);
size_t shown_outputs(const Program& program);

// Bytes that an array takes in a buffer: dense, or with the padding of its layout; dynamic
// dimensions at their bound. Tokens take none. INT64_MAX where that overflows or has no bound.
int64_t stored_bytes(const tensor::Shape& shape);

// Once-section results as constants: `values` holds the bytes of every once buffer, by
// BufferId::index() (others are ignored). The result has no once section, and none of the buffers
// and constants that only the once section used.
Program fold_once(const Program& program, const std::vector<tensor::Literal>& values);
// The same of the whole block of once buffers, u8[once_bytes + host_once_bytes] (the host's last),
// whose memory they share.
Program fold_once(const Program& program, const tensor::Literal& once_block);

}  // namespace heddle::program
