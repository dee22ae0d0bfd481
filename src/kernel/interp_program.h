// A kernel compiled for the interpreter: every statement's expressions as straight-line
// instructions over slots of 64-bit cells.
#pragma once

#include <vector>

#include "kernel/kernel.h"
#include "kernel/mma.h"
#include "kernel/scalar.h"

namespace heddle::kernel {

// Cells [at, at + lanes) of a value; step 0 where it is uniform, one cell.
struct Slot {
  uint32_t at = 0;
  int step = 0;
};

// The address of a load, store, prefetch or copy. `reported` has a bit for each kind of fault that
// was reported already: each is reported once.
struct AccessPlan {
  BufferId buffer;
  std::vector<Slot> indices;
  const Stmt* stmt = nullptr;
  mutable uint32_t reported = 0;
};

struct Instr {
  enum class Kind : uint8_t { arithmetic, floors, load, convert, bitcast, lane, shuffle, dot };
  Kind kind = Kind::arithmetic;
  Op op = Op::add;
  Type from = Type::s64, to = Type::s64;
  bool guarded = false;
  int n = 1;  // lanes computed; 1 and not varying: once
  bool varying = false;
  uint32_t dst = 0;
  Slot a, b, c;  // load: a mask, b other
  LaneFunction function = nullptr;
  int64_t imm = 0;
  uint32_t access = 0;  // load
};

struct MmaPlan {
  const MmaDescriptor* mma = nullptr;
  uint32_t access[4] = {};  // of register 0 of d, a, b, c
};

struct Node {
  const Stmt* stmt = nullptr;
  uint32_t begin = 0, end = 0;  // instructions that compute what follows
  Slot extent, value, mask, var;
  uint32_t access = 0, source = 0, mma = 0;
  bool meets = false;  // it contains a barrier of the block (blocks.h)
  std::vector<Node> body, otherwise;
};

struct GroupPlan {
  std::vector<int64_t> extents;
  int64_t tasks = 1;
  std::vector<Slot> vars;
  std::vector<Node> body;
};

struct InterpProgram {
  std::vector<Instr> instrs;
  std::vector<AccessPlan> accesses;
  std::vector<MmaPlan> mmas;
  std::vector<std::vector<GroupPlan>> phases;
  std::vector<uint64_t> cells;  // constants and dims in place
  std::vector<Slot> var_slots;  // by VarId
  std::vector<int> var_widths;
};

// Precondition: verified. `kernel` must outlive the program.
InterpProgram make_program(const Kernel& kernel, const std::vector<int64_t>& dims);

}  // namespace heddle::kernel
