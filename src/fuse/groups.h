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
  bool once = false;                        // depends on constants alone: run at load time
  std::unordered_set<const Instr*> copies;  // members that are computed again here
  int kernel = -1;                          // GroupOrder
};

bool has(const Group& group, const Instr* instr);

bool is_product(const Instr* instr);  // a dot or a convolution

// The number of members it counts as, without integer arithmetic: that of random bits is long, but
// one body.
size_t weight(const Group& group);

// Whether the group is a single reshape, bitcast or copy, which is no work: it stays a view unless
// it joined something.
bool is_view(const Group& group);

// The value of which `output` is a reshape, with the same elements in the same order, if it is one
// of `outputs` too: its bytes serve both. Null: none.
const Instr* viewed_output(const Instr* output, const std::unordered_set<const Instr*>& outputs);

// A kernel of `instrs`, which are in order: its outputs are the ones that `leaves` says are read
// outside, except views of another output; instructions that no output needs are left out.
stage::Members members_of(const std::vector<Instr*>& instrs,
                          const std::function<bool(const Instr*)>& leaves);

// A computation whose instructions become commands: the entry, a region of a while or of a
// conditional, or the target of calls.
struct Covered {
  Computation* computation = nullptr;
  bool is_body = false;                            // of a while
  std::vector<std::pair<Instr*, size_t>> callers;  // and which of their called computations it is
};
std::vector<Covered> covered_computations(const hlo::Module& module);  // callees first

// The schedule of one instruction as a separate kernel.
stage::PlacedFusion place_alone(Instr* instr, const target::Target& target);

// Dots and convolutions of which only the right operand is constant: its layout may be chosen
// freely (transform_filters.cc, pack_panels.cc).
std::vector<Instr*> products_by_constants(const Covered& covered);
// Winograd: if the convolution's constant filter is stored transformed, the call that stands for
// the original filter (hlo::winograd_filter), always in one group with the convolution; else null.
Instr* transformed_filter(const Instr* conv);

bool has_control_edges(const Instr* instr);

// Whether it is cheap enough to be computed again in every reader: data movement, scalars. Never
// with control edges, which say when it runs.
bool is_duplicable(const Instr* instr);
// Instructions that depend on constants alone (in a loop's body: also on loop-invariant leaves),
// except scalars and their broadcasts, and factors of a sum that are unpacked from far fewer bytes.
// `constant`, if given: all that depend on these alone.
std::unordered_set<const Instr*> find_once(const Covered& covered,
                                           std::unordered_set<const Instr*>* constant = nullptr);
// Whether it reads a loop-invariant element of a loop's state.
bool is_invariant(const Instr* instr, const Covered& covered);

// Whether it has a stage form, and is computed by a kernel.
bool has_kernel(const Instr* instr);

// Whether it is a dynamic-update-slice of an array in memory that may be overwritten: a loop's
// state, a donated input, the result of another update. The program does it in place, in the time
// of the slice.
bool is_update(const Instr* instr);
bool may_be_overwritten(const Instr* array);  // a loop's state, a donated input
// Whether it has so many pieces that finding the piece of every element would take a kernel long:
// the pieces are copied into their places one by one.
bool is_long_concatenate(const Instr* instr);

// Whether it is the inverse of an array's packing, which index maps cancel.
bool is_unpack(const Instr* instr);
void set_unpack(Instr* instr);

}  // namespace heddle::fuse
