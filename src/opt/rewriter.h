// What passes over one computation share: a worklist that visits every instruction, operands first,
// and again whatever a replacement touched; and removal of what a replacement left without users.
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

// May be removed where nothing uses it, merged with its equal, moved.
bool is_removable(const Instr& instr);

class Rewriter {
 public:
  // Looks at `instr`; returns what shall stand for it (of the same shape, layouts aside: what has
  // another is dropped), or null. Built with `builder()`; it changes nothing else.
  struct Proposal {
    Instr* to = nullptr;
    std::string_view rule;     // empty: the context has been asked already
    bool drop_effect = false;  // what is replaced goes even if it has an effect
  };
  using Visit = std::function<Proposal(Instr*)>;

  // `wants`: which instructions are worth a visit; null: all.
  using Wants = bool (*)(const Instr* instr);
  Rewriter(Computation* computation, const PassContext& context, std::string_view pass,
           Wants wants = nullptr);
  hlo::Builder& builder() { return builder_; }
  // Until nothing is left to visit. The number of visits is bounded by the size of the computation;
  // a pass whose rules do not lower a common measure ends there, with a note.
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
  int64_t newest_id_ = -1;  // of instructions that have been seen
};

// Runs a visit made by `make` for each computation, callees first. True: something changed.
bool rewrite_module(hlo::Module& module, const PassContext& context, std::string_view pass,
                    const std::function<Rewriter::Proposal(Instr*, hlo::Builder&)>& visit,
                    Rewriter::Wants wants = nullptr);

// Appends a copy of `callee`'s instructions and returns its root. The callee's parameters become
// the arguments; annotations and control edges are kept. `added`, where given, gets the copies.
Instr* inline_computation(Computation* into, const Computation& callee,
                          const std::vector<Instr*>& arguments,
                          std::vector<Instr*>* added = nullptr);

}  // namespace heddle::opt
