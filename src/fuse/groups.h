// Private to fuse: groups of instructions under construction.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fuse/fuse.h"
#include "hlo/module.h"

namespace heddle::fuse {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

struct Group {
  std::vector<Instr*> members;  // in the computation's order
  bool has_dot = false, has_gemm = false;
  bool once = false;            // depends on constants alone
  std::unordered_set<const Instr*> copies;  // members that are computed again here
};

// A scratch module with one computation: the members with their outside operands as parameters.
// `outputs`: members that somebody outside reads, or the root; in members' order.
struct Extracted {
  std::unique_ptr<hlo::Module> module;
  std::vector<Instr*> operands, outputs;
};
Extracted extract(const std::vector<Instr*>& members, const std::string& name);

// Replaces the entry by one in which every group is a fusion instruction. A member that is no copy
// and that is read outside is an output.
void rebuild_entry(hlo::Module* module, const std::vector<Group*>& groups,
                   const std::unordered_set<const Instr*>& copies);

// Cheap enough to be computed again in every reader: data movement, scalars.
bool is_duplicable(const Instr* instr);
// Depends on constants alone, and is more than a scalar or its broadcast.
std::unordered_set<const Instr*> find_once(const Computation& computation);

inline constexpr const char* kUnpack = "heddle_unpack";  // annotation: undone by index maps
bool is_unpack(const Instr* instr);

}  // namespace heddle::fuse
