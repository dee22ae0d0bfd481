// Covers of random graphs with chains of several operators that cannot be fused, and with control
// edges: no kernel waits for itself, nothing is computed twice, order is preserved, and no internal
// check of the fuser fails. HEDDLE_RANDOM_GRAPHS: the number of graphs; HEDDLE_RANDOM_SEED: the
// first seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "fuse/fuse.h"
#include "fuse/groups.h"
#include "fuse/kernel_order.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "pass/random_order.h"

namespace heddle::fuse {
namespace {

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

using Holders = std::map<std::string, std::vector<const Instr*>>;

void add_members(const Computation& fused, const Instr* holder, Holders* holders) {
  for (const Instr* member : fused.instrs()) {
    if (member->is(Opcode::fusion)) add_members(*member->called()[0], holder, holders);
    if (!member->is(Opcode::parameter) && !member->is(Opcode::constant) &&
        !member->is(Opcode::tuple) && !member->is(Opcode::get_tuple_element) &&
        !member->is(Opcode::fusion))
      (*holders)[member->name()].push_back(holder);
  }
}

// By name of an instruction of `module`: the instructions of the covered entry that compute it,
// once for each time.
Holders holders_of(const hlo::Module& module, const hlo::Module& covered) {
  Holders holders;
  for (const Instr* instr : covered.entry()->instrs()) {
    if (instr->is(Opcode::fusion)) {
      add_members(*instr->called()[0], instr, &holders);
      continue;
    }
    const Instr* original = module.entry()->find(instr->name());
    if (original && original->opcode() == instr->opcode()) holders[instr->name()].push_back(instr);
  }
  return holders;
}

void check(const hlo::Module& module, const target::Target& target, Mode mode) {
  const std::unique_ptr<hlo::Module> covered = module.clone();
  std::vector<Refusal> refusals;
  ASSERT_TRUE(fuse(covered.get(), target, mode, &refusals).has_value());
  for (const Refusal& refusal : refusals) ASSERT_NE(refusal.code, kInternalCycle) << refusal.reason;
  const Status verified = hlo::verify(*covered);
  ASSERT_TRUE(verified) << verified.error().message;
  const Holders holders = holders_of(module, *covered);
  const InstrGraph instrs(*covered->entry());
  const KernelOrder order(instrs.graph);
  for (const Instr* instr : module.entry()->instrs()) {
    const auto found = holders.find(instr->name());
    if (found == holders.end()) continue;
    if (mode != Mode::xla && !is_duplicable(instr)) {
      ASSERT_EQ(found->second.size(), 1u) << instr->name();
    }
    for (const Instr* before : instr->control_predecessors()) {
      const auto earlier = holders.find(before->name());
      if (earlier == holders.end() || before->is(Opcode::parameter)) continue;
      for (const Instr* a : earlier->second)
        for (const Instr* b : found->second)
          ASSERT_TRUE(a == b || order.leads_to(instrs.vertex(a), instrs.vertex(b)))
              << before->name() << " need not run before " << instr->name();
    }
  }
}

TEST(RandomGraphs, CoversHaveAnOrder) {
  const uint64_t first = number_of("HEDDLE_RANDOM_SEED", 0);
  const uint64_t count = number_of("HEDDLE_RANDOM_GRAPHS", 300);
  const auto cpu = target::find_target("icelake"), gpu = target::find_target("sm_90");
  ASSERT_TRUE(cpu && gpu);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const auto module = pass::random_order_module(seed, 512);
    for (const Mode mode : {Mode::greedy, Mode::xla, Mode::stitch}) {
      check(*module, seed % 4 == 3 ? *gpu : *cpu, mode);
      ASSERT_FALSE(HasFatalFailure())
          << "seed " << seed << ", mode " << static_cast<int>(mode) << "\n"
          << hlo::to_string(*module);
    }
  }
}

}  // namespace
}  // namespace heddle::fuse
