// Private to fuse: groups of instructions under construction.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fuse/refusal.h"
#include "hlo/module.h"
#include "schedule/place.h"
#include "target/target.h"

namespace heddle::fuse {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

struct Group {
  std::vector<Instr*> members;              // in the computation's order
  bool has_dot = false;                     // or a convolution
  bool has_gemm = false;                    // its dot has a template
  bool once = false;                        // depends on constants alone
  std::unordered_set<const Instr*> copies;  // members that are computed again here
  int kernel = -1;                          // GroupOrder
};

bool has(const Group& group, const Instr* instr);

bool is_product(const Instr* instr);  // a dot or a convolution

// How many members it counts as: the integer arithmetic of random bits is long, and one body.
size_t weight(const Group& group);

// A reshape between dense arrays is no work at all: it stays a view unless it joined something.
bool is_view(const Group& group);

// The value behind reshapes that has all of `output`'s elements in their order and is one of
// `outputs` too: its bytes serve both. Null: none.
const Instr* viewed_output(const Instr* output, const std::unordered_set<const Instr*>& outputs);

// A kernel of `instrs`, which stand in order: its outputs are those that `leaves` says are read
// outside, but for views of another output; what these do not need is left out.
stage::Members members_of(const std::vector<Instr*>& instrs,
                          const std::function<bool(const Instr*)>& leaves);

// A computation whose instructions become commands: the entry, a region of a while or of a
// conditional, or what calls have in common.
struct Covered {
  Computation* computation = nullptr;
  bool is_body = false;                            // of a while
  std::vector<std::pair<Instr*, size_t>> callers;  // and which of their computations it is
};
std::vector<Covered> covered_computations(const hlo::Module& module);  // callees first

// The schedule of one instruction as a kernel of its own.
stage::PlacedFusion place_alone(Instr* instr, const target::Target& target);

// Dots and convolutions whose right sides, and nothing else, are constant: these may lie as is best
// (transform_filters.cc, pack_panels.cc).
std::vector<Instr*> products_by_constants(const Covered& covered);
// Winograd: where the convolution's constant filter lies transformed, the call that makes it the
// filter that it is (hlo::winograd_filter), always in one group with it; else null.
Instr* transformed_filter(const Instr* conv);

bool has_control_edges(const Instr* instr);

// Cheap enough to be computed again in every reader: data movement, scalars. Nothing with control
// edges: these say when it runs.
bool is_duplicable(const Instr* instr);
// Depends on constants alone (in a loop's body: and on loop-invariant leaves), and is more than
// a scalar or its broadcast, or of a sum's factor that unpacks far fewer bytes. `constant`, where
// given: all that depends on these alone.
std::unordered_set<const Instr*> find_once(const Covered& covered,
                                           std::unordered_set<const Instr*>* constant = nullptr);
// Reads a loop-invariant element of a loop's state.
bool is_invariant(const Instr* instr, const Covered& covered);

// Has a stage form, and is made by a kernel of its own or as part of one.
bool has_kernel(const Instr* instr);

// A box that is put into an array which lies in memory and may well be overwritten: a loop's state,
// a donated input, another such array. The program does it in place, in the time of the box.
bool is_update(const Instr* instr);
bool may_be_overwritten(const Instr* array);  // a loop's state, a donated input
// So many pieces that a kernel would ask of every element for long to which it belongs: they are
// copied into their places, each by itself.
bool is_long_concatenate(const Instr* instr);

// Undone by index maps: what packed an array does it the other way round.
bool is_unpack(const Instr* instr);
void set_unpack(Instr* instr);

}  // namespace heddle::fuse
