// Shared by passes over one computation: a worklist that visits every instruction, operands first,
// and again every instruction that a replacement affected; and removal of instructions that a
// replacement left without users.
#pragma once

#include <deque>
#include <functional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "hlo/builder.h"
#include "pass/pass.h"

namespace heddle::opt {

using hlo::Computation;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using hlo::Shape;
using pass::PassContext;
using tensor::Literal;
using tensor::Type;

// May be removed if unused, merged with an equal one, moved.
bool is_removable(const Instr& instr);

class Rewriter {
 public:
  // A visit to `instr` returns its replacement (of the same shape, ignoring layouts: one with
  // another shape is dropped), or null. Built with `builder()`; a visit must not change anything
  // else.
  struct Proposal {
    Instr* to = nullptr;
    std::string_view rule;     // empty: the context has already been asked
    bool drop_effect = false;  // the replaced instruction is removed even if it has an effect
  };
  using Visit = std::function<Proposal(Instr*)>;

  // `wants`: which instructions are worth a visit; null: all.
  using Wants = bool (*)(const Instr* instr);
  Rewriter(Computation* computation, const PassContext& context, std::string_view pass,
           Wants wants = nullptr);
  hlo::Builder& builder() { return builder_; }
  // Runs until nothing is left to visit. The number of visits is bounded by the size of the
  // computation; if a pass's rules do not lower a common measure, it ends there, with a note.
  // Returns whether anything changed.
  bool run(const Visit& visit);

 private:
  void push(Instr* instr);
  void push_new(Instr* to, int64_t newest);
  bool accept(Instr* from, const Proposal& proposal);
  void remove_dead(Instr* instr, bool push_readers, bool has_effect_too = false);

  Computation* computation_;
  const PassContext& context_;
  std::string_view pass_;
  Wants wants_;
  hlo::Builder builder_;
  std::deque<Instr*> work_;
  std::unordered_set<const Instr*> queued_;
  int64_t newest_id_ = -1;  // of instructions that have been visited
};

// Runs `visit` on each computation, callees first. True: something changed.
bool rewrite_module(hlo::Module& module, const PassContext& context, std::string_view pass,
                    const std::function<Rewriter::Proposal(Instr*, hlo::Builder&)>& visit,
                    Rewriter::Wants wants = nullptr);

// Appends a copy of `callee`'s instructions and returns its root. The arguments replace the
// callee's parameters; annotations and control edges are kept. `added`, if given, gets the copies.
Instr* inline_computation(Computation* into, const Computation& callee,
                          const std::vector<Instr*>& arguments,
                          std::vector<Instr*>* added = nullptr);

}  // namespace heddle::opt
