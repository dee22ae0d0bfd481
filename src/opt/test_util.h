// Shared by the tests of this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/module.h"
#include "pass/run.h"

namespace heddle::opt {

// Text with or without header; a bare list of instructions is wrapped in "ENTRY". CHECKs.
std::unique_ptr<hlo::Module> parse(std::string_view text);

// Runs a pipeline of this folder's passes, verifying after each and checking what they return.
// CHECKs that it succeeds.
pass::RunReport run(hlo::Module& module, std::string_view pipeline, pass::RunOptions options = {});

// The root as one expression: "add(p0, broadcast[4]{0}(p1))". Parameters are p<number>, scalar
// constants their value, other constants "constant[extents]"; movement shows the extents it gives
// and its attributes. A tuple shows its elements.
std::string expression(const hlo::Module& module);
std::string expression(const hlo::Instr* instr);

// Runs `pipeline` on `text` and returns the expression of the result; also compares the values
// before and after on random arguments (gtest failures), bit for bit unless `inexact`.
std::string simplified(std::string_view text, std::string_view pipeline, bool inexact = false);

// Expects that `pipeline` does not change `text`.
void expect_unchanged(std::string_view text, std::string_view pipeline);

// gtest failure that mentions `what` unless both modules give the same on random arguments. NaNs
// are equal to each other. `inexact`: within a tolerance for each type, for other orders of sums.
void expect_same_values(const hlo::Module& before, const hlo::Module& after, uint64_t seed,
                        bool inexact, std::string_view what);

// The same, bit for bit, on zeros of both signs, NaN, infinities, ends of ranges.
void expect_same_special_values(const hlo::Module& before, const hlo::Module& after,
                                std::string_view what);

// A row of a rule's tests. `text`: the instructions of an entry; `expected`: the result of the rule
// alone ("*": too long to write out), or empty if the rule must not apply.
struct RuleCase {
  std::string_view rule;
  std::string_view text;
  std::string_view expected;
};
void check_rule_cases(const std::vector<RuleCase>& cases);
// The tables of rules_*_test.cc.
const std::vector<RuleCase>& arithmetic_cases();
const std::vector<RuleCase>& logic_cases();
const std::vector<RuleCase>& convert_cases();
const std::vector<RuleCase>& reshape_cases();
const std::vector<RuleCase>& broadcast_cases();
const std::vector<RuleCase>& slice_cases();
const std::vector<RuleCase>& reduce_cases();

}  // namespace heddle::opt
